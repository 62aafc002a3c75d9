// Package candidate is the Go SDK of a service that leads: it joins a group, shows that it lives, and has the service lead
// exactly while it may.
//
// In a managed group journald elects. A term begins with a grant; the service's leader work starts once its confirmation
// was answered "applied", and its context ends when the term does: told to yield, ended by the journal, or out of reach
// for so long that the lease might lapse. The candidate counts its lease from before it sent a renewal, and ends the
// context when two thirds of it have passed, whatever hangs: the last third is the work's, to stop. Work that can't be
// sure to stop in time asks [Term.Held] before each step that must not happen twice, and hands the term's epoch to what it
// writes to, as a fencing token: a lease alone can't hold back what was already on its way.
//
// With an [Elector] the service's own election goes on as it did, and journald records it, shows its outcome and tells the
// leader when it should yield. There the service leads whenever its elector says so, journald reachable or not.
//
// The cost: one connection for the standing of the candidate, and one renewal every few seconds, which leaves no trace in
// the journal.
package candidate
