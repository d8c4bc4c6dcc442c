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

// clientWithWarnings returns a client for a user, "" for an administrator, and the warnings of the API server to it.
func clientWithWarnings(t *testing.T, config *rest.Config, user string) (client.Client, *warnings) {
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

// ofEveryFamily is a policy with rules of every family that the API server judges, with an action.
func ofEveryFamily(action v1alpha1.PolicyAction) v1alpha1.Policy {
	return v1alpha1.Policy{ObjectMeta: metav1.ObjectMeta{Name: "all"}, Spec: v1alpha1.PolicySpec{PolicyRules: v1alpha1.PolicyRules{
		Images:    &v1alpha1.ImageRules{Action: action, Allow: []string{"registry.example.com/acme"}},
		Services:  &v1alpha1.ServiceRules{Action: action, Types: []string{"LoadBalancer"}},
		Hostnames: &v1alpha1.HostnameRules{Action: action, Suffixes: []string{"acted.example.com"}},
		Classes:   &v1alpha1.ClassRules{Action: action, Ingress: []string{"public"}},
		Nodes:     &v1alpha1.NodeRules{Action: action, Selector: map[string]v1alpha1.LabelValue{"pool": "tenants"}},
		Kinds:     &v1alpha1.KindRules{Action: action, Deny: []string{"ConfigMap"}},
		Metadata:  &v1alpha1.MetadataRules{Action: action, ForbiddenLabels: []string{"evil"}},
	}}}
}

// actedHosts are the host names of the objects.
var actedHosts = []string{"web.acted.example.com", "acted.evil.org"}

// ofFamily are objects, each of which breaks the rules of one family, with what the API server says about it before the name of the policy.
var ofFamily = map[string]string{
	actedPod("evil.org/web", "tenants"):                                                 "Images: Pod/x has the image evil.org/web, which is not among the allowed ones: registry.example.com/acme. See spec.images.allow of policy ",
	actedPod("registry.example.com/acme/web", "others"):                                 "Nodes: Pod/x selects nodes with pool=others, and its pods have to run on nodes with pool=tenants. See spec.nodes.selector of policy ",
	"{apiVersion: v1, kind: Service, metadata: {name: x}, spec: {ports: [{port: 80}]}}": "Services: Service/x is of type ClusterIP; allowed are: LoadBalancer. See spec.services.types of policy ",
	actedIngress(actedHosts[1], "public"):                                               "Hostnames: Ingress/x has the host acted.evil.org, which is not below the allowed domains: acted.example.com. See spec.hostnames.suffixes of policy ",
	actedIngress(actedHosts[0], "private"):                                              "Classes: Ingress/x has ingressClassName private; allowed are: public. See spec.classes.ingress of policy ",
	"{apiVersion: v1, kind: ConfigMap, metadata: {name: x}}":                            "Kinds: ConfigMap/x is of kind ConfigMap, which is among the refused ones: ConfigMap. See spec.kinds.deny of policy ",
	"{apiVersion: v1, kind: ServiceAccount, metadata: {name: x, labels: {evil: a}}}":    "Metadata: ServiceAccount/x has the label evil, which is among the forbidden ones: evil. See spec.metadata.forbiddenLabels of policy ",
}

// inOrder are objects that break no rule.
var inOrder = []string{actedPod("registry.example.com/acme/web", "tenants"), actedIngress(actedHosts[0], "public"), "{apiVersion: v1, kind: ServiceAccount, metadata: {name: x}}"}

func actedPod(image, pool string) string {
	return fmt.Sprintf(markedPlace, "v1", "Pod", "nodeSelector: {pool: "+pool+"}, "+strings.Replace(podSpec, "image: a,", "image: "+image+",", 1))
}

func actedIngress(host, class string) string {
	return fmt.Sprintf(markedPlace, "networking.k8s.io/v1", "Ingress", "ingressClassName: "+class+", rules: [{host: "+host+"}]")
}

// TestAPolicyThatWarnsIsNamedToTheWriter, and lets the object in. What is allowed gets no warning.
func TestAPolicyThatWarnsIsNamedToTheWriter(t *testing.T) {
	n, _ := limited(t, "cautioned")
	n.reserve(slices.Clone(actedHosts)...)
	n.under(ofEveryFamily(v1alpha1.WarnAction))
	jane, warned := clientWithWarnings(t, env.Config, "jane-of-"+n.name)
	create := func(text string) ([]string, error) {
		return warned.of(func() error { return jane.Create(t.Context(), n.object(n.namespace(), text), client.DryRunAll) })
	}
	for text, words := range ofFamily {
		n.eventually(func() error {
			said, err := create(text)
			if err != nil {
				return err
			}
			want := words + n.name + "-all"
			if !slices.ContainsFunc(said, func(s string) bool { return strings.Contains(s, want) }) {
				return fmt.Errorf("the warnings are %q, want %q among them", said, want)
			}
			return nil
		})
	}
	for _, text := range inOrder {
		if said, err := create(text); err != nil || len(said) > 0 {
			t.Errorf("the warnings about %s are %q: %v", text, said, err)
		}
	}
}

// audited is what the test reads of an event of the API server's audit log.
type audited struct {
	User      struct{ Username string }
	ObjectRef struct{ Namespace string }
	Verb      string

	RequestURI  string
	Annotations map[string]string
}

// creations returns the events about created objects of a namespace, by the value of the query parameter fieldManager.
func creations(t *testing.T, log, namespace string) map[string]audited {
	t.Helper()
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]audited{}
	for line := range strings.Lines(string(text)) {
		var e audited
		if json.Unmarshal([]byte(line), &e) != nil || e.ObjectRef.Namespace != namespace || e.Verb != "create" {
			continue // The last line may be half written.
		}
		if _, manager, ok := strings.Cut(e.RequestURI, "fieldManager="); ok {
			all[manager] = e
		}
	}
	return all
}

// TestAPolicyThatAuditsWritesIntoTheAuditLog, lets the object in and sends no warning. Only this control plane writes an audit log: that of all tests would be
// large.
func TestAPolicyThatAuditsWritesIntoTheAuditLog(t *testing.T) {
	t.Parallel()
	plane := testenv.Start(t, "--audit")
	if _, err := plane.InstallChart(t.Context()); err != nil {
		t.Fatal(err)
	}
	admin, warned := clientWithWarnings(t, plane.Config, "")
	n := &team{operator: &operator{admin: admin}, t: t, name: "audited"}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: n.namespace(), Labels: map[string]string{
		v1alpha1.TenantLabel: n.name, v1alpha1.GuardrailsLabel: v1alpha1.GuardrailsEnforced,
	}}}
	spec := guardrails.Of([]v1alpha1.Policy{ofEveryFamily(v1alpha1.AuditAction)})
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&spec)
	if err != nil {
		t.Fatal(err)
	}
	rules := &v1alpha1.Guardrails{ObjectMeta: metav1.ObjectMeta{Namespace: n.namespace(), Name: v1alpha1.GuardrailsName, Labels: guardrails.Labels(content)}, Spec: spec}
	n.eventually(func() error { return admin.Create(t.Context(), namespace) })
	n.eventually(func() error { return admin.Create(t.Context(), rules) })

	const key = "validation.policy.admission.k8s.io/validation_failure"
	tries := 0
	// create returns the event of an object that is let in without a warning.
	create := func(text string) (audited, error) {
		tries++
		manager := fmt.Sprintf("try-%d", tries)
		said, err := warned.of(func() error {
			return admin.Create(t.Context(), n.object(n.namespace(), text), client.DryRunAll, client.FieldOwner(manager))
		})
		if err != nil || len(said) > 0 {
			return audited{}, errors.Join(fmt.Errorf("the warnings are %q", said), err)
		}
		var event audited
		n.eventually(func() error {
			var ok bool
			if event, ok = creations(t, plane.AuditLog, n.namespace())[manager]; !ok {
				return errors.New("the audit log has no event of " + manager)
			}
			return nil
		})
		return event, nil
	}
	judged := func(text, words string) error {
		event, err := create(text)
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
		if f := failures[0]; f.Policy != "kubeop-guardrails-audit" || f.Message != words+"all" || !slices.Equal(f.ValidationActions, []string{"Audit"}) {
			return fmt.Errorf("the event has %+v", failures)
		}
		return nil
	}
	for text, words := range ofFamily {
		n.eventually(func() error { return judged(text, words) })
	}
	for _, text := range inOrder {
		if event, err := create(text); err != nil || event.Annotations[key] != "" {
			t.Errorf("the event of %s has %v: %v", text, event.Annotations, err)
		}
	}
}
