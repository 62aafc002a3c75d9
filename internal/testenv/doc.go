// Package testenv starts the real systems that journald is tested against, and the faults between them:
// a kube-apiserver with etcd, NATS and ZooKeeper servers, a TCP proxy that cuts, delays and freezes, and an HTTP
// proxy that fails requests to the API server before or after they were carried out.
//
// Everything listens on loopback ports that the system chose, is stopped before the test ends, and leaves no
// process and no file behind, even where the test process is killed. Nothing is skipped: what is missing is
// built, and what can't be built fails with the command that builds or installs it.
//
// Functions that take a testing.TB fail the test and clean up after it. The Start functions are the same
// things for programs: they return errors, and their owner stops them.
//
// The cost: the first use on a machine builds kube-apiserver and etcd (about four minutes on two cores, kept
// in the user's cache directory); after that an API server starts in a few seconds, a ZooKeeper server in one,
// an ensemble of three in three. One for each package is enough:
//
//	var kube testenv.SharedKubernetes
//
//	func TestMain(m *testing.M) { os.Exit(kube.Run(m)) }
//
//	func TestPush(t *testing.T) {
//		cfg := kube.Config(t)
//		namespace := testenv.Namespace(t, cfg)
//		...
//	}
package testenv
