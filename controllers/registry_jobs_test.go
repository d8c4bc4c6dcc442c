package controllers

import (
	"fmt"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// TestARegistryRunsNoJobAgain: the Job of an Image app stays as it was made when the project gets a Registry, and when it loses one. A Job that
// was deleted is made with the Registry's Secret.
func TestARegistryRunsNoJobAgain(t *testing.T) {
	n := newTeam(t, "onlyonce")
	const name, host, copied = "onceonly", "onceonly.example", "kubeop-registry-onceonly"
	n.shopWithImages(host)
	n.push(imageFile("job", "  image: {reference: "+host+"/team/job:1, job: {}}\n"))
	n.until(n.app("shop", "job"), v1alpha1.AppliedCondition, metav1.ConditionTrue, "")
	job := &batchv1.Job{}
	key := client.ObjectKey{Namespace: n.namespace(), Name: n.onlyJob(n.namespace())}
	read := func() error { return n.admin.Get(t.Context(), key, job) }
	if err := read(); err != nil {
		t.Fatal(err)
	}
	// same compares the only Job with the last one that was read, after another Reconcile.
	same := func(when string) {
		t.Helper()
		before := job.DeepCopy()
		n.reconcile(n.app("shop", "job"))
		n.until(n.app("shop", "job"), v1alpha1.AppliedCondition, metav1.ConditionTrue, "")
		if only := n.onlyJob(n.namespace()); only != key.Name {
			t.Fatalf("%s: the Job is %s, before %s", when, only, key.Name)
		}
		if err := read(); err != nil {
			t.Fatal(err)
		}
		if job.UID != before.UID || job.Generation != before.Generation {
			t.Errorf("%s: the Job was changed", when)
		}
	}

	n.source(name, host, "once-password")
	registry := registryFor(name, host, n.name)
	n.create(registry)
	t.Cleanup(func() { _ = n.admin.Delete(t.Context(), registry) })
	n.podNames("private", copied)
	same("with a new Registry")

	first := job.UID
	if err := n.admin.Delete(t.Context(), job, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		t.Fatal(err)
	}
	n.eventually(func() error {
		err := read()
		if secrets := job.Spec.Template.Spec.ImagePullSecrets; err == nil && (job.UID == first || len(secrets) != 1 || secrets[0].Name != copied) {
			return fmt.Errorf("the Job %s names %v", job.UID, secrets)
		}
		return err
	})
	n.setRegistry(name, func(spec *v1alpha1.RegistrySpec) { spec.Tenants = nil })
	n.podNames("private")
	same("without the Registry")
}
