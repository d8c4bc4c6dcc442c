package source

import (
	"context"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/lru"
)

// pushes remembers the last reported push to each Git repository that is the source of an App. For a repository that declares Apps, a new
// commit in its status reports the push; for others, the push hook does. An App fetches its source after a push, and otherwise when its
// interval is over. pushes remembers maxPushes repositories of each tenant. If one is evicted, its Apps fetch once more.
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

// normalized returns a Git URL without the parts that most hosts ignore.
func normalized(url string) string {
	return strings.ToLower(strings.TrimSuffix(strings.TrimSuffix(url, "/"), ".git"))
}

// gitURL returns the URL of an App's Git source; "" if it has none.
func gitURL(spec *v1alpha1.AppSpec) string {
	switch {
	case spec.Git != nil:
		return spec.Git.URL
	case spec.Helm != nil && spec.Helm.Git != nil:
		return spec.Helm.Git.URL
	}
	return ""
}

// PushReported passes updates of a Repository that report a push to it, or to a source of its tenant's Apps.
var PushReported = predicate.Funcs{
	CreateFunc: func(event.CreateEvent) bool { return false },
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

// pushed records the pushes that a Repository reports, and returns the Apps with the pushed repositories as source. A repository that is no
// App's source is not recorded, so that callers of the hook cannot fill the memory.
func (f *Fetcher) pushed(ctx context.Context, repository *v1alpha1.Repository) []types.NamespacedName {
	tenant := repository.Spec.Tenant
	reported := map[string]string{normalized(repository.Spec.URL): repository.Status.LastAttemptedRevision}
	if when, url, ok := strings.Cut(repository.Annotations[v1alpha1.PushedAnnotation], " "); ok {
		reported[normalized(url)] = when
	}
	var made []types.NamespacedName
	for url, what := range reported {
		apps := &v1alpha1.AppList{}
		if err := f.Client.List(ctx, apps, client.MatchingFields{ByGitURL: url}, client.UnsafeDisableDeepCopy); err != nil {
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

// ByGitURL is the name of the cache's index of Apps by the URL of their Git source. It finds the Apps of a push.
const ByGitURL = "spec.git.url"

// GitURLs returns the keys of an App in the index ByGitURL.
func GitURLs(o client.Object) []string {
	if url := gitURL(&o.(*v1alpha1.App).Spec); url != "" {
		return []string{normalized(url)}
	}
	return nil
}
