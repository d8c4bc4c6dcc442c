package build

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// TestAMemoIsOfAnotherVersionOnlyIfWhatWasReadIsTheSame. Without a record of that, only the same version counts.
func TestAMemoIsOfAnotherVersionOnlyIfWhatWasReadIsTheSame(t *testing.T) {
	same := func(is bool) func(string) bool { return func(string) bool { return is } }
	for name, c := range map[string]struct {
		memo memo
		req  Request
		want bool
	}{
		"the same version":       {memo{identity: "a"}, Request{Identity: "a"}, true},
		"another input":          {memo{identity: "a", input: "x"}, Request{Identity: "a", Same: same(true)}, false},
		"another version":        {memo{identity: "a", reads: "r"}, Request{Identity: "b"}, false},
		"the same files":         {memo{identity: "a", reads: "r"}, Request{Identity: "b", Same: same(true)}, true},
		"other files":            {memo{identity: "a", reads: "r"}, Request{Identity: "b", Same: same(false)}, false},
		"no record of the files": {memo{identity: "a"}, Request{Identity: "b", Same: same(true)}, false},
	} {
		if got := c.memo.answers(&c.req); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestASourceIsSmallUpToItsLastByteAndFile(t *testing.T) {
	folder := func(size, files int) Source {
		m := manifest("a")
		all := map[string]string{"app/a.yaml": m + strings.Repeat("#", size-len(m))}
		for i := range files - 1 {
			all[fmt.Sprintf("app/note%d.txt", i)] = "x"
		}
		return git(all, v1alpha1.Build{})
	}
	inline := func(size int) Source {
		m := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`
		return Source{Raw: &v1alpha1.RawSource{Manifests: []runtime.RawExtension{{Raw: []byte(m + strings.Repeat(" ", size-len(m)))}}}}
	}
	for name, c := range map[string]struct {
		source Source
		small  bool
	}{
		"a file of the largest size":    {folder(smallBytes, 1), true},
		"a file of a byte more":         {folder(smallBytes+1, 1), false},
		"as many files as there may be": {folder(1000, smallEntries), true},
		"one file more":                 {folder(1000, smallEntries+1), false},
		"inline, of the largest size":   {inline(smallBytes), true},
		"inline, of a byte more":        {inline(smallBytes + 1), false},
	} {
		made, did, err := c.source.Small()
		if did != c.small || err != nil || did && len(made.Objects) != 1 {
			t.Errorf("%s: made %v here: %t, %v", name, made.Objects, did, err)
		}
	}
}
