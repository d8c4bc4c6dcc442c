// Package eventlimit limits how many Events the accounts of tenants' apps leave in the API server's store. Events are the only objects that
// such an account may create and no quota can count: Kubernetes' quotas leave them out.
package eventlimit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

const (
	// Most is how many Events the namespaces of a tenant's projects may have together before its apps may create no more. Kubernetes deletes
	// Events after an hour.
	Most = 2000
	// every is the pause between two checks.
	every = 10 * time.Second
	// perNamespace times the number of namespaces is by how many Events the cluster has to grow before the Events of each namespace are counted.
	// So counting costs at most one request for four new Events.
	perNamespace = 4
)

// Limiter labels namespaces of a tenant that has too many Events: those with more than their equal part. The admission policy kubeop-events
// refuses new Events there, except Kubernetes' own. It takes the label away when half of the Events are gone.
//
// A check counts the Events of the whole cluster, which is one small request, and those of the projects of tenants with a labelled namespace. It
// counts those of every project only after the number for the whole cluster has grown.
type Limiter struct {
	// Direct counts and labels, without the cache. Projects reads Projects; it may be a cache.
	Direct   client.Client
	Projects client.Reader
	Events   events.EventRecorder
	Clock    clock.Clock
	Log      logr.Logger
	// Most is how many Events a tenant may have.
	Most int64

	// counted is the number of Events in the cluster when those of every project were counted, or less if there were fewer since.
	counted int64
}

// Start checks until the context ends. A check that fails is logged, and the next one starts over.
func (l *Limiter) Start(ctx context.Context) error {
	for {
		if err := l.Check(ctx); err != nil && ctx.Err() == nil {
			l.Log.Error(err, "Limiting the Events of projects")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-l.Clock.After(every):
		}
	}
}

// Check counts once, and labels or unlabels namespaces accordingly.
func (l *Limiter) Check(ctx context.Context) error {
	refused, err := l.refused(ctx)
	if err != nil {
		return err
	}
	total, err := l.count(ctx, "")
	if err != nil {
		return err
	}
	projects := &v1alpha1.ProjectList{}
	if err := l.Projects.List(ctx, projects); err != nil {
		return fmt.Errorf("listing the projects: %w", err)
	}
	all := total-l.counted > max(l.Most, perNamespace*int64(len(projects.Items)))
	var failed []error
	for _, t := range tenantsOf(projects.Items) {
		if all || slices.ContainsFunc(t, func(p *v1alpha1.Project) bool { return refused[namespaceOf(p)] }) {
			failed = append(failed, l.limit(ctx, t, refused))
		}
	}
	err = errors.Join(failed...)
	if total < l.counted || all && err == nil {
		l.counted = total
	}
	return err
}

// tenantsOf returns the projects of each tenant. The policy does not apply to the projects of the platform itself.
func tenantsOf(projects []v1alpha1.Project) map[string][]*v1alpha1.Project {
	tenants := map[string][]*v1alpha1.Project{}
	for i := range projects {
		if tenant := projects[i].Labels[v1alpha1.TenantLabel]; tenant != v1alpha1.PlatformTenant {
			tenants[tenant] = append(tenants[tenant], &projects[i])
		}
	}
	return tenants
}

func namespaceOf(p *v1alpha1.Project) string {
	return v1alpha1.ProjectNamespace(p.Labels[v1alpha1.TenantLabel], p.Name)
}

// limit counts the Events of a tenant's projects, and labels or unlabels their namespaces. Between the two limits they stay as they are.
func (l *Limiter) limit(ctx context.Context, projects []*v1alpha1.Project, refused map[string]bool) error {
	has, sum := make([]int64, len(projects)), int64(0)
	for i, p := range projects {
		number, err := l.count(ctx, namespaceOf(p))
		if err != nil {
			return err
		}
		has[i] = number
		sum += number
	}
	part := l.Most / int64(len(projects))
	var failed []error
	for i, p := range projects {
		switch name := namespaceOf(p); {
		case sum > l.Most && has[i] > part && !refused[name]:
			failed = append(failed, l.refuse(ctx, p, has[i], sum))
		case (sum <= l.Most/2 || has[i] <= part/2) && refused[name]:
			l.Log.Info("Allowing new Events of a project's apps again", "namespace", name, "events", has[i], "ofTenant", sum)
			failed = append(failed, l.label(ctx, name, "null"))
		}
	}
	return errors.Join(failed...)
}

// refuse labels the namespace of a project and reports the reason in an Event of the project.
func (l *Limiter) refuse(ctx context.Context, project *v1alpha1.Project, has, sum int64) error {
	namespace := namespaceOf(project)
	l.Log.Info("Refusing new Events of a project's apps, as the tenant has too many", "namespace", namespace, "events", has, "ofTenant", sum, "limit", l.Most)
	if err := l.label(ctx, namespace, strconv.Quote(v1alpha1.EventsRefused)); err != nil {
		return err
	}
	l.Events.Eventf(project, nil, corev1.EventTypeWarning, v1alpha1.EventsRefusedReason, "Limit",
		"the tenant's projects have %d Events, of which %d are allowed, and this one has %d, so its apps cannot create more until half of these are gone; "+
			"Kubernetes deletes them after an hour. Find the app that writes them: kubectl get events -n %s", sum, l.Most, has, namespace)
	return nil
}

// label sets the label of a namespace to a JSON value; null removes it.
func (l *Limiter) label(ctx context.Context, namespace, value string) error {
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%s}}}`, v1alpha1.EventsLabel, value)
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if err := l.Direct.Patch(ctx, ns, client.RawPatch(client.Merge.Type(), patch)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("labelling namespace %s: %w", namespace, err)
	}
	return nil
}

// refused returns the labelled namespaces.
func (l *Limiter) refused(ctx context.Context) (map[string]bool, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NamespaceList"))
	if err := l.Direct.List(ctx, list, client.MatchingLabels{v1alpha1.EventsLabel: v1alpha1.EventsRefused}); err != nil {
		return nil, fmt.Errorf("listing the namespaces whose Events are refused: %w", err)
	}
	names := map[string]bool{}
	for _, ns := range list.Items {
		names[ns.Name] = true
	}
	return names, nil
}

// count returns the number of Events in a namespace, or in all for "". It reads one of them; the API server says how many more there are.
func (l *Limiter) count(ctx context.Context, namespace string) (int64, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("EventList"))
	if err := l.Direct.List(ctx, list, client.InNamespace(namespace), client.Limit(1)); err != nil {
		return 0, fmt.Errorf("counting Events: %w", err)
	}
	number := int64(len(list.Items))
	if list.RemainingItemCount != nil {
		number += *list.RemainingItemCount
	}
	return number, nil
}
