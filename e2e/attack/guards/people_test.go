//go:build e2e

package guards

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

const (
	homeSecret = "{apiVersion: v1, kind: Secret, metadata: {name: NAME}, stringData: {a: b}}"
	noCopy     = "is no copy of a CronJob"
	noPlain    = "uses a Secret, a claim or a service account"
)

// copied is a Job as kubectl create job --from=cronjob makes it.
var copied = "{apiVersion: batch/v1, kind: Job, metadata: {name: NAME, labels: {team: a}, annotations: {cronjob.kubernetes.io/instantiate: manual}, " +
	"ownerReferences: [{apiVersion: batch/v1, kind: CronJob, name: a, uid: 6a5d0b4e-2f0e-4d4c-9b5e-0d2f7f6f3c1a}]}, spec: {suspend: true, template: " + never + "}}"

// byHand are objects that the owner with a role may create, each with one field more, with which it is refused.
var byHand = []struct {
	name, role, namespace, control, field, value, policy, words string
}{
	{"a finalizer at home", "admin", v1alpha1.HomeNamespace(attacker), homeSecret, "/metadata/finalizers", "[mallet.example/stay]", "HomeFinalizer: ", "which nobody serves in the home of a tenant"},
	{"a Job of nobody", "edit", shop, copied, "/metadata/ownerReferences", "[]", "JobByHand: ", noCopy},
	{"a Job of a Deployment", "edit", shop, copied, "/metadata/ownerReferences/0/kind", "Deployment", "JobByHand: ", noCopy},
	{"a Job of another API", "edit", shop, copied, "/metadata/ownerReferences/0/apiVersion", "batch.evil.org/v1", "JobByHand: ", noCopy},
	{"a Job that is not made by hand", "admin", shop, copied, "/metadata/annotations", "{note: x}", "JobByHand: ", noCopy},
	{"a Job with the variable of a Secret", "edit", shop, copied, "/spec/template/spec/containers/0/env", "[{name: A, valueFrom: {secretKeyRef: {name: a, key: b}}}]", "JobByHand: ", noPlain},
	{"a Job with all variables of a Secret", "edit", shop, copied, "/spec/template/spec/containers/0/envFrom", "[{secretRef: {name: a}}]", "JobByHand: ", noPlain},
	{"a Job with a Secret", "edit", shop, copied, "/spec/template/spec/volumes", "[{name: v, secret: {secretName: a}}]", "JobByHand: ", noPlain},
	{"a Job with a projected Secret", "edit", shop, copied, "/spec/template/spec/volumes", "[{name: v, projected: {sources: [{secret: {name: a}}]}}]", "JobByHand: ", noPlain},
	{"a Job with a claim", "edit", shop, copied, "/spec/template/spec/volumes", "[{name: v, persistentVolumeClaim: {claimName: a}}]", "JobByHand: ", noPlain},
	{"a Job with a pull Secret", "edit", shop, copied, "/spec/template/spec/imagePullSecrets", "[{name: a}]", "JobByHand: ", noPlain},
	{"a Job of another account", "edit", shop, copied, "/spec/template/spec/serviceAccountName", "bot", "JobByHand: ", noPlain},
}

// TestPeopleCreateNoMoreThanTheyMay tries what only people may create, with the operator and without it.
func TestPeopleCreateNoMoreThanTheyMay(t *testing.T) {
	before := versions(t)
	attempt := func(when string) {
		for i, h := range byHand {
			by, name := as(t, attacker+"-"+h.role), fmt.Sprintf("hand-%d", i)
			g := guard{name: h.name, policy: h.policy, words: h.words}
			if !g.chosen() {
				continue
			}
			control := objectIn(t, h.namespace, h.control, name)
			must(t, by.Create(t.Context(), control.DeepCopy(), client.DryRunAll))
			w := &writer{T: t, try: try{guard: g}, about: when + ": " + h.name}
			for form, make := range creations(func() *unstructured.Unstructured {
				bad := control.DeepCopy()
				set(t, bad.Object, strings.Split(h.field, "/")[1:], parsed(t, h.value))
				return bad
			}) {
				if form == "with an owner and a finalizer" || form == "by server-side apply" && h.namespace == shop {
					continue // The one has another owner, and no role may patch Jobs.
				}
				w.refused(form, control, make(t.Context(), by))
			}
		}
	}
	attempt("with the operator")
	withoutOperator(t, func() { attempt("without the operator") })
	finalizerAtHome(t)
	unchanged(t, before)
}

// finalizerAtHome adds the finalizer to a Secret that is there.
func finalizerAtHome(t *testing.T) {
	t.Helper()
	by := as(t, attacker+"-admin")
	secret := objectIn(t, v1alpha1.HomeNamespace(attacker), homeSecret, "kept")
	must(t, by.Create(t.Context(), secret))
	defer func() { must(t, by.Delete(t.Context(), secret)) }()
	err := by.Patch(t.Context(), secret.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(stay)))
	tried.add("a finalizer at home, by a patch", fmt.Sprint(err))
	if err == nil || !strings.Contains(err.Error(), "HomeFinalizer: ") {
		t.Errorf("ESCAPE: a finalizer at home, by a patch: %v", err)
	}
	must(t, by.Patch(t.Context(), secret.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"a":"b"}}}`)))) // The control.
}
