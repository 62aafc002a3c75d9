// Command journald keeps a journal of leadership events, folds it into the view of who leads what, and makes backends
// show it. See README.md.
package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	os.Exit(run())
}

// run ends the context of the command with the first signal; the second one ends the process at once.
func run() int {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	ends := make(chan os.Signal, 1)
	signal.Notify(ends, os.Interrupt, syscall.SIGTERM)
	go func() {
		select {
		case s := <-ends:
			signal.Stop(ends)
			if s == syscall.SIGTERM {
				cancel(errTerminated)
			} else {
				cancel(errInterrupted)
			}
		case <-ctx.Done():
		}
	}()
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	p := &process{
		in: os.Stdin, out: os.Stdout, err: os.Stderr, environ: os.Environ(), hangups: hangups,
	}
	return p.execute(ctx, os.Args[1:])
}

var (
	errInterrupted = errors.New("interrupted")
	errTerminated  = errors.New("terminated")
)
