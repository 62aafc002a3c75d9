// Command kubebuild builds the kube-apiserver and etcd that tests run, unless they are in the cache already,
// and prints the directory that holds them.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/leadership-journal/journald/internal/testenv"
)

func main() {
	if err := build(); err != nil {
		fmt.Fprintln(os.Stderr, "kubebuild:", err)
		os.Exit(1)
	}
}

func build() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	binaries, err := testenv.KubeBinaries(ctx, os.Stderr)
	if err != nil {
		return err
	}
	fmt.Println(filepath.Dir(binaries.APIServer))
	return nil
}
