package main

import "github.com/leadership-journal/journald/journal"

// unfenced is the rule that FLINK-40114 is about, on a map of its own: a change event is taken as a reason to publish
// what is confirmed at that moment, nothing included.
type unfenced struct {
	store     map[string]*journal.LeaderInfo // the shared ConfigMap
	confirmed map[string]*journal.LeaderInfo // what this process confirmed in its present session
	erased    int
}

func newUnfenced() *unfenced {
	return &unfenced{store: map[string]*journal.LeaderInfo{}, confirmed: map[string]*journal.LeaderInfo{}}
}

// revoke forgets what was confirmed, and rightly leaves the entry.
func (u *unfenced) revoke(component string) { delete(u.confirmed, component) }

// confirm publishes. Its own write is a change of the object that all components share.
func (u *unfenced) confirm(component string, leader *journal.LeaderInfo, all []string) {
	u.confirmed[component], u.store[component] = leader, leader
	u.changed(all)
}

// changed handles a change event, as whoever holds the lock does for each component.
func (u *unfenced) changed(all []string) {
	for _, component := range all {
		switch confirmed := u.confirmed[component]; {
		case confirmed == nil && u.store[component] != nil:
			delete(u.store, component) // "we lead, and have confirmed nothing: so nothing is to be shown"
			u.erased++
		case confirmed != nil:
			u.store[component] = confirmed
		}
	}
}
