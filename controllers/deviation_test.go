package controllers

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// drifting pushes an app of manifests with the given settings of drift.
func (n *team) drifting(drift string, manifests ...string) string {
	n.t.Helper()
	files := n.shop("web", manifests...)
	files["projects/shop/apps/web/app.yaml"] += "  drift: " + drift + "\n"
	return n.push(files)
}

// edit changes an object as another controller would.
func (n *team) edit(o client.Object, patch string) {
	n.t.Helper()
	if err := n.admin.Patch(n.t.Context(), o, client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner("somebody")); err != nil {
		n.t.Fatal(err)
	}
}

// delete deletes objects.
func (n *team) delete(objects ...client.Object) {
	n.t.Helper()
	for _, o := range objects {
		if err := n.admin.Delete(n.t.Context(), o); err != nil {
			n.t.Fatal(err)
		}
	}
}

func TestDriftOfManifestsIsReported(t *testing.T) {
	n := newTeam(t, "drifttold")
	const secret = "{apiVersion: v1, kind: Secret, metadata: {name: key}, stringData: {key: first}}"
	app := n.applied("web", n.drifting("{mode: Warn}", plain("one"), plain("gone"), secret))
	n.until(app, v1alpha1.DriftedCondition, metav1.ConditionFalse, v1alpha1.NoDriftDetectedReason)
	key := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: n.namespace(), Name: "key"}}
	n.edit(n.configMapOf("shop", "one"), `{"data":{"a":"theirs"}}`)
	n.edit(key, `{"data":{"key":"aHVudGVyMjI="}}`)
	n.eventually(func() error {
		message := n.until(app, v1alpha1.DriftedCondition, metav1.ConditionTrue, v1alpha1.DriftDetectedReason)
		if !strings.Contains(message, `ConfigMap/one: /data/a is "theirs", the source says "b"`) || !strings.Contains(message, "Secret/key: /data/key is ***, the source says ***") {
			return errors.New(message)
		}
		return nil
	})
	if message := n.until(app, v1alpha1.ReadyCondition, metav1.ConditionTrue, ""); strings.Contains(message, "hunter22") {
		t.Errorf("the message of Ready contains the Secret: %q", message)
	}
	n.ready(app)
	if got := n.configMap("shop", "one").Data["a"]; got != "theirs" {
		t.Errorf("the edited value is %q, want it kept", got)
	}

	// A new version of the manifest is applied, and in the mode Correct the other field is corrected too.
	n.applied("web", n.drifting("{mode: Correct}", plain("one"), plain("gone"), secret))
	n.eventually(func() error {
		if got := n.configMap("shop", "one").Data["a"]; got != "b" {
			return fmt.Errorf("the value is %q, want %q", got, "b")
		}
		return nil
	})
	message := n.until(app, v1alpha1.DriftedCondition, metav1.ConditionFalse, v1alpha1.DriftCorrectedReason)
	if message != "put back: Secret/key, ConfigMap/one" {
		t.Errorf("the message is %s, want %q", message, "put back: Secret/key, ConfigMap/one")
	}
}

// TestFieldsThatPeopleAddAreReported adds fields with kubectl, which kubeop does not own.
func TestFieldsThatPeopleAddAreReported(t *testing.T) {
	n := newTeam(t, "additions")
	const secret = "{apiVersion: v1, kind: Secret, metadata: {name: key}, stringData: {key: first}}"
	app := n.applied("web", n.drifting("{mode: Warn}", plain("one"), secret))
	key := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: n.namespace(), Name: "key"}}
	for o, patch := range map[client.Object]string{n.configMapOf("shop", "one"): `{"data":{"more":"x"}}`, key: `{"data":{"more":"aHVudGVyMjI="}}`} {
		if err := n.admin.Patch(t.Context(), o, client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner("kubectl-edit")); err != nil {
			t.Fatal(err)
		}
	}
	n.eventually(func() error {
		message := n.until(app, v1alpha1.DriftedCondition, metav1.ConditionTrue, v1alpha1.DriftDetectedReason)
		if message != `Secret/key: /data/more is ***, the source has none; ConfigMap/one: /data/more is "x", the source has none` {
			return errors.New(message)
		}
		return nil
	})
	n.ready(app)
}

// TestARefusedDryRunIsNoFailure: a policy refuses the dry runs of an app that only reports drift.
func TestARefusedDryRunIsNoFailure(t *testing.T) {
	n := newTeam(t, "refusals")
	app := n.applied("web", n.drifting("{mode: Warn}", plain("one")))
	one := n.configMapOf("shop", "one")
	policy, binding := n.refuseDryRuns()
	n.eventually(func() error {
		err := n.admin.Patch(t.Context(), one.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"data":{"x":"y"}}`)), client.DryRunAll)
		if err == nil {
			return errors.New("dry runs are not refused yet")
		}
		return nil
	})
	n.edit(one, `{"data":{"a":"theirs"}}`)
	message := n.until(app, v1alpha1.DriftedCondition, metav1.ConditionUnknown, v1alpha1.NotComparedReason)
	if !strings.Contains(message, "ConfigMap/one: asking what would change: ") || !strings.Contains(message, "no rehearsals") {
		t.Errorf("the message is %s", message)
	}
	n.ready(app)
	n.delete(binding, policy)
	n.eventually(func() error {
		n.reconcile(app)
		for _, c := range app.Status.Conditions {
			if c.Type == v1alpha1.DriftedCondition && strings.Contains(c.Message, `/data/a is "theirs"`) {
				return nil
			}
		}
		return fmt.Errorf("the conditions are %+v", app.Status.Conditions)
	})
}

// refuseDryRuns creates a policy that refuses dry runs of changes to the shop's ConfigMaps.
func (n *team) refuseDryRuns() (policy *admissionregistrationv1.ValidatingAdmissionPolicy, binding *admissionregistrationv1.ValidatingAdmissionPolicyBinding) {
	n.t.Helper()
	always, shop := admissionregistrationv1.Fail, &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: n.namespace()}}
	policy = &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: n.name + ".example.com"},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: &always,
			MatchConstraints: &admissionregistrationv1.MatchResources{NamespaceSelector: shop, ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Update},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
				},
			}}},
			Validations: []admissionregistrationv1.Validation{{Expression: "!(has(request.dryRun) && request.dryRun)", Message: "no rehearsals"}},
		},
	}
	binding = &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: policy.ObjectMeta,
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: policy.Name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	}
	n.create(policy.DeepCopy())
	n.create(binding.DeepCopy())
	return policy, binding
}

// TestAnIgnoredObjectWithoutLabelsIsStillChecked removes the labels by which the watch finds a Deployment, and makes it want a pod
// that no node runs.
func TestAnIgnoredObjectWithoutLabelsIsStillChecked(t *testing.T) {
	n := newTeam(t, "unlabelled")
	app := n.applied("web", n.drifting("{ignore: [{paths: [/]}]}", empty))
	moved := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: n.namespace(), Name: "moved"}}
	n.edit(moved, `{"metadata":{"labels":null},"spec":{"replicas":1}}`)
	n.eventually(func() error {
		if err := n.admin.Get(t.Context(), client.ObjectKeyFromObject(app), app); err != nil {
			return err
		}
		message := conditions.GetMessage(app, v1alpha1.HealthyCondition)
		if !strings.HasPrefix(message, "Deployment/moved: ") || strings.Contains(message, "deleted") {
			return fmt.Errorf("the message is %q", message)
		}
		return nil
	})
	n.edit(moved, `{"spec":{"replicas":0}}`)
	n.ready(app)
}

// TestAnObjectDeletedBeforeItIsHealthyIsReported deletes a Deployment that has no pods because no node runs them.
func TestAnObjectDeletedBeforeItIsHealthyIsReported(t *testing.T) {
	n := newTeam(t, "untimely")
	app := n.app("shop", "web")
	n.drifting("{mode: Warn}", strings.Replace(empty, "replicas: 0", "replicas: 1", 1))
	moved := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: n.namespace(), Name: "moved"}}
	n.eventually(func() error { return n.admin.Get(t.Context(), client.ObjectKeyFromObject(moved), moved) })
	n.delete(moved)
	n.eventually(func() error {
		if err := n.admin.Get(t.Context(), client.ObjectKeyFromObject(app), app); err != nil {
			return err
		}
		const want = "Deployment/moved: was deleted, and stays away until its manifest changes, because drift.mode is Warn"
		if message := conditions.GetMessage(app, v1alpha1.HealthyCondition); message != want {
			return fmt.Errorf("the message is %q, want %q", message, want)
		}
		return nil
	})
}

func TestDriftThatIsIgnoredIsNotCorrected(t *testing.T) {
	n := newTeam(t, "lenient")
	app := n.applied("web", n.drifting("{mode: Off}", plain("one")))
	n.edit(n.configMapOf("shop", "one"), `{"data":{"a":"theirs"}}`)
	n.reconcile(app)
	if got := n.configMap("shop", "one").Data["a"]; got != "theirs" {
		t.Errorf("the value is %q, want %q", got, "theirs")
	}
	n.applied("web", n.drifting("{ignore: [{paths: [/data/a], target: {kind: ConfigMap, name: o.*}}]}", plain("one"), plain("two")))
	n.edit(n.configMapOf("shop", "one"), `{"data":{"a":"again"}}`)
	n.edit(n.configMapOf("shop", "two"), `{"data":{"a":"again"}}`)
	n.eventually(func() error {
		if got := n.configMap("shop", "two").Data["a"]; got != "b" {
			return fmt.Errorf("the value is %q, want %q", got, "b")
		}
		return nil
	})
	n.reconcile(app)
	if got := n.configMap("shop", "one").Data["a"]; got != "again" {
		t.Errorf("the value is %q, want %q", got, "again")
	}
	message := n.until(n.app("shop", "web"), v1alpha1.DriftedCondition, metav1.ConditionFalse, v1alpha1.DriftCorrectedReason)
	if message != "put back: ConfigMap/two" {
		t.Errorf("the message is %s, want %q", message, "put back: ConfigMap/two")
	}
}

// TestRepeatedDriftCorrectionsAreReported edits an object again after each correction.
func TestRepeatedDriftCorrectionsAreReported(t *testing.T) {
	n := newTeam(t, "fighting")
	app := n.applied("web", n.drifting("{mode: Correct}", plain("one")))
	config, corrections := n.configMapOf("shop", "one"), 0
	n.eventually(func() error {
		n.there(config)
		if config.Data["a"] == "b" {
			corrections++
			n.edit(config, `{"data":{"a":"mine"}}`)
		}
		if err := n.admin.Get(t.Context(), client.ObjectKeyFromObject(app), app); err != nil {
			return err
		}
		for _, c := range app.Status.Conditions {
			if c.Type == v1alpha1.DriftedCondition && strings.Contains(c.Message, "someone else keeps changing it: ConfigMap/one") {
				return nil
			}
		}
		return fmt.Errorf("after %d corrections the conditions are %+v", corrections, app.Status.Conditions)
	})
	if corrections < 3 || corrections > 5 {
		t.Errorf("the repeated drift was reported after %d corrections", corrections)
	}
	n.eventually(func() error {
		if n.there(config); config.Data["a"] != "b" {
			return errors.New("the object is not corrected any more")
		}
		return nil
	})
}
