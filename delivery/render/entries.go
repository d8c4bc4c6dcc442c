package render

import "fmt"

// maxYAMLEntries is how many entries the lists and mappings of YAML or JSON may have that is read in the operator itself: each takes a few
// hundred bytes while it is read.
const maxYAMLEntries = 100_000

// CheckEntries refuses YAML and JSON with more than 100,000 entries in its lists and mappings. They are counted from above, by the signs
// that come before each, and nothing is built. Whoever reads a text of a tenant in the operator asks it first. Its error is an ErrTooLarge.
func CheckEntries(data []byte) error {
	count := 0
	for i, c := range data {
		switch c {
		case ',', '\n', '[', '{':
			count++
		case ':', '-', '?':
			if i+1 == len(data) || data[i+1] == ' ' || data[i+1] == '\t' || data[i+1] == '\n' || data[i+1] == '\r' {
				count++
			}
		}
	}
	if count > maxYAMLEntries {
		return fmt.Errorf("has more than %d entries in its lists and mappings: %w", maxYAMLEntries, ErrTooLarge)
	}
	return nil
}
