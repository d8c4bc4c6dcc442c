package release

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/kubeop/kubeop/delivery/own"
	"github.com/kubeop/kubeop/delivery/release/cluster"
	"github.com/kubeop/kubeop/delivery/release/decide"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

// sharing is a team whose charts may hold cluster-scoped objects, all of one name.
type sharing struct {
	*team
	name    string
	dynamic dynamic.Interface
	binding *rbacv1.ClusterRoleBinding
}

func newSharing(t *testing.T, name string) *sharing {
	t.Helper()
	tm := &sharing{team: newTeamIn(t, metav1.ObjectMeta{Name: "kubeop-" + name + "-dev"}), name: name, dynamic: dynamic.NewForConfigOrDie(env.Config)}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: tm.namespace}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"networking.k8s.io"}, Resources: []string{"ingressclasses"}, Verbs: []string{"*"}},
		{APIGroups: []string{"scheduling.k8s.io"}, Resources: []string{"priorityclasses"}, Verbs: []string{"*"}},
		{APIGroups: []string{"admissionregistration.k8s.io"}, Resources: []string{"validatingwebhookconfigurations"}, Verbs: []string{"*"}},
		{APIGroups: []string{"apiextensions.k8s.io"}, Resources: []string{"customresourcedefinitions"}, Verbs: []string{"*"}},
	}}
	if _, err := tm.admin.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	tm.binding = &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: tm.namespace},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: tm.namespace},
		Subjects:   []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: deployer(tm.namespace)}},
	}
	if _, err := tm.admin.RbacV1().ClusterRoleBindings().Create(t.Context(), tm.binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	tm.may(true)
	return tm
}

// may waits until the deployer has the rights, or no longer has them.
func (s *sharing) may(allowed bool) {
	s.Helper()
	s.until("the deployer's rights", func(context.Context) (bool, error) {
		_, err := s.crd("none")
		return apierrors.IsNotFound(err) == allowed, nil
	})
}

// takeBack revokes the deployer's rights to cluster-scoped kinds.
func (s *sharing) takeBack() {
	s.Helper()
	if err := s.admin.RbacV1().ClusterRoleBindings().Delete(s.Context(), s.binding.Name, metav1.DeleteOptions{}); err != nil {
		s.Fatal(err)
	}
	s.may(false)
}

var sharedResources = map[string]string{
	"IngressClass": "networking.k8s.io/v1/ingressclasses", "PriorityClass": "scheduling.k8s.io/v1/priorityclasses",
	"ValidatingWebhookConfiguration": "admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
	"CustomResourceDefinition":       "apiextensions.k8s.io/v1/customresourcedefinitions",
}

// manifest is the team's cluster-scoped object of a kind.
func (s *sharing) manifest(kind string) string {
	switch kind {
	case "CustomResourceDefinition":
		return s.definitionOf("a")
	case "IngressClass":
		return "apiVersion: networking.k8s.io/v1\nkind: IngressClass\nmetadata: {name: " + s.name + "}\nspec: {controller: example.com/none}\n"
	case "PriorityClass":
		return "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: " + s.name + ", annotations: {helm.sh/resource-policy: keep}}\nvalue: 1\n"
	}
	return "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {name: " + s.name + `}
webhooks:
- name: none.example.com
  clientConfig: {service: {name: web, namespace: ` + s.namespace + `}}
  rules: [{apiGroups: [none.example.com], apiVersions: [v1], operations: [CREATE], resources: [things]}]
  failurePolicy: Fail
  sideEffects: None
  admissionReviewVersions: [v1]
`
}

// holding returns a request with a chart that has these kinds beside four objects of the namespace.
func (s *sharing) holding(kinds ...string) Request {
	more := map[string]string{}
	for _, kind := range kinds {
		more["templates/"+strings.ToLower(kind)+".yaml"] = s.manifest(kind)
	}
	r := s.request(sources.ChartFolder(fourObjects(more)), "color=blue", "kinds="+strings.Join(kinds, ","))
	r.Policy.Admit = func(objects []*unstructured.Unstructured) error {
		own.Owner{Tenant: s.name, Project: "dev", App: "shop", Namespace: s.namespace}.Stamp(objects)
		return nil
	}
	return r
}

// there returns the kinds of which the team's object exists, sorted.
func (s *sharing) there() []string {
	s.Helper()
	var out []string
	for kind := range sharedResources {
		if s.live(kind) != nil {
			out = append(out, kind)
		}
	}
	slices.Sort(out)
	return out
}

func (s *sharing) client(kind string) dynamic.ResourceInterface {
	at := strings.Split(sharedResources[kind], "/")
	return s.dynamic.Resource(schema.GroupVersionResource{Group: at[0], Version: at[1], Resource: at[2]})
}

func (s *sharing) called(kind string) string {
	if kind == "CustomResourceDefinition" {
		return "things." + s.namespace + ".example.com"
	}
	return s.name
}

func (s *sharing) live(kind string) *unstructured.Unstructured {
	s.Helper()
	live, err := s.client(kind).Get(s.Context(), s.called(kind), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		s.Fatal(err)
	}
	return live
}

var everyKind = slices.Sorted(maps.Keys(sharedResources))

// expect compares the objects that exist.
func (s *sharing) expect(when string, want ...string) {
	s.Helper()
	if got := s.there(); !slices.Equal(got, want) {
		s.Errorf("%s there are %v, want %v", when, got, want)
	}
}

// TestClusterScopedObjectsAreDeleted as by the helm command, except definitions: by an upgrade to a chart without them, and with the
// release. A webhook configuration is deleted before the Service that it calls.
func TestClusterScopedObjectsAreDeleted(t *testing.T) {
	tm := newSharing(t, "deleting")
	var deleted asked
	tm.between = func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodDelete {
				return deleted.wrap(next).RoundTrip(r)
			}
			return next.RoundTrip(r)
		})
	}
	tm.Engine = tm.engine("me")
	r := tm.holding(everyKind...)
	out := tm.deploy(r)
	var reported []string
	for _, o := range out.Deployed.Shared {
		reported = append(reported, o.Kind)
		if o.Kept != (o.Kind == "PriorityClass") {
			t.Errorf("%s is said to be kept: %t", o.Kind, o.Kept)
		}
	}
	if slices.Sort(reported); !slices.Equal(reported, everyKind) {
		t.Errorf("the revision is said to hold %v", reported)
	}
	tm.expect("after the install", everyKind...)

	out = tm.deploy(tm.holding("PriorityClass", "ValidatingWebhookConfiguration"))
	tm.expect("after the upgrade", "CustomResourceDefinition", "PriorityClass", "ValidatingWebhookConfiguration")
	if len(out.Deployed.Shared) != 2 {
		t.Errorf("after the upgrade it is said to hold %v", out.Deployed.Shared)
	}
	tm.catchUp()
	tm.uninstall(r)
	tm.expect("after the uninstallation", "CustomResourceDefinition", "PriorityClass")
	first := func(what string) int {
		return slices.IndexFunc(deleted.paths, func(path string) bool { return strings.Contains(path, what) })
	}
	if hook, service := first("/validatingwebhookconfigurations/"), first("/services/"); hook < 0 || service < hook {
		t.Errorf("the webhook was not deleted before its Service: %v", deleted.paths)
	}
}

// TestObjectsThatAdministratorsReplacedAreKept, and those from which they removed the labels.
func TestObjectsThatAdministratorsReplacedAreKept(t *testing.T) {
	tm := newSharing(t, "replaced")
	r := tm.holding("IngressClass", "ValidatingWebhookConfiguration")
	tm.deploy(r)
	unlabeled := tm.live("IngressClass")
	unlabeled.SetLabels(nil)
	if _, err := tm.client("IngressClass").Update(t.Context(), unlabeled, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := tm.client("ValidatingWebhookConfiguration").Delete(t.Context(), tm.name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	theirs := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
		"metadata": map[string]any{"name": tm.name, "annotations": map[string]any{cluster.NameAnnotation: "web", cluster.NamespaceAnnotation: tm.namespace}},
	}}
	if _, err := tm.client("ValidatingWebhookConfiguration").Create(t.Context(), theirs, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	tm.deploy(tm.holding("ValidatingWebhookConfiguration", "PriorityClass"))
	tm.expect("after the upgrade", "IngressClass", "PriorityClass", "ValidatingWebhookConfiguration")
	// The upgrade adopted the object with the release's annotations: administrators handed it over.
	handed := tm.live("ValidatingWebhookConfiguration")
	handed.SetLabels(map[string]string{decide.AppLabel: "shop"})
	if _, err := tm.client("ValidatingWebhookConfiguration").Update(t.Context(), handed, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	tm.catchUp()
	tm.uninstall(r)
	tm.expect("after the uninstallation", "IngressClass", "PriorityClass", "ValidatingWebhookConfiguration")
}

// Administrators take the object back between the check and the deletion.
func TestOnlyTheVersionThatWasCheckedIsDeleted(t *testing.T) {
	tm := newSharing(t, "looked")
	tm.between = func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodDelete && strings.Contains(r.URL.Path, "/ingressclasses/") {
				patch := []byte(`{"metadata":{"labels":{"` + decide.AppLabel + `":null}}}`)
				if _, err := tm.client("IngressClass").Patch(t.Context(), tm.name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
					t.Error(err)
				}
			}
			return next.RoundTrip(r)
		})
	}
	tm.Engine = tm.engine("me")
	tm.deploy(tm.holding("IngressClass"))
	tm.deploy(tm.holding())
	tm.expect("after the upgrade", "IngressClass")
}

// TestAnUpgradeKeepsWhatItMayNotDelete, succeeds, and no longer counts it as its own.
func TestAnUpgradeKeepsWhatItMayNotDelete(t *testing.T) {
	tm := newSharing(t, "retracted")
	tm.deploy(tm.holding("IngressClass", "ValidatingWebhookConfiguration"))
	tm.takeBack()
	if out := tm.settle(tm.holding()); out.Failed != nil || len(out.Deployed.Shared) != 0 {
		t.Errorf("the upgrade: %+v", out)
	}
	tm.expect("after the upgrade", "IngressClass", "ValidatingWebhookConfiguration")
}

// TestAnUninstallationWaitsForWhatItMayNotDelete, reports what helps, and ends when administrators have deleted it.
func TestAnUninstallationWaitsForWhatItMayNotDelete(t *testing.T) {
	tm := newSharing(t, "leaving")
	r := tm.holding("IngressClass")
	r.Policy.Retry = func(int) time.Duration { return 100 * time.Millisecond }
	tm.deploy(r)
	tm.takeBack()
	tm.catchUp()
	var err error
	for range 3 {
		if _, err = tm.Uninstall(t.Context(), r); err != nil {
			break
		}
		tm.await(r)
	}
	for _, want := range []string{"IngressClass/" + tm.name, "an administrator of the cluster may run: kubectl delete ", "spec.clusterKinds"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
	if err := tm.client("IngressClass").Delete(t.Context(), tm.name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	tm.until("the release is gone", func(ctx context.Context) (bool, error) {
		done, err := tm.Uninstall(ctx, r)
		return done && err == nil, nil
	})
}
