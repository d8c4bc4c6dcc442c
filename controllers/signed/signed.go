// Package signed lists the images whose signatures kubeop verified in the Guardrails of projects. The API server refuses all others that images.verify of a
// Policy is about, also while kubeop is stopped. What was verified stays true, so an image leaves a list only if that is full and no app asks for it.
package signed

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// FieldManager owns the lists. The controller of projects, which writes the rules, has another one.
const FieldManager = "kubeop-signatures"

// Images are the lists of all projects. Safe for concurrent use.
type Images struct {
	Client client.Client

	mu sync.Mutex
	// asked are the images of the newest objects of each app.
	asked map[types.NamespacedName][]string
}

// Verified is an image that satisfies the rules that Signatures identifies.
type Verified struct{ Signatures, Image string }

// Ask records which images the newest objects of an app have.
func (i *Images) Ask(app types.NamespacedName, images []string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.asked == nil {
		i.asked = map[types.NamespacedName][]string{}
	}
	i.asked[app] = images
}

// Forget drops what an app asked for.
func (i *Images) Forget(app *v1alpha1.App) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.asked, client.ObjectKeyFromObject(app))
}

// wanted returns the images that apps in a namespace ask for.
func (i *Images) wanted(namespace string) map[string]bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	all := map[string]bool{}
	for app, images := range i.asked {
		for _, image := range images {
			if app.Namespace == namespace {
				all[image] = true
			}
		}
	}
	return all
}

// ErrFull is wrapped when the apps of a project have more images than a list can have.
var ErrFull = errors.New("too many images")

// Add adds images to the lists of a namespace. done is false while the cache does not show them yet. The error is ErrFull if the lists have no room for
// them beside the images that apps still need.
func (i *Images) Add(ctx context.Context, namespace string, verified []Verified) (done bool, err error) {
	live := &v1alpha1.Guardrails{}
	if err := i.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: v1alpha1.GuardrailsName}, live); err != nil {
		return false, fmt.Errorf("reading the guardrails of namespace %s: %w", namespace, err)
	}
	lists, changed, err := with(&live.Spec, verified, i.wanted(namespace))
	if err != nil {
		return false, err
	}
	if !changed {
		return true, nil
	}
	spec := v1alpha1.GuardrailsSpec{Signed: lists}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&spec)
	if err != nil {
		return false, fmt.Errorf("encoding the signed images: %w", err)
	}
	object := &unstructured.Unstructured{Object: map[string]any{"spec": content}}
	object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.GuardrailsKind))
	object.SetNamespace(namespace)
	object.SetName(v1alpha1.GuardrailsName)
	object.SetResourceVersion(live.ResourceVersion) // Another app may have added an image meanwhile.
	err = i.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner(FieldManager), client.ForceOwnership)
	if err != nil && !apierrors.IsConflict(err) {
		return false, fmt.Errorf("listing signed images in the guardrails of namespace %s: %w", namespace, err)
	}
	return false, nil
}

// with returns the lists of a project with more images, without those of rules that do not hold any more.
func with(spec *v1alpha1.GuardrailsSpec, verified []Verified, wanted map[string]bool) (lists []v1alpha1.SignedImages, changed bool, err error) {
	for _, applied := range slices.Concat(spec.Deny, spec.Warn, spec.Audit) {
		of := func(list v1alpha1.SignedImages) bool { return list.Signatures == applied.Signatures }
		if applied.Signatures == "" || slices.ContainsFunc(lists, of) {
			continue
		}
		list := v1alpha1.SignedImages{Signatures: applied.Signatures}
		if at := slices.IndexFunc(spec.Signed, of); at >= 0 {
			list.Images = slices.Clone(spec.Signed[at].Images)
		}
		for _, v := range verified {
			if v.Signatures == list.Signatures && !slices.Contains(list.Images, v.Image) {
				list.Images, changed = append(list.Images, v.Image), true
			}
		}
		if list.Images, err = bounded(list.Images, wanted); err != nil {
			return nil, false, err
		}
		if len(list.Images) > 0 {
			lists = append(lists, list)
		}
	}
	return lists, changed, nil
}

// bounded drops the oldest images that nothing asks for, so that no more are left than may be.
func bounded(images []string, wanted map[string]bool) ([]string, error) {
	for over := len(images) - v1alpha1.MaxSignedImages; over > 0; over-- {
		at := slices.IndexFunc(images, func(image string) bool { return !wanted[image] })
		if at < 0 {
			return nil, fmt.Errorf("the apps of the project have %d images that a policy wants to be signed, and at most %d can be listed: run fewer in one project: %w", len(images), v1alpha1.MaxSignedImages, ErrFull)
		}
		images = slices.Delete(images, at, at+1)
	}
	return images, nil
}
