// Package call has what every command needs of the call that it runs in.
package call

import (
	"io"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/utils/clock"

	"github.com/kubeop/kubeop/cmd/kubeop/output"
	"github.com/kubeop/kubeop/cmd/kubeop/server"
	"github.com/kubeop/kubeop/cmd/kubeop/target"
)

// Call is one call of the command line.
type Call struct {
	*target.Connection
	// In is standard input.
	In io.Reader
	// Out and Err are standard output and standard error, without sequences that a terminal would execute.
	Out, Err io.Writer
	// Data is standard output for JSON and YAML, which is left as it is unless a terminal shows it.
	Data io.Writer
	// Paint colours what is written to Out.
	Paint output.Paint
	Clock clock.Clock
}

// New returns a call with these streams.
func New(streams genericiooptions.IOStreams, clock clock.Clock) *Call {
	data := streams.Out
	if printers.IsTerminal(data) {
		data = output.Safe(data)
	}
	return &Call{
		Data: data, Connection: target.New(), Clock: clock,
		In: streams.In, Out: output.Safe(streams.Out), Err: output.Safe(streams.ErrOut), Paint: output.PaintFor(streams.Out),
	}
}

// Source returns what the command reads from: the manager of --server, or the cluster.
func (c *Call) Source() (target.Source, error) {
	manager, err := c.Manager()
	switch {
	case err != nil:
		return nil, err
	case manager.Server != "":
		return server.New(manager, c.Clock)
	}
	return c.Cluster()
}

// Through returns the management API of the manager of --server, or nil if none is named: then the command asks the cluster.
func (c *Call) Through() (*server.Manager, error) {
	settings, err := c.Manager()
	if err != nil || settings.Server == "" {
		return nil, err
	}
	return server.Connect(c.Manager, "")
}

// Page returns an empty page on standard output.
func (c *Call) Page() *output.Page { return output.NewPage(c.Out, c.Paint) }
