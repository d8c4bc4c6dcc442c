package guardrails_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	plugin "k8s.io/apiserver/pkg/admission/plugin/cel"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/cel/environment"
	"sigs.k8s.io/yaml"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/guardrails"
	"github.com/kubeop/kubeop/internal/testenv/ruled"
)

// conditional is a policy of the chart one of whose match conditions only spares the API server work: what its validations refuse, the condition lets
// through to them.
type conditional struct {
	name        string
	kinds       []string
	condition   plugin.ConditionEvaluator
	validations plugin.ConditionEvaluator
	// spared and refused count objects, so that the test cannot pass without any.
	spared, refused, missed int
}

// samples is how many objects are tried. It takes some seconds.
const samples = 1_000

// sparing are the names of such conditions. The others say whom or what a policy is not about.
var sparing = []string{"perhaps-refused", "refused", "more-than-every-tenant-may", "as-an-account-of-the-platform", "requests-a-token"}

// expression implements plugin.NamedExpressionAccessor.
type expression struct {
	name, text string
	returns    *cel.Type
}

func (e expression) GetName() string          { return e.name }
func (e expression) GetExpression() string    { return e.text }
func (e expression) ReturnTypes() []*cel.Type { return []*cel.Type{e.returns} }

// TestConditionsSpareNothingThatIsRefused compares the match conditions and the validations of the chart's policies on the cases of this package under the
// rules of all groups, and on changed ones.
func TestConditionsSpareNothingThatIsRefused(t *testing.T) {
	t.Parallel()
	policies := conditionals(t)
	var objects []*unstructured.Unstructured
	var rules, own []*v1alpha1.Guardrails // own are those of each object's group.
	for _, group := range ruled.Read(t, "testdata/cases.yaml") {
		spec := guardrails.Of(group.Policies)
		for _, applied := range spec.Deny {
			spec.Signed = append(spec.Signed, v1alpha1.SignedImages{Signatures: applied.Signatures, Images: group.Signed[applied.Policy]})
		}
		rules = append(rules, &v1alpha1.Guardrails{Spec: spec})
		for _, c := range group.Cases {
			objects, own = append(objects, c.Object), append(own, rules[len(rules)-1])
		}
	}
	claims := &v1alpha1.Guardrails{Spec: v1alpha1.GuardrailsSpec{Hostnames: &v1alpha1.ClaimedHostnames{Names: []string{"a.example.com"}}}}
	rules = append(rules, claims)
	objects = append(objects, odd(t)...)
	s := &sampler{Rand: rand.New(rand.NewPCG(1, 2)), objects: objects}
	s.learn(objects, rules)
	for i := range samples {
		at := i % len(objects)
		object := objects[at] // Each is tried as it is once, so that what is added elsewhere does not decide which policies are tried.
		var old *unstructured.Unstructured
		if i >= len(objects) {
			object = s.changed(object, s.IntN(4))
		}
		if i >= len(objects) && s.IntN(3) == 0 {
			old = s.changed(object, s.IntN(3))
		}
		p := s.rules(rules)
		if at < len(own) && s.IntN(2) == 0 {
			p = own[at]
		}
		for _, c := range policies {
			if slices.Contains(c.kinds, object.GetKind()) {
				c.compare(t, object, old, p)
			}
		}
	}
	for _, c := range policies {
		if c.spared == 0 || c.refused == 0 {
			t.Errorf("%s: %d objects are spared and %d refused", c.name, c.spared, c.refused)
		}
		t.Logf("%s: %d objects are spared, %d refused", c.name, c.spared, c.refused)
	}
}

// compare evaluates the condition of a policy and, if that is false, its validations, which must allow the object then.
func (c *conditional) compare(t *testing.T, object, old *unstructured.Unstructured, rules *v1alpha1.Guardrails) {
	t.Helper()
	request := &admissionv1.AdmissionRequest{
		Kind: metav1.GroupVersionKind(object.GroupVersionKind()), Namespace: "shop", Name: "x", Operation: admissionv1.Create,
	}
	request.UserInfo.Username = "system:serviceaccount:shop:kubeop-deployer"
	by := admission.NewAttributesRecord(nil, nil, object.GroupVersionKind(), "shop", "x", schema.GroupVersionResource{}, "", admission.Create, nil, true, &user.DefaultInfo{Name: request.UserInfo.Username})
	attributes := &admission.VersionedAttributes{Attributes: by, VersionedKind: object.GroupVersionKind(), VersionedObject: admission.NewLazyObject(object)}
	if old != nil {
		request.Operation, attributes.VersionedOldObject = admissionv1.Update, admission.NewLazyObject(old)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(rules)
	if err != nil {
		t.Fatal(err)
	}
	bindings := plugin.OptionalVariableBindings{VersionedParams: &unstructured.Unstructured{Object: content}, Authorizer: authorizer.AuthorizerFunc(nobody)}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Annotations: map[string]string{"paas.kubeop.io/max-grace-period": "40"}}}
	refused := func(by plugin.ConditionEvaluator) string {
		results, _, err := by.ForInput(t.Context(), attributes, request, bindings, namespace, celconfig.RuntimeCELCostBudget)
		if err != nil {
			return err.Error()
		}
		for i, r := range results {
			if r.Error != nil {
				return r.Error.Error()
			}
			if r.EvalResult.Value() != true {
				return fmt.Sprintf("validation %d", i)
			}
		}
		return ""
	}
	spared, why := refused(c.condition) == "validation 0", refused(c.validations)
	switch {
	case spared && why != "" && c.missed < 3: // The others are the same, mostly.
		c.missed++
		text, _ := json.Marshal([]any{object, old, rules.Spec})
		t.Errorf("%s spares what its validations refuse (%s):\n%s", c.name, why, text)
	case spared:
		c.spared++
	case why != "":
		c.refused++
	}
}

// nobody has a right in the whole cluster.
func nobody(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
	return authorizer.DecisionNoOpinion, "", nil
}

// conditionals compiles the policies of the chart that have such conditions, as the API server does. Those of package guardrails have the rules to deny.
func conditionals(t *testing.T) (all []*conditional) {
	t.Helper()
	const folder, rules, claims = "../../charts/kubeop/policies/", "params.spec.?deny.orValue([])", "has(params.spec.hostnames)"
	helpers, err := os.ReadFile("../../charts/kubeop/templates/_helpers.tpl")
	if err != nil {
		t.Fatal(err)
	}
	_, podSpec, _ := strings.Cut(string(helpers), `{{- define "kubeop.podSpec" -}}`)
	podSpec, _, _ = strings.Cut(podSpec, "{{- end }}")
	macros := strings.NewReplacer("POD_SPEC", podSpec, "RULES", rules, "CLAIMS", claims)
	files, err := filepath.Glob(folder + "*/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var policy admissionregistrationv1.ValidatingAdmissionPolicy
		if err := yaml.Unmarshal(text, &policy); err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(file, folder+"guardrails/") {
			ofFamily := fmt.Sprintf("%s.filter(p, has(p.%s))", rules, strings.TrimSuffix(filepath.Base(file), ".yaml"))
			added := []admissionregistrationv1.Variable{{Name: "rules", Expression: ofFamily}, {Name: "claims", Expression: claims}}
			policy.Spec.Variables = append(added, policy.Spec.Variables...)
		}
		for _, condition := range policy.Spec.MatchConditions {
			if slices.Contains(sparing, condition.Name) {
				all = append(all, compile(t, &policy, macros.Replace(condition.Expression)))
			}
		}
	}
	return all
}

func compile(t *testing.T, policy *admissionregistrationv1.ValidatingAdmissionPolicy, condition string) *conditional {
	t.Helper()
	env, err := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).Extend(environment.StrictCostOpt)
	if err != nil {
		t.Fatal(err)
	}
	compiler, err := plugin.NewCompositedCompiler(env)
	if err != nil {
		t.Fatal(err)
	}
	declared := plugin.OptionalVariableDeclarations{HasParams: policy.Spec.ParamKind != nil, HasAuthorizer: true}
	for _, v := range policy.Spec.Variables {
		if r := compiler.CompileAndStoreVariable(expression{v.Name, v.Expression, cel.AnyType}, declared, environment.StoredExpressions); r.Error != nil {
			t.Fatalf("%s: variable %s: %v", policy.Name, v.Name, r.Error)
		}
	}
	var validations []plugin.ExpressionAccessor
	for _, v := range policy.Spec.Validations {
		validations = append(validations, expression{text: v.Expression, returns: cel.BoolType})
	}
	c := &conditional{
		name:        policy.Name,
		condition:   compiler.CompileCondition([]plugin.ExpressionAccessor{expression{text: condition, returns: cel.BoolType}}, declared, environment.StoredExpressions),
		validations: compiler.CompileCondition(validations, declared, environment.StoredExpressions),
	}
	if errs := append(c.condition.CompilationErrors(), c.validations.CompilationErrors()...); len(errs) > 0 {
		t.Fatalf("%s: %v", c.name, errs)
	}
	for _, rule := range policy.Spec.MatchConstraints.ResourceRules {
		for _, resource := range rule.Resources {
			c.kinds = append(c.kinds, kindOf[resource]...)
		}
	}
	return c
}

// kindOf are the kinds of the resources that policies match.
var kindOf = map[string][]string{
	"*":    {"Pod", "Deployment", "StatefulSet", "CronJob", "PersistentVolumeClaim", "Service", "Secret", "Ingress"},
	"pods": {"Pod"}, "podtemplates": {"PodTemplate"}, "replicationcontrollers": {"ReplicationController"}, "pods/eviction": {"Eviction"},
	"deployments": {"Deployment"}, "statefulsets": {"StatefulSet"}, "daemonsets": {"DaemonSet"}, "replicasets": {"ReplicaSet"}, "jobs": {"Job"}, "cronjobs": {"CronJob"},
	"persistentvolumeclaims": {"PersistentVolumeClaim"}, "services": {"Service"}, "secrets": {"Secret"}, "ingresses": {"Ingress"},
	"gateways": {"Gateway"}, "listenersets": {"ListenerSet"}, "httproutes": {"HTTPRoute"},
}

// odd are objects that no rule of a Policy is about, but policies for all tenants.
func odd(t *testing.T) (all []*unstructured.Unstructured) {
	t.Helper()
	pod := `{nodeName: a, hostUsers: true, nodeSelector: {pool: a}, priorityClassName: a, serviceAccountName: kubeop-deployer, terminationGracePeriodSeconds: 50, tolerations: [{operator: Exists}, {key: a, operator: Equal, value: b}],
	  affinity: {nodeAffinity: {}}, containers: [{name: a, image: nginx, imagePullPolicy: Always}], initContainers: [{name: b, image: "b:1"}], ephemeralContainers: [{name: c, image: c}],
	  volumes: [{name: a, configMap: {name: a}}, {name: b, hostPath: {path: /}}, {name: c, csi: {driver: d}}, {name: d, nfs: {server: a}}, {name: e, image: {reference: a}},
	    {name: f, ephemeral: {volumeClaimTemplate: {metadata: {labels: {paas.kubeop.io/tenant: b}}, spec: {storageClassName: a, volumeName: b}}}}]}`
	marks := `{name: x, labels: {paas.kubeop.io/tenant: a, app: b, release-of.paas.kubeop.io/x: c}, annotations: {a: b}}`
	template := `{metadata: ` + marks + `, spec: ` + pod + `}`
	claim := `{metadata: ` + marks + `, spec: {volumeName: a, selector: {}, dataSourceRef: {kind: VolumeSnapshot, name: a}, dataSource: {kind: VolumeSnapshot, name: a}, storageClassName: a}}`
	for _, text := range []string{
		`{apiVersion: v1, kind: Pod, metadata: ` + marks + `, spec: ` + pod + `}`,
		`{apiVersion: apps/v1, kind: Deployment, metadata: ` + marks + `, spec: {template: ` + template + `}}`,
		`{apiVersion: apps/v1, kind: StatefulSet, metadata: ` + marks + `, spec: {template: ` + template + `, volumeClaimTemplates: [` + claim + `]}}`,
		`{apiVersion: batch/v1, kind: CronJob, metadata: ` + marks + `, spec: {jobTemplate: {metadata: ` + marks + `, spec: {template: ` + template + `}}}}`,
		`{apiVersion: v1, kind: PodTemplate, metadata: ` + marks + `, template: ` + template + `}`,
		`{apiVersion: v1, kind: ReplicationController, metadata: ` + marks + `, spec: {replicas: 1}}`,
		`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: ` + marks + `, spec: {volumeName: a, selector: {}, dataSourceRef: {kind: VolumeSnapshot, name: a, namespace: b}, storageClassName: a}}`,
		`{apiVersion: v1, kind: Secret, metadata: {name: x, annotations: {kubernetes.io/service-account.name: kubeop-deployer}}, type: kubernetes.io/service-account-token}`,
		`{apiVersion: v1, kind: Secret, metadata: {name: x, annotations: {kubernetes.io/service-account.name: web}}, type: Opaque}`,
		`{apiVersion: v1, kind: Service, metadata: ` + marks + `, spec: {type: LoadBalancer, loadBalancerClass: a, loadBalancerSourceRanges: [10.0.0.0/8], externalName: a, externalIPs: [10.0.0.1]}}`,
		`{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: x, annotations: {nginx.ingress.kubernetes.io/configuration-snippet: a, nginx.ingress.kubernetes.io/auth-tls-secret: b/c, Alb.ingress.kubernetes.io/group.name: c}},
		  spec: {ingressClassName: a, defaultBackend: {}, rules: [{host: a.example.com}, {}], tls: [{hosts: [b.example.com]}, {}]}}`,
		`{apiVersion: policy/v1, kind: Eviction, metadata: {name: x}, deleteOptions: {gracePeriodSeconds: 50}}`,
	} {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
			t.Fatal(err)
		}
		all = append(all, object)
	}
	return all
}

// sampler changes objects and rules at random, with words and parts of others.
type sampler struct {
	*rand.Rand
	objects []*unstructured.Unstructured
	words   []any
	parts   map[string][]any
}

// learn collects the words of the objects and rules, and what the objects have by its key.
func (s *sampler) learn(objects []*unstructured.Unstructured, rules []*v1alpha1.Guardrails) {
	s.parts, s.words = map[string][]any{}, []any{"", "*", "a,b", "A", "https://a", "paas.kubeop.io/x", "a.b.example.com", int64(-1), int64(31), int64(41)}
	for _, o := range objects {
		s.collect(o.Object)
	}
	for _, r := range rules {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(r)
		if err == nil {
			s.collect(content)
		}
	}
}

func (s *sampler) collect(value any) {
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			s.parts[key] = append(s.parts[key], v[key])
			s.collect(v[key])
		}
	case []any:
		for _, item := range v {
			s.collect(item)
		}
	case string:
		s.words = append(s.words, v, strings.ToUpper(v), v+"/", "x"+v, v+":1")
	}
}

// rules returns the rules of one or two groups together.
func (s *sampler) rules(all []*v1alpha1.Guardrails) *v1alpha1.Guardrails {
	some := all[s.IntN(len(all))].DeepCopy()
	more := all[s.IntN(len(all))]
	if s.IntN(2) == 0 {
		some.Spec.Deny = append(some.Spec.Deny, more.Spec.Deny...)
		some.Spec.Signed = append(some.Spec.Signed, more.Spec.Signed...)
	}
	if s.IntN(8) == 0 {
		some.Spec.Hostnames = &v1alpha1.ClaimedHostnames{Names: []string{"a.example.com"}}
	}
	return some
}

// changed returns a copy of an object with changes.
func (s *sampler) changed(object *unstructured.Unstructured, changes int) *unstructured.Unstructured {
	object = object.DeepCopy()
	for range changes {
		s.change(object.Object, 0)
	}
	return object
}

// change changes something below a map. It keeps the kind, and the maps in which every object has something.
func (s *sampler) change(in map[string]any, depth int) {
	keys := slices.Sorted(maps.Keys(in))
	keys = slices.DeleteFunc(keys, func(k string) bool { return k == "kind" || k == "apiVersion" || k == "name" })
	if len(keys) == 0 {
		return
	}
	key := keys[s.IntN(len(keys))]
	if inner, ok := in[key].(map[string]any); ok && (depth == 0 || s.IntN(3) > 0) {
		s.change(inner, depth+1)
		return
	}
	if list, ok := in[key].([]any); ok && len(list) > 0 && s.IntN(2) == 0 {
		at := s.IntN(len(list))
		if inner, ok := list[at].(map[string]any); ok {
			s.change(inner, depth+1)
			return
		}
		if _, ok := list[at].(string); ok {
			list[at] = s.word(true)
			return
		}
	}
	switch s.IntN(3) {
	case 0:
		if depth > 0 {
			delete(in, key)
		}
	case 1:
		in[key] = runtime.DeepCopyJSONValue(s.parts[key][s.IntN(len(s.parts[key]))])
	default:
		switch in[key].(type) {
		case string:
			in[key] = s.word(true)
		case int64:
			in[key] = s.word(false)
		}
	}
}

func (s *sampler) word(text bool) any {
	for {
		word := s.words[s.IntN(len(s.words))]
		if _, ok := word.(string); ok == text {
			return word
		}
	}
}
