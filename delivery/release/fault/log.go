package fault

import (
	"errors"
	"slices"
	"strings"
	"sync"
)

// MaxLines is how many lines of Helm's log, and how many warnings, are kept.
const MaxLines = 10

// Log keeps what Helm logs during one action: the last ten lines, and the first ten warnings. An action logs from several goroutines.
type Log struct {
	// WarningPrefix is the beginning of the API server's warnings.
	WarningPrefix string

	mu   sync.Mutex
	last []string
	// warned are the warnings, each once.
	warned []string
}

// Add adds a line.
func (l *Log) Add(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	line = strings.TrimSpace(line)
	l.last = append(l.last, line)
	l.last = l.last[max(0, len(l.last)-MaxLines):]
	if strings.HasPrefix(line, l.WarningPrefix) && len(l.warned) < MaxLines && !slices.Contains(l.warned, line) {
		l.warned = append(l.warned, line)
	}
}

// Last returns the last lines, masked and each on one line.
func (l *Log) Last(hide func(string) string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return brief(l.last, hide)
}

// Warnings returns the API server's warnings, masked and each on one line.
func (l *Log) Warnings(hide func(string) string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return brief(l.warned, hide)
}

func brief(lines []string, hide func(string) string) []string {
	out := make([]string, len(lines))
	for i, line := range lines {
		out[i] = Brief(Plain(errors.New(line), hide)).Error()
	}
	return out
}
