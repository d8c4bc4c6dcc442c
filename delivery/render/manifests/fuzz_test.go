package manifests

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubeop/kubeop/internal/testenv/rendering"
)

func FuzzDocuments(f *testing.F) {
	for _, seed := range []string{
		"", "---\n---\n", rendering.ConfigMap("a") + "---\n" + rendering.ConfigMap("b"), "--- {apiVersion: v1, kind: List, items: [{}]}\n...\n# Source: x\n",
		"a: &a [*a]", "a: &a b\nc: *a\n", "\ufeff%YAML 1.2\n---\n- 1", "{apiVersion: v1, kind: AList, items: [{metadata: {name: a}}]}",
		"x: |\n ---\n---\r\ny: \"\n---\n\"", "<<: 1", "? a\n: b", "!!binary x",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, stream []byte) {
		objects, err := parse(string(stream))
		if err == nil {
			rendering.Whole(t, objects)
		}
		again, errAgain := parse(string(stream))
		if (err == nil) != (errAgain == nil) || !cmp.Equal(objects, again) {
			t.Errorf("parsed differently the second time: %v, then %v", err, errAgain)
		}
	})
}
