package inputs

import (
	"testing"

	"github.com/kubeop/kubeop/controllers/app/references"
)

func TestContentsAreCachedPerVersion(t *testing.T) {
	var c contents
	ref := references.Object{Namespace: "a", Kind: Secret, Name: "x"}
	c.put(ref, "1", map[string][]byte{"k": []byte("v")})
	if _, ok := c.get(ref, "2"); ok {
		t.Error("a new version got the content of an old one")
	}
	if data, ok := c.get(ref, "1"); !ok || string(data["k"]) != "v" {
		t.Errorf("got %v, %t", data, ok)
	}
	other := references.Object{Namespace: "a", Kind: Secret, Name: "y"}
	c.put(other, "1", map[string][]byte{"k": []byte("w")})
	for at, want := range map[references.Object]string{ref: "v", other: "w"} {
		if data, ok := c.get(at, "1"); !ok || string(data["k"]) != want {
			t.Errorf("of two objects, %s has %v, %t", at.Name, data, ok)
		}
	}
}

func TestTheSizeOfCachedContentsIsLimited(t *testing.T) {
	var c contents
	big := map[string][]byte{"k": make([]byte, maxContents/4)}
	for i := range 20 {
		c.put(references.Object{Namespace: "a", Kind: Secret, Name: string(rune('a' + i))}, "1", big)
		if held := c.held.Weight(); held > maxContents {
			t.Fatalf("%d bytes are cached", held)
		}
	}
	c.put(references.Object{Namespace: "a", Kind: Secret, Name: "t"}, "2", big)
	if _, ok := c.get(references.Object{Namespace: "a", Kind: Secret, Name: "t"}, "2"); !ok {
		t.Error("the newest content is not cached")
	}
	if _, ok := c.get(references.Object{Namespace: "a", Kind: Secret, Name: "a"}, "1"); ok {
		t.Error("the oldest content is still cached")
	}
}
