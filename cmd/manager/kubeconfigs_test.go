package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/access"
	"github.com/kubeop/kubeop/internal/config"
	"github.com/kubeop/kubeop/internal/manager/kubeconfigs"
	"github.com/kubeop/kubeop/internal/store"
	"github.com/kubeop/kubeop/internal/testenv"
)

const peoplesNamespace = "kubeop-acme-shop"

// peoplesCluster makes a project with the accounts of people, as the operator does, and returns the configuration of the manager's service account.
func peoplesCluster(t *testing.T, plane *testenv.Env) (operator, account *rest.Config) {
	t.Helper()
	operator, err := plane.InstallChart(t.Context(), "manager.enabled=true", "manager.plainHTTP=true", "manager.url=https://kubeop.example.com", "manager.kubeconfigs.enabled=true", "manager.kubernetes.url="+plane.Config.Host)
	if err != nil {
		t.Fatal(err)
	}
	admin := adminOf(t, plane)
	labels := map[string]string{v1alpha1.TenantLabel: "acme", v1alpha1.ProjectLabel: "shop"}
	for _, o := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kubeop-acme"}}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: peoplesNamespace, Labels: labels}},
		&v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "acme"}}, &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-acme", Name: "shop"}},
	} {
		if err := admin.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	by := clientOf(t, operator)
	for _, o := range access.People(peoplesNamespace, labels, types.NamespacedName{Namespace: testenv.Namespace, Name: "kubeop-manager"}) {
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(200 * time.Millisecond) {
			err := by.Apply(t.Context(), o.(runtime.ApplyConfiguration), client.FieldOwner(v1alpha1.FieldManager))
			if err == nil {
				break
			}
			if time.Now().After(deadline) {
				t.Fatal(err)
			}
		}
	}
	return operator, accountOf(t, plane)
}

// clientOf returns a client of the kinds that people and the manager use.
func clientOf(t *testing.T, config *rest.Config) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(v1alpha1.AddToScheme(scheme), corev1.AddToScheme(scheme), rbacv1.AddToScheme(scheme), authenticationv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// within retries for half a minute.
func within(t *testing.T, what string, try func() error) {
	t.Helper()
	var err error
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		if err = try(); err == nil {
			return
		}
	}
	t.Errorf("%s: %v", what, err)
}

// forbidden wants the API server to refuse a request, with these words.
func forbidden(words string, err error) error {
	if err == nil || !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), words) {
		return fmt.Errorf("not refused with %q: %w", words, errors.Join(err))
	}
	return nil
}

// TestAKubeconfigWorksUntilItIsRevoked asks a manager for kubeconfigs, uses them at a real API server, and revokes one.
func TestAKubeconfigWorksUntilItIsRevoked(t *testing.T) {
	plane := testenv.Start(t)
	_, account := peoplesCluster(t, plane)
	c := &config.Manager{APIAddr: "127.0.0.1:0", HealthAddr: "127.0.0.1:0", GracefulTimeout: time.Minute, RequestsPerSecond: 1000, Burst: 1000, DataDir: t.TempDir()}
	c.KubeconfigServer = plane.Config.Host
	served, err := listen(t.Context(), c, account)
	if err != nil {
		t.Fatal(err)
	}
	served.kubeconfigs.Server.CA = plane.Config.CAData
	serveUntilTheEnd(t, served)
	m := &logsOf{t, served}
	for m.cluster.Synced(t.Context()) != nil {
		time.Sleep(20 * time.Millisecond)
	}
	const path = "/v1/projects/acme/shop/kubeconfigs"
	ann := m.holder("ann", "tenant:acme:admin")
	get := func(role string) (kubeconfigs.KubeconfigToken, client.Client) {
		t.Helper()
		made := created[kubeconfigs.KubeconfigToken](m, ann, path, `{"role":"`+role+`","ttl":"10m"}`)
		if left := time.Until(made.Expires); left < 9*time.Minute || left > 11*time.Minute {
			t.Errorf("it ends in %s", left)
		}
		config, err := clientcmd.RESTConfigFromKubeConfig([]byte(made.File))
		if err != nil {
			t.Fatal(err)
		}
		return made, clientOf(t, config)
	}
	made, edits := get("edit")
	_, administers := get("admin")
	within(t, "reading as edit", func() error { return edits.List(t.Context(), &corev1.PodList{}, client.InNamespace(peoplesNamespace)) })
	within(t, "reading Secrets as admin", func() error {
		return administers.List(t.Context(), &corev1.SecretList{}, client.InNamespace(peoplesNamespace))
	})
	areRefused(t, edits, administers)
	isTraced(m, "kubeconfig/acme/shop/edit/"+made.ID, edits)
	next := created[kubeconfigs.KubeconfigToken](m, ann, path+"/"+made.ID+"/token", "")
	if next.ID != made.ID || next.Token == made.Token {
		t.Error("the next token is the same")
	}
	answered(m, http.StatusNoContent, ann, "DELETE "+path+"/"+made.ID, "")
	revoked := time.Now()
	within(t, "revoking", func() error {
		if err := edits.List(t.Context(), &corev1.PodList{}, client.InNamespace(peoplesNamespace)); !apierrors.IsUnauthorized(err) {
			return fmt.Errorf("it is still valid: %w", errors.Join(err))
		}
		return nil
	})
	t.Logf("revoked within %s", time.Since(revoked))
	if err := administers.List(t.Context(), &corev1.SecretList{}, client.InNamespace(peoplesNamespace)); err != nil {
		t.Errorf("the other one: %v", err)
	}
}

// areRefused has people with the roles edit and admin try what no kubeconfig gives.
func areRefused(t *testing.T, edits, administers client.Client) {
	t.Helper()
	for what, try := range map[string]func() error{
		"Secrets as edit": func() error {
			return edits.List(t.Context(), &corev1.SecretList{}, client.InNamespace(peoplesNamespace))
		},
		"another namespace": func() error {
			return administers.List(t.Context(), &corev1.PodList{}, client.InNamespace("kube-system"))
		},
		"the home": func() error {
			return administers.List(t.Context(), &v1alpha1.ProjectList{}, client.InNamespace("kubeop-acme"))
		},
		"a token of its own account": func() error { return tokenOf(t.Context(), administers, "kubeop-access-admin", nil) },
		"a long-lived token of it": func() error {
			return administers.Create(t.Context(), tokenSecret("kubeop-access-admin"), client.DryRunAll)
		},
		"a long-lived token of another": func() error { return administers.Create(t.Context(), tokenSecret("default"), client.DryRunAll) },
		"a role for itself": func() error {
			return administers.Create(t.Context(), bindingOf("kubeop-access-edit"), client.DryRunAll)
		},
		"a namespace": func() error {
			return administers.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "x"}})
		},
		"deleting the accounts of people": func() error {
			return administers.Delete(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: peoplesNamespace, Name: "kubeop-access-view"}}, client.DryRunAll)
		},
	} {
		within(t, what, func() error { return forbidden("", try()) }) // The policies have effect a moment after the chart is installed.
	}
}

// isTraced wants the events of the manager to have the ID under which the API server audits what is done with a token.
func isTraced(m *logsOf, object string, by client.Client) {
	m.Helper()
	review := &authenticationv1.SelfSubjectReview{}
	if err := by.Create(m.Context(), review); err != nil {
		m.Fatal(err)
	}
	ids := review.Status.UserInfo.Extra["authentication.kubernetes.io/credential-id"]
	events, err := m.store.ListEvents(m.Context(), "acme", 0, 100)
	if err != nil || len(ids) != 1 || !slices.ContainsFunc(events, func(e store.Event) bool { return e.Object == object+"/"+strings.TrimPrefix(ids[0], "JTI=") }) {
		m.Errorf("%v: the token has the IDs %q, and the events are %+v", err, ids, events)
	}
}

// TestTheManagerMayOnlyGiveKubeconfigs tries what a stolen token of the manager could be used for.
func TestTheManagerMayOnlyGiveKubeconfigs(t *testing.T) {
	plane := testenv.Start(t)
	_, account := peoplesCluster(t, plane)
	thief := clientOf(t, account)
	const name = "kubeop-kubeconfig-0b9c6ff0-a3a1-4f0f-9e4b-5f2a1f6d7c88"
	secret := func(change func(*corev1.Secret)) *corev1.Secret {
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: peoplesNamespace, Name: name}, Type: "paas.kubeop.io/kubeconfig", Immutable: new(true)}
		if change != nil {
			change(s)
		}
		return s
	}
	bound := secret(nil)
	within(t, "making the Secret", func() error { return client.IgnoreAlreadyExists(thief.Create(t.Context(), bound)) })
	const ofSecrets = "KubeconfigSecret: Secret/"
	for what, change := range map[string]func(*corev1.Secret){
		"another name":     func(s *corev1.Secret) { s.Name = "keys" },
		"a name like it":   func(s *corev1.Secret) { s.Name = "kubeop-kubeconfig-x" },
		"another type":     func(s *corev1.Secret) { s.Type = corev1.SecretTypeOpaque },
		"data":             func(s *corev1.Secret) { s.StringData = map[string]string{"a": "b"} },
		"one that changes": func(s *corev1.Secret) { s.Immutable = nil },
	} {
		within(t, what, func() error { return forbidden(ofSecrets, thief.Create(t.Context(), secret(change), client.DryRunAll)) })
	}
	admin := adminOf(t, plane)
	theirs := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: peoplesNamespace, Name: "keys"}}
	if err := admin.Create(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	within(t, "deleting a Secret of the tenant", func() error { return forbidden(ofSecrets, thief.Delete(t.Context(), theirs)) })
	uid := bound.UID
	to := func(change func(*authenticationv1.TokenRequestSpec)) *authenticationv1.TokenRequestSpec {
		spec := &authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(86_400)), BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Secret", Name: name, UID: uid}}
		if change != nil {
			change(spec)
		}
		return spec
	}
	within(t, "a token for a day", func() error { return tokenOf(t.Context(), thief, "kubeop-access-view", to(nil)) })
	const ofTokens = "PlatformToken: TokenRequest/kubeop-access-view"
	for what, change := range map[string]func(*authenticationv1.TokenRequestSpec){
		"bound to nothing": func(s *authenticationv1.TokenRequestSpec) { s.BoundObjectRef = nil },
		"without a UID":    func(s *authenticationv1.TokenRequestSpec) { s.BoundObjectRef.UID = "" },
		"bound to another Secret": func(s *authenticationv1.TokenRequestSpec) {
			s.BoundObjectRef.Name, s.BoundObjectRef.UID = "keys", theirs.UID
		},
		"for longer": func(s *authenticationv1.TokenRequestSpec) { s.ExpirationSeconds = new(int64(86_401)) },
	} {
		within(t, what, func() error {
			return forbidden(ofTokens, tokenOf(t.Context(), thief, "kubeop-access-view", to(change)))
		})
	}
	for _, other := range []string{"default", "kubeop-deployer", "kubeop-access-owner"} {
		if err := forbidden("", tokenOf(t.Context(), thief, other, to(nil))); err != nil {
			t.Errorf("%s: %v", other, err)
		}
	}
	for what, err := range map[string]error{
		"reading Secrets":         thief.Get(t.Context(), client.ObjectKeyFromObject(theirs), &corev1.Secret{}),
		"another namespace":       thief.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name}}),
		"its own namespace":       thief.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: testenv.Namespace, Name: name}}),
		"a binding":               thief.Create(t.Context(), bindingOf("kubeop-access-view")),
		"the account of the home": thief.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: peoplesNamespace, Name: "x"}}),
	} {
		if err := forbidden("", err); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := tokenOf(t.Context(), admin, "kubeop-access-view", to(nil)); forbidden(ofTokens, err) != nil {
		t.Errorf("an administrator of the cluster: %v", err)
	}
	if err := thief.Delete(t.Context(), bound); err != nil {
		t.Errorf("deleting its own: %v", err)
	}
}

func tokenOf(ctx context.Context, by client.Client, account string, spec *authenticationv1.TokenRequestSpec) error {
	if spec == nil {
		spec = &authenticationv1.TokenRequestSpec{}
	}
	of := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: peoplesNamespace, Name: account}}
	return by.SubResource("token").Create(ctx, of, &authenticationv1.TokenRequest{Spec: *spec})
}

func tokenSecret(account string) *corev1.Secret {
	return &corev1.Secret{Type: corev1.SecretTypeServiceAccountToken, ObjectMeta: metav1.ObjectMeta{
		Namespace: peoplesNamespace, Name: "x", Annotations: map[string]string{corev1.ServiceAccountNameKey: account},
	}}
}

func bindingOf(account string) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: peoplesNamespace, Name: "x"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: peoplesNamespace, Name: account}},
	}
}

// answered sends a request, such as "GET /v1/caller", to a manager, which has to answer with a status.
func answered(m *logsOf, status int, secret, request, body string) []byte {
	m.Helper()
	method, path, _ := strings.Cut(request, " ")
	r, err := http.NewRequestWithContext(m.Context(), method, "http://"+m.api.Listener.Addr().String()+path, strings.NewReader(body))
	if err != nil {
		m.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+secret)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		m.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != status {
		m.Fatalf("%s %s: %d %s %v, want %d", method, path, answer.StatusCode, text, err, status)
	}
	return text
}

// created posts a body, and returns what was created.
func created[T any](m *logsOf, secret, path, body string) (answer T) {
	m.Helper()
	if err := json.Unmarshal(answered(m, http.StatusCreated, secret, "POST "+path, body), &answer); err != nil {
		m.Fatal(err)
	}
	return answer
}
