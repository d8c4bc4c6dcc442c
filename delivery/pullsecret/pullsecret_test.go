package pullsecret

import (
	"errors"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

func TestOnlyNamedTenantsAndPoliciesMayUseARegistry(t *testing.T) {
	policies := []v1alpha1.Policy{
		{ObjectMeta: metav1.ObjectMeta{Name: "baseline"}, Spec: v1alpha1.PolicySpec{Default: true}}, {ObjectMeta: metav1.ObjectMeta{Name: "strict"}},
	}
	now := metav1.Now()
	registries := []v1alpha1.Registry{
		{ObjectMeta: metav1.ObjectMeta{Name: "named"}, Spec: v1alpha1.RegistrySpec{Host: "b.example", Tenants: []string{"acme"}}},
		{ObjectMeta: metav1.ObjectMeta{Name: "again"}, Spec: v1alpha1.RegistrySpec{Host: "a.example", Tenants: []string{"acme", "rival"}}},
		{ObjectMeta: metav1.ObjectMeta{Name: "other"}, Spec: v1alpha1.RegistrySpec{Host: "a.example", Tenants: []string{"acme"}}},
		{ObjectMeta: metav1.ObjectMeta{Name: "by-strict"}, Spec: v1alpha1.RegistrySpec{Host: "c.example", Policies: []string{"strict"}}},
		{ObjectMeta: metav1.ObjectMeta{Name: "by-default"}, Spec: v1alpha1.RegistrySpec{Host: "d.example", Policies: []string{"baseline"}}},
		{ObjectMeta: metav1.ObjectMeta{Name: "by-none"}, Spec: v1alpha1.RegistrySpec{Host: "e.example", Policies: []string{"gone"}}},
		{ObjectMeta: metav1.ObjectMeta{Name: "nobody"}, Spec: v1alpha1.RegistrySpec{Host: "f.example"}},
		{ObjectMeta: metav1.ObjectMeta{Name: "leaving", DeletionTimestamp: &now}, Spec: v1alpha1.RegistrySpec{Host: "g.example", Tenants: []string{"acme"}}},
	}
	for name, c := range map[string]struct {
		policies, want []string
	}{
		"acme":     {nil, []string{"again", "by-default", "named"}},
		"rival":    {[]string{"strict"}, []string{"again", "by-strict"}},
		"stranger": {[]string{"gone"}, nil},
	} {
		tenant := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.TenantSpec{Policies: c.policies}}
		var got []string
		for _, registry := range Of(tenant, policies, registries) {
			got = append(got, registry.Name)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("tenant %s may use (-want +got):\n%s", name, diff)
		}
	}
}

func TestTheSecretHasTheCredentialsOfOneHost(t *testing.T) {
	config := func(text string) map[string][]byte { return map[string][]byte{".dockerconfigjson": []byte(text)} }
	for name, c := range map[string]struct {
		host       string
		data       map[string][]byte
		want, why  string
		neverShown string
	}{
		"one entry of several": {
			host: "ghcr.io", data: config(`{"auths":{"ghcr.io":{"username":"robot","password":"s3cret"},"other.example":{"username":"root","password":"x"}}}`),
			want: `{"auths":{"ghcr.io":{"username":"robot","password":"s3cret","auth":"cm9ib3Q6czNjcmV0"}}}`,
		},
		"with auth, and a URL as its key": {
			host: "ghcr.io", data: config(`{"auths":{"https://ghcr.io/v2/":{"auth":"cm9ib3Q6czNjcmV0"}}}`),
			want: `{"auths":{"ghcr.io":{"username":"robot","password":"s3cret","auth":"cm9ib3Q6czNjcmV0"}}}`,
		},
		"username and password": {
			host: "a.example:5000", data: map[string][]byte{"username": []byte("robot"), "password": []byte("s3cret")},
			want: `{"auths":{"a.example:5000":{"username":"robot","password":"s3cret","auth":"cm9ib3Q6czNjcmV0"}}}`,
		},
		"Docker Hub": {
			host: "docker.io", data: config(`{"auths":{"https://index.docker.io/v1/":{"auth":"cm9ib3Q6czNjcmV0"}}}`),
			want: `{"auths":{"https://index.docker.io/v1/":{"username":"robot","password":"s3cret","auth":"cm9ib3Q6czNjcmV0"}}}`,
		},
		"an identity token":       {host: "a.example", data: config(`{"auths":{"a.example":{"identitytoken":"t0ken"}}}`), want: `{"auths":{"a.example":{"identitytoken":"t0ken"}}}`},
		"another port":            {host: "a.example:5000", data: config(`{"auths":{"a.example":{"auth":"cm9ib3Q6czNjcmV0"}}}`), why: "no credentials for a.example:5000", neverShown: "cm9ib3Q6"},
		"only a path of the host": {host: "a.example", data: config(`{"auths":{"a.example/team":{"auth":"cm9ib3Q6czNjcmV0"}}}`), why: "no credentials for a.example", neverShown: "team"},
		"no entry":                {host: "a.example", data: config(`{"auths":{}}`), why: "no credentials for a.example"},
		"empty":                   {host: "a.example", why: "no credentials for a.example"},
		"no JSON":                 {host: "a.example", data: config("s3cret"), why: "is not the JSON of a Docker configuration", neverShown: "s3cret"},
		"no base64":               {host: "a.example", data: config(`{"auths":{"a.example":{"auth":"s3cret!"}}}`), why: "is not base64", neverShown: "s3cret"},
		"a line break":            {host: "a.example", data: map[string][]byte{"username": []byte("robot"), "password": []byte("s3cret\n")}, why: "holds a line break", neverShown: "s3cret"},
		"no password":             {host: "a.example", data: map[string][]byte{"username": []byte("robot")}, why: "holds username but no password", neverShown: "robot"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Content("kubeop-system", "pull", c.host, c.data)
			if c.why == "" {
				if err != nil || string(got[corev1.DockerConfigJsonKey]) != c.want || len(got) != 1 {
					t.Fatalf("got %s, %v; want %s", got, err, c.want)
				}
				return
			}
			if !errors.Is(err, failure.ErrInvalid) || !strings.Contains(err.Error(), c.why) {
				t.Fatalf("got %v", err)
			}
			if c.neverShown != "" && strings.Contains(err.Error(), c.neverShown) {
				t.Errorf("the message shows %s: %v", c.neverShown, err)
			}
		})
	}
}

// TestThePullSecretHasTheAuthorities of the registry, and no other key.
func TestThePullSecretHasTheAuthorities(t *testing.T) {
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	ca := sources.Certificate(server)
	data := map[string][]byte{"username": []byte("robot"), "password": []byte("s3cret"), "ca.crt": ca, "other": []byte("x")}
	got, err := Content("kubeop-system", "pull", "a.example", data)
	if err != nil || len(got) != 2 || string(got["ca.crt"]) != string(ca) {
		t.Errorf("got %d keys, %v", len(got), err)
	}
}
