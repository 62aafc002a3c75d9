package health

import (
	"context"
	"sync"
)

const backlog = 1024 // results that wait for their report

// queue holds the newest results that were not reported.
type queue struct {
	waiting chan struct{} // has something when results are there

	mu  sync.Mutex
	all []Result
}

func newQueue() queue { return queue{waiting: make(chan struct{}, 1)} }

func (q *queue) add(r Result) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.all = append(q.all, r)
	q.all = q.all[max(len(q.all)-backlog, 0):]
	select {
	case q.waiting <- struct{}{}:
	default:
	}
}

func (q *queue) next() (r Result, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.all) == 0 {
		return Result{}, false
	}
	r, q.all = q.all[0], q.all[1:]
	return r, true
}

func (q *queue) deliver(ctx context.Context, report func(context.Context, Result)) {
	for {
		select {
		case <-q.waiting:
		case <-ctx.Done():
			return
		}
		for ctx.Err() == nil {
			r, ok := q.next()
			if !ok {
				break
			}
			report(ctx, r)
		}
	}
}
