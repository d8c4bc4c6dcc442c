package pack

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
)

// resolve computes the names of the deltas' objects, starting with the bases: those in the pack, then those in the store.
func (r *reading) resolve() error {
	for at, o := range r.objects {
		if o.name.IsZero() || o.kind.IsDelta() {
			continue
		}
		left := r.differencesTo(at)
		if len(left) == 0 {
			continue
		}
		if o.size > r.limits.Object {
			return failure.TooLarge("an object of the commit that others are differences to", r.limits.Object)
		}
		content, err := r.content(at)
		if err != nil {
			return err
		}
		if err := r.follow(left, o.kind, content); err != nil {
			return err
		}
	}
	for _, base := range slices.SortedFunc(maps.Keys(r.byName), func(a, b plumbing.Hash) int { return bytes.Compare(a[:], b[:]) }) {
		if left, open := r.byName[base]; open {
			if err := r.build(base, left); err != nil {
				return err
			}
		}
	}
	return nil
}

// build computes the names of the objects whose base is an object of the store. A base that is not in the store may itself result from a
// delta on another base, so it is no error here.
func (r *reading) build(base plumbing.Hash, left []int) error {
	if _, there := r.chains.bases[base]; !there {
		return nil
	}
	kind, content, err := r.store.Object(base)
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrBase, base, err)
	}
	delete(r.byName, base)
	r.built = append(r.built, base)
	return r.follow(left, kind, content)
}

// differencesTo removes and returns the deltas on an object. A pack may contain an object several times; the deltas belong to each copy.
func (r *reading) differencesTo(at int) []int {
	o := r.objects[at]
	all := slices.Concat(r.byOffset[o.offset], r.byName[o.name])
	delete(r.byOffset, o.offset)
	delete(r.byName, o.name)
	return all
}

// follow computes the names of the objects that deltas on an object make, of the deltas on these, and so on. Each step of the chain has deltas
// left.
func (r *reading) follow(left []int, kind plumbing.ObjectType, content []byte) error {
	type step struct {
		left    []int
		content []byte
	}
	chain := []step{{left, content}}
	for len(chain) > 0 {
		last := &chain[len(chain)-1]
		next := last.left[0]
		last.left = last.left[1:]
		delta, err := r.content(next)
		if err != nil {
			return err
		}
		more, made, err := r.name(next, kind, last.content, delta)
		if err != nil {
			return err
		}
		if len(last.left) == 0 {
			chain = chain[:len(chain)-1] // No other delta needs it.
		}
		if len(more) > 0 {
			chain = append(chain, step{more, made})
		}
	}
	return nil
}

// name computes the name of the object that a delta on its base makes, and returns the deltas on that object. It returns the object itself
// only if there are such deltas; otherwise the object is never in memory as a whole.
func (r *reading) name(at int, kind plumbing.ObjectType, base, delta []byte) (more []int, made []byte, err error) {
	size := deltaResult(delta)
	sum := hashOf(kind, size)
	if err := patch(sum, base, delta, r.limits.Object); err != nil {
		return nil, nil, err
	}
	r.objects[at].name = sumOf(sum)
	if more = r.differencesTo(at); len(more) == 0 {
		return nil, nil, nil
	}
	content := bytes.NewBuffer(make([]byte, 0, size))
	err = patch(content, base, delta, r.limits.Object)
	return more, content.Bytes(), err
}

var errChanged = errors.New("the pack is not what it was")

// content inflates an entry of the pack: an object or a delta.
func (r *reading) content(at int) ([]byte, error) {
	header, err := r.scanner.SeekObjectHeader(r.objects[at].offset)
	if err != nil {
		return nil, err
	}
	if header.Length != r.objects[at].size {
		return nil, errChanged
	}
	content := bytes.NewBuffer(make([]byte, 0, header.Length))
	if _, _, err := r.scanner.NextObject(content); err != nil {
		return nil, err
	}
	return content.Bytes(), nil
}
