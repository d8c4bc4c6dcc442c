package yamlcheck

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxSearched is the size of a text in which the line that is wrong is searched. The search parses the text a few times.
const maxSearched = 64 << 10

const (
	expectedKey  = "did not find expected key"
	expectedItem = "did not find expected '-' indicator"
	secondColon  = "mapping values are not allowed in this context"
)

// indentation explains an error that wrong indentation causes: the line that has it, and the lines that it could be indented like. line is
// where the library places the error: the beginning of a block that the wrong line ends. ok is false for any other error.
func indentation(data []byte, line int, message string) (at Position, why string, ok bool) {
	switch {
	case len(data) > maxSearched:
		return at, "", false
	case message == expectedKey || message == expectedItem:
		line = firstRefused(data, expectedKey, expectedItem)
	case message != secondColon:
		return at, "", false
	}
	lines := strings.Split(string(data), "\n")
	if line < 1 || line > len(lines) {
		return at, "", false
	}
	why = explain(lines, line)
	return Position{Line: line, Column: 1 + leading(lines[line-1])}, why, why != ""
}

// firstRefused returns the first line with which the parser refuses the text with one of the messages; 0 if there is none.
func firstRefused(data []byte, messages ...string) int {
	ends := []int{0}
	for i, c := range data {
		if c == '\n' || i == len(data)-1 {
			ends = append(ends, i+1)
		}
	}
	low, high := 0, len(ends)-1 // Up to the line low it is YAML, up to the line high it is not.
	if !refused(data, messages) {
		return 0
	}
	for high-low > 1 {
		if middle := (low + high) / 2; refused(data[:ends[middle]], messages) {
			high = middle
		} else {
			low = middle
		}
	}
	return high
}

// refused reports whether the parser refuses a text with one of the messages. The library's errors are compared as text, because they have
// no types.
func refused(data []byte, messages []string) bool {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	for {
		err := decoder.Decode(new(yaml.Node))
		switch {
		case errors.Is(err, io.EOF):
			return false
		case err != nil:
			return slices.ContainsFunc(messages, func(m string) bool { return strings.Contains(err.Error(), m) })
		}
	}
}

// explain says how a line fits what stands above it. It returns "" where its indentation is not the cause.
func explain(lines []string, number int) string {
	own := columns(lines[number-1])[0]
	previous := nearest(lines, number, func(int) bool { return true })
	less := nearest(lines, number, func(column int) bool { return column < own })
	level := nearest(lines, number, func(column int) bool { return column == own })
	more := siblings(lines, number, max(less.line, 1), own)
	switch {
	case previous.line == 0:
		return ""
	case level.line > less.line && isItem(lines[number-1]) && !isItem(lines[level.line-1][level.column:]):
		return fmt.Sprintf("the line is an item of a list, but line %d, which is indented alike, is a field", level.line)
	case level.line > less.line && !isItem(lines[number-1]) && isItem(lines[level.line-1][level.column:]):
		return fmt.Sprintf("the line is a field, but line %d, which is indented alike, is an item of a list", level.line)
	case level.line > less.line && !strings.Contains(lines[previous.line-1], ":"):
		return fmt.Sprintf("line %d above it has no \":\" after its key", previous.line)
	case level.line > less.line:
		return ""
	case more.line > 0:
		return fmt.Sprintf("the line is indented by %s; indent it by %d, like line %d, or by %d, like line %d", spaces(own), more.column, more.line, less.column, less.line)
	}
	return fmt.Sprintf("the line is indented by %s, so it continues line %d, which is indented by %d; indent it alike, or end line %d with \":\"", spaces(own), less.line, less.column, less.line)
}

// place is where something begins in a text: the line from 1, and how many characters precede it there.
type place struct{ line, column int }

// nearest returns the last place that fits in the nearest line above; the zero place if none does.
func nearest(lines []string, number int, fits func(column int) bool) place {
	for i := number - 1; i > 0; i-- {
		text := strings.TrimSpace(lines[i-1])
		if text == "" || text[0] == '#' {
			continue
		}
		for _, column := range slices.Backward(columns(lines[i-1])) {
			if fits(column) {
				return place{i, column}
			}
		}
	}
	return place{}
}

// siblings returns the last place of the outermost block after a line that is indented more than a column.
func siblings(lines []string, number, after, column int) (outermost place) {
	for above := number; above > after; {
		next := nearest(lines, above, func(c int) bool { return c > column && (outermost.line == 0 || c < outermost.column) })
		if next.line < after {
			break
		}
		above, outermost = next.line, next
		for _, c := range columns(lines[next.line-1]) {
			if c > column && c < outermost.column {
				outermost.column = c
			}
		}
	}
	return outermost
}

// columns are the columns in which something begins in a line: "  - a: 1" has a list item in 2 and a field in 4.
func columns(line string) []int {
	all := []int{leading(line)}
	for rest := line[all[0]:]; isItem(rest) && strings.TrimSpace(rest) != "-"; {
		width := 1 + leading(rest[1:])
		all, rest = append(all, all[len(all)-1]+width), rest[width:]
	}
	return all
}

func leading(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

func isItem(line string) bool {
	line = strings.TrimSpace(line)
	return line == "-" || strings.HasPrefix(line, "- ")
}

func spaces(n int) string {
	if n == 1 {
		return "1 space"
	}
	return fmt.Sprintf("%d spaces", n)
}
