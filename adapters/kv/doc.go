// Package kv shows every group's leaders in a NATS key-value bucket, so that any NATS client can read and watch who
// leads, with nothing else configured.
//
// The key of a component is its group's and its own name, escaped as in subjects with = for %. A write is conditional
// on the key's revision, and refused where the sequence there is higher. No key is ever deleted: what was withdrawn is
// shown as "leader": null, and keeps the fence.
//
// A server that syncs to disk does so once for each message, or once for an atomic batch of them. A lone write goes at
// once; what comes while it is under way becomes the next batch. The cost: the acknowledgement of a write that shares a
// batch comes with that of the whole batch.
package kv
