package controllers

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr/testr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/eventlimit"
)

// notGranted are the rights of Kubernetes' role edit that no Role of an app may grant, as docs/admission.md lists them.
var notGranted = []string{
	"bindings: get list watch", "deployments/rollback.apps: create delete deletecollection patch update", "namespaces/status: get list watch", "pods/proxy: create delete deletecollection get list patch update watch",
	"replicationcontrollers/scale: create delete deletecollection get list patch update watch", "replicationcontrollers/status: get list watch",
	"replicationcontrollers: create delete deletecollection get list patch update watch", "serviceaccounts/token: create", "serviceaccounts: impersonate",
	"services/proxy: create delete deletecollection get list patch update watch",
	"networkpolicies.networking.k8s.io: create delete deletecollection patch update",
}

// TestRolesOfAppsGrantWhatEditHas creates, as the deployer of a project, a Role for each right that Kubernetes' own role edit has.
func TestRolesOfAppsGrantWhatEditHas(t *testing.T) {
	n := newTeam(t, "granting")
	n.push(shopFiles("shop", "web"))
	n.ready(n.app("shop", "web"))
	edit := &rbacv1.ClusterRole{}
	if err := n.admin.Get(t.Context(), client.ObjectKey{Name: "edit"}, edit); err != nil {
		t.Fatal(err)
	}
	// The old API group of Deployments is not served any more.
	served := func(group string) bool {
		return !slices.Contains([]string{"extensions", "resource.k8s.io", "scheduling.k8s.io", "lifecycle.k8s.io", v1alpha1.GroupVersion.Group}, group)
	}
	verbs := map[string][]string{}
	for _, rule := range edit.Rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				if served(group) {
					name := strings.TrimSuffix(resource+"."+group, ".")
					verbs[name] = append(verbs[name], rule.Verbs...)
				}
			}
		}
	}
	deployer := n.as("system:serviceaccount:kubeop-granting-shop:kubeop-deployer")
	var refused []string
	for name, all := range verbs {
		resource, group, _ := strings.Cut(name, ".")
		var missing []string
		slices.Sort(all)
		for _, verb := range slices.Compact(all) {
			role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-granting-shop", Name: "x"}}
			role.Rules = []rbacv1.PolicyRule{{APIGroups: []string{group}, Resources: []string{resource}, Verbs: []string{verb}}}
			err := deployer.Create(t.Context(), role, client.DryRunAll)
			switch {
			case err != nil && strings.Contains(err.Error(), "attempting to grant"):
				missing = append(missing, verb)
			case err != nil:
				t.Errorf("%s of %s: %v", verb, name, err)
			}
		}
		if len(missing) > 0 {
			refused = append(refused, name+": "+strings.Join(missing, " "))
		}
	}
	slices.Sort(refused)
	want := slices.Sorted(slices.Values(notGranted))
	if diff := cmp.Diff(want, refused); diff != "" {
		t.Errorf("what no Role may grant (-want +got):\n%s", diff)
	}
}

// commonRole has the rules of a chart with leader election, as controller-runtime needs them, and those of tools that scale and debug.
const commonRole = `{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: common}, rules: [
{apiGroups: ["", events.k8s.io], resources: [events], verbs: [create, patch]},
{apiGroups: [coordination.k8s.io], resources: [leases], verbs: [get, list, watch, create, update, patch, delete]},
{apiGroups: [""], resources: [configmaps, pods, secrets], verbs: [get, list, watch, create, update, patch, delete, deletecollection]},
{apiGroups: [""], resources: [pods/log, pods/status, endpoints, namespaces], verbs: [get, list, watch]},
{apiGroups: [""], resources: [pods/exec, pods/portforward, pods/eviction], verbs: [create]},
{apiGroups: [apps], resources: [deployments/scale, statefulsets/scale], verbs: [get, update, patch]},
{apiGroups: [apps], resources: [deployments/finalizers], verbs: [update]},
{apiGroups: [discovery.k8s.io], resources: [endpointslices], verbs: [get, list, watch]}]}`

// eventful returns a tenant with an app whose account has the common role, and a client that acts as this account.
func eventful(t *testing.T, name string) (*team, client.Client) {
	n := newTeam(t, name)
	files := shopFiles("shop", "web")
	namespace := v1alpha1.ProjectNamespace(name, "shop")
	files["projects/shop/apps/bad/app.yaml"] = rawApp(
		"{apiVersion: v1, kind: ServiceAccount, metadata: {name: bot}}", strings.ReplaceAll(commonRole, "\n", " "),
		"{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: bot}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: common}, "+
			"subjects: [{kind: ServiceAccount, name: bot, namespace: "+namespace+"}]}",
	)["app.yaml"]
	n.push(files)
	n.ready(n.app("shop", "bad"))
	return n, n.as("system:serviceaccount:" + namespace + ":bot")
}

const (
	coreEvent   = "{apiVersion: v1, kind: Event, metadata: {name: %s}, involvedObject: {kind: Pod, name: a, namespace: %s}, message: '%s'}"
	eventsEvent = "{apiVersion: events.k8s.io/v1, kind: Event, metadata: {name: %s}, regarding: {kind: Pod, name: a, namespace: %s}, note: '%s', " +
		"eventTime: '2026-01-01T00:00:00.000000Z', reportingController: a.example, reportingInstance: a, action: a, reason: a, type: Normal}"
)

// TestTheEventsOfAnAppAreLimited writes Events as the account of an app: large ones, and many.
func TestTheEventsOfAnAppAreLimited(t *testing.T) {
	n, bot := eventful(t, "eventful")
	const namespace = "kubeop-eventful-shop"
	create := func(text, name string, size int) error {
		return bot.Create(t.Context(), n.object(namespace, fmt.Sprintf(text, name, namespace, strings.Repeat("m", size))))
	}
	n.passes(func() error { return create(coreEvent, "core", 1000) })
	n.passes(func() error { return create(eventsEvent, "events", 1000) })
	n.denied(func() error { return create(coreEvent, "large", 5000) }, "Events: Event/large is larger than 3072 bytes")

	// A limiter that has counted no Events yet counts those of every namespace.
	limit := func() error {
		return (&eventlimit.Limiter{Direct: n.admin, Projects: n.admin, Events: events.NewFakeRecorder(10), Log: testr.New(t), Most: 20}).Check(t.Context())
	}
	for i := range 21 {
		if err := create(coreEvent, fmt.Sprintf("many%d", i), 10); err != nil {
			t.Fatal(err)
		}
	}
	// The operator of this test allows more Events, and takes the label away.
	refused := func(text string) func() error {
		return func() error {
			return errors.Join(limit(), bot.Create(t.Context(), n.object(namespace, fmt.Sprintf(text, "more", namespace, "")), client.DryRunAll))
		}
	}
	n.denied(refused(coreEvent), "Events: namespace kubeop-eventful-shop has too many Events")
	n.denied(refused(eventsEvent), "Events: namespace kubeop-eventful-shop has too many Events")
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"count": 2}`))
	if err := bot.Patch(t.Context(), n.object(namespace, fmt.Sprintf(coreEvent, "many1", namespace, "")), patch); err != nil {
		t.Errorf("an Event that exists cannot be counted up: %v", err)
	}
	if err := n.admin.Create(t.Context(), n.object(namespace, fmt.Sprintf(coreEvent, "kubelet", namespace, ""))); err != nil {
		t.Errorf("a component of the cluster cannot report any more: %v", err)
	}
	if err := n.admin.DeleteAllOf(t.Context(), &corev1.Event{}, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	n.passes(func() error { return errors.Join(limit(), create(coreEvent, "again", 10)) })
}
