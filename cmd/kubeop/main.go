// Command kubeop is the command line of kubeop. It shows what the operator does with the objects of a cluster, requests work from it, and checks
// repositories before they are pushed. It needs only the rights of the person who calls it.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	_ "time/tzdata" // Time zones of freeze windows, also where the image or the machine has none.

	"github.com/go-logr/logr"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

func main() {
	log.SetLogger(logr.Discard()) // Without a logger, the library prints a stack to the terminal of a command that runs for half a minute.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	code := Run(ctx, os.Args, streams, clock.RealClock{})
	stop()
	os.Exit(code)
}
