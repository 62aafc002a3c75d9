package zk

import (
	"context"
	"maps"

	gozk "github.com/go-zookeeper/zk"
)

// part is a node that is watched, or the children of one. What was read of it holds as long as its watch has not
// fired: the server tells of a change before it shows it.
type part struct {
	path     string
	children bool
	fired    chan<- struct{} // has room for one; that it is full is as good

	armed bool // guarded by the client's mu

	node    *node // what was read
	listing *listing
	absent  uint64 // see absentSince; 0: it is there
}

// watch has events of a part's path reach it.
func (c *Client) watch(p *part) {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.watched[p.path]
	if all == nil {
		all = map[*part]struct{}{}
		c.watched[p.path] = all
	}
	all[p] = struct{}{}
}

func (c *Client) unwatch(p *part) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.watched[p.path], p)
	if len(c.watched[p.path]) == 0 {
		delete(c.watched, p.path)
	}
}

// notify takes note of an event of the server's.
func (c *Client) notify(e gozk.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for p := range c.watched[e.Path] {
		if !p.concerned(e.Type) {
			continue
		}
		p.armed = false
		select {
		case p.fired <- struct{}{}:
		default:
		}
	}
}

func (p *part) concerned(t gozk.EventType) bool {
	switch t {
	case gozk.EventNodeChildrenChanged:
		return p.children
	case gozk.EventNodeDataChanged:
		return !p.children
	}
	return true // made or deleted
}

// stale says whether a part has to be read, and if so counts it as watched again: an event that comes while it is read
// is about something newer.
func (c *Client) stale(p *part) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	was := p.armed
	p.armed = true
	return !was
}

func (c *Client) disarm(p *part) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p.armed = false
}

// refresh reads a part whose watch has fired.
func (p *part) refresh(ctx context.Context, s *session) (err error) {
	p.node, p.listing, p.absent = nil, nil, 0
	if p.children {
		p.listing, err = s.listWatched(ctx, p.path)
	} else {
		p.node, err = s.getWatched(ctx, p.path)
	}
	if err == nil && p.listing == nil && p.node == nil {
		p.absent, err = s.absentSince(ctx, p.path)
	}
	return err
}

// parts are all that an object consists of.
type parts struct {
	client  *Client
	object  *object
	fired   chan struct{}
	entry   *part // nil in layout latch
	listing *part // layout latch
	nodes   map[string]*part
	fence   *part // nil where it is only observed
}

func newParts(o *object) *parts {
	ps := &parts{client: o.target.client, object: o, fired: make(chan struct{}, 1), nodes: map[string]*part{}}
	if o.isLatch() {
		ps.listing = ps.add(o.path, true)
	} else {
		ps.entry = ps.add(o.path, false)
	}
	if !o.target.spec.Observe {
		ps.fence = ps.add(o.fence, false)
	}
	return ps
}

func (ps *parts) add(path string, children bool) *part {
	p := &part{path: path, children: children, fired: ps.fired}
	ps.client.watch(p)
	return p
}

// all are the parts as they are now, those first that say which others there are.
func (ps *parts) all() []*part {
	var all []*part
	for _, p := range []*part{ps.listing, ps.entry, ps.fence} {
		if p != nil {
			all = append(all, p)
		}
	}
	for _, p := range ps.nodes {
		all = append(all, p)
	}
	return all
}

func (ps *parts) close() {
	for _, p := range ps.all() {
		ps.client.unwatch(p)
	}
}

// read is the object as it is: what has changed is read until nothing has.
func (ps *parts) read(ctx context.Context, s *session) (*version, error) {
	for again := true; again; {
		again = false
		for _, p := range ps.all() {
			if !ps.client.stale(p) {
				continue
			}
			again = true
			if err := p.refresh(ctx, s); err != nil {
				ps.client.disarm(p)
				return nil, err
			}
			if p == ps.listing {
				ps.follow(p.listing)
			}
		}
	}
	return ps.version(), nil
}

// follow watches the children that there are, and no others.
func (ps *parts) follow(l *listing) {
	gone := maps.Clone(ps.nodes)
	if l != nil {
		for _, name := range l.names {
			delete(gone, name)
			if ps.nodes[name] == nil {
				ps.nodes[name] = ps.add(ps.object.path+"/"+name, false)
			}
		}
	}
	for name, p := range gone {
		ps.client.unwatch(p)
		delete(ps.nodes, name)
	}
}

func (ps *parts) version() *version {
	var entry, fence *node
	var children []child
	absent := uint64(0)
	for _, p := range ps.all() {
		absent = max(absent, p.absent)
	}
	if ps.entry != nil {
		entry = ps.entry.node
	}
	if ps.fence != nil {
		fence = ps.fence.node
	}
	if ps.listing != nil && ps.listing.listing != nil {
		absent = max(absent, ps.listing.listing.zxid)
		for name, p := range ps.nodes {
			if p.node != nil {
				children = append(children, child{name, p.node})
			}
		}
	}
	return ps.object.newVersion(entry, fence, children, absent)
}
