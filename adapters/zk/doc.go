// Package zk shows leaders in ZooKeeper, and watches what it shows.
//
// Every component has a znode of its own, in one of three layouts: what Flink's retrieval services read, what Curator's
// LeaderLatch.getLeader reads, or JSON. A fence beside the readers' directories, written in the same transaction,
// carries the sequence: a write that is older than what is shown is refused, a late or repeated one too.
//
// A [Client] keeps one connection to one server of the ensemble, and one ZooKeeper session for each connection: nothing
// here is ephemeral, so there is nothing to save of a session. Whatever was watched is read again on the next one.
// Writes whose answer is lost count as unknown, never as failed.
//
// It writes no znode of a live election: real latches, and what a live Flink publishes, are only observed.
package zk
