package server_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A name that no event can have would be a request that ends the connection to NATS for good.
func TestAFilterLongerThanAnyNameIsRefused(t *testing.T) {
	h := start(t, options{})
	for _, query := range []string{"?group=" + strings.Repeat("a", 5000), "?group=g&component=" + strings.Repeat("a", 129)} {
		require.Equal(t, http.StatusBadRequest, h.do("GET", "/v1/events"+query, "", "").status)
		require.Equal(t, http.StatusBadRequest, h.do("GET", "/v1/watch"+query, "", "").status)
	}
	require.Equal(t, http.StatusOK, h.do("GET", "/v1/events?group="+strings.Repeat("a", 128), "", "").status)
	h.say(`{"kind":"grant","group":"g","component":"rest","candidate":"jm-1","session":"S1"}`)
}

// What nests almost as deep as JSON readers take can be stored, but not shown inside an answer.
func TestDeepNestingIsRefusedAndShownAsTextWhereItIsStored(t *testing.T) {
	h := start(t, options{})
	deep := strings.Repeat("[", 9000) + strings.Repeat("]", 9000)
	event := `{"specversion":"1.0","id":"d","source":"candidate/x","type":"leadership.grant.v1","subject":"deep/c",` +
		`"data":{"candidate":"x","session":"d","u":` + deep + `}}`
	answer := h.do("POST", "/v1/events", "application/json", event)
	require.Equal(t, http.StatusBadRequest, answer.status)

	_, err := h.log.JetStream().Publish(t.Context(), "leadership.deep.c.grant", []byte(event))
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, h.do("GET", "/v1/events?group=deep", "", "").status)
}

func TestALastEventIDThatNoRecordHasIsRefused(t *testing.T) {
	h := start(t, options{})
	require.Equal(t, http.StatusBadRequest, h.do("GET", "/v1/watch", "", "", "Last-Event-ID", "18446744073709551615").status)
}
