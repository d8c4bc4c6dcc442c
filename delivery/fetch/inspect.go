package fetch

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"

	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/limit"
)

// inspect checks what the pack claims before anything is kept in memory because of it. It returns the names of the objects that
// the pack gives differences to and leaves out because we have them (a "thin" pack). The limits
// are those of whom the pack is fetched for. It calls enlarge before more memory is taken than limits.large, by complete or indexOf.
func inspect(pack io.ReadSeeker, g *generation, limits limits, enlarge func() error) ([]plumbing.Hash, error) {
	if _, err := pack.Seek(0, io.SeekStart); err != nil {
		return nil, fmt.Errorf("reading the pack: %w", err)
	}
	scanner := packfile.NewScanner(pack)
	_, count, err := scanner.Header()
	if err != nil {
		return nil, fmt.Errorf("reading the pack: %w", err)
	}
	if int64(count) > limits.objects {
		return nil, limit.TooMany("the number of objects in the commit's pack", limits.objects)
	}
	chains := &chains{pack: pack, store: g, limits: limits, enlarge: enlarge, cost: make(map[int64]int64, count), bases: map[plumbing.Hash]int64{}}
	for range count {
		if err := chains.next(scanner); err != nil {
			return nil, err
		}
	}
	return slices.Collect(maps.Keys(chains.bases)), nil
}

// chains adds up what rebuilding each object takes in memory: itself and the chain of objects it is a difference to.
// A few bytes can claim gigabytes, in one object or by a chain of them.
type chains struct {
	pack   io.ReadSeeker
	store  *generation
	limits limits
	// enlarge is called when what reading a base, or rebuilding an object from differences, takes is more than limits.large.
	enlarge func() error
	cost    map[int64]int64
	// worst is the cost assumed of a base that is named by its hash, when it is in this pack.
	worst int64
	// bases are the sizes of those that are in the store and not in the pack, and added all of them together: each is added to the pack.
	bases map[plumbing.Hash]int64
	added int64
	// passed are the sizes together of files that are too large to be read, inflated those of all other objects and differences: it is
	// as much work to name them.
	passed, inflated int64
}

func (c *chains) next(scanner *packfile.Scanner) error {
	header, err := scanner.NextObjectHeader()
	if err != nil {
		return fmt.Errorf("reading the pack: %w", err)
	}
	// The length is checked before anything is inflated, and the scanner inflates no more than it.
	if header.Length > c.limits.object {
		return c.unreadable(header, scanner)
	}
	start := &beginning{max: 2 * binary.MaxVarintLen64}
	if _, _, err := scanner.NextObject(start); err != nil {
		return fmt.Errorf("reading the pack: %w", err)
	}
	own, base := header.Length, int64(0)
	switch header.Type {
	case plumbing.OFSDeltaObject:
		own, base = deltaResult(start.text.Bytes()), c.cost[header.OffsetReference]
	case plumbing.REFDeltaObject:
		own, base = deltaResult(start.text.Bytes()), max(c.worst, c.baseSize(header.Reference))
	}
	if own < 0 || own > c.limits.object {
		return limit.TooLarge("an object of the commit", c.limits.object)
	}
	if c.inflated += own; header.Type.IsDelta() {
		c.inflated += header.Length
	}
	if c.inflated > c.limits.inflated {
		return failure.Over(budget.PackBytes, "what the objects of the commit's pack inflate to, together, is larger than the limit of %s: "+
			"take large files out of Git. An administrator of the cluster allows more with spec.limits.packBytes of the Tenant", limit.Text(c.limits.inflated))
	}
	if c.added > c.limits.pack {
		// Not ErrTooLarge: without what we have, the server sends no such differences.
		return fmt.Errorf("the commit's pack builds on more than %s of what is in the store", limit.Text(c.limits.pack))
	}
	total := base + own
	if total > c.limits.deltaChain {
		return limit.TooLarge("a chain of differences in the commit's pack", c.limits.deltaChain)
	}
	c.cost[header.Offset], c.worst = total, max(c.worst, total)
	if header.Type.IsDelta() && total > c.limits.large { // Nothing else is held as a whole.
		return c.enlarge()
	}
	return nil
}

// unreadable passes over a file that is too large to be read, which is up to who reads it: nothing else of the commit is the worse
// for it. It is never in memory as a whole, but has to be inflated to find its end, so all such files together are bounded.
func (c *chains) unreadable(header *packfile.ObjectHeader, scanner *packfile.Scanner) error {
	if c.passed += header.Length; header.Type != plumbing.BlobObject || c.passed > c.limits.oversized {
		return oversized(c.pack, header, scanner, c.limits.oversized)
	}
	if _, _, err := scanner.NextObject(io.Discard); err != nil {
		return fmt.Errorf("reading the pack: %w", err)
	}
	c.cost[header.Offset] = header.Length
	return nil
}

// baseSize looks a base up in the store; one that is not there has to be in the pack.
func (c *chains) baseSize(hash plumbing.Hash) int64 {
	if size, ok := c.bases[hash]; ok {
		return size
	}
	size, err := c.store.blobSize(hash)
	if err != nil || size > c.limits.object {
		return 0
	}
	c.bases[hash] = size
	c.added += size
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
