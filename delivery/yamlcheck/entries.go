package yamlcheck

import (
	"bytes"
	"fmt"
)

// maxEntries limits the entries in the lists and mappings of a text that the operator itself parses: each takes a few hundred bytes while
// it is parsed.
const maxEntries = 100_000

// Entries refuses YAML and JSON with more than 100,000 entries in its lists and mappings, as MaxEntries counts them. Its error
// is an ErrTooLarge.
func Entries(data []byte) error {
	if MaxEntries(data) > maxEntries {
		return fmt.Errorf("has more than %d entries in its lists and mappings: %w", maxEntries, ErrTooLarge)
	}
	return nil
}

// MaxEntries returns an upper bound of the number of entries in the lists and mappings of YAML or JSON text. It counts the characters that
// precede an entry, and builds nothing. An item such as [a: b], which is a mapping without braces, counts as one with the entry inside it.
func MaxEntries(data []byte) int {
	count := 1
	for i, c := range data {
		switch c {
		case ',', '[', '{', '\n':
			count++
		case '-', '?':
			if i+1 < len(data) && (data[i+1] == ' ' || data[i+1] == '\t') {
				count++
			}
		case '\r', 0x85, 0xa8, 0xa9:
			if endsLine(data[:i+1]) && !bytes.HasPrefix(data[i:], []byte("\r\n")) {
				count++
			}
		}
	}
	return count
}

// endsLine reports whether a text ends with a line break of YAML that is not "\n".
func endsLine(text []byte) bool {
	for _, end := range []string{"\r", "\u0085", "\u2028", "\u2029"} {
		if bytes.HasSuffix(text, []byte(end)) {
			return true
		}
	}
	return false
}
