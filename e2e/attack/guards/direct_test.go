//go:build e2e

package guards

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/e2e/stage"
)

// TestNothingIsWrittenToTheAPIServer tries each guard as an account and as a person, and then again without the operator. What the deployer applies is what
// kubeop would apply without any check of its own.
func TestNothingIsWrittenToTheAPIServer(t *testing.T) {
	before := versions(t)
	direct(t, "with the operator")
	withoutOperator(t, func() { direct(t, "without the operator") })
	unchanged(t, before)
}

// withoutOperator kills the operator, and starts it again afterwards.
func withoutOperator(t *testing.T, do func()) {
	t.Helper()
	must(t, platform.Operator.Kill())
	defer func() { must(t, platform.Operator.Start(context.WithoutCancel(t.Context()))) }()
	do()
}

func direct(t *testing.T, when string) {
	t.Helper()
	number := 0
	for _, g := range guards {
		if strings.Contains(g.skip, noDirect) || !g.chosen() {
			continue
		}
		for i, c := range g.tries("Pod") {
			number++
			w := &writer{T: t, try: c, about: when + ": " + g.name + " of a " + c.kind, name: fmt.Sprintf("x%d", number)}
			if !w.accepted() {
				continue
			}
			w.creations()
			w.deployed()
			if i == 0 {
				w.others()
			}
			if !strings.Contains(g.skip, noUpdate) && g.field != "" && c.kind != "Pod" && c.kind != "Job" {
				w.update()
			}
		}
	}
}

// writer writes what a guard refuses, in several forms.
type writer struct {
	*testing.T
	try
	about, name string
}

// accepted checks that the API server accepts the control of an account, and waits until it refuses what the guard refuses.
func (w *writer) accepted() bool {
	w.Helper()
	by := as(w.T, w.account("bot"))
	err := stage.Until(w.Context(), 20*time.Second, w.about, func(ctx context.Context) error {
		if err := by.Create(ctx, w.good(w.T, w.name), client.DryRunAll); err != nil {
			return fmt.Errorf("the control is refused: %w", err)
		}
		return w.judge(by.Create(ctx, w.bad(w.T, w.name), client.DryRunAll))
	})
	if err != nil {
		w.Error(err)
	}
	return err == nil
}

// judge checks that an error is the guard's refusal.
func (w *writer) judge(err error) error {
	if err == nil {
		return errors.New("it is not refused")
	}
	if !strings.Contains(err.Error(), w.policy) || !strings.Contains(err.Error(), w.words) {
		return fmt.Errorf("it is not %q that refuses, with %q: %w", w.policy, w.words, err)
	}
	return nil
}

// refused notes a case, and checks its error, and that the object does not exist.
func (w *writer) refused(form string, o *unstructured.Unstructured, err error) {
	w.Helper()
	tried.add(w.about+", "+form, fmt.Sprint(err))
	if wrong := w.judge(err); wrong != nil {
		w.Errorf("%s, %s: %v", w.about, form, wrong)
	}
	w.absent(form, o)
}

func (w *writer) absent(form string, o *unstructured.Unstructured) {
	w.Helper()
	if o.GetName() == "" {
		return // The API server did not even name it.
	}
	left := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: o.GetAPIVersion(), Kind: o.GetKind()}}
	if err := platform.Client.Get(w.Context(), client.ObjectKeyFromObject(o), left); !apierrors.IsNotFound(err) {
		w.Errorf("ESCAPE: %s, %s: it exists: %v", w.about, form, err)
	}
}

// creations tries what an account may do to be overlooked.
func (w *writer) creations() {
	w.Helper()
	by := as(w.T, w.account("bot"))
	plain := w.bad(w.T, w.name)
	w.refused("by an account", plain, by.Create(w.Context(), plain))
	generated := w.bad(w.T, w.name)
	generated.SetGenerateName(generated.GetName() + "-")
	generated.SetName("")
	w.refused("with a generated name", generated, by.Create(w.Context(), generated))
	owned := w.bad(w.T, w.name)
	adopt(owned)
	w.refused("with an owner and a finalizer", owned, by.Create(w.Context(), owned))
	applied := w.bad(w.T, w.name)
	w.refused("by server-side apply", applied, by.Apply(w.Context(), client.ApplyConfigurationFromUnstructured(applied), client.FieldOwner("mallet"), client.ForceOwnership))
	w.unnamed()
}

// adopt gives an object an owner and a finalizer, by which Kubernetes' garbage collector may look at it in another way.
func adopt(o *unstructured.Unstructured) {
	o.SetFinalizers([]string{"mallet.example/stay"})
	o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "wealth", UID: "6a5d0b4e-2f0e-4d4c-9b5e-0d2f7f6f3c1a"}})
}

// unnamed checks that nothing has a generated name.
func (w *writer) unnamed() {
	w.Helper()
	o := w.bad(w.T, w.name)
	list := &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: o.GetAPIVersion(), Kind: o.GetKind() + "List"}}
	must(w.T, platform.Client.List(w.Context(), list, client.InNamespace(o.GetNamespace())))
	for _, one := range list.Items {
		if strings.HasPrefix(one.Name, o.GetName()+"-") {
			w.Errorf("ESCAPE: %s: %s exists", w.about, one.Name)
		}
	}
}

// others tries the same as people with the tenant's roles.
func (w *writer) others() {
	w.Helper()
	for _, role := range roles {
		o := w.bad(w.T, w.name)
		err := as(w.T, w.by()+"-"+role).Create(w.Context(), o)
		tried.add(w.about+", by "+role, fmt.Sprint(err))
		if wrong := w.judge(err); wrong != nil && (err == nil || !strings.Contains(err.Error(), forbidden)) {
			w.Errorf("%s, by %s: %v", w.about, role, wrong)
		}
		w.absent("by "+role, o)
	}
}

// deployed tries the same as the account that kubeop delivers with. It judges nothing itself, so this is what kubeop would apply if all of its own checks
// were gone, and not only one: what refuses it is the API server alone.
func (w *writer) deployed() {
	w.Helper()
	if strings.Contains(w.skip, noDeployer) {
		return
	}
	by := as(w.T, w.account(v1alpha1.Deployer))
	o := w.bad(w.T, w.name)
	err := by.Apply(w.Context(), client.ApplyConfigurationFromUnstructured(o), client.FieldOwner(v1alpha1.FieldManager), client.ForceOwnership)
	w.refused("by the deployer, as without checks in kubeop", o, err)
	o = w.bad(w.T, w.name)
	w.refused("by the deployer, as Helm creates it", o, by.Create(w.Context(), o, client.FieldOwner(v1alpha1.FieldManager)))
}

// update creates the control and tries to make it what the guard refuses, by updates and by a patch.
func (w *writer) update() {
	w.Helper()
	by := as(w.T, w.account("bot"))
	control := w.good(w.T, w.name)
	must(w.T, by.Create(w.Context(), control))
	defer func() { must(w.T, by.Delete(w.Context(), control)) }()
	updated := func(owned bool) func() error {
		return func() error {
			return retry.RetryOnConflict(retry.DefaultBackoff, func() error { // Kubernetes' controllers write its status.
				o := control.DeepCopy()
				must(w.T, by.Get(w.Context(), client.ObjectKeyFromObject(control), o))
				if owned {
					adopt(o)
				}
				set(w.T, o.Object, strings.Split(w.at, "/")[1:], w.parsed(w.T, w.name))
				return by.Update(w.Context(), o)
			})
		}
	}
	for form, change := range map[string]func() error{
		"by an update": updated(false),
		"by an update that adds an owner and a finalizer": updated(true),
		"by a patch": func() error {
			return by.Patch(w.Context(), control.DeepCopy(), client.RawPatch("application/json-patch+json", []byte(w.patch(w.T, w.name))))
		},
	} {
		err := change()
		tried.add(w.about+", "+form, fmt.Sprint(err))
		if wrong := w.judge(err); wrong != nil {
			w.Errorf("%s, %s: %v", w.about, form, wrong)
		}
		live := control.DeepCopy()
		must(w.T, by.Get(w.Context(), client.ObjectKeyFromObject(control), live))
		if path := strings.Split(w.at, "/")[1:]; !reflect.DeepEqual(value(live.Object, path), value(control.Object, path)) {
			w.Errorf("ESCAPE: %s, %s: it changed", w.about, form)
		}
		if len(live.GetFinalizers())+len(live.GetOwnerReferences()) > 0 {
			w.Errorf("ESCAPE: %s, %s: it has an owner or a finalizer", w.about, form)
		}
	}
}
