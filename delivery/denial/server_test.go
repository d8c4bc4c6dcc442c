package denial

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/kubeop/kubeop/internal/testenv"
)

var env *testenv.Env

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	testenv.Main(m, &env)
}

// The objects that the refusals need beside the object that is refused.
const (
	namespace = `{apiVersion: v1, kind: Namespace, metadata: {name: %s, labels: {of: %[1]s}}}`
	quota     = `{apiVersion: v1, kind: ResourceQuota, metadata: {namespace: %s, name: small}, spec: {hard: {%s: "0"}}}`
	config    = `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: %s, name: web}}`
	// policy is one whose parameters are of a kind, for the ConfigMaps in a namespace; binding gives it a name of parameters.
	policy = `{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy, metadata: {name: %s}, spec: {
  paramKind: {apiVersion: %s, kind: %s}, validations: [{expression: "true"}],
  matchConstraints: {namespaceSelector: {matchLabels: {of: %[1]s}}, resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]}}}`
	binding = `{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicyBinding, metadata: {name: %s}, spec: {
  policyName: %[1]s, validationActions: [Deny], paramRef: {name: missing, namespace: default, parameterNotFoundAction: Deny}}}`
	writer = `{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {namespace: %s, name: writer}, rules: [{apiGroups: [rbac.authorization.k8s.io], resources: [roles], verbs: [create, delete]}]}`
	bound  = `{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {namespace: %s, name: writer}, subjects: [{kind: User, name: somebody}],
  roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: writer}}`
	secrets    = `{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {namespace: %s, name: web}, rules: [{apiGroups: [""], resources: [secrets], verbs: [get]}]}`
	definition = `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: %ss.example.com}, spec: {group: example.com, scope: Namespaced,
  names: {kind: %[1]s, plural: %[1]ss}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}`
	thing = `{apiVersion: example.com/v1, kind: %s, metadata: {namespace: %s, name: %s, finalizers: [%s]}}`
)

// TestRefusalsOfARealAPIServerAreRecognized: each message is from a real API server, so that another version that says it in other words fails here.
func TestRefusalsOfARealAPIServerAreRecognized(t *testing.T) {
	admin, err := client.New(env.Config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	somebody := rest.CopyConfig(env.Config)
	somebody.Impersonate = rest.ImpersonationConfig{UserName: "somebody"}
	person, err := client.New(somebody, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		given []string
		as    client.Client
		do    func(ctx context.Context, c client.Client) error
		want  string
	}{
		"a quota": {given: []string{fmt.Sprintf(namespace, "full"), fmt.Sprintf(quota, "full", "count/configmaps")},
			do: creates(fmt.Sprintf(config, "full")), want: "ByQuota"},
		"a policy whose parameters are missing": {given: []string{fmt.Sprintf(namespace, "unjudged"), fmt.Sprintf(policy, "unjudged", "v1", "ConfigMap"), fmt.Sprintf(binding, "unjudged")},
			do: creates(fmt.Sprintf(config, "unjudged")), want: "Unjudged"},
		"a policy whose parameters are not served": {given: []string{fmt.Sprintf(namespace, "unserved"), fmt.Sprintf(policy, "unserved", "example.com/v1", "Missing"), fmt.Sprintf(binding, "unserved")},
			do: creates(fmt.Sprintf(config, "unserved")), want: "Unjudged"},
		"a role that grants too much": {given: []string{fmt.Sprintf(namespace, "granted"), fmt.Sprintf(writer, "granted"), fmt.Sprintf(bound, "granted")},
			as: person, do: creates(fmt.Sprintf(secrets, "granted")), want: "Escalation"},
		"a definition that is being deleted, create": {given: []string{fmt.Sprintf(namespace, "ending"), fmt.Sprintf(definition, "ending"), fmt.Sprintf(thing, "ending", "ending", "first", "example.com/stays"), "delete " + fmt.Sprintf(definition, "ending")},
			do: creates(fmt.Sprintf(thing, "ending", "ending", "second", "")), want: "DefinitionEnds"},
		"a definition that is being deleted, apply": {given: []string{fmt.Sprintf(namespace, "applied"), fmt.Sprintf(definition, "applied"), fmt.Sprintf(thing, "applied", "applied", "first", "example.com/stays"), "delete " + fmt.Sprintf(definition, "applied")},
			do: applies(fmt.Sprintf(thing, "applied", "applied", "second", "")), want: "DefinitionEnds"},
		"an object that etcd does not store": {given: []string{fmt.Sprintf(namespace, "large"), fmt.Sprintf(definition, "large")},
			do: creates(strings.TrimSuffix(fmt.Sprintf(thing, "large", "large", "web", ""), "}") + ", spec: " + strings.Repeat("x", 7<<18) + "}"), want: "ForSize"},
		"an object that is not sent to etcd": {given: []string{fmt.Sprintf(namespace, "unsent"), fmt.Sprintf(definition, "unsent")},
			do: creates(strings.TrimSuffix(fmt.Sprintf(thing, "unsent", "unsent", "web", ""), "}") + ", spec: " + strings.Repeat("x", 9<<18) + "}"), want: "ForSize"},
		"an object that the API server does not read": {given: []string{fmt.Sprintf(namespace, "larger")},
			do: creates(strings.TrimSuffix(fmt.Sprintf(config, "larger"), "}") + ", data: {a: " + strings.Repeat("x", 4<<20) + "}}"), want: "ForSize"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, manifest := range c.given {
				given(t, admin, manifest)
			}
			var err error
			as := admin
			if c.as != nil {
				as = c.as
			}
			eventually(t, func() error {
				if err = c.do(t.Context(), as); !recognizers[c.want](err) {
					return fmt.Errorf("%s does not recognize it: %w", c.want, err)
				}
				return nil
			})
			recognized(t, err, c.want)
		})
	}
}

// TestTheRefusalOfANewQuotaIsRecognized: until the controller has counted, the quota refuses all. It does that at once, so the test takes the
// count away again.
func TestTheRefusalOfANewQuotaIsRecognized(t *testing.T) {
	admin, err := client.New(env.Config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	given(t, admin, fmt.Sprintf(namespace, "new"))
	given(t, admin, fmt.Sprintf(quota, "new", "count/configmaps"))
	create := creates(fmt.Sprintf(config, "new"))
	eventually(t, func() error {
		if err := create(t.Context(), admin); !ByQuota(err) {
			return fmt.Errorf("the quota does not refuse it: %w", err)
		}
		return nil
	})
	counted := object(fmt.Sprintf(quota, "new", "count/configmaps"))
	eventually(t, func() error {
		if err := admin.Status().Patch(t.Context(), counted, client.RawPatch(types.MergePatchType, []byte(`{"status":{"used":null}}`))); err != nil {
			return err
		}
		if err = create(t.Context(), admin); !ByNewQuota(err) {
			return fmt.Errorf("the quota is not new: %w", err)
		}
		return nil
	})
	recognized(t, err, "ByNewQuota")
}

// eventually waits until do returns no error: the API server sees what was given a moment later.
func eventually(t *testing.T, do func() error) {
	t.Helper()
	var last error
	done := func(context.Context) (bool, error) {
		last = do()
		return last == nil, nil
	}
	if err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 30*time.Second, true, done); err != nil {
		t.Fatal(errors.Join(err, last))
	}
}

// given makes an object, or deletes the one after "delete ".
func given(t *testing.T, c client.Client, manifest string) {
	t.Helper()
	manifest, ends := strings.CutPrefix(manifest, "delete ")
	o := object(manifest)
	if ends {
		if err := c.Delete(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		return
	}
	eventually(t, func() error { return client.IgnoreAlreadyExists(c.Create(t.Context(), o)) })
}

func creates(manifest string) func(context.Context, client.Client) error {
	return func(ctx context.Context, c client.Client) error {
		o := object(manifest)
		err := c.Create(ctx, o)
		if err == nil || apierrors.IsAlreadyExists(err) {
			_ = c.Delete(ctx, object(manifest)) // It is tried again.
		}
		return err
	}
}

func applies(manifest string) func(context.Context, client.Client) error {
	return func(ctx context.Context, c client.Client) error {
		return c.Apply(ctx, client.ApplyConfigurationFromUnstructured(object(manifest)), client.FieldOwner("test"))
	}
}

func object(manifest string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(manifest), &o.Object); err != nil {
		panic(err)
	}
	return o
}
