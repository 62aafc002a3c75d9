// Package stream keeps the journal in one NATS JetStream stream, on a server inside this process or on one elsewhere.
//
// What is acknowledged is on disk: an embedded server syncs every write, and a stream that promises less than
// a journal needs is refused when it is opened. Events of concurrent callers share one sync, so a caller waits for at
// most one commit that is under way and its own. An append whose outcome is not known is settled by asking the leader
// of the stream before it is sent again; it is neither lost nor stored twice.
//
// Sequences are contiguous or reading stops: JetStream itself skips a damaged record without a word.
//
// Not promised: that nobody with the right to do so deletes the stream, and that the disk keeps what was synced.
package stream
