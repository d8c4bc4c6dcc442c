package project

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	gocmp "github.com/google/go-cmp/cmp"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/app/subject"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/delivery/classes"
	"github.com/kubeop/kubeop/delivery/kube"
	"github.com/kubeop/kubeop/delivery/own"
)

var errAway = errors.New("the API server is away")

// world is what a Finder finds: the objects of the API server, and those that the watch shows by kind, namespace and name.
type world struct {
	objects []client.Object
	live    map[string]*metav1.ObjectMeta
	// follow are the errors of watches by kind, and followed the kinds that were asked for.
	follow   map[string]error
	followed []string
	// broken is what cannot be read: a kind, or "Namespace" of the watch.
	broken string
	// deployer is the error of the deployer.
	deployer error
}

func (w *world) Follow(kind schema.GroupVersionKind) error {
	w.followed = append(w.followed, kind.GroupVersion().String()+" "+kind.Kind)
	return w.follow[kind.Kind]
}

func (w *world) show(name string) (metav1.Object, error) {
	if kind, _, _ := strings.Cut(name, " "); kind == w.broken {
		return nil, errAway
	}
	if o := w.live[name]; o != nil {
		return o, nil
	}
	return nil, nil
}

func (w *world) Live(_ context.Context, kind schema.GroupVersionKind, key types.NamespacedName) (metav1.Object, bool, error) {
	o, err := w.show(kind.Kind + " " + key.String())
	return o, true, err
}

func (w *world) Namespace(_ context.Context, name string) (metav1.Object, error) {
	return w.show("Namespace " + name)
}

// complete is a world in which an App of acme's project shop is delivered.
func complete() *world {
	tenant := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "acme"}}
	tenant.Spec.ClusterKinds, tenant.Spec.Taints, tenant.Spec.IngressAnnotations, tenant.Spec.CSIDrivers = []string{"A.b"}, []string{"gpu"}, []string{"c"}, []string{"d"}
	tenant.Spec.Freeze = []v1alpha1.FreezeWindow{{Name: "night"}}
	project := &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-acme", Name: "shop"}}
	project.Status.Namespace, project.Status.PullSecrets = "kubeop-acme-shop", []v1alpha1.PullSecret{{Registry: "hub"}}
	conditions.MarkFalse(project, v1alpha1.ReadyCondition, "X", "it is being repaired")
	rules := &v1alpha1.Guardrails{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-acme-shop", Name: v1alpha1.GuardrailsName}}
	rules.Spec.Deny = []v1alpha1.AppliedPolicy{{Policy: "standard"}}
	return &world{objects: []client.Object{tenant, project, rules}, live: map[string]*metav1.ObjectMeta{
		"Namespace kubeop-acme-shop":                        {Labels: map[string]string{v1alpha1.TenantLabel: "acme", v1alpha1.ProjectLabel: "shop"}},
		"RoleBinding kubeop-acme-shop/" + v1alpha1.Deployer: {},
	}}
}

func (w *world) without(kind string) {
	var kept []client.Object
	for _, o := range w.objects {
		if !isKind(o, kind) {
			kept = append(kept, o)
		}
	}
	w.objects = kept
}

func isKind(o client.Object, kind string) bool {
	switch o.(type) {
	case *v1alpha1.Tenant:
		return kind == v1alpha1.TenantKind
	case *v1alpha1.Project:
		return kind == v1alpha1.ProjectKind
	case *v1alpha1.Guardrails:
		return kind == "Guardrails"
	}
	return false
}

func (w *world) tenant() *v1alpha1.Tenant { return w.objects[0].(*v1alpha1.Tenant) }

func (w *world) finder(t *testing.T) *Finder {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(v1alpha1.AddToScheme(scheme), clientgoscheme.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(w.objects...).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if isKind(o, w.broken) {
				return errAway
			}
			return c.Get(ctx, key, o, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if _, classes := list.(*storagev1.StorageClassList); classes && w.broken == "StorageClass" {
				return errAway
			}
			return c.List(ctx, list, opts...)
		},
	}).Build()
	return &Finder{Client: c, Watch: w, Limits: budget.Default(), Deployer: func(namespace string) (client.Client, error) {
		if w.deployer != nil {
			return nil, w.deployer
		}
		return client.NewNamespacedClient(c, namespace), nil
	}}
}

func subjectOf(namespace string) *subject.Subject {
	subjects := &subject.Subjects{Clock: clocktesting.NewFakePassiveClock(time.Unix(1000, 0))}
	return subjects.New(&v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web", UID: "1"}})
}

func TestAnAppWaitsForItsProject(t *testing.T) {
	const unknown = "DependencyNotReady"
	for name, c := range map[string]struct {
		change func(*world)
		// namespace of the App, by default kubeop-acme-shop.
		namespace, reason, says string
		// waits: the App is only waiting. Otherwise it is stopped if there is a reason, or the error is retried.
		waits bool
		err   error
	}{
		"all is there":              {change: func(*world) {}},
		"no project's namespace":    {change: func(w *world) { w.live["Namespace kubeop-acme-shop"] = nil }, reason: unknown, waits: true, says: "namespace kubeop-acme-shop belongs to no project"},
		"labels of another tenant":  {change: func(w *world) { w.live["Namespace kubeop-acme-shop"].Labels[v1alpha1.TenantLabel] = "rival" }, reason: unknown, says: "has the labels of project shop of tenant rival"},
		"labels of another project": {change: func(w *world) { w.live["Namespace kubeop-acme-shop"].Labels[v1alpha1.ProjectLabel] = "blog" }, reason: unknown, says: "has the labels of project blog of tenant acme"},
		"a name read in two ways": {namespace: "kubeop-acme-shop-eu", change: func(w *world) {
			w.live["Namespace kubeop-acme-shop-eu"] = &metav1.ObjectMeta{Labels: map[string]string{v1alpha1.TenantLabel: "acme-shop", v1alpha1.ProjectLabel: "eu"}}
		}, reason: unknown, says: "namespace kubeop-acme-shop-eu has the labels of project eu of tenant acme-shop"},
		"no project":         {change: func(w *world) { w.without("Project") }, reason: unknown, waits: true, says: "project kubeop-acme/shop does not exist"},
		"no deployer yet":    {change: func(w *world) { delete(w.live, "RoleBinding kubeop-acme-shop/"+v1alpha1.Deployer) }, reason: unknown, waits: true, says: "project shop is not ready: it is being repaired"},
		"no guardrails yet":  {change: func(w *world) { w.without("Guardrails") }, reason: unknown, waits: true, says: "waits for the guardrails of namespace kubeop-acme-shop, in which kubeop writes the policies of tenant acme"},
		"no tenant any more": {change: func(w *world) { w.without("Tenant") }},
		"stopped":            {change: func(w *world) { w.tenant().Spec.Stopped = true }, reason: "Stopped", waits: true, says: "Stopped by administrators: nothing of tenant acme runs"},
		"resumed, without pods": {change: func(w *world) { w.live["ResourceQuota kubeop-acme-shop/kubeop-stopped"] = &metav1.ObjectMeta{} },
			reason: "Stopped", waits: true, says: "waits until pods are admitted in namespace kubeop-acme-shop again, after tenant acme was stopped"},
		"resumed, with pods": {change: func(w *world) {
			w.live["ResourceQuota kubeop-acme-shop/kubeop-stopped"] = &metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.ResumedAtAnnotation: "now"}}
		}},
		"the platform is off":         {change: func(w *world) { w.deployer = kube.ErrPlatformOff }, reason: unknown, says: kube.ErrPlatformOff.Error()},
		"a deployer that fails":       {change: func(w *world) { w.deployer = errAway }, err: errAway},
		"a namespace nobody can read": {change: func(w *world) { w.broken = "Namespace" }, err: errAway},
		"such a project":              {change: func(w *world) { w.broken = "Project" }, err: errAway, says: "reading project kubeop-acme/shop: "},
		"such a deployer":             {change: func(w *world) { w.broken = "RoleBinding" }, err: errAway},
		"such a tenant":               {change: func(w *world) { w.broken = "Tenant" }, err: errAway, says: "reading tenant acme: "},
		"such guardrails":             {change: func(w *world) { w.broken = "Guardrails" }, err: errAway, says: "reading the guardrails of namespace kubeop-acme-shop: "},
		"such classes":                {change: func(w *world) { w.broken = "StorageClass" }, err: errAway, says: "reading the default classes of the cluster: "},
		"such a quota":                {change: func(w *world) { w.broken = "ResourceQuota" }, err: errAway},
	} {
		t.Run(name, func(t *testing.T) {
			w := complete()
			c.change(w)
			s := subjectOf(cmp.Or(c.namespace, "kubeop-acme-shop"))
			err := w.finder(t).Find(t.Context(), s, nil)
			if c.reason == "" && c.err == nil {
				if err != nil || s.Client == nil || s.Owner != (own.Owner{Tenant: "acme", Project: "shop", App: "web", Namespace: "kubeop-acme-shop"}) {
					t.Errorf("got %v, %+v", err, s.Owner)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.says) || c.err != nil && !errors.Is(err, c.err) {
				t.Fatalf("got %v, want %s", err, c.says)
			}
			reason, failed := step.Failure(err)
			if step.Waits(err) != c.waits || step.Fails(err) != (c.err != nil) || failed == c.waits || c.reason != "" && reason != c.reason {
				t.Errorf("waits %t, fails %t, reason %s", step.Waits(err), step.Fails(err), reason)
			}
		})
	}
}

func TestAnAppHasTheTermsOfItsTenantAndProject(t *testing.T) {
	w := complete()
	w.objects = append(w.objects, &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "usual"}, GlobalDefault: true})
	w.tenant().Spec.PriorityClasses = []string{"low"}
	w.tenant().Spec.Frozen, w.tenant().Spec.PodSecurity = true, "baseline"
	objects := int32(7)
	w.tenant().Spec.Limits.AppObjects = &objects
	s := subjectOf("kubeop-acme-shop")
	if err := w.finder(t).Find(t.Context(), s, nil); err != nil {
		t.Fatal(err)
	}
	want := subject.Exceptions{Taints: []string{"gpu"}, IngressAnnotations: []string{"c"}, CSIDrivers: []string{"d"}, PriorityClasses: []string{"low", "usual"}, GracePeriod: time.Hour, Usual: classes.Usual{Priority: "usual", NoIngress: true}}
	if diff := gocmp.Diff(want, s.Exceptions); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(s.ClusterKinds) != 1 || s.Limits.App.Objects != 7 || s.Limits.RenderedBytes != budget.Default().RenderedBytes {
		t.Errorf("cluster kinds %v, limits %+v", s.ClusterKinds, s.Limits)
	}
	if len(s.Freeze) != 1 || s.Frozen == nil || s.Stopped != nil || s.PodSecurity != "baseline" || len(s.PullSecrets) != 1 || len(s.Guardrails.Deny) != 1 {
		t.Errorf("got %+v", s)
	}
}

// TestAnAppOfThePlatformNeedsNoTenant, nor Guardrails: its namespace says its Pod Security level.
func TestAnAppOfThePlatformNeedsNoTenant(t *testing.T) {
	for label, want := range map[string]string{"": "privileged", "restricted": "restricted"} {
		namespace := v1alpha1.ProjectNamespace(v1alpha1.PlatformTenant, "ingress")
		project := &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.HomeNamespace(v1alpha1.PlatformTenant), Name: "ingress"}}
		project.Status.Namespace = namespace
		labels := map[string]string{v1alpha1.TenantLabel: v1alpha1.PlatformTenant, v1alpha1.ProjectLabel: "ingress"}
		if label != "" {
			labels["pod-security.kubernetes.io/enforce"] = label
		}
		w := &world{objects: []client.Object{project}, live: map[string]*metav1.ObjectMeta{"Namespace " + namespace: {Labels: labels}, "RoleBinding " + namespace + "/" + v1alpha1.Deployer: {}}}
		s := subjectOf(namespace)
		if err := w.finder(t).Find(t.Context(), s, nil); err != nil || s.PodSecurity != want || s.Guardrails != nil {
			t.Errorf("with the label %q: %v, %s, %v", label, err, s.PodSecurity, s.Guardrails)
		}
		if w.broken = "Guardrails"; !errors.Is(w.finder(t).Find(t.Context(), subjectOf(namespace), nil), errAway) {
			t.Error("it does not matter whether its Guardrails can be read")
		}
	}
}

// TestAnAppWaitsForTheFirstListsOfWhatItDelivered, once in a process. Of kinds that cannot be listed, the step that needs them says so.
func TestAnAppWaitsForTheFirstListsOfWhatItDelivered(t *testing.T) {
	entries := []v1alpha1.InventoryEntry{
		{ID: "kubeop-acme-shop_a__ConfigMap", Version: "v1"}, {ID: "kubeop-acme-shop_s__Secret", Version: "v1"}, {ID: "_c__Namespace", Version: "v1"},
		{ID: "kubeop-acme-shop_b__ConfigMap", Version: "v1"}, {ID: "kubeop-acme-shop_d_apps_Deployment", Version: "v1"}, {ID: "kubeop-acme-shop_e_batch_Job", Version: "v1"},
	}
	w := complete()
	running := &kube.Unready{What: "ConfigMap"}
	w.follow = map[string]error{"ConfigMap": running, "Deployment": &kube.Unready{What: "Deployment"}, "Job": &kube.Unready{What: "Job", Err: errAway}}
	f, s := w.finder(t), subjectOf("kubeop-acme-shop")
	if err := f.Find(t.Context(), s, entries); !errors.Is(err, running) {
		t.Errorf("while two lists run: %v", err)
	}
	if diff := gocmp.Diff([]string{"v1 ConfigMap", "apps/v1 Deployment", "batch/v1 Job"}, w.followed); diff != "" {
		t.Errorf("followed (-want +got):\n%s", diff)
	}
	delete(w.follow, "ConfigMap")
	delete(w.follow, "Deployment")
	for range 2 {
		if err := f.Find(t.Context(), s, entries); err != nil {
			t.Fatal(err)
		}
	}
	if len(w.followed) != 6 {
		t.Errorf("followed again once all were listed: %q", w.followed)
	}
	f.Forget(s.App)
	if err := f.Find(t.Context(), s, entries); err != nil || len(w.followed) != 9 {
		t.Errorf("a new App of that name: %v, followed %q", err, w.followed)
	}
	f.Forget(s.App)
	if err := f.Find(t.Context(), s, []v1alpha1.InventoryEntry{{ID: "nothing"}}); err == nil {
		t.Error("an entry that is no object is followed")
	}
}

func TestAPlaceSettlesASubject(t *testing.T) {
	w := complete()
	f, s := w.finder(t), subjectOf("kubeop-acme-shop")
	at := Place{
		Owner: own.Owner{Tenant: "acme", Project: "shop"}, Tenant: w.tenant(), Namespace: &metav1.ObjectMeta{}, Client: f.Client,
		Guardrails: &v1alpha1.GuardrailsSpec{PodSecurity: &v1alpha1.AppliedPodSecurity{PodSecurityRules: v1alpha1.PodSecurityRules{Level: "restricted"}}}, PullSecrets: []v1alpha1.PullSecret{{Registry: "hub"}},
	}
	f.Settle(s, at)
	if s.Owner != at.Owner || s.Client == nil || s.Guardrails != at.Guardrails || len(s.PullSecrets) != 1 || s.PodSecurity != "restricted" || len(s.Taints) != 1 {
		t.Errorf("got %+v", s)
	}
}

// TestTheTimeToBecomeHealthyBeginsAnewAfterAStop: nothing could become healthy before.
func TestTheTimeToBecomeHealthyBeginsAnewAfterAStop(t *testing.T) {
	w := complete()
	w.tenant().Spec.Stopped = true
	clock := clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
	s := (&subject.Subjects{Clock: clock}).New(subjectOf("kubeop-acme-shop").App)
	s.Since("Healthy")
	clock.SetTime(time.Unix(2000, 0))
	if err := w.finder(t).Find(t.Context(), s, nil); !step.Waits(err) {
		t.Fatal(err)
	}
	if waited := s.Waited("Healthy"); waited != 0 {
		t.Errorf("it has been waiting for %s", waited)
	}
}
