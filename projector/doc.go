// Package projector makes backends show what the journal says.
//
// It folds the journal into the view, appends what is to be decided, and pushes what is to be shown: one writer for
// each object, with a mailbox of one, so that only the newest intent is ever waited for. Every attempt leaves a push
// record.
//
// Many instances may run. One acts: the one whose takeover record is the newest. Who tries when is settled by a lease,
// but nothing rests on it: a decision whose group has moved is void in the fold, so is a record of an instance that
// was replaced, and a target that shows a higher sequence is left alone. A paused, partitioned or resumed instance can
// at worst waste a request.
//
// [Core] is stepped: it has no clock, no goroutine and does no I/O. [Projector] is the loop around it.
package projector
