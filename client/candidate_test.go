package client_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/candidate"
	"github.com/leadership-journal/journald/journal"
	"github.com/leadership-journal/journald/policy"
	"github.com/leadership-journal/journald/view"
)

// A candidate of a managed group is granted its term, leads across a restart of journald, and lets go when it ends.
func TestACandidateLeadsOverIt(t *testing.T) {
	both(t, func(t *testing.T, w *world, k kind) {
		p := policy.Default()
		p.Election = policy.Managed
		w.say(event("", &journal.Policy{Policy: p, Order: journal.Order{Actor: "ada", Reason: "journald elects"}}))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		leading, ended := make(chan uint64, 1), make(chan error, 1)
		cfg := candidate.Config{
			Client: k.open(t, k.address(w)), Name: "jm-1", Components: []string{"rest"}, Address: "http://jm-1", Logger: logger(t),
		}
		go func() {
			ended <- candidate.Run(ctx, cfg, candidate.Callbacks{OnGranted: func(ctx context.Context, term *candidate.Term) error {
				epoch, err := term.Epoch(ctx)
				leading <- epoch
				<-ctx.Done()
				return err
			}})
		}()
		epoch := <-leading
		w.stop()
		w.start()
		term := func() (term view.Term) {
			w.projector.Read(func(v *view.View) {
				if open := v.Group(group).Components["rest"].Term; open != nil {
					term = *open
				}
			})
			return term
		}
		led := term()
		require.Equal(t, epoch, led.Epoch)
		require.True(t, led.Confirmed)
		require.False(t, led.Released)
		cancel()
		require.NoError(t, <-ended)
		w.await(func() bool { over := term(); return over.Released || over.Epoch == 0 })
	})
}
