package stage

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// Timeline prints progress, each line with the seconds since the beginning.
type Timeline struct {
	out   io.Writer
	began time.Time
}

// NewTimeline returns a Timeline that begins now.
func NewTimeline(out io.Writer) *Timeline { return &Timeline{out: out, began: time.Now()} }

// Title prints the title of a new section.
func (t *Timeline) Title(format string, args ...any) {
	_, _ = fmt.Fprintf(t.out, "\n%s\n", fmt.Sprintf(format, args...))
}

// Say prints a line.
func (t *Timeline) Say(format string, args ...any) {
	text := strings.ReplaceAll(strings.TrimSpace(fmt.Sprintf(format, args...)), "\n", "\n           ")
	_, _ = fmt.Fprintf(t.out, "%7.1f s  %s\n", time.Since(t.began).Seconds(), text)
}
