// Package watchtest makes the operator's watch of labelled objects over a fake API server.
package watchtest

import (
	"context"
	"fmt"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/fingerprint"
	"github.com/kubeop/kubeop/delivery/health"
	"github.com/kubeop/kubeop/delivery/kube"
)

// New returns a watch over a fake API server, after the first lists of the kinds. The operator may watch all kinds that the RESTMapper of
// the client knows. Later changes reach the watch as they reach that of a real API server: a moment later.
func New(t *testing.T, api client.WithWatch, kinds ...schema.GroupVersionKind) *kube.Watch {
	t.Helper()
	permitted := interceptor.NewClient(api, interceptor.Funcs{Create: permit})
	objects := &informers{t: t, api: api}
	w := kube.NewWatch(kube.NewLists(clocktesting.NewFakeClock(metav1.Now().Time)), objects, api, permitted, health.HasStatus)
	for _, kind := range kinds {
		if err := kube.Await(t.Context(), func() error { return w.Follow(kind) }); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// permit answers that the operator has the permission asked for.
func permit(ctx context.Context, api client.WithWatch, o client.Object, opts ...client.CreateOption) error {
	if review, ok := o.(*authorizationv1.SelfSubjectAccessReview); ok {
		review.Status.Allowed = true
		return nil
	}
	return api.Create(ctx, o, opts...)
}

// informers is a cache of the labelled objects of a fake API server.
type informers struct {
	cache.Cache
	t   *testing.T
	api client.WithWatch
}

// GetInformer implements cache.Cache. A Watch calls it once for each kind.
func (i *informers) GetInformer(_ context.Context, o client.Object, _ ...cache.InformerGetOption) (cache.Informer, error) {
	kind := o.GetObjectKind().GroupVersionKind()
	informer := toolscache.NewSharedIndexInformer(lists{i.api, o}, o, 0, toolscache.Indexers{toolscache.NamespaceIndex: toolscache.MetaNamespaceIndexFunc})
	if err := informer.SetTransform(kube.Hold(i.api.Scheme(), fingerprint.Slim)); err != nil {
		return nil, fmt.Errorf("watching %s: %w", kind, err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		informer.RunWithContext(i.t.Context())
	}()
	i.t.Cleanup(func() { <-ended })
	return informer, nil
}

// lists lists and watches the objects of one kind.
type lists struct {
	api client.WithWatch
	of  client.Object
}

// IsWatchListSemanticsUnSupported says that a watch of the fake API server does not begin with the existing objects.
func (lists) IsWatchListSemanticsUnSupported() bool { return true }

// List implements toolscache.Lister.
func (l lists) List(metav1.ListOptions) (runtime.Object, error) {
	list, err := l.list()
	if err != nil {
		return nil, err
	}
	if err := l.api.List(context.Background(), list, client.HasLabels{v1alpha1.TenantLabel}); err != nil {
		return nil, err
	}
	return list, nil
}

// Watch implements toolscache.Watcher.
func (l lists) Watch(metav1.ListOptions) (watch.Interface, error) {
	list, err := l.list()
	if err != nil {
		return nil, err
	}
	return l.api.Watch(context.Background(), list, client.HasLabels{v1alpha1.TenantLabel})
}

// list returns an empty list of the form of the object: of metadata, unstructured or typed.
func (l lists) list() (client.ObjectList, error) {
	kind := l.of.GetObjectKind().GroupVersionKind()
	kind.Kind += "List"
	switch l.of.(type) {
	case *metav1.PartialObjectMetadata:
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind)
		return list, nil
	case *unstructured.Unstructured:
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		return list, nil
	}
	made, err := l.api.Scheme().New(kind)
	if err != nil {
		return nil, err
	}
	return made.(client.ObjectList), nil
}

// Mapper maps all kinds of a scheme. Only the named kinds are cluster-scoped.
func Mapper(scheme *runtime.Scheme, clusterScoped string) apimeta.RESTMapper {
	mapper := apimeta.NewDefaultRESTMapper(scheme.PrioritizedVersionsAllGroups())
	for kind := range scheme.AllKnownTypes() {
		scope := apimeta.RESTScopeNamespace
		if strings.Contains(" "+clusterScoped+" ", " "+kind.Kind+" ") {
			scope = apimeta.RESTScopeRoot
		}
		mapper.Add(kind, scope)
	}
	return mapper
}
