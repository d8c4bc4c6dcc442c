package fault

import (
	"fmt"
	"strings"
)

// maxListed is how many errors of several objects are shown: a full quota refuses all of them with the same text.
const maxListed = 3

// several are joined errors, mostly one for each object, shown on one line.
type several []error

func (s several) Error() string {
	var b strings.Builder
	for i, err := range s {
		if i == maxListed {
			fmt.Fprintf(&b, "; and %d more", len(s)-i)
			break
		}
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(err.Error())
	}
	return b.String()
}

func (s several) Unwrap() []error { return s }

// Join is errors.Join, but the text is on one line.
func Join(errs ...error) error {
	var all several
	for _, err := range errs {
		if more, ok := err.(several); ok { //nolint:errorlint // what is wrapped stays one
			all = append(all, more...)
		} else if err != nil {
			all = append(all, err)
		}
	}
	switch len(all) {
	case 0:
		return nil
	case 1:
		return all[0]
	}
	return all
}
