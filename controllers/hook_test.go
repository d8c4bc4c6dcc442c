package controllers

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/internal/testenv"
)

// TestAMissingHookSecretIsReported: without the Secret every push hook call is refused, and only this condition shows it. Delivered apps
// stay ready.
func TestAMissingHookSecretIsReported(t *testing.T) {
	n := newTeam(t, "unhooked")
	n.push(shopFiles("shop", "web"))
	n.ready(n.repository(), n.app("shop", "web"))
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: testenv.Namespace, Name: "unhooked-hook"}}
	if err := n.admin.Delete(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	message := n.until(n.repository(), v1alpha1.HookClosedCondition, metav1.ConditionTrue, v1alpha1.SecretMissingReason)
	for _, want := range []string{testenv.Namespace + "/unhooked-hook", "every minute", "kubectl create secret generic unhooked-hook"} {
		if !strings.Contains(message, want) {
			t.Errorf("the message is %q, want %q in it", message, want)
		}
	}
	n.ready(n.repository())
	n.secret("unhooked-hook", map[string]string{"token": "key-of-unhooked"})
	n.eventually(func() error {
		repository := n.repository()
		err := n.admin.Get(t.Context(), client.ObjectKeyFromObject(repository), repository)
		if condition := conditions.Get(repository, v1alpha1.HookClosedCondition); err == nil && condition != nil {
			err = fmt.Errorf("the condition is still there: %s", condition.Message)
		}
		return err
	})
}

// TestPushesWithoutAHookAreFoundWithinAMinute: nothing reports the first push to an empty repository, or to one that is made after its Tenant.
// Meanwhile a repository whose hook was called is not polled.
func TestPushesWithoutAHookAreFoundWithinAMinute(t *testing.T) {
	t.Parallel()
	called := teamOf(t, "called")
	called.push(shopFiles("shop", "web"))
	called.ready(called.app("shop", "web"))
	called.push(shopFiles("shop", "web", "api")) // The Repository did not exist yet when the hook reported the first push.
	called.ready(called.app("shop", "api"))
	time.Sleep(time.Until(called.started.Add(2*time.Minute + 20*time.Second))) // Each repository is polled once more a minute after a start.
	called.repo.Vanish()
	vanished := time.Now()

	empty, later := called.withoutHook("emptyone"), called.withoutHook("laterone")
	later.repo.Vanish()
	for _, n := range []*team{empty, later} {
		n.until(n.repository(), v1alpha1.FetchedCondition, metav1.ConditionFalse, v1alpha1.SourceNotFoundReason)
		if message := n.until(n.repository(), v1alpha1.HookClosedCondition, metav1.ConditionTrue, v1alpha1.HookNotSetReason); !strings.Contains(message, "every minute") {
			t.Errorf("the message is %q", message)
		}
	}
	later.repo.Return()
	began := time.Now()
	for _, n := range []*team{empty, later} {
		n.push(shopFiles("shop", "web"))
	}
	empty.ready(empty.app("shop", "web"))
	later.ready(later.app("shop", "web"))
	if took := time.Since(began); took > 65*time.Second { // Delivering takes a moment, too.
		t.Errorf("the pushes are delivered after %s", took.Round(time.Second))
	}

	time.Sleep(time.Until(vanished.Add(65 * time.Second)))
	repository := called.repository()
	if err := called.admin.Get(t.Context(), client.ObjectKeyFromObject(repository), repository); err != nil {
		t.Fatal(err)
	}
	if !conditions.IsTrue(repository, v1alpha1.FetchedCondition) || repository.Annotations[v1alpha1.HookCalledAnnotation] == "" || repository.Spec.Interval.Duration != 0 {
		t.Errorf("after a call of its hook the repository is polled as before: %s", called.state())
	}
}

// withoutHook makes a tenant whose repository is empty and calls no push hook.
func (n *team) withoutHook(name string) *team {
	n.t.Helper()
	other := &team{operator: n.operator, t: n.t, name: name, repo: env.Repo(n.t, name, "", "")}
	other.secret(name+"-git", map[string]string{"username": other.repo.User, "password": other.repo.Password})
	other.create(&v1alpha1.Tenant{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1alpha1.TenantLabel: name}},
		Spec:       v1alpha1.TenantSpec{Repository: &v1alpha1.TenantRepository{URL: other.repo.URL, SecretRef: &v1alpha1.LocalSecretReference{Name: name + "-git"}}},
	})
	return other
}

// TestTheChartExposesTheHook has the API server check what the chart makes of hook.host, and compares it with the Service.
func TestTheChartExposesTheHook(t *testing.T) {
	o, err := op()
	if err != nil {
		t.Fatal(err)
	}
	rendered := func(template string, set ...string) string {
		args := []string{"template", "kubeop", env.Chart(), "--namespace", testenv.Namespace, "--show-only", "templates/" + template}
		for _, value := range set {
			args = append(args, "--set", value)
		}
		text, err := env.Helm(t.Context(), args...)
		if err != nil {
			text = err.Error()
		}
		return text
	}
	ingress := &networkingv1.Ingress{}
	text := rendered("hook.yaml", "hook.host=kubeop.example.com", "hook.ingress.className=public", `hook.ingress.annotations.cert-manager\.io/cluster-issuer=letsencrypt`)
	if err := yaml.UnmarshalStrict([]byte(text), ingress); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if err := o.admin.Create(t.Context(), ingress, client.DryRunAll, client.FieldValidation("Strict")); err != nil {
		t.Fatal(err)
	}
	path := ingress.Spec.Rules[0].HTTP.Paths[0]
	if ingress.Spec.Rules[0].Host != "kubeop.example.com" || path.Path != "/hook" || *ingress.Spec.IngressClassName != "public" || len(ingress.Spec.TLS) != 1 ||
		ingress.Spec.TLS[0].SecretName != "kubeop-hook-tls" || ingress.Annotations["cert-manager.io/cluster-issuer"] != "letsencrypt" {
		t.Errorf("the Ingress is %+v", ingress)
	}
	service := &corev1.Service{}
	if err := yaml.Unmarshal([]byte(rendered("service.yaml")), service); err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(service.Spec.Ports, func(p corev1.ServicePort) bool { return p.Name == path.Backend.Service.Port.Name && p.Port == 9292 }) ||
		path.Backend.Service.Name != service.Name {
		t.Errorf("the Ingress leads to %+v; the Service has %+v", path.Backend.Service, service.Spec.Ports)
	}
	for name, tc := range map[string]struct {
		set  []string
		want string
	}{
		"no host":                   {nil, "could not find template"},
		"a route":                   {[]string{"hook.host=h.example.com", "hook.type=HTTPRoute", "gateway=infra/edge/https"}, "sectionName: https"},
		"a route without a Gateway": {[]string{"hook.host=h.example.com", "hook.type=HTTPRoute"}, "hook.type HTTPRoute needs hook.gateway or gateway"},
		"another type":              {[]string{"hook.host=h.example.com", "hook.type=Route"}, "value must be one of 'Ingress', 'HTTPRoute'"},
		"a URL":                     {[]string{"hook.host=https://h.example.com"}, "does not match pattern"},
		"no TLS":                    {[]string{"hook.host=h.example.com", "hook.ingress.tlsSecret="}, "name: http-hook"},
	} {
		if text := rendered("hook.yaml", tc.set...); !strings.Contains(text, tc.want) || name == "no TLS" && strings.Contains(text, "tls:") {
			t.Errorf("%s: want %q in\n%s", name, tc.want, text)
		}
	}
}
