package projector

import (
	"time"

	"github.com/leadership-journal/journald/view"
)

// ReadLive is [Projector.Read] for what the records alone do not say: it hands out now, by the log's clock, and what this
// instance has seen of the candidates' liveness too. One that does not act has seen nothing, and takes everybody for
// alive.
func (p *Projector) ReadLive(read func(v *view.View, now time.Time, live view.Liveness)) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	read(p.core.View(), p.now(), p.core.Liveness())
}

// Liveness is what the core has seen of the candidates' liveness. It changes with the next Poll, and is only read.
func (c *Core) Liveness() view.Liveness { return c.live.seen }
