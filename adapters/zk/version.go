package zk

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/leadership-journal/journald/journal"
)

// version is an object at one moment.
type version struct {
	entry    *node // nil: there is none
	fence    *node
	mark     *mark
	children []child // layout latch: of its directory, in the order in which Curator's readers take them
	revision uint64  // zxid; rises with every change
}

// child is a node in a latch's directory.
type child struct {
	name string
	node *node
}

// latchName is our own node in a latch's directory. Curator takes the number behind the last "latch-" for its turn, and
// nothing that it makes itself comes before this one.
const (
	latchMark = "latch-"
	latchName = "_c_7f0c6e0e-8f6a-5b0c-9d3e-6a6f75726e61-latch-0000000000"
)

// newVersion puts together what was read of an object's parts. absent is the newest transaction by which anything can
// have been removed that isn't there.
func (o *object) newVersion(entry, fence *node, children []child, absent uint64) *version {
	v := &version{entry: entry, fence: fence, mark: newMark(fence), children: children, revision: absent}
	slices.SortStableFunc(v.children, func(a, b child) int { return strings.Compare(turn(a.name), turn(b.name)) })
	for _, c := range v.children {
		if c.name == latchName {
			v.entry = c.node
		}
		v.revision = max(v.revision, c.node.zxid)
	}
	for _, n := range []*node{entry, fence} {
		if n != nil {
			v.revision = max(v.revision, n.zxid)
		}
	}
	return v
}

// turn is what Curator's LockInternals sorts a latch's children by.
func turn(name string) string {
	if i := strings.LastIndex(name, latchMark); i >= 0 {
		return name[i+len(latchMark):]
	}
	return name
}

// read asks the server for everything that the object consists of.
func (o *object) read(ctx context.Context, s *session) (*version, error) {
	var entry, fence *node
	var children []child
	var absent uint64
	var err error
	if o.isLatch() {
		children, absent, err = o.readChildren(ctx, s)
	} else {
		entry, absent, err = s.getOrAbsent(ctx, o.path)
	}
	if err != nil {
		return nil, err
	}
	if !o.target.spec.Observe {
		var unfenced uint64
		if fence, unfenced, err = s.getOrAbsent(ctx, o.fence); err != nil {
			return nil, err
		}
		absent = max(absent, unfenced)
	}
	v := o.newVersion(entry, fence, children, absent)
	if v.mark.Life != "" {
		life, err := s.get(ctx, o.fence+"/"+v.mark.Life)
		if err != nil {
			return nil, err
		}
		if life == nil {
			v.mark.Life = "" // somebody took it: it gets another
		}
	}
	return v, nil
}

// getOrAbsent reads a node, or since when there is none.
func (s *session) getOrAbsent(ctx context.Context, path string) (*node, uint64, error) {
	n, err := s.get(ctx, path)
	if err != nil || n != nil {
		return n, 0, err
	}
	since, err := s.absentSince(ctx, path)
	return nil, since, err
}

// readChildren reads a latch's directory; a child that goes in between has it read again.
func (o *object) readChildren(ctx context.Context, s *session) ([]child, uint64, error) {
	for {
		l, err := s.list(ctx, o.path)
		if err != nil {
			return nil, 0, err
		}
		if l == nil {
			since, err := s.absentSince(ctx, o.path)
			return nil, since, err
		}
		children := make([]child, 0, len(l.names))
		for _, name := range l.names {
			n, err := s.get(ctx, o.path+"/"+name)
			if err != nil {
				return nil, 0, err
			}
			if n != nil {
				children = append(children, child{name, n})
			}
		}
		if len(children) == len(l.names) {
			return children, l.zxid, nil
		}
	}
}

// sight is what an object shows that concerns leadership.
type sight struct {
	revision     uint64
	sequence     uint64
	entry        *journal.LeaderInfo
	participants []string // where others take part
}

func (o *object) see(v *version) sight {
	s := sight{revision: v.revision, sequence: v.mark.Sequence}
	shown := v.entry
	if o.isLatch() {
		shown = nil
		if len(v.children) > 0 {
			shown = v.children[0].node
		}
		s.participants = participants(v.children)
	}
	if shown != nil {
		s.entry = o.layout.leader(shown, v.mark)
	}
	return s
}

// participants are the ids of all that contend, the leader's first; none where there is our node only.
func participants(children []child) []string {
	if len(children) == 1 && children[0].name == latchName {
		return nil
	}
	var ids []string
	for _, c := range children {
		ids = append(ids, string(c.node.data))
	}
	return ids
}

func (s *sight) same(other *sight) bool {
	return s.sequence == other.sequence && sameLeader(s.entry, other.entry) && slices.Equal(s.participants, other.participants)
}

// moved says whether a later sight is a change of leadership: a sequence that rises is none.
func (s *sight) moved(to *sight) bool {
	return to.sequence < s.sequence || !sameLeader(s.entry, to.entry) || !slices.Equal(s.participants, to.participants)
}

func sameLeader(a, b *journal.LeaderInfo) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Session == b.Session && a.Candidate == b.Candidate && a.Address == b.Address && maps.Equal(a.Properties, b.Properties)
}
