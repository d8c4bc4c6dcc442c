package boot

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// ReadyLine is the last line of the progress of a cluster that came up.
const ReadyLine = "READY"

// Progress tells a person what is done, one line per step with the seconds it took.
type Progress struct {
	mu  sync.Mutex
	out io.Writer
}

// NewProgress returns a progress that writes to out.
func NewProgress(out io.Writer) *Progress { return &Progress{out: out} }

// Step runs the step and reports it when it is done. A reader that went away is none of our business.
func (p *Progress) Step(name string, run func() error) error {
	began := time.Now()
	if err := run(); err != nil {
		return err
	}
	p.Say("  %-52s %5.1f s", name, time.Since(began).Seconds())
	return nil
}

// Say reports one line.
func (p *Progress) Say(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, _ = fmt.Fprintf(p.out, format+"\n", args...)
}
