// Package agent takes part in a leadership journal for a process that knows nothing of it: beside that process it runs
// checks, tells the journal how they went, keeps the candidate's liveness key, and has the process do what the journal
// wants through hooks, which are HTTP requests or programs.
//
// Where the group's election is its own, the process contends as it always did, and the agent has it give its leadership up
// when it is to yield. Where journald elects, the agent begins and ends the process's leading. The process stops through a
// hook, which takes its time and may fail: until it has succeeded the agent does not say that the leading has ended, so
// that nobody is elected before the lease has run out. An agent that is killed can stop nothing. What must not happen
// twice takes the epoch that each hook is given, as a fencing token.
//
// Checks and hooks run apart from what keeps the lease. What comes before each renewal is a write to the disk: one that
// hangs lets the lease run out, one that fails is a matter for the checks.
package agent
