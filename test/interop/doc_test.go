// Package interop_test has real clients of other systems read what journald writes: Curator's LeaderLatch as Druid uses
// it, and the high-availability services of Flink. They are small Java programs, in java, that tell what they read; each
// test writes through an adapter to a real backend, and holds what was told against what was written. Druid's incident is
// played with the journald that is shipped, its agents, real disks and a latch in ZooKeeper.
//
// Curator is Debian's, Flink comes from Maven Central by pom.xml. What Maven and the compiler said is kept in the user's
// cache directory, by content: only the first run on a machine needs the network.
package interop_test
