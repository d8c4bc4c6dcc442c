package inventory

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestAnIDIsReadBackFromItsText(t *testing.T) {
	tests := map[string]struct {
		id   ObjectID
		want string
	}{
		"namespaced":      {ObjectID{"shop", "web", "apps", "Deployment"}, "shop_web_apps_Deployment"},
		"core group":      {ObjectID{"shop", "web", "", "Service"}, "shop_web__Service"},
		"cluster-scoped":  {ObjectID{"", "acme", "paas.kubeop.io", "Tenant"}, "_acme_paas.kubeop.io_Tenant"},
		"cluster, core":   {ObjectID{"", "shop", "", "Namespace"}, "_shop__Namespace"},
		"RBAC name":       {ObjectID{"", "system:node", "rbac.authorization.k8s.io", "ClusterRole"}, "_system__node_rbac.authorization.k8s.io_ClusterRole"},
		"underscore name": {ObjectID{"shop", "read_only", "rbac.authorization.k8s.io", "Role"}, "shop_read_only_rbac.authorization.k8s.io_Role"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := tc.id.String(); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			back, err := ParseObjectID(tc.want)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.id, back); diff != "" {
				t.Errorf("read back (-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseObjectIDRefuses(t *testing.T) {
	for _, s := range []string{"", "web", "shop_web", "shop_web_Service", "shop___Service", "shop_web__", "____", "___"} {
		if id, err := ParseObjectID(s); err == nil {
			t.Errorf("%q was read as %+v", s, id)
		}
	}
}

func TestTypedAndUnstructuredObjectsHaveTheSameID(t *testing.T) {
	typed := &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"},
	}
	untyped := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"namespace": "shop", "name": "web"},
	}}
	want := ObjectID{Namespace: "shop", Name: "web", Group: "apps", Kind: "Deployment"}
	for name, got := range map[string]ObjectID{"typed": IDOf(typed), "unstructured": IDOf(untyped)} {
		if got != want {
			t.Errorf("%s: got %+v, want %+v", name, got, want)
		}
	}
}

func TestOnlyTheCoreKindIsASecret(t *testing.T) {
	for name, c := range map[string]struct {
		id     ObjectID
		secret bool
	}{
		"a Secret":                 {ObjectID{"shop", "web", "", "Secret"}, true},
		"a ConfigMap":              {ObjectID{"shop", "web", "", "ConfigMap"}, false},
		"a Secret of another kind": {ObjectID{"shop", "web", "example.com", "Secret"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.id.IsSecret(); got != c.secret {
				t.Errorf("it is a Secret: %t, want %t", got, c.secret)
			}
			if got, want := c.id.Versioned("v1"), (schema.GroupVersionKind{Group: c.id.Group, Version: "v1", Kind: c.id.Kind}); got != want {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
}

// Whatever is read is written back the same, except that "__" has one meaning.
func FuzzParseObjectID(f *testing.F) {
	for _, seed := range []string{"shop_web_apps_Deployment", "_system__node_g_ClusterRole", "a_b_c_d__e_f_g", "____", "a_:__b_c", "_a___b__K"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		id, err := ParseObjectID(s)
		if err != nil {
			return
		}
		if id.Name == "" || id.Kind == "" || strings.Contains(id.Namespace+id.Group+id.Kind, "_") || strings.Contains(id.Name, "__") {
			t.Fatalf("%q was read as %+v", s, id)
		}
		if strings.Contains(s, ":") {
			return // a colon that String would not have left
		}
		if got := id.String(); got != s {
			t.Errorf("%q was written back as %q", s, got)
		}
	})
}
