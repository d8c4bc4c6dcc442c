package build

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/internal/sandbox"
)

// BenchmarkBuild compares a build here with one in another process that is warm, and with one that is known.
func BenchmarkBuild(b *testing.B) {
	web := "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  selector: {matchLabels: {app: web}}\n  template:\n    metadata: {labels: {app: web}}\n" +
		"    spec: {containers: [{name: web, image: nginx, ports: [{containerPort: 80}]}]}\n---\napiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {selector: {app: web}, ports: [{port: 80}]}\n"
	large := map[string]string{}
	for i := range 40 {
		large[fmt.Sprintf("app/%d.yaml", i)] = strings.ReplaceAll(web, "name: web", fmt.Sprintf("name: web%d", i))
	}
	for name, source := range map[string]Source{
		"plain": git(map[string]string{"app/web.yaml": web, "app/note.yaml": padded("note")}, v1alpha1.Build{}),
		"large": git(large, v1alpha1.Build{}),
		"kustomized": git(map[string]string{
			"app/kustomization.yaml": "resources: [../base]\nnamePrefix: n-\npatches: [{path: patch.yaml}]\n", "app/patch.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: 2}\n",
			"base/kustomization.yaml": "resources: [web.yaml]\n", "base/web.yaml": web,
		}, v1alpha1.Build{}),
	} {
		b.Run(name+"/here", func(b *testing.B) {
			for b.Loop() {
				if _, err := source.make(func(string) {}, opened); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/known", func(b *testing.B) {
			fixture := newFixture(b, sandbox.Limits{})
			for b.Loop() {
				if _, err := fixture.Build(b.Context(), requestOf(source, name)); err != nil {
					b.Fatal(err)
				}
			}
			if fixture.calls != 1 {
				b.Errorf("it was built apart %d times", fixture.calls)
			}
		})
		b.Run(name+"/apart", func(b *testing.B) {
			fixture := newFixture(b, sandbox.Limits{})
			request := requestOf(source, name)
			request.Retry = true
			for b.Loop() {
				if _, err := fixture.Build(b.Context(), request); err != nil {
					b.Fatal(err)
				}
			}
			if fixture.calls < b.N {
				b.Errorf("%d of %d were built apart", fixture.calls, b.N)
			}
		})
	}
}
