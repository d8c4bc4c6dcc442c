package source

import (
	"context"
	"maps"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/fetch/image"
	"github.com/kubeop/kubeop/delivery/lru"
	"github.com/kubeop/kubeop/delivery/reference"
)

// pushes remembers the last reported push to each repository, of Git, charts or images, that is the source of an App. For a repository that
// declares Apps, a new commit in its status reports the push; for others, the push hook does. An App fetches its source after a push, and
// otherwise when its interval is over. pushes remembers maxPushes repositories of each tenant. If one is evicted, its Apps fetch once more.
type pushes struct {
	mu sync.Mutex
	// last has the pushes by tenant and URL. Those of tenant "" were reported by the platform repository, and count for all tenants.
	last map[string]*lru.Cache[string, string]
}

// maxPushes is how many repositories are remembered for each tenant. Tenants can name any number of them.
const maxPushes = 2000

// note records a push to a repository for a tenant.
func (p *pushes) note(tenant, url, what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last == nil {
		p.last = map[string]*lru.Cache[string, string]{}
	}
	if p.last[tenant] == nil {
		p.last[tenant] = lru.New[string, string](maxPushes, nil)
	}
	p.last[tenant].Add(url, what)
}

// of returns a text that changes with each push to a repository; "" if there was no push.
func (p *pushes) of(tenant, url string) string {
	url = normalized(url)
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.one(tenant, url) + p.one("", url)
}

func (p *pushes) one(tenant, url string) string {
	known := p.last[tenant]
	if known == nil {
		return ""
	}
	what, _ := known.Get(url)
	return what
}

// normalized returns a URL without the parts that most hosts ignore. An oci:// URL has the name that an image of that repository has in full.
func normalized(url string) string {
	url = strings.ToLower(strings.TrimSuffix(strings.TrimSuffix(url, "/"), ".git"))
	if name, ok := strings.CutPrefix(url, ociScheme); ok {
		return ociScheme + image.FullName(name)
	}
	return url
}

const ociScheme = "oci://"

// sourceURL returns the URL of what an App is made from, other than its folder; "" if there is none. For a chart or an artifact in a registry,
// and for an image that a policy chooses, it is the oci:// URL of the repository there.
func sourceURL(spec *v1alpha1.AppSpec) string {
	switch {
	case spec.Git != nil && spec.Git.OCI != nil:
		return spec.Git.OCI.URL
	case spec.Git != nil:
		return spec.Git.URL
	case spec.Image != nil && spec.Image.Policy != nil:
		return ociScheme + reference.Name(spec.Image.Reference)
	case spec.Helm != nil && spec.Helm.Git != nil:
		return spec.Helm.Git.URL
	case spec.Helm != nil && strings.HasPrefix(spec.Helm.Repository, ociScheme):
		return strings.TrimSuffix(spec.Helm.Repository, "/") + "/" + spec.Helm.Chart
	case spec.Helm != nil:
		return spec.Helm.Repository
	}
	return ""
}

// PushReported passes updates of a Repository that report a push to it, or to a source of its tenant's Apps; and, at the start, the Repositories on which the
// push hook has noted a push to a source.
var PushReported = predicate.Funcs{
	CreateFunc: func(e event.CreateEvent) bool { return e.Object.GetAnnotations()[v1alpha1.PushedAnnotation] != "" },
	DeleteFunc: func(event.DeleteEvent) bool { return false },
	UpdateFunc: func(e event.UpdateEvent) bool {
		was, is := e.ObjectOld.(*v1alpha1.Repository), e.ObjectNew.(*v1alpha1.Repository)
		return was.Status.LastAttemptedRevision != is.Status.LastAttemptedRevision ||
			was.Annotations[v1alpha1.PushedAnnotation] != is.Annotations[v1alpha1.PushedAnnotation]
	},
}

// WakePushed records a push, and then wakes its Apps. It is an event handler, not a map function: controller-runtime calls a map function
// with the old object first, and adds an App that both calls return only once. An App that is reconciled between the two calls would miss
// the push.
func (f *Fetcher) WakePushed(ctx context.Context, e event.UpdateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	for _, app := range f.pushed(ctx, e.ObjectNew.(*v1alpha1.Repository)) {
		queue.Add(reconcile.Request{NamespacedName: app})
	}
}

// WakeNoted records the push that the push hook has noted on a Repository, and wakes its Apps. It may have come while no process handled it, and after a
// restart an App trusts the image in its status for an interval.
func (f *Fetcher) WakeNoted(ctx context.Context, e event.CreateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	repository := e.Object.(*v1alpha1.Repository)
	for _, app := range f.record(ctx, repository.Spec.Tenant, notedOn(repository)) {
		queue.Add(reconcile.Request{NamespacedName: app})
	}
}

// notedOn returns the push that the push hook has noted on a Repository, by the URL of the source.
func notedOn(repository *v1alpha1.Repository) map[string]string {
	when, url, ok := strings.Cut(repository.Annotations[v1alpha1.PushedAnnotation], " ")
	if !ok {
		return map[string]string{}
	}
	return map[string]string{normalized(url): when}
}

// pushed records the pushes that a Repository reports, and returns the Apps with the pushed repositories as source.
func (f *Fetcher) pushed(ctx context.Context, repository *v1alpha1.Repository) []types.NamespacedName {
	reported := map[string]string{normalized(repository.Spec.URL): repository.Status.LastAttemptedRevision}
	maps.Copy(reported, notedOn(repository))
	return f.record(ctx, repository.Spec.Tenant, reported)
}

// record records pushes for a tenant. A repository that is no App's source is not recorded, so that callers of the hook cannot fill the memory.
func (f *Fetcher) record(ctx context.Context, tenant string, reported map[string]string) []types.NamespacedName {
	var made []types.NamespacedName
	for url, what := range reported {
		apps := &v1alpha1.AppList{}
		if err := f.Client.List(ctx, apps, client.MatchingFields{ByURL: url}, client.UnsafeDisableDeepCopy); err != nil {
			continue // The Apps fetch when their interval is over.
		}
		before := len(made)
		for i := range apps.Items {
			if app := &apps.Items[i]; tenant == "" || app.Labels[v1alpha1.TenantLabel] == tenant {
				made = append(made, client.ObjectKeyFromObject(app))
			}
		}
		if len(made) > before {
			f.pushes.note(tenant, url, what)
		}
	}
	return made
}

// ByURL is the name of the cache's index of Apps by the URL of their source. It finds the Apps of a push.
const ByURL = "source.url"

// URLs returns the keys of an App in the index ByURL.
func URLs(o client.Object) []string {
	if url := sourceURL(&o.(*v1alpha1.App).Spec); url != "" {
		return []string{normalized(url)}
	}
	return nil
}
