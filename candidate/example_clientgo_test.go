package candidate_test

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/leadership-journal/journald/candidate"
	"github.com/leadership-journal/journald/client"
)

// leases is client-go's leader election, with one Lease for each component. client-go gives a lease up when its context is
// cancelled, whether the leader's work has stopped or not; so it gets one that is cancelled only after lead has returned.
func leases(api kubernetes.Interface, namespace, identity string, timing leaderelection.LeaderElectionConfig) candidate.Elector {
	return func(ctx context.Context, component string, lead func(context.Context, candidate.Won) error) error {
		election, end := context.WithCancel(context.WithoutCancel(ctx))
		defer end()
		leading, worked := make(chan struct{}), make(chan error, 1)
		config := timing
		config.ReleaseOnCancel = true
		config.Lock = &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: namespace, Name: component},
			Client:     api.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
		}
		config.Callbacks = leaderelection.LeaderCallbacks{
			OnStartedLeading: func(held context.Context) {
				close(leading)
				held, cancel := context.WithCancel(held)
				defer context.AfterFunc(ctx, cancel)() // told to stop, it stops its work first
				worked <- lead(held, candidate.Won{})
				end()
			},
			OnStoppedLeading: func() {},
		}
		elector, err := leaderelection.NewLeaderElector(config)
		if err != nil {
			return err
		}
		defer context.AfterFunc(ctx, func() { // nothing has to stop where it has not won
			select {
			case <-leading:
			default:
				end()
			}
		})()
		elector.Run(election)
		select {
		case <-leading:
			return <-worked
		default:
			return nil
		}
	}
}

// A service that elects with client-go goes on doing so: the journal records its terms, and tells its leader to yield when
// it is unfit.
func Example_clientGo() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	logger := slog.New(slog.NewTextHandler(os.Stderr, nil))
	config, err := rest.InClusterConfig()
	if err != nil {
		logger.Error("no cluster", "error", err)
		return
	}
	journal, err := client.Open(ctx, client.Options{Server: "http://journald:8086", Group: "shop", Logger: logger})
	if err != nil {
		logger.Error("no journal", "error", err)
		return
	}
	defer func() { _ = journal.Close() }()
	timing := leaderelection.LeaderElectionConfig{LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second}
	err = candidate.Run(ctx, candidate.Config{
		Client: journal, Name: "shop-0", Components: []string{"reconciler"}, Address: "http://shop-0:8080", Logger: logger,
		Elector: leases(kubernetes.NewForConfigOrDie(config), "shop", "shop-0", timing),
	}, candidate.Callbacks{OnGranted: reconcile})
	if err != nil {
		logger.Error("candidate ended", "error", err)
	}
}

// reconcile is the leader's work.
func reconcile(ctx context.Context, t *candidate.Term) error {
	if err := t.Ready(ctx, true, ""); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}
