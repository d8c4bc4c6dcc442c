package project

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/guards"
	"github.com/kubeop/kubeop/controllers/hostclaims"
	"github.com/kubeop/kubeop/controllers/refusal"
	"github.com/kubeop/kubeop/controllers/registry"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/controllers/usage"
	"github.com/kubeop/kubeop/delivery/apply"
	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/delivery/isolation"
	"github.com/kubeop/kubeop/delivery/kube"
	"github.com/kubeop/kubeop/delivery/quota"
)

const shopNamespace = "kubeop-acme-shop"

var (
	errAway   = errors.New("the API server is away")
	deletedAt = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
)

// networks answers with what is the cluster's own within a range.
type networks struct {
	except map[string][]netip.Prefix
	all    map[string]bool
	err    error
	change func()
}

func (n *networks) Except(_ context.Context, within netip.Prefix) ([]netip.Prefix, bool, error) {
	return n.except[within.String()], n.all[within.String()], n.err
}

func (n *networks) OnChange(f func()) { n.change = f }

// fixture is a reconciler over a fake API server, and another server that deployers reach.
type fixture struct {
	*Reconciler
	t        *testing.T
	api      client.WithWatch
	events   *events.FakeRecorder
	clock    *clocktesting.FakeClock
	networks *networks
	forgot   []string
	// pods are what deployers see of pods, and requests what they sent: user, method, path and query.
	pods     []metav1.PartialObjectMetadata
	requests []string
	// fault is an error for a request of the operator, by its verb, the kind, and what is written.
	fault func(verb string, o any, data string) error
}

func newFixture(t *testing.T, objects ...client.Object) *fixture {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	b := &fixture{t: t, events: events.NewFakeRecorder(20), clock: clocktesting.NewFakeClock(deletedAt), networks: &networks{}, fault: func(string, any, string) error { return nil }}
	mapper := mapperOf(scheme)
	b.api = fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper).WithObjects(objects...).WithStatusSubresource(&v1alpha1.Project{}).
		WithIndex(&v1alpha1.Registry{}, "secret", func(o client.Object) []string { return []string{o.(*v1alpha1.Registry).Spec.SecretRef.Name} }).
		WithTypeConverters(managedfields.NewDeducedTypeConverter()).WithInterceptorFuncs(b.faults()).Build()
	unwatched := fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(meta.NewDefaultRESTMapper(nil)).Build()
	deployers := httptest.NewServer(http.HandlerFunc(b.deployer))
	t.Cleanup(deployers.Close)
	b.Reconciler = &Reconciler{
		Client: b.api, Direct: b.api, Connections: Connections{Networks: b.networks, Tier: &guards.OptionalKind{Kind: isolation.ClusterPolicyKind, Mapper: mapper}}, Refusals: &refusal.Index{},
		Watch:   kube.NewWatch(kube.NewLists(b.clock), nil, b.api, unwatched, func(schema.GroupVersionKind) bool { return false }),
		Applier: &apply.Applier{Live: b.live},
		Clients: kube.NewClients(&rest.Config{Host: deployers.URL}, scheme, mapper, kube.Deployers{}),
		Steps:   &step.Runner{Client: b.api, Events: b.events, Clock: b.clock},
		Quotas: Quotas{
			Kinds: &quota.Kinds{Roles: b.api, Definitions: b.api, Served: served{}, Now: b.clock.Now},
			Store: &usage.Store{Reader: b.api, Limits: budget.Default(), Clock: b.clock, Quota: func(string) (*corev1.ResourceQuota, error) {
				return nil, nil
			}},
			Grants: &usage.Grants{Reader: b.api, Clock: b.clock, Quota: func(string) (*corev1.ResourceQuota, error) { return nil, nil }},
		},
		Promotions: func(p *v1alpha1.Project) (step.Note, v1alpha1.PromotionStatus) {
			return step.Note{Condition: v1alpha1.PromotionPendingCondition}, v1alpha1.PromotionStatus{Promoted: []v1alpha1.Promoted{{App: p.Name + "-web"}}}
		},
		Forget: func(namespace string) { b.forgot = append(b.forgot, namespace) },
	}
	b.Registries = &registry.Provider{
		Client: b.api, Direct: b.api, Secrets: registry.NewSecrets(b.api, b.api, b.api, "kubeop-system", b.clock), Applier: b.Applier,
		Deployer: func(string) (client.Client, error) { return b.api, nil },
		Version:  func(context.Context, string, string, string) (string, error) { return "", nil },
	}
	b.Hosts = &hostclaims.Claims{Client: b.api, Direct: b.api, Clock: b.clock, WakeProject: func(types.NamespacedName) {}}
	return b
}

// mapperOf maps all kinds, those of the cluster as such.
func mapperOf(scheme *runtime.Scheme) meta.RESTMapper {
	root := map[schema.GroupKind]bool{
		{Kind: "Namespace"}: true, {Group: rbacv1.GroupName, Kind: "ClusterRole"}: true, {Group: rbacv1.GroupName, Kind: "ClusterRoleBinding"}: true,
		{Group: schedulingv1.GroupName, Kind: "PriorityClass"}: true, {Group: "storage.k8s.io", Kind: "StorageClass"}: true,
		{Group: v1alpha1.Group, Kind: "Tenant"}: true, {Group: v1alpha1.Group, Kind: v1alpha1.HostnameClaimKind}: true,
	}
	mapper := meta.NewDefaultRESTMapper(scheme.PrioritizedVersionsAllGroups())
	for kind := range scheme.AllKnownTypes() {
		scope := meta.RESTScopeNamespace
		if root[kind.GroupKind()] {
			scope = meta.RESTScopeRoot
		}
		mapper.Add(kind, scope)
	}
	return mapper
}

func (b *fixture) faults() interceptor.Funcs {
	return interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if err := b.fault("get", o, ""); err != nil {
				return err
			}
			return c.Get(ctx, key, o, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if err := b.fault("list", list, ""); err != nil {
				return err
			}
			if err := c.List(ctx, list, opts...); err != nil {
				return err
			}
			return reversed(list)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			data, err := p.Data(o)
			if err != nil {
				return err
			}
			if err := b.fault("patch", o, string(data)); err != nil {
				return err
			}
			return c.Patch(ctx, o, p, opts...)
		},
		Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			data, err := json.Marshal(o)
			if err != nil {
				return err
			}
			if err := b.fault("apply", o, string(data)); err != nil {
				return err
			}
			return c.Apply(ctx, o, opts...)
		},
	}
}

// reversed turns a list round, because that of a cache has no order, and the one of the fake API server is sorted.
func reversed(list client.ObjectList) error {
	items, err := meta.ExtractList(list)
	if err != nil {
		return err
	}
	slices.Reverse(items)
	return meta.SetList(list, items)
}

// served is the discovery of a cluster that has pods and ConfigMaps.
type served struct{}

func (served) ServerGroupsAndResources() ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
	list := &metav1.APIResourceList{GroupVersion: "v1"}
	for _, name := range []string{"pods", "configmaps"} {
		list.APIResources = append(list.APIResources, metav1.APIResource{Name: name, Namespaced: true, Verbs: metav1.Verbs{"create", "list", "watch", "delete"}})
	}
	return nil, []*metav1.APIResourceList{list}, nil
}

func (b *fixture) live(ctx context.Context, kind schema.GroupVersionKind, key types.NamespacedName) (metav1.Object, bool, error) {
	o := &metav1.PartialObjectMetadata{}
	o.SetGroupVersionKind(kind)
	err := b.Direct.Get(ctx, key, o)
	if apierrors.IsNotFound(err) {
		return nil, true, nil
	}
	return o, true, err
}

// deployer answers as the API server does to deployers: lists of pods, and empty lists of all else.
func (b *fixture) deployer(w http.ResponseWriter, req *http.Request) {
	b.requests = append(b.requests, req.Header.Get("Impersonate-User")+" "+req.Method+" "+req.URL.Path)
	w.Header().Set("Content-Type", "application/json")
	list := &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadataList"}}
	if strings.HasSuffix(req.URL.Path, "/pods") {
		list.Items = b.pods
	}
	if req.Method == http.MethodDelete {
		_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess})
		return
	}
	_ = json.NewEncoder(w).Encode(list)
}

func acme(change ...func(*v1alpha1.Tenant)) *v1alpha1.Tenant {
	tenant := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "acme", UID: "uid-1"}}
	for _, c := range change {
		c(tenant)
	}
	return tenant
}

func shop(change ...func(*v1alpha1.Project)) *v1alpha1.Project {
	project := &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-acme", Name: "shop", UID: "project-1", Finalizers: []string{v1alpha1.Finalizer}}}
	for _, c := range change {
		c(project)
	}
	return project
}

func deletedProject(p *v1alpha1.Project) { p.DeletionTimestamp = &metav1.Time{Time: deletedAt} }

func appOf(namespace, name string) *v1alpha1.App {
	return &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Finalizers: []string{v1alpha1.Finalizer}}}
}

// with returns the scope of a project whose tenant is known.
func (b *fixture) with(project *v1alpha1.Project, tenant *v1alpha1.Tenant) *scope {
	s := b.newScope(project)
	s.tenant = tenant
	return s
}

// again returns the scope of the next Reconcile of the same project.
func (b *fixture) again(s *scope) *scope {
	s.Record()
	return b.with(s.project, s.tenant)
}

func (b *fixture) get(o client.Object) bool {
	b.t.Helper()
	err := b.api.Get(b.t.Context(), client.ObjectKeyFromObject(o), o)
	if client.IgnoreNotFound(err) != nil {
		b.t.Fatal(err)
	}
	return err == nil
}

// resources returns those that the deployer may write in the whole cluster, nil where it has no role.
func (b *fixture) resources() []string {
	b.t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "kubeop-cluster-acme-shop"}}
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "kubeop-cluster-acme-shop"}}
	has := b.get(role)
	if bound := b.get(binding); bound != has {
		b.t.Errorf("the role is there: %t, its binding: %t", has, bound)
	}
	if !has {
		return nil
	}
	all := []string{}
	for _, rule := range role.Rules {
		all = append(all, rule.Resources...)
	}
	slices.Sort(all)
	return all
}
