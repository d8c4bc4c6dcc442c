package controllers

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/apis/kustomize"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// revealing are expressions that fail, and whose error in CEL contains the value as a key, a number or a time.
var revealing = map[string]string{
	"key": "%[1]s.data[%[1]s.data.word] == ''", "joined": "%[1]s.data['a' + %[1]s.data.word] == ''",
	"number": "int(%[1]s.data.word) == 0", "time": "timestamp(%[1]s.data.word) == timestamp(0)", "itself": "%[1]s.data.word",
	"index": "%[1]s.metadata.managedFields[%[1]s.data.word] == ''",
}

// TestNoExpressionRevealsItsInput evaluates failing expressions over values that readers of an App's status may not see.
func TestNoExpressionRevealsItsInput(t *testing.T) {
	n := newTeam(t, "confidant")
	n.push(shopFiles("shop", "web"))
	web := n.app("shop", "web")
	n.ready(web)
	const word = "whispered-4711"
	vault := metav1.ObjectMeta{Namespace: web.Namespace, Name: "vault"}
	n.create(&corev1.Secret{ObjectMeta: vault, StringData: map[string]string{"word": word}})
	n.create(&corev1.ConfigMap{ObjectMeta: vault, Data: map[string]string{"word": word}})

	declare := func(name string, change func(*v1alpha1.Delivery)) *v1alpha1.App {
		app := n.app("shop", name)
		app.Spec = *web.Spec.DeepCopy()
		change(&app.Spec.Delivery)
		n.create(app)
		return app
	}
	for i, kind := range []string{"Secret", "secret", "secrets", "SecretList", "secretlist", "SECRET"} {
		t.Run("depending on "+kind, func(t *testing.T) {
			app := declare(fmt.Sprintf("spelling-%d", i), func(d *v1alpha1.Delivery) {
				d.DependsOn = []v1alpha1.Dependency{{APIVersion: "v1", Kind: kind, Name: "vault", ReadyExpr: fmt.Sprintf(revealing["key"], "dep")}}
			})
			if got, want := n.until(app, v1alpha1.ReadyCondition, metav1.ConditionFalse, v1alpha1.InvalidExpressionReason), "may depend on a Secret"; !strings.Contains(got, want) {
				t.Errorf("the message is %q, want %q in it", got, want)
			}
			n.keeps(app, word)
		})
		t.Run("judging "+kind, func(t *testing.T) {
			app := declare(fmt.Sprintf("judging-%d", i), func(d *v1alpha1.Delivery) {
				d.HealthCheckExprs = []kustomize.CustomHealthCheck{{APIVersion: "v1", Kind: kind,
					HealthCheckExpressions: kustomize.HealthCheckExpressions{Current: fmt.Sprintf(revealing["key"], "self")}}}
			})
			n.until(app, v1alpha1.ReadyCondition, metav1.ConditionFalse, v1alpha1.InvalidExpressionReason)
			n.keeps(app, word)
		})
	}
	for name, text := range revealing {
		t.Run("depending by "+name, func(t *testing.T) {
			app := declare("depending-"+name, func(d *v1alpha1.Delivery) {
				d.DependsOn = []v1alpha1.Dependency{{APIVersion: "v1", Kind: "ConfigMap", Name: "vault", ReadyExpr: fmt.Sprintf(text, "dep")}}
			})
			n.until(app, v1alpha1.DependenciesReadyCondition, metav1.ConditionUnknown, v1alpha1.DependencyNotReadyReason)
			n.keeps(app, word)
		})
		t.Run("judging by "+name, func(t *testing.T) {
			app := declare("judging-"+name, func(d *v1alpha1.Delivery) {
				d.HealthCheckExprs = []kustomize.CustomHealthCheck{{APIVersion: "v1", Kind: "ConfigMap",
					HealthCheckExpressions: kustomize.HealthCheckExpressions{Current: fmt.Sprintf(text, "self")}}}
			})
			app.Spec.Raw.Manifests[0].Raw = fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"judged-%s"},"data":{"word":%q}}`, name, word)
			if err := n.admin.Patch(t.Context(), app, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"raw":{"manifests":[%s]}}}`, app.Spec.Raw.Manifests[0].Raw))); err != nil {
				t.Fatal(err)
			}
			n.eventually(func() error {
				if err := n.admin.Get(t.Context(), client.ObjectKeyFromObject(app), app); err != nil {
					return err
				}
				for _, c := range app.Status.Conditions {
					if c.Type == v1alpha1.HealthyCondition && strings.Contains(c.Message, "judged-"+name) {
						return nil
					}
				}
				return fmt.Errorf("the health of the app was not evaluated: %+v", app.Status.Conditions)
			})
			app.Spec = v1alpha1.AppSpec{} // The spec contains the secret word.
			n.keeps(app, word)
		})
	}
}

// keeps checks that neither an App's status nor an event nor the operator's log contains a word, plain or as base64.
func (n *team) keeps(app *v1alpha1.App, word string) {
	n.t.Helper()
	status, err := yaml.Marshal(app.Status)
	if err != nil {
		n.t.Fatal(err)
	}
	outputs := map[string]string{"the status": string(status), "the log": n.log()}
	events := &eventsv1.EventList{}
	if err := n.admin.List(n.t.Context(), events, client.InNamespace(app.Namespace)); err != nil {
		n.t.Fatal(err)
	}
	for _, e := range events.Items {
		outputs["the event "+e.Name] = e.Note
	}
	for where, text := range outputs {
		for _, form := range []string{word, base64.StdEncoding.EncodeToString([]byte(word))} {
			if strings.Contains(text, form) {
				n.t.Errorf("%s of App %s contains %q:\n%s", where, app.Name, form, text)
			}
		}
	}
}
