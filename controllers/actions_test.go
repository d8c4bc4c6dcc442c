package controllers

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/guardrails"
	"github.com/kubeop/kubeop/internal/testenv"
)

// warnings are the texts of the Warning headers of responses, which kubectl prints.
type warnings struct {
	mu    sync.Mutex
	texts []string
}

func (w *warnings) HandleWarningHeader(_ int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.texts = append(w.texts, text)
}

// of returns the warnings that a request is answered with.
func (w *warnings) of(try func() error) ([]string, error) {
	w.mu.Lock()
	w.texts = nil
	w.mu.Unlock()
	err := try()
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.texts, err
}

// heard returns a client for a user, "" for an administrator, and the warnings of the API server to it.
func heard(t *testing.T, config *rest.Config, user string) (client.Client, *warnings) {
	t.Helper()
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	config, w := rest.CopyConfig(config), &warnings{}
	config.WarningHandler, config.Impersonate.UserName = w, user
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c, w
}

// imageRules is a policy about images with an action.
func imageRules(action v1alpha1.PolicyAction) v1alpha1.Policy {
	return v1alpha1.Policy{ObjectMeta: metav1.ObjectMeta{Name: "images"}, Spec: v1alpha1.PolicySpec{PolicyRules: v1alpha1.PolicyRules{
		Images: &v1alpha1.ImageRules{Action: action, Allow: []string{"registry.example.com/acme"}},
	}}}
}

const notAllowed = "Images: Pod/x has the image evil.org/web, which is not among the allowed ones: registry.example.com/acme. See spec.images.allow of policy "

// ofImage returns a pod that differs from others only in its image.
func ofImage(namespace, image string) *corev1.Pod {
	no, yes := false, true
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "x"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{
		Name: "a", Image: image, SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: &no, RunAsNonRoot: &yes, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
	}}}}
}

// TestAPolicyThatWarnsTellsWhoWrites, and lets the object in. A pod with an allowed image is told nothing.
func TestAPolicyThatWarnsTellsWhoWrites(t *testing.T) {
	n, _ := limited(t, "cautioned")
	n.under(imageRules(v1alpha1.WarnAction))
	jane, warned := heard(t, env.Config, "jane-of-"+n.name)
	create := func(image string) ([]string, error) {
		return warned.of(func() error { return jane.Create(t.Context(), ofImage(n.namespace(), image), client.DryRunAll) })
	}
	n.eventually(func() error {
		said, err := create("evil.org/web")
		if err != nil {
			return err
		}
		want := notAllowed + n.name + "-images"
		if !slices.ContainsFunc(said, func(s string) bool { return strings.Contains(s, want) }) {
			return fmt.Errorf("the warnings are %q, want %q among them", said, want)
		}
		return nil
	})
	if said, err := create("registry.example.com/acme/web"); err != nil || len(said) > 0 {
		t.Errorf("the warnings about an allowed image are %q: %v", said, err)
	}
}

// audited is what the test reads of an event of the API server's audit log.
type audited struct {
	User      struct{ Username string }
	ObjectRef struct{ Namespace, Resource string }
	Verb      string

	RequestURI  string
	Annotations map[string]string
}

// podEvents returns the events about created pods of a namespace, by the value of the query parameter fieldManager.
func podEvents(t *testing.T, log, namespace string) map[string]audited {
	t.Helper()
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]audited{}
	for line := range strings.Lines(string(text)) {
		var e audited
		if json.Unmarshal([]byte(line), &e) != nil || e.ObjectRef.Namespace != namespace || e.ObjectRef.Resource != "pods" || e.Verb != "create" {
			continue // The last line may be half written.
		}
		if _, manager, ok := strings.Cut(e.RequestURI, "fieldManager="); ok {
			all[manager] = e
		}
	}
	return all
}

// TestAPolicyThatAuditsWritesIntoTheAuditLog, lets the object in and tells nobody. Only this control plane writes an audit log: that of all tests would be
// large.
func TestAPolicyThatAuditsWritesIntoTheAuditLog(t *testing.T) {
	t.Parallel()
	plane := testenv.Start(t, "--audit")
	if _, err := plane.InstallChart(t.Context()); err != nil {
		t.Fatal(err)
	}
	admin, told := heard(t, plane.Config, "")
	n := &team{operator: &operator{admin: admin}, t: t, name: "audited"}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: n.namespace(), Labels: map[string]string{
		v1alpha1.TenantLabel: n.name, v1alpha1.GuardrailsLabel: v1alpha1.GuardrailsEnforced,
	}}}
	spec := guardrails.Of([]v1alpha1.Policy{imageRules(v1alpha1.AuditAction)})
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&spec)
	if err != nil {
		t.Fatal(err)
	}
	rules := &v1alpha1.Guardrails{ObjectMeta: metav1.ObjectMeta{Namespace: n.namespace(), Name: v1alpha1.GuardrailsName, Labels: guardrails.Labels(content)}, Spec: spec}
	n.eventually(func() error { return admin.Create(t.Context(), namespace) })
	n.eventually(func() error { return admin.Create(t.Context(), rules) })

	const key = "validation.policy.admission.k8s.io/validation_failure"
	tries := 0
	// create returns the event of a pod that is let in without a warning.
	create := func(image string) (audited, error) {
		tries++
		manager := fmt.Sprintf("try-%d", tries)
		said, err := told.of(func() error {
			return admin.Create(t.Context(), ofImage(n.namespace(), image), client.DryRunAll, client.FieldOwner(manager))
		})
		if err != nil || len(said) > 0 {
			return audited{}, errors.Join(fmt.Errorf("the warnings are %q", said), err)
		}
		var event audited
		n.eventually(func() error {
			var ok bool
			if event, ok = podEvents(t, plane.AuditLog, n.namespace())[manager]; !ok {
				return errors.New("the audit log has no event of " + manager)
			}
			return nil
		})
		return event, nil
	}
	n.eventually(func() error {
		event, err := create("evil.org/web")
		if err != nil {
			return err
		}
		var failures []struct {
			Message, Policy   string
			ValidationActions []string
		}
		if err := json.Unmarshal([]byte(event.Annotations[key]), &failures); err != nil {
			return fmt.Errorf("the annotations are %v: %w", event.Annotations, err)
		}
		if len(failures) != 1 {
			return fmt.Errorf("the event has %+v", failures)
		}
		if f := failures[0]; f.Policy != "kubeop-guardrails-audit" || f.Message != notAllowed+"images" || !slices.Equal(f.ValidationActions, []string{"Audit"}) {
			return fmt.Errorf("the event has %+v", failures)
		}
		return nil
	})
	if event, err := create("registry.example.com/acme/web"); err != nil || event.Annotations[key] != "" {
		t.Errorf("the event of an allowed image has %v: %v", event.Annotations, err)
	}
}
