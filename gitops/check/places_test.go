package check

import (
	"slices"
	"testing"
)

func TestAFieldInTheWrongPlaceIsAnsweredWithItsPlace(t *testing.T) {
	for name, c := range map[string]struct{ spec, want string }{
		"of the image":                  {"{type: Image, image: {reference: nginx}, replicas: 2}", "4: unknown field spec.replicas (did you mean spec.image.replicas?)"},
		"another case":                  {"{type: Image, image: {reference: nginx}, Replicas: 2}", "4: unknown field spec.Replicas (did you mean spec.image.replicas?)"},
		"too deep":                      {"{type: Image, image: {reference: nginx, dependsOn: [{name: a}]}}", "4: unknown field spec.image.dependsOn (did you mean spec.dependsOn?)"},
		"of the chart that is there":    {"{type: Helm, helm: {repository: https://a.example, chart: b}, version: 1.2.3}", "4: unknown field spec.version (did you mean spec.helm.version?)"},
		"of the commit that is there":   {"{type: Git, git: {url: https://a.example/b, path: .}, url: x}", "4: unknown field spec.url (did you mean spec.git.url?)"},
		"in one of three that is there": {"{type: Git, git: {url: https://a.example/b}, path: x}", "4: unknown field spec.path (did you mean spec.git.path?)"},
		"in two places":                 {"{type: Raw, raw: {path: m}, secretRef: x}", "4: unknown field spec.secretRef (did you mean spec.git.secretRef or spec.helm.secretRef?)"},
		"of an item of a list":          {"{type: Image, image: {reference: nginx}, dependsOn: [{name: a}], readyExpr: x}", "4: unknown field spec.readyExpr (did you mean spec.dependsOn[].readyExpr?)"},
		"nowhere":                       {"{type: Image, image: {reference: nginx}, terraform: true}", "4: unknown field spec.terraform"},
		"a similar name comes first":    {"{type: Image, image: {reference: nginx, replica: 2}}", "4: unknown field spec.image.replica (did you mean spec.image.replicas?)"},
		"in more places than a hint":    {"{type: Raw, raw: {path: m}, namespace: x}", "4: unknown field spec.namespace"},
		"a field of all objects aside":  {"{type: Raw, raw: {path: m}, finalizers: [a]}", "4: unknown field spec.finalizers"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, got := findings(t, anApp, app(c.spec), false); !slices.Contains(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	if _, got := findings(t, anApp, "apiVersion: paas.kubeop.io/v1alpha1\nkind: App\nreplicas: 2\nspec: {type: Image, image: {reference: nginx}}\n", false); !slices.Contains(got, "3: unknown field replicas (did you mean spec.image.replicas?)") {
		t.Errorf("outside of the spec: got %q", got)
	}
	if got := (&Result{}).places("replicas"); got != nil {
		t.Errorf("without a schema: %q", got)
	}
}

func TestHasFindsTheFieldsOfADocument(t *testing.T) {
	value := map[string]any{"spec": map[string]any{"image": map[string]any{}, "hooks": []any{}, "type": "Image"}}
	for path, want := range map[string]bool{
		"": true, "spec": true, "spec.image": true, "spec.hooks[]": true, "spec.hooks[].env": true, "spec.git": false, "spec.type.a": false, "spec.pre[].a": false,
	} {
		if got := has(value, path); got != want {
			t.Errorf("%q: %t, want %t", path, got, want)
		}
	}
}
