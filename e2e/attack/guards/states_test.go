//go:build e2e

package guards

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/e2e/stage"
	"github.com/kubeop/kubeop/e2e/tenants"
)

// halted is a tenant that administrators freeze or stop while an account of it has all rights of the deployer.
type halted struct {
	*testing.T
	name, namespace string
	repository      *stage.Repository
	owners          string
	// words begin every refusal.
	words string
}

// halt creates a tenant with an object of each kind, and then adds a field to its Tenant.
func halt(t *testing.T, name, field, words string) *halted {
	t.Helper()
	h := &halted{T: t, name: name, namespace: v1alpha1.ProjectNamespace(name, "shop"), words: words}
	h.owners = "owners: [{kind: User, name: " + name + "-edit, role: edit}, {kind: User, name: " + name + "-admin, role: admin}]\nquota: {services.loadbalancers: \"5\"}"
	var err error
	h.repository, err = platform.Tenant(t.Context(), name, h.owners, map[string]string{
		"projects/shop/project.yaml": project, "projects/shop/apps/bot/app.yaml": fmt.Sprintf(rights, h.namespace, hosted(host, name)),
	})
	must(t, err)
	must(t, platform.AppReady(t.Context(), h.namespace, "bot"))
	for _, kind := range h.kinds() {
		if kind == "Pod" && field == "stopped" {
			continue // It would run on, because nothing would make it again.
		}
		soon(t, "there is a "+kind, func(ctx context.Context) error {
			return as(t, h.account("bot")).Create(ctx, h.object(kind, kept+strings.ToLower(kind)))
		})
	}
	must(t, platform.SetTenant(t.Context(), h.repository, h.owners+"\n"+field+": true"))
	return h
}

const kept = "kept-"

// kinds are the controls that the role of the deployer has without further rights.
func (h *halted) kinds() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(controls)), func(kind string) bool {
		return slices.Contains([]string{"Gateway", "ListenerSet", "GRPCRoute", "TLSRoute", "Opening", "Secret"}, kind)
	})
}

func (h *halted) account(name string) string {
	return "system:serviceaccount:" + h.namespace + ":" + name
}

func (h *halted) object(kind, name string) *unstructured.Unstructured {
	return objectIn(h.T, h.namespace, hosted(controls[kind], h.name), name)
}

// people are the owners and the account.
func (h *halted) people() []string {
	return []string{h.account("bot"), h.name + "-edit", h.name + "-admin"}
}

// refused notes a case and checks that it is refused: by the state of the tenant, because the role does not allow it, or because people run only copies of
// CronJobs.
func (h *halted) refused(what string, err error) {
	h.Helper()
	tried.add(h.name+": "+what, fmt.Sprint(err))
	words := []string{h.words, forbidden, "JobByHand: "}
	if err == nil || !slices.ContainsFunc(words, func(w string) bool { return strings.Contains(err.Error(), w) }) {
		h.Errorf("ESCAPE: %s: %s: %v", h.name, what, err)
	}
}

// creations are the ways to create an object.
func creations(o func() *unstructured.Unstructured) map[string]func(context.Context, client.Client) error {
	return map[string]func(context.Context, client.Client) error{
		"created": func(ctx context.Context, c client.Client) error { return c.Create(ctx, o()) },
		"with a generated name": func(ctx context.Context, c client.Client) error {
			generated := o()
			generated.SetGenerateName(generated.GetName() + "-")
			generated.SetName("")
			return c.Create(ctx, generated)
		},
		"with an owner and a finalizer": func(ctx context.Context, c client.Client) error {
			owned := o()
			owned.SetFinalizers([]string{"mallet.example/stay"})
			owned.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "a", UID: "6a5d0b4e-2f0e-4d4c-9b5e-0d2f7f6f3c1a"}})
			return c.Create(ctx, owned)
		},
		"by server-side apply": func(ctx context.Context, c client.Client) error {
			return c.Apply(ctx, client.ApplyConfigurationFromUnstructured(o()), client.FieldOwner("mallet"), client.ForceOwnership)
		},
	}
}

// changes are the ways to change or delete an object.
func (h *halted) changes(kind string) map[string]func(context.Context, client.Client) error {
	name := kept + strings.ToLower(kind)
	patch := func(text string) func(context.Context, client.Client) error {
		return func(ctx context.Context, c client.Client) error {
			return c.Patch(ctx, h.object(kind, name), client.RawPatch("application/merge-patch+json", []byte(text)))
		}
	}
	all := map[string]func(context.Context, client.Client) error{
		"its finalizers": patch(`{"metadata":{"finalizers":["mallet.example/stay"]}}`),
		"its owners":     patch(`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"a","uid":"6a5d0b4e-2f0e-4d4c-9b5e-0d2f7f6f3c1a"}]}}`),
		"deleted":        func(ctx context.Context, c client.Client) error { return c.Delete(ctx, h.object(kind, name)) },
		"deleted with all": func(ctx context.Context, c client.Client) error {
			return c.DeleteAllOf(ctx, h.object(kind, name), client.InNamespace(h.namespace))
		},
		"updated": func(ctx context.Context, c client.Client) error {
			o := h.object(kind, name)
			if err := platform.Client.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
				return err
			}
			o.SetFinalizers([]string{"mallet.example/stay"})
			return c.Update(ctx, o)
		},
	}
	if kind != "ConfigMap" && kind != "Pod" { // Databases note there who leads.
		all["its labels"] = patch(`{"metadata":{"labels":null}}`)
		all["its annotations"] = patch(`{"metadata":{"annotations":{"note":"y"}}}`)
	}
	if kind == "ConfigMap" {
		all["its data"] = patch(`{"data":{"a":"c"}}`)
	}
	return all
}

// subresources are requests below an object.
func (h *halted) subresources() map[string]func(context.Context, client.Client) error {
	all := map[string]func(context.Context, client.Client) error{
		"an eviction": func(ctx context.Context, c client.Client) error {
			return c.SubResource("eviction").Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: kept + "pod"}}, &policyv1.Eviction{})
		},
		"a token of the account": func(ctx context.Context, c client.Client) error {
			return c.SubResource("token").Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: "bot"}}, &authenticationv1.TokenRequest{})
		},
		"an ephemeral container": func(ctx context.Context, c client.Client) error {
			const debug = `{"spec":{"ephemeralContainers":[{"name":"debug","image":"a","securityContext":{"allowPrivilegeEscalation":false,"capabilities":{"drop":["ALL"]}}}]}}`
			return c.SubResource("ephemeralcontainers").Patch(ctx, h.object("Pod", kept+"pod"), client.RawPatch("application/strategic-merge-patch+json", []byte(debug)))
		},
		"the end of the namespace": func(ctx context.Context, c client.Client) error {
			return c.SubResource("finalize").Patch(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: h.namespace}}, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"finalizers":[]}}`)))
		},
		"the label of the namespace": func(ctx context.Context, c client.Client) error {
			const labels = `{"metadata":{"labels":{"paas.kubeop.io/frozen":null,"paas.kubeop.io/stopped":null}}}`
			return c.Patch(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: h.namespace}}, client.RawPatch("application/merge-patch+json", []byte(labels)))
		},
	}
	for _, kind := range []string{"Deployment", "ReplicaSet", "StatefulSet"} {
		all["the scale of a "+kind] = func(ctx context.Context, c client.Client) error {
			return h.scale(ctx, c, kind, 1)
		}
	}
	return all
}

func (h *halted) scale(ctx context.Context, c client.Client, kind string, replicas int) error {
	patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas)
	return c.SubResource("scale").Patch(ctx, h.object(kind, kept+strings.ToLower(kind)), client.RawPatch("application/merge-patch+json", patch))
}

// wanted is an object of each kind as it was written, without what controllers note.
func (h *halted) wanted() map[string]string {
	h.Helper()
	all := map[string]string{}
	for _, kind := range h.kinds() {
		o := h.object(kind, kept+strings.ToLower(kind))
		must(h.T, platform.Client.Get(h.Context(), client.ObjectKeyFromObject(o), o))
		delete(o.Object, "status")
		o.SetResourceVersion("")
		o.SetManagedFields(nil)
		text, err := o.MarshalJSON()
		must(h.T, err)
		all[kind] = string(text)
	}
	return all
}

// TestNothingOfAFrozenTenantIsChanged tries every kind in every form, with the operator and without it.
func TestNothingOfAFrozenTenantIsChanged(t *testing.T) {
	before := versions(t)
	h := halt(t, "winter", "frozen", "Frozen: ")
	soon(t, "it is frozen", func(ctx context.Context) error {
		err := as(t, h.account("bot")).Create(ctx, h.object("ConfigMap", "x"), client.DryRunAll)
		if err == nil || !strings.Contains(err.Error(), h.words) {
			return fmt.Errorf("it is not: %w", err)
		}
		return nil
	})
	wanted := h.wanted()
	h.everything("with the operator")
	withoutOperator(t, func() { h.everything("without the operator") })
	for kind, now := range h.wanted() {
		if now != wanted[kind] {
			t.Errorf("ESCAPE: the %s of a frozen tenant was\n%s\nand is\n%s", kind, wanted[kind], now)
		}
	}
	h.waits(h.commitWaits)
	unchanged(t, before)
}

func (h *halted) everything(when string) {
	h.Helper()
	for _, user := range h.people() {
		by := as(h.T, user)
		for _, kind := range h.kinds() {
			all := creations(func() *unstructured.Unstructured { return h.object(kind, "x") })
			maps.Copy(all, h.changes(kind))
			for form, do := range all {
				h.refused(when+", a "+kind+", "+form+", by "+user, do(h.Context(), by))
			}
		}
		for what, do := range h.subresources() {
			h.refused(when+", "+what+", by "+user, do(h.Context(), by))
		}
	}
}

// waits pushes an app in each form, waits until reported has no error for their names, and checks that nothing of them is made.
func (h *halted) waits(reported func(ctx context.Context, names []string) error) {
	h.Helper()
	files, names := map[string]string{}, map[string]bool{}
	bad := guard{name: h.words, control: "ConfigMap", field: "/data/a", value: "c"}.tries("")[0]
	for i, form := range gitForms {
		if form.kinds == nil {
			name := fmt.Sprintf("wait-%s-%d", h.name, i)
			tried.add(h.name+": in Git, "+form.name, "")
			names[name] = true
			spec, beside := form.write(h.T, bad, name)
			appFiles(files, "shop", name, spec, beside)
		}
	}
	must(h.T, folders.Push(h.Context(), "Change"))
	must(h.T, tenants.Push(h.Context(), h.repository, files))
	soon(h.T, "it waits", func(ctx context.Context) error { return reported(ctx, slices.Sorted(maps.Keys(names))) })
	list := &corev1.ConfigMapList{}
	must(h.T, platform.Client.List(h.Context(), list, client.InNamespace(h.namespace)))
	for _, o := range list.Items {
		if strings.HasPrefix(o.Name, "wait-") {
			h.Errorf("ESCAPE: in Git: %s exists", o.Name)
		}
	}
}

// commitWaits returns an error unless the newest commit of the tenant waits.
func (h *halted) commitWaits(ctx context.Context, _ []string) error {
	repository := &v1alpha1.Repository{}
	if err := platform.Client.Get(ctx, client.ObjectKey{Namespace: v1alpha1.HomeNamespace(h.name), Name: h.name}, repository); err != nil {
		return err
	}
	for _, c := range repository.Status.Conditions {
		if c.Type == v1alpha1.AcceptedCondition && c.Reason == v1alpha1.FrozenReason {
			return nil
		}
	}
	return fmt.Errorf("it says %+v", repository.Status.Conditions)
}

// appsWait returns an error unless each app says that the tenant is stopped.
func (h *halted) appsWait(ctx context.Context, names []string) error {
	for _, name := range names {
		app := &v1alpha1.App{}
		if err := platform.Client.Get(ctx, client.ObjectKey{Namespace: h.namespace, Name: name}, app); err != nil {
			return err
		}
		if !slices.ContainsFunc(app.Status.Conditions, func(c metav1.Condition) bool {
			return c.Type == v1alpha1.ReadyCondition && c.Reason == v1alpha1.StoppedReason
		}) {
			return fmt.Errorf("%s says %+v", name, app.Status.Conditions)
		}
	}
	return nil
}

// TestNothingOfAStoppedTenantRuns tries every kind that makes pods, and scale, with the operator and without it.
func TestNothingOfAStoppedTenantRuns(t *testing.T) {
	before := versions(t)
	h := halt(t, "idle", "stopped", "Stopped: ")
	soon(t, "nothing runs", func(ctx context.Context) error {
		if err := h.runs(ctx); err != nil {
			return err
		}
		err := as(t, h.account("bot")).Create(ctx, h.object("Pod", "x"), client.DryRunAll)
		if err == nil || !strings.Contains(err.Error(), h.words) {
			return fmt.Errorf("a pod is not refused: %w", err)
		}
		return nil
	})
	h.starts("with the operator")
	withoutOperator(t, func() { h.starts("without the operator") })
	h.waits(h.appsWait)
	unchanged(t, before)
}

// runs returns an error if a pod exists.
func (h *halted) runs(ctx context.Context) error {
	pods := &corev1.PodList{}
	if err := platform.Client.List(ctx, pods, client.InNamespace(h.namespace)); err != nil {
		return err
	}
	if len(pods.Items) > 0 {
		return errors.New("there is the pod " + pods.Items[0].Name)
	}
	return nil
}

// starts tries to run pods as everybody who makes them.
func (h *halted) starts(when string) {
	h.Helper()
	running := func() *unstructured.Unstructured {
		job := h.object("Job", "x")
		set(h.T, job.Object, []string{"spec", "suspend"}, false)
		return job
	}
	controllers := []string{"system:serviceaccount:kube-system:replicaset-controller", "system:serviceaccount:kube-system:cronjob-controller", "system:serviceaccount:kube-system:job-controller"}
	for _, user := range append(h.people(), controllers...) {
		by := as(h.T, user)
		for form, do := range creations(func() *unstructured.Unstructured { return h.object("Pod", "x") }) {
			h.refused(when+", a Pod, "+form+", by "+user, do(h.Context(), by))
		}
		for form, do := range creations(running) {
			h.refused(when+", a Job, "+form+", by "+user, do(h.Context(), by))
		}
		h.refused(when+", a Job that goes on, by "+user, by.Patch(h.Context(), h.object("Job", kept+"job"), client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"suspend":false}}`))))
	}
	// Workloads may be written: what they make is refused. A Job of the deployer, which may resume Jobs, makes none either.
	by := as(h.T, h.account(v1alpha1.Deployer))
	must(h.T, by.Apply(h.Context(), client.ApplyConfigurationFromUnstructured(running()), client.FieldOwner(v1alpha1.FieldManager), client.ForceOwnership))
	for _, kind := range []string{"Deployment", "ReplicaSet", "StatefulSet"} {
		must(h.T, h.scale(h.Context(), as(h.T, h.account("bot")), kind, 0))
		must(h.T, h.scale(h.Context(), as(h.T, h.account("bot")), kind, 1))
	}
	for _, what := range []string{"ReplicaSet/kept-deployment", "ReplicaSet/kept-replicaset", "StatefulSet/kept-statefulset", "Job/x"} {
		tried.add(h.name+": "+when+", pods of "+what, "")
		soon(h.T, "a pod of "+what+" is refused", func(ctx context.Context) error { return h.failed(ctx, what) })
	}
	if err := h.runs(h.Context()); err != nil {
		h.Errorf("ESCAPE: %s: %s: %v", h.name, when, err)
	}
	must(h.T, client.IgnoreNotFound(platform.Client.Delete(h.Context(), &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: "x"}}, client.PropagationPolicy(metav1.DeletePropagationBackground))))
	must(h.T, platform.Client.DeleteAllOf(h.Context(), &corev1.Event{}, client.InNamespace(h.namespace)))
}

// failed returns an error unless an event reports that a controller could not make a pod.
func (h *halted) failed(ctx context.Context, what string) error {
	list := &corev1.EventList{}
	if err := platform.Client.List(ctx, list, client.InNamespace(h.namespace)); err != nil {
		return err
	}
	for _, e := range list.Items {
		if strings.HasPrefix(e.InvolvedObject.Kind+"/"+e.InvolvedObject.Name, what) && e.Reason == "FailedCreate" && strings.Contains(e.Message, "topped") {
			return nil
		}
	}
	return errors.New("no event says so")
}
