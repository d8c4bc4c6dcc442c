package git

import (
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
)

// blob is an object of that many bytes.
func blob(t *testing.T, name string, size int) plumbing.EncodedObject {
	t.Helper()
	o := &plumbing.MemoryObject{}
	o.SetType(plumbing.BlobObject)
	if _, err := o.Write(append([]byte(name), make([]byte, size-len(name))...)); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestObjectsInMemoryAreBoundedByTheirSize(t *testing.T) {
	c := newObjectCache()
	first, second := blob(t, "first", maxObjectCache/2-objectCost), blob(t, "second", maxObjectCache/2-objectCost)
	c.Put(first)
	c.Put(second)
	c.Put(second)
	c.Get(first.Hash()) // So that the second is the least recently used.
	c.Put(blob(t, "third", 10))
	c.Put(blob(t, "too large", maxObjectCache+1))
	if got, ok := c.Get(first.Hash()); !ok || got != first {
		t.Errorf("the object that was used last is gone: %v", got)
	}
	if _, ok := c.Get(second.Hash()); ok {
		t.Error("the object that was used longest ago stays though there is no room")
	}
	if want := first.Size() + 10 + 2*objectCost; c.Weight() != want || c.Len() != 2 {
		t.Errorf("%d objects of %d bytes, want 2 of %d", c.Len(), c.Weight(), want)
	}
	c.Clear()
	if _, ok := c.Get(first.Hash()); ok || c.Weight() != 0 {
		t.Errorf("after it was cleared there are %d bytes", c.Weight())
	}
}
