package boot

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// ReadyLine is the last line of the progress of a cluster that has started.
const ReadyLine = "READY"

// Progress prints one line per step, with the seconds that it took.
type Progress struct {
	mu  sync.Mutex
	out io.Writer
}

// NewProgress returns a progress that writes to out.
func NewProgress(out io.Writer) *Progress { return &Progress{out: out} }

// Step runs the step and prints its line when it is done. It ignores errors of printing, because the reader may have gone away.
func (p *Progress) Step(name string, run func() error) error {
	began := time.Now()
	if err := run(); err != nil {
		return err
	}
	p.Say("  %-52s %5.1f s", name, time.Since(began).Seconds())
	return nil
}

// Say prints one line.
func (p *Progress) Say(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, _ = fmt.Fprintf(p.out, format+"\n", args...)
}
