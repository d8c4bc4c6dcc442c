package tree

import (
	"fmt"
	"testing"
	"testing/fstest"
)

// flat has digests that cost nothing: those of Git do not, either.
type flat struct{ repository }

func (f flat) Digest(path string) (string, error) { return path, nil }

func (f flat) Sub(path string) (Files, error) { return sub{f, path}, nil }

// BenchmarkRead reads a platform repository of 1,000 apps.
func BenchmarkRead(b *testing.B) {
	files := repository{"kubeop.yaml": {Data: []byte("layout: v1\n")}}
	for t := range 100 {
		dir := fmt.Sprintf("tenants/t%d/", t)
		files[dir+"tenant.yaml"] = &fstest.MapFile{Data: fmt.Appendf(nil, "apiVersion: paas.kubeop.io/v1alpha1\nkind: Tenant\nmetadata: {name: t%d}\n", t)}
		for p := range 2 {
			at := fmt.Sprintf("%sprojects/p%d/", dir, p)
			files[at+"project.yaml"] = &fstest.MapFile{Data: fmt.Appendf(nil, "apiVersion: paas.kubeop.io/v1alpha1\nkind: Project\nmetadata: {name: p%d}\n", p)}
			for a := range 5 {
				files[fmt.Sprintf("%sapps/a%d/app.yaml", at, a)] = &fstest.MapFile{Data: fmt.Appendf(nil, "apiVersion: paas.kubeop.io/v1alpha1\nkind: App\nmetadata: {name: a%d}\n"+
					"spec:\n  type: Raw\n  raw:\n    manifests:\n    - apiVersion: v1\n      kind: ConfigMap\n      metadata: {name: a%d}\n      data: {greeting: hello}\n", a, a)}
			}
		}
	}
	commit := flat{files}
	b.Run("all", func(b *testing.B) {
		for b.Loop() {
			if got := shared.Read(commit, Scope{Repository: "platform"}, nil).Counts(); got.Apps != 1000 {
				b.Fatal(got)
			}
		}
	})
}
