// Package server shows the journal and the view over HTTP, and takes events in.
//
// An answer of 201 means that the events are on disk; nothing of a refused request is stored. What can't be accepted is
// answered by problem+json (RFC 9457) that names the field and, in a batch, the event. Views are what this instance has
// folded, which may be a moment behind the journal: every answer names the sequence that it rests on, and wait=applied
// has an append wait for it.
//
// Nobody is asked who they are. Requests that a browser sends on behalf of another site are refused.
package server
