// Package output writes what commands print: tables, pages and objects, for people and for programs.
package output

import (
	"io"
	"regexp"
	"strings"
	"unicode"

	"k8s.io/cli-runtime/pkg/printers"
)

// Paint colours text for terminals. The zero Paint colours nothing.
type Paint struct{ on bool }

// PaintFor returns a Paint for a writer: with colours on a terminal that has them, unless NO_COLOR is set.
func PaintFor(w io.Writer) Paint { return Paint{on: printers.AllowsColorOutput(w)} }

// Red is for what is wrong.
func (p Paint) Red(s string) string { return p.with("31", s) }

// Green is for what works.
func (p Paint) Green(s string) string { return p.with("32", s) }

// Yellow is for what is in progress, or deserves a look.
func (p Paint) Yellow(s string) string { return p.with("33", s) }

// Bold is for titles.
func (p Paint) Bold(s string) string { return p.with("1", s) }

// Faint is for what is of less interest.
func (p Paint) Faint(s string) string { return p.with("2", s) }

// Stream gives the n-th of several streams a colour of its own.
func (p Paint) Stream(n int, s string) string {
	codes := []string{"36", "35", "33", "32", "34", "96", "95", "93"}
	return p.with(codes[n%len(codes)], s)
}

// Reset ends what text of others may have begun.
func (p Paint) Reset() string {
	if !p.on {
		return ""
	}
	return "\x1b[0m"
}

func (p Paint) with(code, s string) string {
	if !p.on || s == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

// colour is a sequence that Paint writes. Others, such as those that hide text, do not reach a terminal.
var colour = regexp.MustCompile("\x1b\\[(0|1|2|3[1-6]|9[356])m")

// Safe returns a writer that leaves out what a terminal would execute, except colours. Names, messages and logs are written by programs of
// tenants, and could otherwise change what the person sees. Each Write must end between characters.
func Safe(w io.Writer) io.Writer { return safe{w} }

type safe struct{ io.Writer }

func (w safe) Write(p []byte) (int, error) {
	var clean strings.Builder
	rest := string(p)
	for rest != "" {
		at := colour.FindStringIndex(rest)
		if at == nil {
			at = []int{len(rest), len(rest)}
		}
		clean.WriteString(strings.Map(harmless, rest[:at[0]]))
		clean.WriteString(rest[at[0]:at[1]])
		rest = rest[at[1]:]
	}
	if _, err := io.WriteString(w.Writer, clean.String()); err != nil {
		return 0, err
	}
	return len(p), nil
}

// harmless replaces control characters, and those that change the direction of text.
func harmless(r rune) rune {
	if r == '\n' || r == '\t' || !unicode.IsControl(r) && !unicode.Is(unicode.Bidi_Control, r) {
		return r
	}
	return unicode.ReplacementChar
}
