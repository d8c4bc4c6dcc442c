package app

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// debounce gathers changes that come in a burst, such as those of several ConfigMaps by one kubectl apply, into one
// Reconcile.
const debounce = 300 * time.Millisecond

// sourceKind is the kind of a reference to what Shared knows a source by, which is its name; it is in no namespace.
const sourceKind = "source"

// reference names an object that an app is made from or depends on, or a source as Shared knows it.
type reference struct {
	namespace, kind, name string
}

// references knows which apps are made from, or depend on, which objects.
type references struct {
	mu   sync.Mutex
	apps map[reference]map[types.NamespacedName]bool
	of   map[types.NamespacedName][]reference
}

// set replaces what an app refers to, and returns what now nobody does.
func (r *references) set(app types.NamespacedName, refs []reference) (unused []reference) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.apps == nil {
		r.apps, r.of = map[reference]map[types.NamespacedName]bool{}, map[types.NamespacedName][]reference{}
	}
	was := r.of[app]
	for _, old := range was {
		delete(r.apps[old], app)
	}
	delete(r.of, app)
	for _, ref := range refs {
		if r.apps[ref] == nil {
			r.apps[ref] = map[types.NamespacedName]bool{}
		}
		r.apps[ref][app] = true
		r.of[app] = append(r.of[app], ref)
	}
	for _, old := range was {
		if len(r.apps[old]) == 0 {
			delete(r.apps, old)
			unused = append(unused, old)
		}
	}
	return unused
}

// users returns the apps that refer to an object.
func (r *references) users(ref reference) []types.NamespacedName {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []types.NamespacedName
	for app := range r.apps[ref] {
		out = append(out, app)
	}
	return out
}

// referencesOf lists the ConfigMaps, Secrets and Flux sources that an app's spec names.
func referencesOf(app *v1alpha1.App) []reference {
	var refs []reference
	add := func(kind, name string) {
		refs = append(refs, reference{namespace: app.Namespace, kind: kind, name: name})
	}
	for _, secret := range secretRefsOf(&app.Spec) {
		add("Secret", secret.Name)
	}
	if git := app.Spec.Git; git != nil && git.SourceRef != nil {
		add(git.SourceRef.Kind, git.SourceRef.Name)
	}
	if helm := app.Spec.Helm; helm != nil {
		for _, from := range helm.ValuesFrom {
			add(from.Kind, from.Name)
		}
	}
	addBuild(&app.Spec, add)
	return refs
}

// secretRefsOf lists the Secrets with the credentials of an app's source, and with the keys it is verified with.
func secretRefsOf(spec *v1alpha1.AppSpec) []*v1alpha1.LocalSecretReference {
	var refs []*v1alpha1.LocalSecretReference
	add := func(ref *v1alpha1.LocalSecretReference) {
		if ref != nil {
			refs = append(refs, ref)
		}
	}
	if spec.Image != nil && spec.Image.Policy != nil {
		for i := range spec.Image.PullSecrets {
			add(&spec.Image.PullSecrets[i])
		}
	}
	if spec.Git != nil {
		add(spec.Git.SecretRef)
		if spec.Git.Verify != nil {
			add(&spec.Git.Verify.SecretRef)
		}
		if spec.Git.OCI != nil {
			add(spec.Git.OCI.SecretRef)
		}
	}
	if spec.Helm != nil {
		add(spec.Helm.SecretRef)
		if spec.Helm.Git != nil {
			add(spec.Helm.Git.SecretRef)
		}
	}
	return refs
}

// wakeOnChange wakes the apps that are made from a ConfigMap, Secret or Flux source which changed, and those whose own Secret or release
// was changed by others.
func (r *Reconciler) wakeOnChange(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	r.OnChange(func(namespace, kind, name string, labels map[string]string) {
		apps := r.references.users(reference{namespace: namespace, kind: kind, name: name})
		if app := labels[v1alpha1.AppLabel]; app != "" {
			apps = append(apps, types.NamespacedName{Namespace: namespace, Name: app})
		}
		for _, app := range apps {
			queue.AddAfter(reconcile.Request{NamespacedName: app}, debounce)
		}
	})
	r.wakeOnNews(queue)
	r.wakeOnKinds(queue)
	return nil
}
