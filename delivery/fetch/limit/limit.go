// Package limit has the sizes by which sources are limited, readers that end at a limit, and the errors that name one.
package limit

import (
	"bytes"
	"fmt"
	"io"
	"time"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
)

// Sizes in bytes.
const (
	KiB = 1 << 10
	MiB = 1 << 20
	GiB = 1 << 30
)

// TooLarge is the ErrTooLarge of what takes more bytes than the limit.
func TooLarge(what string, max int64) error {
	return failure.New(failure.ErrTooLarge, "%s is larger than the limit of %s", what, Text(max))
}

// TooMany is the ErrTooLarge of what is counted.
func TooMany(what string, max int64) error {
	return failure.New(failure.ErrTooLarge, "%s is over the limit of %d", what, max)
}

// TooSlow is the ErrSlow of what takes longer than the limit.
func TooSlow(what string, most time.Duration) error {
	return failure.New(failure.ErrSlow, "%s the limit of %s", what, most)
}

// Text writes a number of bytes for a message, such as "20 MiB".
func Text(n int64) string {
	switch {
	case n >= GiB && n%GiB == 0:
		return fmt.Sprintf("%d GiB", n/GiB)
	case n >= MiB && n%MiB == 0:
		return fmt.Sprintf("%d MiB", n/MiB)
	case n >= KiB && n%KiB == 0:
		return fmt.Sprintf("%d KiB", n/KiB)
	}
	return fmt.Sprintf("%d bytes", n)
}

// Reader is a reader of at most a number of bytes. What is longer ends with an error, instead of being cut short.
type Reader struct {
	r    io.Reader
	left int64
	over error
}

// NewReader reads at most max bytes from r, and is the error over from then on.
func NewReader(r io.Reader, max int64, over error) *Reader {
	return &Reader{r: r, left: max, over: over}
}

// Read implements io.Reader.
func (l *Reader) Read(p []byte) (int, error) {
	n, err := l.r.Read(p)
	if l.left -= int64(n); l.left < 0 {
		return 0, l.over
	}
	return n, err
}

// Beginning keeps the first Max bytes of what is written to it.
type Beginning struct {
	Max  int
	text bytes.Buffer
}

// Write implements io.Writer. It takes everything.
func (b *Beginning) Write(p []byte) (int, error) {
	b.text.Write(p[:min(len(p), max(0, b.Max-b.text.Len()))])
	return len(p), nil
}

// Bytes is what was kept.
func (b *Beginning) Bytes() []byte { return b.text.Bytes() }

// AliasesTooLarge is the ErrTooLarge of YAML whose aliases stand for too much. The parser's own words would quote the document.
func AliasesTooLarge(what string) error {
	return failure.New(failure.ErrTooLarge, "the YAML aliases of %s stand for too much: write less with them", what)
}
