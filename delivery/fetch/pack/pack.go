// Package pack reads Git packs, which are untrusted. What a pack claims is checked before anything is in memory because of it, and
// each object gets the name by which an index finds it. A few bytes can stand for gigabytes, so it is done in a process of its own;
// see Reader.
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

// Limits of one pack, in bytes but for Objects.
type Limits struct {
	// Objects is how many a pack may hold.
	Objects int64
	// Inflated is what they inflate to together, those that are made from differences as a whole.
	Inflated int64
	// Object is the largest that can be read. Larger files are kept and cannot be read; Oversized is what they inflate to together.
	Object, Oversized int64
	// Chain is what has to be in memory to make an object from differences.
	Chain int64
	// Base is the largest object of the store that a pack may build on, and Bases what all of them may be together.
	Base, Bases int64
}

// CPU is the processor time that a pack within the limits may take: 20 s for each GiB that it inflates to, on a slow machine.
func (l Limits) CPU() time.Duration {
	return time.Duration(float64(20*time.Second) * float64(l.Inflated+l.Oversized) / limit.GiB)
}

// small are the limits of packs that take milliseconds.
var small = Limits{Objects: 2000, Inflated: limit.MiB, Object: limit.MiB, Chain: limit.MiB, Base: limit.MiB, Bases: limit.MiB}

// within returns the smaller of both limits each.
func (l Limits) within(o Limits) Limits {
	return Limits{
		Objects: min(l.Objects, o.Objects), Inflated: min(l.Inflated, o.Inflated), Object: min(l.Object, o.Object), Oversized: min(l.Oversized, o.Oversized),
		Chain: min(l.Chain, o.Chain), Base: min(l.Base, o.Base), Bases: min(l.Bases, o.Bases),
	}
}

// Store has the objects that a pack may build on and leave out.
type Store interface {
	// Size of an object in bytes, or an error where it is not there.
	Size(plumbing.Hash) (int64, error)
	// Object is what kind it is, and its content.
	Object(plumbing.Hash) (plumbing.ObjectType, []byte, error)
}

// Contents is what a pack holds.
type Contents struct {
	Objects []idxfile.Entry
	// Bases are the objects of the store that it builds on and leaves out: without them it cannot be read (a "thin" pack).
	Bases []plumbing.Hash
}

// Read checks a pack and names its objects. Errors: ErrTooLarge; any other says that the pack is damaged.
func Read(from io.ReadSeeker, limits Limits, store Store) (*Contents, error) {
	return read(&reading{pack: from, limits: limits, store: store})
}

// errLarge is of a pack that is not small.
var errLarge = errors.New("the pack is not small")

// readSmall is Read of a pack that takes milliseconds, and of any other errLarge, after milliseconds as well.
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
