// Package journald builds the journald that is shipped, runs it as a process and speaks to it over HTTP, for tests that
// hold all of it together to something.
//
// A process listens on a port that the system chose, and is gone at the end of its test. Where the tests are killed, on
// Linux it dies with them. What it said is kept, the newest 400 lines of it, and is told when its test fails.
//
// The cost: each test binary builds the program once, in about a second where the build cache has its packages.
//
//	var program journald.Program
//
//	func TestMain(m *testing.M) { os.Exit(program.Run(m)) }
//
//	func TestServes(t *testing.T) {
//		p := program.Start(t, "--data", t.TempDir())
//		...
//	}
package journald
