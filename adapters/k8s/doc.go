// Package k8s shows leaders in Kubernetes: in ConfigMaps, as Flink reads them or as JSON, and in Leases.
//
// A write is one Update with the resourceVersion of what was compared, so whatever comes in between makes it fail,
// unwritten. An object that this package may fence carries the journal's sequence as an annotation, written with the
// data; it is left alone once it shows a higher one. A guarded object, which is a system's own, is never fenced: an
// entry is put back only where there is none and the lock names its candidate, both read in one get. Everything else
// in an object stays as it is, fields that this version does not know included.
//
// What is known of an object is what its watch saw or what was written last; it is read anew only when it is not known,
// when the document asks for it, or where it is a system's own: those are renewed all the time and seldom written, and
// no more is kept of what is seen than what they show.
//
// A watch reports a gap and all that is shown when it begins, and again whenever something may have been missed; from
// then on only what concerns leadership, so that renewals of a lock are silent. It goes on through outages. A connection
// that has gone mute is noticed after 15 s (over HTTP/2; else when the watch was to end, within 11 minutes), rights that
// were given back within 8 s, and an object that can't be watched for 5 s is reported as a gap, so that the journal does
// not go on as if it were seen. Rights that are taken away end a watch only when it ends by itself, as with any client.
//
// The cost is one watch for each object, on connections of up to 100, which the API server multiplexes
// (docs/adr/009-one-watch-for-each-object.md).
//
// It needs the verbs get, list, watch, create and update on the objects that it is told of, by name; create not for
// guarded ones, and neither create nor update for those that are only observed.
package k8s
