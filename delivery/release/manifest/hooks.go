package manifest

import (
	"fmt"

	helm "helm.sh/helm/v3/pkg/release"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// HookObjects returns the objects of hooks.
func HookObjects(hooks []*helm.Hook) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for _, h := range hooks {
		docs, err := Parse(h.Manifest)
		if err != nil {
			return nil, err
		}
		out = append(out, Objects(docs)...)
	}
	return out, nil
}

// Ran returns which objects are hooks that a revision ran.
func Ran(revisions []*helm.Release, identify func(*unstructured.Unstructured) Identity) (map[Identity]bool, error) {
	ran := map[Identity]bool{}
	for _, rel := range revisions {
		for _, hook := range rel.Hooks {
			if hook.LastRun.StartedAt.IsZero() {
				continue
			}
			objects, err := HookObjects([]*helm.Hook{hook})
			if err != nil {
				return nil, fmt.Errorf("reading the hooks of revision %d: %w", rel.Version, err)
			}
			for _, u := range objects {
				ran[identify(u)] = true
			}
		}
	}
	return ran, nil
}

// UnstampedHooks returns copies of hooks that have not run, without kubeop's own labels.
func UnstampedHooks(hooks []*helm.Hook) ([]*helm.Hook, error) {
	out := make([]*helm.Hook, len(hooks))
	for i, h := range hooks {
		fresh := *h
		fresh.LastRun = helm.HookExecution{}
		var err error
		if fresh.Manifest, err = Unstamped(h.Manifest); err != nil {
			return nil, err
		}
		out[i] = &fresh
	}
	return out, nil
}
