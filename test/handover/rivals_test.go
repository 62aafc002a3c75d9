package handover_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/leadership-journal/journald/alive"
	"github.com/leadership-journal/journald/candidate"
	"github.com/leadership-journal/journald/client"
	"github.com/leadership-journal/journald/health"
	"github.com/leadership-journal/journald/journal"
)

// rival is one of the two that contend for a lease.
type rival interface {
	crash()   // it is gone, and says nothing
	release() // it ends in good order
}

// timing is how leases are renewed, in client-go's words.
type timing struct{ duration, deadline, retry time.Duration }

// elector is a rival by client-go.
type elector struct{ kill, stop context.CancelFunc }

func (e elector) crash()   { e.kill() }
func (e elector) release() { e.stop() }

// byClientGo starts one. A lease is given up in good order only where it is told to stop.
func (a *arena) byClientGo(lease, name string) elector {
	b := a.B
	ctx, kill := context.WithCancel(b.Context())
	var orderly atomic.Bool
	lock := &resourcelock.LeaseLock{
		LeaseMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: lease}, Client: a.client.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: name},
	}
	le, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: orderlyLock{lock, &orderly}, LeaseDuration: a.timing.duration, RenewDeadline: a.timing.deadline, RetryPeriod: a.timing.retry, ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: func(ctx context.Context) { <-ctx.Done() }, OnStoppedLeading: func() {}},
	})
	require.NoError(b, err)
	ended := make(chan struct{})
	go func() { defer close(ended); le.Run(ctx) }()
	b.Cleanup(func() { kill(); <-ended })
	return elector{kill, func() { orderly.Store(true); kill() }}
}

// orderlyLock is one that a crashed process does not release.
type orderlyLock struct {
	resourcelock.Interface
	orderly *atomic.Bool
}

var errCrashed = errors.New("the process is gone")

func (l orderlyLock) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	if r.HolderIdentity == "" && !l.orderly.Load() {
		return errCrashed
	}
	return l.Interface.Update(ctx, r)
}

// member is a rival by package candidate.
type member struct {
	life *mortal
	stop context.CancelFunc
	ill  atomic.Bool
}

func (m *member) crash()   { m.life.die() }
func (m *member) release() { m.stop() }

// byJournald starts one, with a health check that fails when it is told to.
func (a *arena) byJournald(group, name string) *member {
	b := a.B
	c, err := client.Open(b.Context(), client.Options{Server: a.server, Group: group, Instance: name, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(b, err)
	ctx, stop := context.WithCancel(b.Context())
	m := &member{life: newMortal(c), stop: stop}
	ended := make(chan error, 1)
	go func() {
		ended <- candidate.Run(ctx, candidate.Config{
			Client: m.life, Name: name, Components: []string{"leader"}, Address: "http://" + name, StopWithin: time.Second,
			Logger: slog.New(slog.DiscardHandler), Checks: []health.Check{{
				Name: "ill", Period: 100 * time.Millisecond, Deadline: 50 * time.Millisecond, Probe: func(context.Context) error {
					if m.ill.Load() {
						return errors.New("it is ill")
					}
					return nil
				},
			}},
		}, candidate.Callbacks{OnGranted: func(ctx context.Context, _ *candidate.Term) error { <-ctx.Done(); return nil }})
	}()
	b.Cleanup(func() {
		stop()
		if err := errors.Join(<-ended, c.Close()); err != nil {
			b.Log(err)
		}
	})
	return m
}

// mortal is a client of a process that can be gone from one moment to the next.
type mortal struct {
	client.Client
	dead context.Context
	die  context.CancelFunc
}

func newMortal(c client.Client) *mortal {
	m := &mortal{Client: c}
	m.dead, m.die = context.WithCancel(context.Background())
	return m
}

// living is a context that ends with the process; what is asked for afterwards is never answered.
func (m *mortal) living(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	if m.dead.Err() != nil {
		cancel()
	}
	stop := context.AfterFunc(m.dead, cancel)
	return ctx, func() { stop(); cancel() }
}

func (m *mortal) Append(ctx context.Context, events ...journal.Event) ([]client.Ack, error) {
	living, end := m.living(ctx)
	defer end()
	acks, err := m.Client.Append(living, events...)
	if m.dead.Err() != nil {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return acks, err
}

func (m *mortal) Renew(ctx context.Context, key alive.Key, beat alive.Heartbeat, revision uint64) (uint64, error) {
	living, end := m.living(ctx)
	defer end()
	newer, err := m.Client.Renew(living, key, beat, revision)
	if m.dead.Err() != nil {
		<-ctx.Done()
		return 0, ctx.Err()
	}
	return newer, err
}

func (m *mortal) Follow(ctx context.Context, name string, tell func(client.Standing) error) error {
	living, end := m.living(ctx)
	defer end()
	err := m.Client.Follow(living, name, tell)
	if m.dead.Err() != nil {
		<-ctx.Done()
		return ctx.Err()
	}
	return err
}

func groupName(n int) string { return fmt.Sprintf("g%02d", n) }
