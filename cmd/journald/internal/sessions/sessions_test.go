package sessions_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/cmd/journald/internal/sessions"
	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/projector"
)

// pushed keeps what it is to show.
type pushed struct {
	projector.Target
	doc *projector.Document
}

func (p *pushed) Push(_ context.Context, doc *projector.Document) (projector.Receipt, error) {
	p.doc = doc
	return projector.Receipt{Revision: 7}, nil
}

func TestATargetShowsUUIDsAndTheDocumentStaysAsItIs(t *testing.T) {
	names, target := sessions.Names{}, &pushed{}
	leader := &journal.LeaderInfo{Session: "S1", Address: "a"}
	doc := &projector.Document{Sequence: 5, Entries: map[string]projector.Entry{"web": {Leader: leader}, "gone": {}}}
	receipt, err := names.Target(target).Push(t.Context(), doc)
	require.NoError(t, err)
	require.EqualValues(t, 7, receipt.Revision)
	id := names.UUID("S1")
	require.Equal(t, "S1", names[id])
	require.EqualValues(t, 5, target.doc.Sequence)
	require.Equal(t, &journal.LeaderInfo{Session: id.String(), Address: "a"}, target.doc.Entries["web"].Leader)
	require.Nil(t, target.doc.Entries["gone"].Leader)
	require.Equal(t, "S1", leader.Session)
	require.NotEqual(t, id, names.UUID("S2"))
}
