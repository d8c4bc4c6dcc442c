package pack

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"

	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/delivery/command"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/limit"
)

// reading is a pack that is being read. go-git's own parser is not used, because it trusts the sizes that a pack claims, and reads each
// object into memory as a whole. Here only the bases of deltas are in memory, along one chain at a time.
type reading struct {
	pack   io.ReadSeeker
	limits Limits
	store  Store
	// small: skip work that only makes messages better.
	small bool

	scanner *packfile.Scanner
	objects []packed
	// byOffset and byName have the deltas (as indexes of objects) by their base: its offset or its name.
	byOffset map[int64][]int
	byName   map[plumbing.Hash][]int
	chains   chains
	// built are the objects of the store on which deltas of the pack are based.
	built []plumbing.Hash
}

// packed is an entry of a pack. Its name is zero until it is known.
type packed struct {
	offset, size int64
	kind         plumbing.ObjectType
	crc          uint32
	name         plumbing.Hash
}

// chains adds up how much memory it takes to make each object: the object and its chain of bases.
type chains struct {
	// cost is the cost of each object, by its offset. worst is the highest cost, which is assumed for a base that is named by its hash and
	// may be in this pack.
	cost  map[int64]int64
	worst int64
	// bases are the sizes of the bases in the store, and added is their sum.
	bases map[plumbing.Hash]int64
	added int64
	// passed is the size of all files that are too large to be read. inflated is the size of all other objects and deltas, because all have
	// to be inflated to compute the names.
	passed, inflated int64
}

// scan checks all objects, and computes the names of those that are not deltas.
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
	// The length is checked before anything is inflated, and the scanner does not inflate more than that.
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

// difference records the base of the next object, which is a delta.
func (r *reading) difference(header *packfile.ObjectHeader) {
	next := len(r.objects)
	if header.Type == plumbing.OFSDeltaObject {
		r.byOffset[header.OffsetReference] = append(r.byOffset[header.OffsetReference], next)
	} else {
		r.byName[header.Reference] = append(r.byName[header.Reference], next)
	}
}

// weigh counts an object of own bytes; -1 for a delta that does not say its size.
func (r *reading) weigh(header *packfile.ObjectHeader, own int64) error {
	c := &r.chains
	if header.Length > r.limits.Object { // It already counts in passed.
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
			"take large files out of Git. An administrator of the cluster allows more with %s", failure.Size(r.limits.Inflated), command.OfTenant("spec.limits.packBytes"))
	}
	if c.added > r.limits.Bases && !r.small {
		// Not ErrTooLarge: if the store were empty, the server would not send such deltas.
		return fmt.Errorf("the commit's pack builds on more than %s of what is in the store", failure.Size(r.limits.Bases))
	}
	total := base + own
	if total > r.limits.Chain || c.added > r.limits.Bases {
		return failure.TooLarge("a chain of differences in the commit's pack", r.limits.Chain)
	}
	c.cost[header.Offset], c.worst = total, max(c.worst, total)
	return nil
}

// unreadable counts a file that is too large to be read. That is no error here: only those who read the file get one, and the rest of the
// commit is unaffected. The file is never in memory as a whole, but must be inflated to find its end, so all such files together are
// limited.
func (r *reading) unreadable(header *packfile.ObjectHeader) error {
	if r.small {
		return errLarge
	}
	if r.chains.passed += header.Length; header.Type != plumbing.BlobObject || r.chains.passed > r.limits.Oversized {
		return oversized(r.pack, header, r.scanner, r.limits.Oversized)
	}
	return nil
}

// baseSize returns the size of a base in the store; 0 if the store does not have it, so that it must be in the pack.
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

// deltaResult returns the size of the object that results from a delta: the second number in the delta, after the size of its base. It is
// negative if there is none.
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
