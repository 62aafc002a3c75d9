// Package health finds out whether a process can do its work, which is more than that it is alive: its disk takes
// writes, its dependencies answer, its work moves on.
//
// Each check runs by itself at its period, and every run has a deadline. What fails, panics or does not answer in time is
// a failing run with the reason. A check may hang for ever, as a dead disk does: it costs one goroutine (and, while it is
// in the kernel, one thread) and no more, since a check that hangs is not begun again before it has returned, while each
// further period is a failing run. What a run says after its deadline counts for nothing. A hung check delays no other one,
// nor whoever asks how the last runs went.
package health
