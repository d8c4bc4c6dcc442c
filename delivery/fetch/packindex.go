package fetch

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/idxfile"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"

	"github.com/kubeop/kubeop/delivery/fetch/limit"
)

// indexOf reads the pack once to learn the name of each object. go-git's own parser is not used: it takes each object into memory
// as a whole, also those that are too large to be read later. Here that is only done with objects that others are differences
// to, along one chain at a time, whose size inspect has bounded.
func indexOf(pack io.ReadSeeker, limits limits) (*idxfile.MemoryIndex, error) {
	if _, err := pack.Seek(0, io.SeekStart); err != nil {
		return nil, fmt.Errorf("indexing the pack: %w", err)
	}
	i := &indexing{scanner: packfile.NewScanner(pack), limits: limits, byOffset: map[int64][]int{}, byName: map[plumbing.Hash][]int{}}
	checksum, err := i.scan()
	if err == nil {
		err = i.resolve()
	}
	if err != nil {
		return nil, fmt.Errorf("indexing the pack: %w", err)
	}
	names := &idxfile.Writer{}
	if err := names.OnHeader(uint32(len(i.objects))); err != nil {
		return nil, fmt.Errorf("indexing the pack: %w", err)
	}
	for _, o := range i.objects {
		if o.name.IsZero() {
			return nil, errors.New("indexing the pack: it lacks an object that others are differences to")
		}
		names.Add(o.name, uint64(o.offset), o.crc)
	}
	if err := names.OnFooter(checksum); err != nil {
		return nil, fmt.Errorf("indexing the pack: %w", err)
	}
	return names.Index()
}

// indexing is a pack whose objects are being named.
type indexing struct {
	scanner *packfile.Scanner
	limits  limits
	objects []packed
	// byOffset and byName are the differences, as places in objects, to the object there or of that name.
	byOffset map[int64][]int
	byName   map[plumbing.Hash][]int
}

// packed is an object in a pack; its name is zero until it is known.
type packed struct {
	offset, size int64
	kind         plumbing.ObjectType
	crc          uint32
	name         plumbing.Hash
}

// scan names all objects but differences.
func (i *indexing) scan() (checksum plumbing.Hash, err error) {
	_, count, err := i.scanner.Header()
	if err != nil {
		return checksum, err
	}
	for range count {
		header, err := i.scanner.NextObjectHeader()
		if err != nil {
			return checksum, err
		}
		o := packed{offset: header.Offset, size: header.Length, kind: header.Type}
		into, sum := io.Discard, hashOf(header.Type, header.Length)
		switch header.Type {
		case plumbing.OFSDeltaObject:
			i.byOffset[header.OffsetReference] = append(i.byOffset[header.OffsetReference], len(i.objects))
		case plumbing.REFDeltaObject:
			i.byName[header.Reference] = append(i.byName[header.Reference], len(i.objects))
		default:
			into = sum
		}
		if _, o.crc, err = i.scanner.NextObject(into); err != nil {
			return checksum, err
		}
		if into != io.Discard {
			o.name = sumOf(sum)
		}
		i.objects = append(i.objects, o)
	}
	return i.scanner.Checksum()
}

// resolve names the differences, from the objects they begin with.
func (i *indexing) resolve() error {
	for at, o := range i.objects {
		if o.name.IsZero() || o.kind.IsDelta() {
			continue
		}
		left := i.differencesTo(at)
		if len(left) == 0 {
			continue
		}
		if o.size > i.limits.object {
			return limit.TooLarge("an object of the commit that others are differences to", i.limits.object)
		}
		content, err := i.content(at)
		if err != nil {
			return err
		}
		if err := i.follow(left, o.kind, content); err != nil {
			return err
		}
	}
	return nil
}

// differencesTo takes out the differences to an object. A pack may hold an object many times, each of which they are differences to.
func (i *indexing) differencesTo(at int) []int {
	o := i.objects[at]
	all := slices.Concat(i.byOffset[o.offset], i.byName[o.name])
	delete(i.byOffset, o.offset)
	delete(i.byName, o.name)
	return all
}

// follow names the differences to an object, those to these, and so on.
func (i *indexing) follow(left []int, kind plumbing.ObjectType, content []byte) error {
	type step struct {
		left    []int
		content []byte
	}
	chain := []step{{left, content}}
	for len(chain) > 0 {
		last := &chain[len(chain)-1]
		if len(last.left) == 0 {
			chain = chain[:len(chain)-1]
			continue
		}
		next := last.left[0]
		last.left = last.left[1:]
		if !i.objects[next].name.IsZero() {
			continue
		}
		delta, err := i.content(next)
		if err != nil {
			return err
		}
		more, made, err := i.name(next, kind, last.content, delta)
		if err != nil {
			return err
		}
		if len(last.left) == 0 {
			chain = chain[:len(chain)-1] // Nothing else needs it.
		}
		if len(more) > 0 {
			chain = append(chain, step{more, made})
		}
	}
	return nil
}

// name names the object that the delta makes of its base, and returns the differences to it. Only where there are some it returns the
// object too: otherwise that is never in memory.
func (i *indexing) name(at int, kind plumbing.ObjectType, base, delta []byte) (more []int, made []byte, err error) {
	size := deltaResult(delta)
	sum := hashOf(kind, size)
	if err := patch(sum, base, delta, i.limits.object); err != nil {
		return nil, nil, err
	}
	i.objects[at].name = sumOf(sum)
	if more = i.differencesTo(at); len(more) == 0 {
		return nil, nil, nil
	}
	content := bytes.NewBuffer(make([]byte, 0, size))
	err = patch(content, base, delta, i.limits.object)
	return more, content.Bytes(), err
}

// content inflates what the pack holds of an object: itself, or how it differs.
func (i *indexing) content(at int) ([]byte, error) {
	if _, err := i.scanner.SeekObjectHeader(i.objects[at].offset); err != nil {
		return nil, err
	}
	content := bytes.NewBuffer(make([]byte, 0, i.objects[at].size))
	if _, _, err := i.scanner.NextObject(content); err != nil {
		return nil, err
	}
	return content.Bytes(), nil
}
