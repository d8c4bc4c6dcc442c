// Package pack reads Git packs, which are untrusted. It checks the sizes that a pack claims before it allocates memory for them, and
// computes the name of each object for the index. A few bytes can inflate to gigabytes, so large packs are read in a sandboxed process; see
// Reader.
package pack

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/idxfile"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/limit"
)

// Limits of one pack; sizes are in bytes.
type Limits struct {
	// Objects is the number of objects in the pack.
	Objects int64
	// Inflated is the inflated size of all objects together; a delta counts with the object that results from it.
	Inflated int64
	// Object is the largest object that can be read. Larger files are stored but cannot be read; Oversized is the inflated size of these
	// together.
	Object, Oversized int64
	// Chain is how much memory the objects of one delta chain may need.
	Chain int64
	// Base is the largest object of the store that a delta may have as its base, and Bases is the size of all such objects together.
	Base, Bases int64
}

// CPU is the processor time that a pack within the limits may take: 20 s for each GiB that it inflates to, on a slow machine.
func (l Limits) CPU() time.Duration {
	return time.Duration(float64(20*time.Second) * float64(l.Inflated+l.Oversized) / limit.GiB)
}

// small are the limits of packs that take milliseconds to read.
var small = Limits{Objects: 2000, Inflated: limit.MiB, Object: limit.MiB, Chain: limit.MiB, Base: limit.MiB, Bases: limit.MiB}

// within returns the smaller of each pair of limits.
func (l Limits) within(o Limits) Limits {
	return Limits{
		Objects: min(l.Objects, o.Objects), Inflated: min(l.Inflated, o.Inflated), Object: min(l.Object, o.Object), Oversized: min(l.Oversized, o.Oversized),
		Chain: min(l.Chain, o.Chain), Base: min(l.Base, o.Base), Bases: min(l.Bases, o.Bases),
	}
}

// Store has the objects that a thin pack may leave out and use as bases of deltas.
type Store interface {
	// Size returns the size of an object in bytes, or an error if the store does not have it.
	Size(plumbing.Hash) (int64, error)
	// Object returns the kind and the content of an object.
	Object(plumbing.Hash) (plumbing.ObjectType, []byte, error)
}

// Contents are the contents of a pack.
type Contents struct {
	Objects []idxfile.Entry
	// Bases are the objects of the store that the pack leaves out and uses as bases of deltas: without them it cannot be read (a thin
	// pack).
	Bases []plumbing.Hash
}

// Read checks a pack and computes the names of its objects. Errors: ErrTooLarge; any other error means that the pack is damaged.
func Read(from io.ReadSeeker, limits Limits, store Store) (*Contents, error) {
	return read(&reading{pack: from, limits: limits, store: store})
}

// errLarge means that a pack is not small.
var errLarge = errors.New("the pack is not small")

// readSmall is Read for a pack that takes milliseconds. For any other pack, it returns errLarge, also after milliseconds.
func readSmall(from io.ReadSeeker, limits Limits, store Store) (*Contents, error) {
	contents, err := read(&reading{pack: from, limits: limits.within(small), store: store, small: true})
	if errors.Is(err, failure.ErrTooLarge) {
		return nil, errLarge
	}
	return contents, err
}

func read(r *reading) (contents *Contents, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("the pack is damaged: it cannot be unpacked: %v", cause)
		}
	}()
	if err := r.scan(); err != nil {
		return nil, err
	}
	if err := r.resolve(); err != nil {
		return nil, fmt.Errorf("indexing the pack: %w", err)
	}
	contents = &Contents{Bases: r.built}
	for _, o := range r.objects {
		if o.name.IsZero() {
			return nil, errors.New("indexing the pack: it lacks an object that others are differences to")
		}
		contents.Objects = append(contents.Objects, idxfile.Entry{Hash: o.name, CRC32: o.crc, Offset: uint64(o.offset)}) // not negative
	}
	return contents, nil
}
