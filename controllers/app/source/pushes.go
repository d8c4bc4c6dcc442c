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

// pushes remembers the last reported push to each Git repository from which Apps are made. The commit reports it for the repository that
// declares the Apps, the push hook for others. An App fetches its source after a push, and otherwise when its interval is over. maxPushes
// are remembered for each tenant; an App whose push was dropped fetches once more.
type pushes struct {
	mu sync.Mutex
	// last are by tenant and URL; those of "" are the platform's, and for all.
	last map[string]*lru.Cache[string, string]
}

// maxPushes is how many repositories are remembered of a tenant, who names them at will.
const maxPushes = 2000

// note remembers a push to a repository as a tenant reads it.
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

// of returns a text that changes with each push to a repository; "" when there was none.
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

// gitURL is the Git repository that an App is made from, "" when it is from none.
func gitURL(spec *v1alpha1.AppSpec) string {
	switch {
	case spec.Git != nil:
		return spec.Git.URL
	case spec.Helm != nil && spec.Helm.Git != nil:
		return spec.Helm.Git.URL
	}
	return ""
}

// PushReported lets a Repository through when it reports a push, to itself or to a source of its tenant's Apps.
var PushReported = predicate.Funcs{
	CreateFunc: func(event.CreateEvent) bool { return false },
	DeleteFunc: func(event.DeleteEvent) bool { return false },
	UpdateFunc: func(e event.UpdateEvent) bool {
		was, is := e.ObjectOld.(*v1alpha1.Repository), e.ObjectNew.(*v1alpha1.Repository)
		return was.Status.LastAttemptedRevision != is.Status.LastAttemptedRevision ||
			was.Annotations[v1alpha1.PushedAnnotation] != is.Annotations[v1alpha1.PushedAnnotation]
	},
}

// WakePushed wakes the Apps of a push once it is noted. It is an event handler and no map function: that would be called with the former
// Repository first, and what it returns again is not added to the queue again, so an App that is looked at in between would not learn of the
// push.
func (f *Fetcher) WakePushed(ctx context.Context, e event.UpdateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	for _, app := range f.pushed(ctx, e.ObjectNew.(*v1alpha1.Repository)) {
		queue.Add(reconcile.Request{NamespacedName: app})
	}
}

// pushed notes the push that a Repository reports, and returns the Apps that are made from what was pushed to. What no App is made from is not
// remembered, whatever the hook's caller names.
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
			continue // They are fetched when their interval is over.
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

// ByGitURL is the cache's index of Apps by the Git repository they are made from: a push looks at no other.
const ByGitURL = "spec.git.url"

// GitURLs returns what an App is found under in that index.
func GitURLs(o client.Object) []string {
	if url := gitURL(&o.(*v1alpha1.App).Spec); url != "" {
		return []string{normalized(url)}
	}
	return nil
}
