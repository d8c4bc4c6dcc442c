package failure

import (
	"fmt"
	"time"
)

// TooLarge is an ErrTooLarge for something with more bytes than the limit.
func TooLarge(what string, max int64) error {
	return New(ErrTooLarge, "%s is larger than the limit of %s", what, Size(max))
}

// TooMany is an ErrTooLarge for a number above the limit.
func TooMany(what string, max int64) error {
	return New(ErrTooLarge, "%s is over the limit of %d", what, max)
}

// TooSlow is an ErrSlow for something that did not happen within the limit. what says so, such as "the server gave no answer".
func TooSlow(what string, most time.Duration) error {
	return New(ErrSlow, "%s within the limit of %s", what, most)
}

// AliasesTooLarge is the ErrTooLarge of YAML whose aliases expand to too much. It does not repeat the parser's message, which would
// quote the document.
func AliasesTooLarge(what string) error {
	return New(ErrTooLarge, "the YAML aliases of %s stand for too much: write less with them in Git", what)
}

// Size formats a number of bytes for a message, such as "20 MiB".
func Size(n int64) string {
	for _, unit := range []struct {
		name  string
		bytes int64
	}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if n >= unit.bytes && n%unit.bytes == 0 {
			return fmt.Sprintf("%d %s", n/unit.bytes, unit.name)
		}
	}
	return fmt.Sprintf("%d bytes", n)
}
