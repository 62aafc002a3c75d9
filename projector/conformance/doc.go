// Package conformance checks that a [projector.Target] keeps its promises, whatever backend it writes to.
//
// An adapter's test hands a [Suite] a way to make fresh objects, and with each a look behind the adapter's back: what
// readers see, what somebody else may write, and faults at the write. The suite then pushes, reads and watches as the
// projector would, crashes included: a crash is a Target thrown away and another one made.
//
// It knows no layout. It needs the components [First] and [Second] to be shown, of the group [Group]; where a target is
// one object for each component, the object is First's.
package conformance
