// Package terminal gives tests a terminal, on which commands print colours.
package terminal

import (
	"os"
	"regexp"
	"testing"
)

// Open opens a terminal that has colours, until the test ends.
func Open(t *testing.T) *os.File {
	t.Helper()
	t.Setenv("TERM", "xterm")
	t.Setenv("NO_COLOR", "") // So that it is set afterwards as it was before.
	if err := os.Unsetenv("NO_COLOR"); err != nil {
		t.Fatal(err)
	}
	device, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = device.Close() })
	return device
}

var names = map[string]string{"1": "bold", "2": "faint", "31": "red", "32": "green", "33": "yellow"}

var coloured = regexp.MustCompile("\x1b\\[([0-9]+)m(.*?)\x1b\\[0m")

// Coloured returns the coloured parts of an output, each as "<colour> <text>".
func Coloured(out string) (parts []string) {
	for _, match := range coloured.FindAllStringSubmatch(out, -1) {
		parts = append(parts, names[match[1]]+" "+match[2])
	}
	return parts
}
