package repository

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/credentials"
)

func TestTheSecretOfStatusesGoesBeforeThatOfTheClone(t *testing.T) {
	secret := func(name, token string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-system", Name: name}, Data: map[string][]byte{"bearerToken": []byte(token)}}
	}
	c := newCluster(t, secret("clone", "one"), secret("api", "two"))
	c.credentials = credentials.Cache{Reader: c.api, Metadata: c.api, Named: func(context.Context, string) bool { return true }, Clock: c.clock}
	ref := func(name string) *v1alpha1.LocalSecretReference { return &v1alpha1.LocalSecretReference{Name: name} }
	for name, tc := range map[string]struct {
		change func(*v1alpha1.RepositorySpec)
		want   string
	}{
		"none":                 {func(*v1alpha1.RepositorySpec) {}, ""},
		"of the clone":         {func(s *v1alpha1.RepositorySpec) { s.SecretRef = ref("clone") }, "one"},
		"statuses without one": {func(s *v1alpha1.RepositorySpec) { s.SecretRef, s.CommitStatus = ref("clone"), &v1alpha1.CommitStatus{} }, "one"},
		"of the statuses": {func(s *v1alpha1.RepositorySpec) {
			s.SecretRef, s.CommitStatus = ref("clone"), &v1alpha1.CommitStatus{SecretRef: ref("api")}
		}, "two"},
	} {
		repository := &v1alpha1.Repository{}
		tc.change(&repository.Spec)
		if auth, err := c.APIAuth(t.Context(), repository); err != nil || auth.BearerToken != tc.want {
			t.Errorf("%s: %q, %v, want %q", name, auth.BearerToken, err, tc.want)
		}
	}
	if data, err := c.Secret(t.Context(), "api"); err != nil || string(data["bearerToken"]) != "two" {
		t.Errorf("%q, %v", data, err)
	}
	if _, err := c.Secret(t.Context(), "none"); err == nil || !strings.HasPrefix(err.Error(), "secret kubeop-system/none does not exist: create it; ") {
		t.Errorf("one that does not exist: %v", err)
	}
	c.fails = "Secret"
	c.credentials = credentials.Cache{Reader: c.api, Metadata: c.api, Named: func(context.Context, string) bool { return true }, Clock: c.clock}
	if _, err := c.Secret(t.Context(), "api"); !errors.Is(err, errAway) || !strings.HasPrefix(err.Error(), "reading secret kubeop-system/api: ") {
		t.Errorf("one that cannot be read: %v", err)
	}
}

// TestAnAppIsReadFromTheRepositoryThatMayDeclareIt, whatever its labels say.
func TestAnAppIsReadFromTheRepositoryThatMayDeclareIt(t *testing.T) {
	repository := &v1alpha1.Repository{ObjectMeta: metav1.ObjectMeta{Name: "acme"}, Spec: v1alpha1.RepositorySpec{Tenant: "acme"}}
	app := func(namespace, of string) *v1alpha1.App {
		return &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web", Labels: map[string]string{v1alpha1.RepositoryLabel: of}}}
	}
	c := newCluster(t, repository)
	for name, tc := range map[string]struct {
		app         *v1alpha1.App
		fails, want string
	}{
		"its own":               {app: app("kubeop-acme-shop", "acme")},
		"of another tenant":     {app: app("kubeop-rival-shop", "acme"), want: "repository acme cannot declare apps in namespace kubeop-rival-shop"},
		"of none that is there": {app: app("kubeop-acme-shop", "gone"), want: "repository gone, which declared the app, does not exist: create it again, or delete the app; "},
		"it cannot be read":     {app: app("kubeop-acme-shop", "acme"), fails: "Repository", want: "reading repository acme: "},
	} {
		c.fails = tc.fails
		found, tenant, err := c.Declaring(t.Context(), tc.app)
		if tc.want == "" && (err != nil || found.Name != "acme" || tenant != "acme") || tc.want != "" && (err == nil || !strings.HasPrefix(err.Error(), tc.want)) {
			t.Errorf("%s: %v of tenant %q, %v, want %q", name, found, tenant, err, tc.want)
		}
	}
}

func TestARewrittenHistorySaysWhetherItIsKnown(t *testing.T) {
	s := newScope(&v1alpha1.Repository{ObjectMeta: metav1.ObjectMeta{Name: "acme"}, Spec: v1alpha1.RepositorySpec{Tenant: "acme"}})
	s.commit.Revision, s.commit.Hash = "main@sha1:2", "2"
	if got, want := rewritten(s, "main@sha1:1").Error(), "main@sha1:2 does not descend from main@sha1:1, which was accepted last: it is held"; !strings.HasPrefix(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	s.commit.Ancestry.Beyond = "it is more than 1000 commits away"
	want := "main@sha1:2 is not known to descend from main@sha1:1, which was accepted last (it is more than 1000 commits away): it is held"
	if got := rewritten(s, "main@sha1:1").Error(); !strings.HasPrefix(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
