package namespace

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

func bound(url, path string) *v1alpha1.Tenant {
	return &v1alpha1.Tenant{Spec: v1alpha1.TenantSpec{Repository: &v1alpha1.TenantRepository{URL: url, Path: path}}}
}

func owned(folder string, names ...string) *v1alpha1.Tenant {
	t := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.FolderAnnotation: folder}}}
	for _, n := range names {
		t.Spec.Owners = append(t.Spec.Owners, v1alpha1.Owner{Kind: "User", Name: n})
	}
	return t
}

func TestTheRepositorySaysWhetherATenantIsTheSame(t *testing.T) {
	for name, c := range map[string]struct {
		a, b *v1alpha1.Tenant
		same bool
	}{
		"the same repository":           {bound("https://git.example.com/acme/apps.git", ""), bound("https://git.example.com/acme/apps.git", ""), true},
		"written in another way":        {bound("https://bot@GIT.example.com:443/acme/apps/", "."), bound("ssh://git@git.example.com/acme/apps.git", "/"), true},
		"another repository":            {bound("https://git.example.com/acme/apps", ""), bound("https://git.example.com/acme/app", ""), false},
		"another host":                  {bound("https://git.example.com/acme/apps", ""), bound("https://git.example.org/acme/apps", ""), false},
		"another port":                  {bound("https://git.example.com/acme/apps", ""), bound("https://git.example.com:8443/acme/apps", ""), false},
		"another path":                  {bound("https://git.example.com/acme/apps", "a"), bound("https://git.example.com/acme/apps", "b"), false},
		"the same owners":               {owned("tenants/acme", "ann", "bob"), owned("tenants/acme", "bob", "ann"), true},
		"other owners":                  {owned("tenants/acme", "ann"), owned("tenants/acme", "bob"), false},
		"one owner more":                {owned("tenants/acme", "ann"), owned("tenants/acme", "ann", "bob"), false},
		"another folder":                {owned("tenants/acme", "ann"), owned("platform/tenants/acme", "ann"), false},
		"owners, and then a repository": {owned("tenants/acme", "ann"), bound("https://git.example.com/acme/apps", ""), false},
	} {
		t.Run(name, func(t *testing.T) {
			if same := Identity(c.a) == Identity(c.b); same != c.same {
				t.Errorf("the same: %v, want %v", same, c.same)
			}
		})
	}
}

func TestTenantWithoutIdentityOwnsNoNamespace(t *testing.T) {
	if id := Identity(owned("tenants/acme")); id != "" {
		t.Errorf("identity is %s, want none", id)
	}
	left := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.TenantUIDAnnotation: "old"}}}
	if (Owner{Tenant: "new"}).was(left) {
		t.Error("nobody had what nobody left")
	}
}
