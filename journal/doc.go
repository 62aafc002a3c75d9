// Package journal is the contract that services, observers, operators and the projector speak through: one envelope,
// one Go type for each kind of event, and the rules that an event must keep before it is stored.
//
// An event is a CloudEvents 1.0 event in JSON structured mode. Its subject in the journal follows from its group, its
// component and its kind, its order from the sequence that the journal gives it; the publisher's clock is information
// only. What a reader does not know it keeps: unknown members survive decoding and encoding.
//
// The package is pure: no clock, no I/O. Where events are stored is the business of a [Log].
package journal
