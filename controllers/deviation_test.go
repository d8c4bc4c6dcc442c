package controllers

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// drifting pushes an app of manifests with what its spec says of drift.
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

func TestDriftOfManifestsIsTold(t *testing.T) {
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
		t.Error(message)
	}
	n.ready(app)
	if got := n.configMap("shop", "one").Data["a"]; got != "theirs" {
		t.Errorf("the value is %q", got)
	}

	// What the source says anew is applied, and in the mode Correct the rest is put back.
	n.applied("web", n.drifting("{mode: Correct}", plain("one"), plain("gone"), secret))
	n.eventually(func() error {
		if got := n.configMap("shop", "one").Data["a"]; got != "b" {
			return fmt.Errorf("the value is %q", got)
		}
		return nil
	})
	message := n.until(app, v1alpha1.DriftedCondition, metav1.ConditionFalse, v1alpha1.DriftCorrectedReason)
	if message != "put back: Secret/key, ConfigMap/one" {
		t.Errorf("the message is %s", message)
	}
}

func TestDriftIsNotLookedForOrIgnored(t *testing.T) {
	n := newTeam(t, "lenient")
	app := n.applied("web", n.drifting("{mode: Off}", plain("one")))
	n.edit(n.configMapOf("shop", "one"), `{"data":{"a":"theirs"}}`)
	n.reconcile(app)
	if got := n.configMap("shop", "one").Data["a"]; got != "theirs" {
		t.Errorf("the value is %q", got)
	}
	n.applied("web", n.drifting("{ignore: [{paths: [/data/a], target: {kind: ConfigMap, name: o.*}}]}", plain("one"), plain("two")))
	n.edit(n.configMapOf("shop", "one"), `{"data":{"a":"again"}}`)
	n.edit(n.configMapOf("shop", "two"), `{"data":{"a":"again"}}`)
	n.eventually(func() error {
		if got := n.configMap("shop", "two").Data["a"]; got != "b" {
			return fmt.Errorf("the value is %q", got)
		}
		return nil
	})
	n.reconcile(app)
	if got := n.configMap("shop", "one").Data["a"]; got != "again" {
		t.Errorf("the value is %q", got)
	}
	message := n.until(n.app("shop", "web"), v1alpha1.DriftedCondition, metav1.ConditionFalse, v1alpha1.DriftCorrectedReason)
	if message != "put back: ConfigMap/two" {
		t.Errorf("the message is %s", message)
	}
}

// TestAFightIsNoticed changes an object back each time that it was put back.
func TestAFightIsNoticed(t *testing.T) {
	n := newTeam(t, "fighting")
	app := n.applied("web", n.drifting("{mode: Correct}", plain("one")))
	config, fights := n.configMapOf("shop", "one"), 0
	n.eventually(func() error {
		n.there(config)
		if config.Data["a"] == "b" {
			fights++
			n.edit(config, `{"data":{"a":"mine"}}`)
		}
		if err := n.admin.Get(t.Context(), client.ObjectKeyFromObject(app), app); err != nil {
			return err
		}
		for _, c := range app.Status.Conditions {
			if c.Type == v1alpha1.DriftedCondition && strings.Contains(c.Message, "somebody else keeps changing it: ConfigMap/one") {
				return nil
			}
		}
		return fmt.Errorf("after %d fights the conditions are %+v", fights, app.Status.Conditions)
	})
	if fights < 3 || fights > 5 {
		t.Errorf("noticed after %d fights", fights)
	}
	n.eventually(func() error {
		if n.there(config); config.Data["a"] != "b" {
			return errors.New("it is not put back any more")
		}
		return nil
	})
}
