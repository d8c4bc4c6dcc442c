package pack

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"

	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/limit"
)

// reading is a pack that is being read. go-git's own parser is not used: it trusts the sizes that a pack claims, and takes each object
// into memory as a whole. Here that is only done with objects that others are differences to, along one chain at a time.
type reading struct {
	pack   io.ReadSeeker
	limits Limits
	store  Store
	// small: nothing is looked for that only a message needs.
	small bool

	scanner *packfile.Scanner
	objects []packed
	// byOffset and byName are the differences, as places in objects, to the object there or of that name.
	byOffset map[int64][]int
	byName   map[plumbing.Hash][]int
	chains   chains
	// built are the objects of the store that the pack builds on.
	built []plumbing.Hash
}

// packed is an object in a pack; its name is zero until it is known.
type packed struct {
	offset, size int64
	kind         plumbing.ObjectType
	crc          uint32
	name         plumbing.Hash
}

// chains add up what it takes in memory to make each object: itself and the chain of objects that it is a difference to.
type chains struct {
	// cost is that of each object, by its offset, and worst the highest: what is assumed of a base that is named by its hash, when it is
	// in this pack.
	cost  map[int64]int64
	worst int64
	// bases are the sizes of those that are in the store, and added all of them together.
	bases map[plumbing.Hash]int64
	added int64
	// passed are the sizes together of files that are too large to be read, inflated those of all other objects and differences: it is
	// as much work to name them.
	passed, inflated int64
}

// scan checks all objects, and names all but differences.
func (r *reading) scan() error {
	r.byOffset, r.byName = map[int64][]int{}, map[plumbing.Hash][]int{}
	r.chains = chains{cost: map[int64]int64{}, bases: map[plumbing.Hash]int64{}}
	if _, err := r.pack.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("reading the pack: %w", err)
	}
	r.scanner = packfile.NewScanner(r.pack)
	_, count, err := r.scanner.Header()
	if err != nil {
		return fmt.Errorf("reading the pack: %w", err)
	}
	if int64(count) > r.limits.Objects {
		return failure.TooMany("the number of objects in the commit's pack", r.limits.Objects)
	}
	for range count {
		if err := r.next(); err != nil {
			return err
		}
	}
	return nil
}

func (r *reading) next() error {
	header, err := r.scanner.NextObjectHeader()
	if err != nil {
		return fmt.Errorf("reading the pack: %w", err)
	}
	// The length is checked before anything is inflated, and the scanner inflates no more than it.
	if header.Length > r.limits.Object {
		if err := r.unreadable(header); err != nil {
			return err
		}
	}
	o := packed{offset: header.Offset, size: header.Length, kind: header.Type}
	if header.Type.IsDelta() {
		start := &limit.Beginning{Max: 2 * binary.MaxVarintLen64}
		if _, o.crc, err = r.scanner.NextObject(start); err != nil {
			return fmt.Errorf("reading the pack: %w", err)
		}
		r.difference(header)
		err = r.weigh(header, deltaResult(start.Bytes()))
	} else {
		sum := hashOf(header.Type, header.Length)
		if _, o.crc, err = r.scanner.NextObject(sum); err != nil {
			return fmt.Errorf("reading the pack: %w", err)
		}
		o.name = sumOf(sum)
		err = r.weigh(header, header.Length)
	}
	r.objects = append(r.objects, o)
	return err
}

// difference remembers what the object that comes next is a difference to.
func (r *reading) difference(header *packfile.ObjectHeader) {
	next := len(r.objects)
	if header.Type == plumbing.OFSDeltaObject {
		r.byOffset[header.OffsetReference] = append(r.byOffset[header.OffsetReference], next)
	} else {
		r.byName[header.Reference] = append(r.byName[header.Reference], next)
	}
}

// weigh counts an object of so many bytes, -1 for a difference that does not say it.
func (r *reading) weigh(header *packfile.ObjectHeader, own int64) error {
	c := &r.chains
	if header.Length > r.limits.Object { // It counts in what was passed over.
		c.cost[header.Offset] = own
		return nil
	}
	if own < 0 || own > r.limits.Object {
		return failure.TooLarge("an object of the commit", r.limits.Object)
	}
	base := int64(0)
	switch header.Type {
	case plumbing.OFSDeltaObject:
		base = c.cost[header.OffsetReference]
	case plumbing.REFDeltaObject:
		base = max(c.worst, r.baseSize(header.Reference))
	}
	if c.inflated += own; header.Type.IsDelta() {
		c.inflated += header.Length
	}
	if c.inflated > r.limits.Inflated {
		return failure.Because(failure.ErrTooLarge, &budget.Exceeded{Field: budget.PackBytes}, "what the objects of the commit's pack inflate to, together, is larger than the limit of %s: "+
			"take large files out of Git. An administrator of the cluster allows more with spec.limits.packBytes of the Tenant", failure.Size(r.limits.Inflated))
	}
	if c.added > r.limits.Bases && !r.small {
		// Not ErrTooLarge: without what we have, the server sends no such differences.
		return fmt.Errorf("the commit's pack builds on more than %s of what is in the store", failure.Size(r.limits.Bases))
	}
	total := base + own
	if total > r.limits.Chain || c.added > r.limits.Bases {
		return failure.TooLarge("a chain of differences in the commit's pack", r.limits.Chain)
	}
	c.cost[header.Offset], c.worst = total, max(c.worst, total)
	return nil
}

// unreadable counts a file that is too large to be read, which is up to who reads it: nothing else of the commit is the worse for it. It
// is never in memory as a whole, but has to be inflated to find its end, so all such files together are bounded.
func (r *reading) unreadable(header *packfile.ObjectHeader) error {
	if r.small {
		return errLarge
	}
	if r.chains.passed += header.Length; header.Type != plumbing.BlobObject || r.chains.passed > r.limits.Oversized {
		return oversized(r.pack, header, r.scanner, r.limits.Oversized)
	}
	return nil
}

// baseSize looks a base up in the store; one that is not there has to be in the pack.
func (r *reading) baseSize(hash plumbing.Hash) int64 {
	if size, ok := r.chains.bases[hash]; ok {
		return size
	}
	size, err := r.store.Size(hash)
	if err != nil || size > r.limits.Base {
		return 0
	}
	r.chains.bases[hash] = size
	r.chains.added += size
	return size
}

// deltaResult is the size of the object a delta makes: the second number in it, after the size of its base. Negative
// when there is none.
func deltaResult(delta []byte) int64 {
	_, n := binary.Uvarint(delta)
	if n <= 0 {
		return -1
	}
	size, n := binary.Uvarint(delta[n:])
	if n <= 0 {
		return -1
	}
	return int64(size)
}
