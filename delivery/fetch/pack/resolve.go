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

// resolve names the differences, from the objects they begin with: those of the pack, then those of the store.
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

// build names the differences to an object of the store. One that is not there may be made from another one that is.
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

// differencesTo takes out the differences to an object. A pack may hold an object many times, each of which they are differences to.
func (r *reading) differencesTo(at int) []int {
	o := r.objects[at]
	all := slices.Concat(r.byOffset[o.offset], r.byName[o.name])
	delete(r.byOffset, o.offset)
	delete(r.byName, o.name)
	return all
}

// follow names the differences to an object, those to these, and so on.
func (r *reading) follow(left []int, kind plumbing.ObjectType, content []byte) error {
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
		if !r.objects[next].name.IsZero() {
			continue
		}
		delta, err := r.content(next)
		if err != nil {
			return err
		}
		more, made, err := r.name(next, kind, last.content, delta)
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

// content inflates what the pack holds of an object: itself, or how it differs.
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
