package fetch

import (
	"context"
	"fmt"
	"io"
	"time"
)

const (
	kibibyte = 1 << 10
	mebibyte = 1 << 20
	gibibyte = 1 << 30
)

// limits bound what one source can cost. They are fields so that tests can lower them; sizes are in bytes, and what a
// limit of time ends is transient.
type limits struct {
	refs        int64 // the list of a remote's refs
	pack        int64 // what one Git fetch transfers
	history     int64 // what is transferred to tell whether a commit descends from another
	generations int   // commits one after the other that are looked at for that
	objects     int64 // objects in one Git fetch
	inflated    int64 // all other objects of one Git fetch, inflated, those that are rebuilt from differences as a whole
	oversized   int64 // files above the limit of object in one Git fetch, inflated: they are kept and cannot be read
	object      int64 // one Git object, inflated
	large       int64 // the memory of one Git fetch above which it is unpacked alone
	deltaChain  int64 // the inflated objects that must be in memory to rebuild one of them
	packs       int   // packs in a store before it is started afresh
	file        int64 // a file that is read
	files       int   // files and folders listed below one Folder
	depth       int   // folders inside each other
	index       int64 // a Helm repository's index.yaml
	indexDoc    int64 // what of an index.yaml is parsed at once: one version, or all of it when Helm did not write it
	chart       int64 // a chart archive

	artifact     int64 // an archive of manifests
	unpacked     int64 // the same inflated
	unpackedFile int64 // a file in it
	path         int   // the length of a path in it
	paths        int64 // all its paths together

	unpack time.Duration // unpacking one pack, the wait for a place left out
	whole  time.Duration // one fetch that moves, however long the caller would wait
	answer time.Duration // connecting to a server until it begins to answer
	stall  time.Duration // between two pieces of an answer
}

func defaultLimits() limits {
	return limits{
		refs:        32 * mebibyte,
		pack:        256 * mebibyte,
		history:     64 * mebibyte,
		generations: 10_000,
		objects:     250_000,
		inflated:    1 * gibibyte,
		oversized:   512 * mebibyte,
		object:      64 * mebibyte,
		large:       32 * mebibyte,
		deltaChain:  256 * mebibyte,
		packs:       50,
		file:        5 * mebibyte,
		files:       50_000,
		depth:       32,
		index:       64 * mebibyte,
		indexDoc:    2 * mebibyte,
		chart:       20 * mebibyte,

		artifact:     64 * mebibyte,
		unpacked:     256 * mebibyte,
		unpackedFile: 16 * mebibyte,
		path:         1024,
		paths:        8 * mebibyte,

		unpack: 5 * time.Minute,
		whole:  time.Hour,
		answer: 15 * time.Second,
		stall:  30 * time.Second,
	}
}

func tooLarge(what string, limit int64) error {
	return fail(ErrTooLarge, "%s is larger than the limit of %s", what, bytesText(limit))
}

// aliasesTooLarge is what render.CheckAliases found; its own words quote the document.
func aliasesTooLarge(what string) error {
	return fail(ErrTooLarge, "the YAML aliases of %s stand for too much: write less with them", what)
}

func chartTooLarge(limit int64) error {
	return fail(ErrChartTooLarge, "the chart is larger than the limit of %s: leave out of it what it does not need", bytesText(limit))
}

func tooMany(what string, limit int64) error {
	return fail(ErrTooLarge, "%s is over the limit of %d", what, limit)
}

func tooSlow(what string, limit time.Duration) error {
	return fail(errSlow, "%s the limit of %s", what, limit)
}

func bytesText(n int64) string {
	switch {
	case n >= gibibyte && n%gibibyte == 0:
		return fmt.Sprintf("%d GiB", n/gibibyte)
	case n >= mebibyte && n%mebibyte == 0:
		return fmt.Sprintf("%d MiB", n/mebibyte)
	case n >= kibibyte && n%kibibyte == 0:
		return fmt.Sprintf("%d KiB", n/kibibyte)
	}
	return fmt.Sprintf("%d bytes", n)
}

// limited fails with ErrTooLarge once more than limit bytes were read, instead of cutting the stream short.
type limited struct {
	r    io.Reader
	left int64
	over error
}

func limit(r io.Reader, what string, max int64) *limited {
	return &limited{r: r, left: max, over: tooLarge(what, max)}
}

func (l *limited) Read(p []byte) (int, error) {
	n, err := l.r.Read(p)
	if l.left -= int64(n); l.left < 0 {
		return 0, l.over
	}
	return n, err
}

// interruptible ends reading from a local file when its context ends: unpacking hostile data can take long.
type interruptible struct {
	ctx context.Context
	io.ReadSeeker
}

func (i interruptible) Read(p []byte) (int, error) {
	if err := i.ctx.Err(); err != nil {
		return 0, err
	}
	return i.ReadSeeker.Read(p)
}
