package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/internal/testenv"
)

var allKinds = []string{"apps", "projects", "repositories", "tenants"}

// TestADeletedDefinitionDeletesNothingElse deletes the definition of each kind, and then of all, while the operator runs. Workloads stay. When the
// definitions are back, the operator adopts everything unchanged.
func TestADeletedDefinitionDeletesNothingElse(t *testing.T) {
	i := newTestCluster(t)
	before := i.running()
	for _, kind := range []string{"apps", "projects"} {
		i.undefine(kind)
		i.unchanged("without "+kind, before)
		i.define(kind)
		// The same process continues, and its watches restart.
		i.converges()
		i.unchanged("with "+kind+" again", before)
	}
	i.undefine(allKinds...)
	time.Sleep(3 * time.Second) // Time in which the operator could delete something.
	i.unchanged("without any kind", before)
	i.endsWithoutDefinitions()
	i.define(allKinds...)
	i.converges()
	i.unchanged("with every kind again", before)
	if err := i.operator.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the operator ended: %v", err)
	}
	if log := i.log.String(); !strings.Contains(log, "CustomResourceDefinition tenants.paas.kubeop.io is being deleted") {
		t.Error("the log does not contain why nothing was removed")
	}
}

// TestObjectsThatOutlastTheirDefinitionAreReleased removes the finalizer of a definition that is being deleted, while no operator runs. When the
// definition is created again, the objects are back, with a deletion timestamp.
func TestObjectsThatOutlastTheirDefinitionAreReleased(t *testing.T) {
	i := newTestCluster(t)
	before := i.running()
	i.killed.kill(i.operator)
	for _, kind := range allKinds {
		if err := testenv.DeleteOnPurpose(t.Context(), i, definitionOf(kind), false); err != nil {
			t.Fatal(err)
		}
	}
	i.eventually("the tenant is marked", func() error { return i.marked() })
	for _, kind := range allKinds {
		if err := i.Patch(t.Context(), definitionOf(kind), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(2 * time.Second)
	i.define(allKinds...)
	i.eventually("the tenant is there again, marked", func() error { return i.marked() })
	i.start()
	i.converges()
	i.unchanged("with the definitions again", before)
	if log := i.log.String(); !strings.Contains(log, "it was deleted before CustomResourceDefinition") {
		t.Error("the log does not contain why nothing was removed")
	}
}

// endsWithoutDefinitions starts another operator, which logs what is missing and ends, so that its Deployment would restart it.
func (i *testCluster) endsWithoutDefinitions() {
	i.t.Helper()
	ctx, cancel := context.WithTimeout(i.t.Context(), convergeTimeout)
	defer cancel()
	started := i.killed.command(i.settings()...)
	other := exec.CommandContext(ctx, started.Path)
	other.Env = started.Env
	text, err := other.CombinedOutput()
	if err == nil || ctx.Err() != nil || !strings.Contains(string(text), "no matches for kind") {
		i.t.Errorf("it ended with %v and logged\n%s", errors.Join(err, ctx.Err()), text)
	}
}

func (i *testCluster) marked() error {
	tenant := &v1alpha1.Tenant{}
	err := i.Get(i.t.Context(), client.ObjectKey{Name: acmeTenant}, tenant)
	if err == nil && tenant.DeletionTimestamp.IsZero() {
		err = errors.New("it is not being deleted")
	}
	return err
}

// TestUninstallingLosesNothing uninstalls the chart and installs it again, and deletes a tenant in between.
func TestUninstallingLosesNothing(t *testing.T) {
	i := newTestCluster(t)
	before := i.running()
	// The operator still runs for a while when its Deployment is gone. The other objects of the release still exist.
	own := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: testenv.Namespace, Name: "kubeop"}}
	if err := i.Delete(t.Context(), own); err != nil {
		t.Fatal(err)
	}
	tenant := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: acmeTenant}}
	if err := testenv.DeleteOnPurpose(t.Context(), i, tenant, false); err != nil {
		t.Fatal(err)
	}
	i.eventually("the operator reports that it removes nothing", func() error {
		if !strings.Contains(i.log.String(), "kubeop is being uninstalled") {
			return errors.New("not yet")
		}
		return nil
	})
	if err := i.marked(); err != nil {
		t.Errorf("the tenant: %v", err)
	}
	i.unchanged("while it is uninstalled", before)
	if _, err := i.env.Helm(t.Context(), "uninstall", "kubeop", "--namespace", testenv.Namespace, "--wait"); err != nil {
		t.Fatal(err)
	}
	i.killed.kill(i.operator)
	i.unchanged("without kubeop", before)
	i.access("while kubeop is uninstalled")
	if err := i.Delete(t.Context(), tenant.DeepCopy(), client.DryRunAll); err != nil {
		t.Errorf("repeating a deletion: %v", err)
	}
	shop := &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: acmeHome, Name: "shop"}}
	if err := i.Delete(t.Context(), shop, client.DryRunAll); err == nil || !strings.Contains(err.Error(), "DeletionGuard") {
		t.Errorf("without kubeop nothing guards a project: %v", err)
	}
	time.Sleep(2 * time.Second)
	i.install()
	i.start()
	i.converges()
	i.unchanged("with kubeop again", before)
	i.access("with kubeop again")
	if log := i.log.String(); !strings.Contains(log, "when kubeop was not installed") {
		t.Error("the log does not contain why the tenant was released")
	}
}

// access checks that the tenant's users still have their permissions.
func (i *testCluster) access(when string) {
	i.t.Helper()
	for resource, verb := range map[string]string{"pods": "list", "secrets": "create"} {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: "lead", ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: acmeShop, Verb: verb, Resource: resource},
		}}
		i.eventually(fmt.Sprintf("%s, lead may %s %s", when, verb, resource), func() error {
			review.Status = authorizationv1.SubjectAccessReviewStatus{}
			if err := i.Create(i.t.Context(), review); err != nil {
				return err
			}
			if !review.Status.Allowed {
				return errors.New(review.Status.Reason)
			}
			return nil
		})
	}
}
