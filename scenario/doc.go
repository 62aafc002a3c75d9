// Package scenario runs leadership incidents that are written as files: what happened, and what must come of it.
//
// A scenario runs the real fold, the real decisions and the real projector core in a world of its own, with a virtual
// clock, a log in memory, and targets that can fail, hang, be changed by others or be lost. Time stands still but for
// `advance`, so that a run takes milliseconds and gives the same result every time. After every step the invariants of
// the view are checked, whatever the file expects.
//
// A [Backend] puts real objects in the place of the simulated ones.
package scenario
