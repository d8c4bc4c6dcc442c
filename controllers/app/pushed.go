package app

import (
	"context"
	"strings"
	"sync"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// pushes remembers the last push to each Git repository that apps are made from, as far as somebody told of it: the
// repository that declares the apps, by its commit, and others by the push hook. An app asks its source again when there was
// one, and else when its interval is over. Of each tenant maxPushes are remembered; an app whose push was forgotten asks once more.
type pushes struct {
	mu sync.Mutex
	// last are by tenant and URL; those of "" are the platform's, and for all.
	last map[string]*lru.Cache
}

// maxPushes is how many repositories are remembered of a tenant, who names them as it likes.
const maxPushes = 2000

// note remembers a push to a repository as a tenant reads it.
func (p *pushes) note(tenant, url, what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last == nil {
		p.last = map[string]*lru.Cache{}
	}
	if p.last[tenant] == nil {
		p.last[tenant] = lru.New(maxPushes)
	}
	p.last[tenant].Add(url, what)
}

// of returns what tells the last push to a repository from the one before, "" when there was none.
func (p *pushes) of(tenant, url string) string {
	url = sameURL(url)
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
	text, _ := what.(string)
	return text
}

// sameURL is a Git URL without what most hosts do not look at.
func sameURL(url string) string {
	return strings.ToLower(strings.TrimSuffix(strings.TrimSuffix(url, "/"), ".git"))
}

// gitURL is the Git repository that an app is made from, "" when it is from none.
func gitURL(spec *v1alpha1.AppSpec) string {
	switch {
	case spec.Git != nil:
		return spec.Git.URL
	case spec.Helm != nil && spec.Helm.Git != nil:
		return spec.Helm.Git.URL
	}
	return ""
}

// pushTold lets a Repository through when it tells of a push, to itself or to a source of its tenant's apps.
var pushTold = predicate.Funcs{
	CreateFunc: func(event.CreateEvent) bool { return false },
	DeleteFunc: func(event.DeleteEvent) bool { return false },
	UpdateFunc: func(e event.UpdateEvent) bool {
		was, is := e.ObjectOld.(*v1alpha1.Repository), e.ObjectNew.(*v1alpha1.Repository)
		return was.Status.LastAttemptedRevision != is.Status.LastAttemptedRevision ||
			was.Annotations[v1alpha1.PushedAnnotation] != is.Annotations[v1alpha1.PushedAnnotation]
	},
}

// wakePushed wakes the apps of a push once it is noted. A map function would be called with the former Repository first, and what it
// returns again is not added to the queue again: an app that is looked at in between would not learn of the push.
func (r *Reconciler) wakePushed(ctx context.Context, e event.UpdateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	for _, request := range r.pushed(ctx, e.ObjectNew) {
		queue.Add(request)
	}
}

// pushed maps a Repository that tells of a push to the apps that are made from what was pushed to. What no app is made from is not
// remembered, whatever the hook's caller names.
func (r *Reconciler) pushed(ctx context.Context, o client.Object) []reconcile.Request {
	repository := o.(*v1alpha1.Repository)
	tenant := repository.Spec.Tenant
	told := map[string]string{sameURL(repository.Spec.URL): repository.Status.LastAttemptedRevision}
	if when, url, ok := strings.Cut(repository.Annotations[v1alpha1.PushedAnnotation], " "); ok {
		told[sameURL(url)] = when
	}
	var requests []reconcile.Request
	for url, what := range told {
		apps := &v1alpha1.AppList{}
		if err := r.Client.List(ctx, apps, client.MatchingFields{byGitURL: url}, client.UnsafeDisableDeepCopy); err != nil {
			continue // They ask when their interval is over.
		}
		before := len(requests)
		for i := range apps.Items {
			if app := &apps.Items[i]; tenant == "" || app.Labels[v1alpha1.TenantLabel] == tenant {
				requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(app)})
			}
		}
		if len(requests) > before {
			r.pushes.note(tenant, url, what)
		}
	}
	return requests
}

// byGitURL is the cache's index of Apps by the Git repository they are made from: a push looks at no other.
const byGitURL = "spec.git.url"

// gitURLs returns what an App is found under in that index.
func gitURLs(o client.Object) []string {
	if url := gitURL(&o.(*v1alpha1.App).Spec); url != "" {
		return []string{sameURL(url)}
	}
	return nil
}
