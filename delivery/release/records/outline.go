package records

import (
	"fmt"

	"helm.sh/helm/v3/pkg/kube"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubeop/kubeop/delivery/release/manifest"
)

// maxOutlined is how many revisions are searched for objects that may be left: more than kubeop keeps, and as many as the helm command
// keeps.
const maxOutlined = 10

// Outline returns the names of the objects of the newest revisions, each once. Payloads are large, so only one is in memory at a time,
// unless more are already loaded.
func (r *Driver) Outline() ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	seen := map[manifest.Identity]bool{}
	for i := len(r.state) - 1; i >= max(0, len(r.state)-maxOutlined); i-- {
		docs, err := r.documents(r.state[i].Number)
		if err != nil {
			return nil, err
		}
		for _, u := range manifest.Objects(docs) {
			if id := manifest.Identify(u, r.release.Namespace); !seen[id] {
				seen[id] = true
				all = append(all, outlined(u))
			}
		}
	}
	return all, nil
}

// documents returns the documents of a revision. It does not keep the payload.
func (r *Driver) documents(number int) ([]manifest.Document, error) {
	h := r.held[number]
	loaded, known := h.loaded, *h.Release
	if err := r.Load(number); err != nil {
		return nil, err
	}
	text := h.Manifest
	if !loaded {
		*h.Release, h.loaded = known, false
	}
	docs, err := manifest.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("reading revision %d: %w", number, err)
	}
	return docs, nil
}

// outlined returns an object with only its name, and whether it has to be kept.
func outlined(u *unstructured.Unstructured) *unstructured.Unstructured {
	out := &unstructured.Unstructured{}
	out.SetAPIVersion(u.GetAPIVersion())
	out.SetKind(u.GetKind())
	out.SetNamespace(u.GetNamespace())
	out.SetName(u.GetName())
	if policy, ok := u.GetAnnotations()[kube.ResourcePolicyAnno]; ok {
		out.SetAnnotations(map[string]string{kube.ResourcePolicyAnno: policy})
	}
	return out
}
