// Package limit has units of size, and readers and writers that stop at one.
package limit

import (
	"bytes"
	"io"
)

// Sizes in bytes.
const (
	KiB = 1 << 10
	MiB = 1 << 20
	GiB = 1 << 30
)

// Reader reads at most a number of bytes. Longer input ends with an error, instead of being cut short.
type Reader struct {
	r    io.Reader
	left int64
	over error
}

// NewReader reads at most max bytes from r. Once more were read, Read returns over.
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

// Beginning keeps the first Max bytes that are written to it.
type Beginning struct {
	Max  int
	text bytes.Buffer
}

// Write implements io.Writer. It accepts everything, and drops what is beyond Max.
func (b *Beginning) Write(p []byte) (int, error) {
	b.text.Write(p[:min(len(p), max(0, b.Max-b.text.Len()))])
	return len(p), nil
}

// Bytes returns the bytes that were kept.
func (b *Beginning) Bytes() []byte { return b.text.Bytes() }
