package targetnamespace

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// scope knows which kinds of the tests are cluster-scoped and which are unknown.
func scope(kind schema.GroupVersionKind) (bool, error) {
	switch kind.Kind {
	case "Unknown":
		return false, &meta.NoKindMatchError{GroupKind: kind.GroupKind(), SearchedVersions: []string{kind.Version}}
	case "Unreachable":
		return false, errors.New("the API server does not answer")
	}
	return !strings.HasPrefix(kind.Kind, "Cluster") && kind.Kind != "Namespace" && kind.Group != admission && kind.Kind != "APIService" && kind.Kind != "CustomResourceDefinition", nil
}

func parse(t *testing.T, documents string) []*unstructured.Unstructured {
	t.Helper()
	var objects []*unstructured.Unstructured
	for text := range strings.SplitSeq(documents, "---\n") {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
			t.Fatalf("%v in %s", err, text)
		}
		objects = append(objects, o)
	}
	return objects
}

func TestSetReplacesTheNamespaceOfTheAuthor(t *testing.T) {
	cases := map[string]struct{ given, want string }{
		"objects with, without and in the namespace": {
			"kind: ConfigMap\nmetadata: {name: a, namespace: theirs}\n---\nkind: ConfigMap\nmetadata: {name: b}\n---\nkind: ConfigMap\nmetadata: {name: c, namespace: ours}\n",
			"kind: ConfigMap\nmetadata: {name: a, namespace: ours}\n---\nkind: ConfigMap\nmetadata: {name: b, namespace: ours}\n---\nkind: ConfigMap\nmetadata: {name: c, namespace: ours}\n",
		},
		"a cluster-scoped object has none": {
			"kind: ClusterRole\nmetadata: {name: a}\n", "kind: ClusterRole\nmetadata: {name: a}\n",
		},
		"an unknown kind stays as it is": {
			"kind: Unknown\nmetadata: {name: a, namespace: theirs}\n", "kind: Unknown\nmetadata: {name: a, namespace: theirs}\n",
		},
		"their Namespace is left out, another one stays": {
			"kind: Namespace\napiVersion: v1\nmetadata: {name: theirs}\n---\nkind: Namespace\napiVersion: v1\nmetadata: {name: third}\n---\nkind: ConfigMap\nmetadata: {name: a, namespace: theirs}\n",
			"kind: Namespace\napiVersion: v1\nmetadata: {name: third}\n---\nkind: ConfigMap\nmetadata: {name: a, namespace: ours}\n",
		},
		"subjects of a binding, but not those elsewhere": {
			"kind: ServiceAccount\nmetadata: {name: a, namespace: theirs}\n---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: b}\n" +
				"subjects: [{kind: ServiceAccount, name: a, namespace: theirs}, {kind: ServiceAccount, name: a, namespace: third}, {kind: Group, name: theirs}]\n",
			"kind: ServiceAccount\nmetadata: {name: a, namespace: ours}\n---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: b}\n" +
				"subjects: [{kind: ServiceAccount, name: a, namespace: ours}, {kind: ServiceAccount, name: a, namespace: third}, {kind: Group, name: theirs}]\n",
		},
		"services of webhooks, conversions and API services": {
			"kind: Service\nmetadata: {name: a, namespace: theirs}\n" +
				"---\napiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {name: b}\nwebhooks: [{clientConfig: {service: {name: a, namespace: theirs}}}, {clientConfig: {url: x}}]\n" +
				"---\napiVersion: admissionregistration.k8s.io/v1\nkind: MutatingWebhookConfiguration\nmetadata: {name: b}\nwebhooks: [{clientConfig: {service: {name: a, namespace: third}}}]\n" +
				"---\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: b}\nspec: {conversion: {webhook: {clientConfig: {service: {namespace: theirs}}}}}\n" +
				"---\napiVersion: apiregistration.k8s.io/v1\nkind: APIService\nmetadata: {name: b}\nspec: {service: {namespace: theirs}}\n",
			"kind: Service\nmetadata: {name: a, namespace: ours}\n" +
				"---\napiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {name: b}\nwebhooks: [{clientConfig: {service: {name: a, namespace: ours}}}, {clientConfig: {url: x}}]\n" +
				"---\napiVersion: admissionregistration.k8s.io/v1\nkind: MutatingWebhookConfiguration\nmetadata: {name: b}\nwebhooks: [{clientConfig: {service: {name: a, namespace: third}}}]\n" +
				"---\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: b}\nspec: {conversion: {webhook: {clientConfig: {service: {namespace: ours}}}}}\n" +
				"---\napiVersion: apiregistration.k8s.io/v1\nkind: APIService\nmetadata: {name: b}\nspec: {service: {namespace: ours}}\n",
		},
		"parts of the wrong type stay as they are": {
			"apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: b, namespace: theirs}\nsubjects: [1, {namespace: 2}]\n---\napiVersion: apiregistration.k8s.io/v1\nkind: APIService\nmetadata: {name: b}\nspec: {service: 3}\n",
			"apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: b, namespace: ours}\nsubjects: [1, {namespace: 2}]\n---\napiVersion: apiregistration.k8s.io/v1\nkind: APIService\nmetadata: {name: b}\nspec: {service: 3}\n",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			objects, want := parse(t, c.given), parse(t, c.want)
			for range 2 {
				kept, err := Set(objects, "ours", scope)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, kept); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
				objects = kept
			}
		})
	}
}

func TestAnUnknownScopeIsAnError(t *testing.T) {
	kept, err := Set(parse(t, "kind: Unreachable\nmetadata: {name: a, namespace: theirs}\n"), "ours", scope)
	if err == nil || !strings.Contains(err.Error(), "Unreachable/a") || kept != nil {
		t.Errorf("got %v, %v", kept, err)
	}
}
