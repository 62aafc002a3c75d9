// Package k8s shows leaders in Kubernetes: in ConfigMaps, as Flink reads them or as JSON, and in Leases.
//
// A write is one Update with the resourceVersion of what was compared, so whatever comes in between makes it fail,
// unwritten. An object that this package may fence carries the journal's sequence as an annotation, written with the
// data; it is left alone once it shows a higher one. A guarded object, which is a system's own, is never fenced: an
// entry is put back only where there is none and the lock names its candidate, both read in one get. Everything else
// in an object stays as it is, fields that this version does not know included.
//
// What is known of an object is what its watch saw or what was written last; it is read anew only when it is not known
// or the document asks for it. The cost is one watch for each object, which the API server multiplexes.
//
// It needs the verbs get, list, watch, create and update on the objects that it is told of, by name; create not for
// guarded ones, and neither create nor update for those that are only observed.
package k8s
