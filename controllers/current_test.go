package controllers

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/few"
)

// TestARefusedVersionIsReportedByItsAppAndProject pushes a wrong app.yaml, then a wrong project.yaml: only the object of that file
// reports it, beside the state of what runs, and a commit that changes other files writes nothing.
func TestARefusedVersionIsReportedByItsAppAndProject(t *testing.T) {
	n := newTeam(t, "outdated")
	const file, project = "projects/shop/apps/web/app.yaml", "projects/shop/project.yaml"
	n.push(shopFiles("shop", "web", "api"))
	web, api, shop := n.app("shop", "web"), n.app("shop", "api"), n.project("shop")
	n.ready(web, api, shop)

	good := fmt.Sprintf(rawFile, "web", "web", "hello")
	revision := n.push(map[string]string{file: strings.Replace(good, "  type: Raw", "  typo: Raw", 1)})
	message := n.until(web, v1alpha1.CurrentCondition, metav1.ConditionFalse, v1alpha1.InvalidTreeReason)
	if !strings.HasPrefix(message, few.ShortRevision(revision)+" is refused: "+file+":") {
		t.Errorf("the message of Current is %q", message)
	}
	ready := n.until(web, v1alpha1.ReadyCondition, metav1.ConditionTrue, "")
	if !strings.HasPrefix(ready, "A newer version is refused at "+file+":") || !strings.Contains(ready, "; Applied ") {
		t.Errorf("the message of Ready is %q", ready)
	}
	if r := web.Status.Refused; r == nil || message != few.ShortRevision(r.Revision)+" is refused: "+r.Place+": "+r.Problem {
		t.Errorf("status.refused is %+v", r)
	}
	n.happened(web, "Warning", v1alpha1.InvalidTreeReason, message)

	before := web.ResourceVersion
	n.synced(n.push(map[string]string{"docs/more.md": "more"}), metav1.ConditionFalse)
	n.reconcile(api)
	n.without(v1alpha1.CurrentCondition, api, shop)
	if n.until(web, v1alpha1.CurrentCondition, metav1.ConditionFalse, ""); web.ResourceVersion != before {
		t.Error("a commit that does not change the app wrote its status")
	}

	n.synced(n.push(map[string]string{file: good}), metav1.ConditionTrue)
	n.eventually(func() error { return n.has(v1alpha1.CurrentCondition, web) })
	if web.Status.Refused != nil {
		t.Errorf("status.refused is %+v after the correction, want none", web.Status.Refused)
	}
	if ready := n.until(web, v1alpha1.ReadyCondition, metav1.ConditionTrue, ""); !strings.HasPrefix(ready, "Applied ") {
		t.Errorf("the message of Ready is %q", ready)
	}
	n.happened(web, "Normal", v1alpha1.SucceededReason, "no newer version is refused any more")

	n.push(map[string]string{project: fmt.Sprintf(projectFile, "shop") + "spec: {typo: x}\n"})
	message = n.until(shop, v1alpha1.CurrentCondition, metav1.ConditionFalse, v1alpha1.InvalidTreeReason)
	ready = n.until(shop, v1alpha1.ReadyCondition, metav1.ConditionTrue, "")
	if !strings.Contains(message, project+":") || !strings.HasPrefix(ready, "A newer version is refused at "+project+":") {
		t.Errorf("the message of Current is %q, that of Ready %q", message, ready)
	}
	n.synced(n.push(map[string]string{project: fmt.Sprintf(projectFile, "shop")}), metav1.ConditionTrue)
	n.eventually(func() error { return n.has(v1alpha1.CurrentCondition, shop) })
}

func (n *team) project(name string) *v1alpha1.Project {
	return &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.HomeNamespace(n.name), Name: name}}
}

// without checks that objects do not have a condition.
func (n *team) without(condition string, objects ...step.Object) {
	n.t.Helper()
	for _, o := range objects {
		if err := n.has(condition, o); err != nil {
			n.t.Error(err)
		}
	}
}

// has returns an error while an object has a condition.
func (n *team) has(condition string, o step.Object) error {
	if err := n.admin.Get(n.t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		return err
	}
	if conditions.Has(o, condition) {
		return fmt.Errorf("%T %s has %+v", o, o.GetName(), conditions.Get(o, condition))
	}
	return nil
}

// happened waits for an event about an object.
func (n *team) happened(o client.Object, kind, reason, note string) {
	n.t.Helper()
	n.eventually(func() error {
		events := &eventsv1.EventList{}
		if err := n.admin.List(n.t.Context(), events, client.InNamespace(o.GetNamespace())); err != nil {
			return err
		}
		for _, e := range events.Items {
			if e.Regarding.Name == o.GetName() && e.Type == kind && e.Reason == reason && e.Note == note {
				return nil
			}
		}
		return fmt.Errorf("no event %s %s %q about %s", kind, reason, note, o.GetName())
	})
}
