package zk

import (
	"context"
	"errors"
	"fmt"
	"path"

	gozk "github.com/go-zookeeper/zk"
	"github.com/google/uuid"

	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/projector"
)

// Why an object may not be written.
var (
	errContended = errors.New("a live election is under way there, which only may be observed: have observe: true, or another path")
	errEphemeral = errors.New("the node belongs to the session of a process that lives: have observe: true, or another path")
	errHidden    = errors.New("another node in the directory comes before ours, so that readers don't see it")
)

// push compares, and writes where something differs.
func (o *object) push(ctx context.Context, doc *projector.Document) (projector.Receipt, error) {
	s, err := o.target.client.session(ctx)
	if err != nil {
		return projector.Receipt{}, err
	}
	was, err := o.current(ctx, s, doc.Fresh)
	if err != nil {
		return projector.Receipt{}, classifyRead(err)
	}
	e := doc.Entries[o.component]
	c, err := o.layout.content(doc.Sequence, &e)
	if err != nil {
		return o.rejected(was, err), nil
	}
	if was.mark.Sequence > doc.Sequence {
		return projector.Receipt{}, fmt.Errorf("%w: %d, not %d", projector.ErrSuperseded, was.mark.Sequence, doc.Sequence)
	}
	p := o.plan(was, doc, &e, c)
	if !p.write {
		return projector.Receipt{Revision: was.revision}, nil
	}
	if err := o.allowed(ctx, s, was); err != nil {
		return projector.Receipt{}, err
	}
	next, err := o.replace(ctx, s, p)
	if err != nil {
		return projector.Receipt{}, err
	}
	return projector.Receipt{Revision: next.revision, Wrote: true, Changed: p.changed}, nil
}

// rejected is the receipt of what the layout can't hold.
func (o *object) rejected(was *version, rule error) projector.Receipt {
	return projector.Receipt{Revision: was.revision, Rejected: map[string]error{o.component: rule}}
}

// plan is what a document asks of a version.
type plan struct {
	was     *version
	content content
	keep    bool // the entry is as it has to be
	mark    *mark
	changed []string
	write   bool
}

func (o *object) plan(was *version, doc *projector.Document, e *projector.Entry, c content) *plan {
	p := &plan{
		was: was, content: c, keep: c.holds(was.entry, e.Leader),
		mark: &mark{Sequence: doc.Sequence, Projector: doc.Projector, Life: was.mark.Life},
	}
	if o.isLatch() {
		p.mark.Leader = e.Leader
	}
	var shown *journal.LeaderInfo
	if was.entry != nil {
		shown = o.layout.leader(was.entry, was.mark)
	}
	if !o.shows(shown, e.Leader) {
		p.changed = []string{o.component}
	} else if o.target.spec.Layout == Flink && e.Leader != nil {
		p.keep = true // releases of Java cut the same record into other blocks
	}
	p.write = !p.keep || len(p.changed) > 0 || was.fence == nil || was.mark.Sequence != doc.Sequence
	return p
}

// shows says whether readers see the leader, as far as the layout can tell.
func (o *object) shows(shown, leader *journal.LeaderInfo) bool {
	if shown == nil || leader == nil || o.target.spec.Layout != Flink {
		return sameLeader(shown, leader)
	}
	return shown.Session == leader.Session && shown.Address == leader.Address
}

// allowed says whether the object is ours to write.
func (o *object) allowed(ctx context.Context, s *session, was *version) error {
	refuse := func(err error) error { return fmt.Errorf("%w: %w", projector.ErrPermanent, err) }
	if was.entry != nil && was.entry.owner != 0 {
		return refuse(errEphemeral)
	}
	switch o.target.spec.Layout {
	case Latch:
		return o.allowedLatch(was, refuse)
	case Flink:
		if was.entry != nil {
			return nil
		}
		elections, err := s.list(ctx, path.Join(path.Dir(path.Dir(o.path)), "latch")) // of a Flink before ours wrote anything
		if err != nil {
			return classifyRead(err)
		}
		if elections != nil && len(elections.names) > 0 {
			return refuse(errContended)
		}
	}
	return nil
}

// allowedLatch keeps ours out of a directory where others elect. One that joins later waits behind it, and harms nobody.
func (o *object) allowedLatch(was *version, refuse func(error) error) error {
	switch {
	case len(was.children) == 0 || was.children[0].name == latchName:
		return nil
	case was.entry == nil:
		return refuse(errContended)
	}
	return refuse(fmt.Errorf("%w: %s", errHidden, was.children[0].name))
}

// replace writes a plan in the place of what it was made on, on condition that that is still there.
func (o *object) replace(ctx context.Context, s *session, p *plan) (*version, error) {
	if p.was.entry == nil && !p.keep || p.was.fence == nil {
		if err := o.makeParents(ctx, s, p); err != nil {
			return nil, classifyRead(err)
		}
	}
	if p.mark.Life == "" {
		p.mark.Life = uuid.NewString()
	}
	fence, err := p.mark.encode()
	if err != nil {
		return nil, err
	}
	o.begin(o.next(p, fence, nil))
	var stat *gozk.Stat
	err = o.target.client.opts.Wrap(ctx, func(ctx context.Context) error {
		var err error
		stat, err = s.transact(ctx, o.changes(p, fence))
		return err
	})
	if err != nil {
		o.finish(p.was, nil)
		return nil, classifyWrite(err)
	}
	next := o.next(p, fence, stat)
	o.finish(p.was, next)
	return next, nil
}

func (o *object) makeParents(ctx context.Context, s *session, p *plan) error {
	acl := o.target.client.acl
	if p.was.entry == nil && !p.keep {
		if err := s.makeParents(ctx, o.entryPath(), acl); err != nil {
			return err
		}
	}
	if p.was.fence == nil {
		return s.makeParents(ctx, o.fence, acl)
	}
	return nil
}

// entryPath is where our own entry lies.
func (o *object) entryPath() string {
	if o.isLatch() {
		return o.path + "/" + latchName
	}
	return o.path
}

// changes are a plan as one transaction. The fence's data come last, also where it is made: a creation is answered
// without its zxid.
func (o *object) changes(p *plan, fence []byte) []any {
	var all []any
	at, acl := o.entryPath(), o.target.client.acl
	switch was := p.was.entry; {
	case was == nil && p.keep:
	case was == nil:
		all = append(all, &gozk.CreateRequest{Path: at, Data: p.content.data, Acl: acl})
	case p.keep:
		all = append(all, &gozk.CheckVersionRequest{Path: at, Version: was.version})
	case p.content.gone:
		all = append(all, &gozk.DeleteRequest{Path: at, Version: was.version})
	default:
		all = append(all, &gozk.SetDataRequest{Path: at, Data: p.content.data, Version: was.version})
	}
	version := int32(0)
	if p.was.fence == nil {
		all = append(all, &gozk.CreateRequest{Path: o.fence, Acl: acl})
	} else {
		version = p.was.fence.version
	}
	life := o.fence + "/" + p.mark.Life
	if p.was.mark.Life == "" {
		all = append(all, &gozk.CreateRequest{Path: life, Acl: acl})
	} else {
		all = append(all, &gozk.CheckVersionRequest{Path: life, Version: 0})
	}
	return append(all, &gozk.SetDataRequest{Path: o.fence, Data: fence, Version: version})
}

// next is the version that a plan leads to. stat is the fence's; nil where it is not known yet.
func (o *object) next(p *plan, fence []byte, stat *gozk.Stat) *version {
	if stat == nil {
		stat = &gozk.Stat{}
	}
	written := newNode(fence, stat)
	entry := p.was.entry
	switch {
	case p.keep:
	case p.content.gone:
		entry = nil
	case entry == nil:
		entry = &node{data: p.content.data, zxid: written.zxid, created: written.zxid}
	default:
		entry = &node{data: p.content.data, zxid: written.zxid, created: entry.created, version: entry.version + 1}
	}
	if !o.isLatch() {
		return o.newVersion(entry, written, nil, 0)
	}
	var children []child
	for _, c := range p.was.children {
		if c.name != latchName {
			children = append(children, c)
		}
	}
	if entry != nil {
		children = append(children, child{latchName, entry})
	}
	return o.newVersion(nil, written, children, 0)
}
