package server

import (
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/cmd/kubeop/target"
	"github.com/kubeop/kubeop/gitops/identity"
	"github.com/kubeop/kubeop/internal/config"
	"github.com/kubeop/kubeop/internal/manager/live"
	"github.com/kubeop/kubeop/internal/testenv/managed"
)

var (
	noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	web  = target.Object{Kind: target.App, Ref: identity.Ref{Tenant: "acme", Project: "shop", App: "web"}}
	shop = target.Selection{Kind: target.App, Namespace: "kubeop-acme-shop"}
)

// started returns a manager of a cluster with the apps db and web in the project shop of the tenant acme.
func started(t *testing.T, burst int) *managed.Manager {
	t.Helper()
	m := managed.Start(t, burst)
	m.Apply(&v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "acme"}}, &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-acme", Name: "shop"}}, app("db", 1), app("web", 1))
	return m
}

// app returns an app whose status is about a generation. It has the second.
func app(name string, observed int64) *v1alpha1.App {
	a := &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: shop.Namespace, Name: name, Generation: 2, CreationTimestamp: metav1.NewTime(noon.Add(-time.Hour))}}
	a.Spec.Type = v1alpha1.AppImage
	a.Status.Conditions = []metav1.Condition{{Type: meta.ReadyCondition, Status: metav1.ConditionTrue, Reason: "Succeeded", Message: "delivered", ObservedGeneration: observed}}
	return a
}

func newSource(t *testing.T, url, token string) target.Source {
	t.Helper()
	s, err := New(config.CommandLine{Server: url, Token: token}, clocktesting.NewFakeClock(noon))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestATokenIsNotSentOverPlainHTTP to others.
func TestATokenIsNotSentOverPlainHTTP(t *testing.T) {
	if _, err := New(config.CommandLine{Server: "http://kubeop.example.com", Token: "hunter2"}, nil); err == nil || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), "https://") {
		t.Errorf("over plain HTTP: %v", err)
	}
}

// TestErrorsSayWhatToDo, whether the same may succeed later, and never the token.
func TestErrorsSayWhatToDo(t *testing.T) {
	m, busy, unread := started(t, 1000), started(t, 1), started(t, 1000)
	unread.Unsynced = errors.New("dial 10.0.0.1")
	valid, _ := m.Token("project:acme/shop:view")
	hurried, _ := busy.Token("admin")
	admin, _ := unread.Token("admin")
	if _, err := newSource(t, busy.URL, hurried).Get(t.Context(), web); err != nil {
		t.Fatal(err)
	}
	answers := func(handler http.HandlerFunc) string {
		s := httptest.NewServer(handler)
		t.Cleanup(s.Close)
		return s.URL
	}
	unknown := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(unknown.Close)
	const forged = "kubeop_forged"
	other := target.Object{Kind: target.App, Ref: identity.Ref{Tenant: "beta", Project: "shop", App: "web"}}
	for name, tc := range map[string]struct {
		url, token string
		of         target.Object
		says       string
		passes     bool
	}{
		"a forged token":       {m.URL, forged, web, "set KUBEOP_TOKEN", false},
		"another tenant's":     {m.URL, valid, other, "`kubeop get` shows what your token may see", false},
		"a kind it lacks":      {m.URL, valid, target.Object{Kind: target.Registry, Ref: identity.Ref{Registry: "x"}}, "does not serve registries", false},
		"too many requests":    {busy.URL, hurried, web, "Try again in", true},
		"caches not filled":    {unread.URL, admin, web, "has not read the cluster yet", true},
		"too late":             {answers(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(504) }), forged, web, "Try again a little later", true},
		"an answer that's cut": {answers(func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, `{"name":`) }), forged, web, "unexpected EOF", true},
		"about another":        {answers(func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, `{"name":"db"}`) }), forged, web, `answers about "db"`, true},
		"a proxy":              {answers(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404) }), forged, web, "something before it", false},
		"no certificate":       {unknown.URL, forged, web, "--server-ca", true},
		"nobody":               {"http://127.0.0.1:1", forged, web, "cannot be reached", true},
		"no host":              {"https://no.such.host.invalid", forged, web, "cannot be reached", true},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := newSource(t, tc.url, tc.token).Get(t.Context(), tc.of)
			var said *target.Explained
			if !errors.As(err, &said) || !strings.Contains(err.Error(), tc.says) || said.MayPass != tc.passes || !strings.Contains(err.Error(), tc.url) {
				t.Errorf("%v, want %q", err, tc.says)
			}
			if err != nil && strings.Contains(err.Error(), tc.token) {
				t.Errorf("it repeats the token: %v", err)
			}
		})
	}
}

// TestAnAuthorityOfAFileIsTrusted beside those of the system.
func TestAnAuthorityOfAFileIsTrusted(t *testing.T) {
	m := started(t, 1000)
	token, _ := m.Token("admin")
	secure := httptest.NewTLSServer(m)
	defer secure.Close()
	file := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw}), 0o644); err != nil {
		t.Fatal(err)
	}
	s, err := New(config.CommandLine{Server: secure.URL, Token: token, ServerCA: file}, clocktesting.NewFakeClock(noon))
	if err != nil {
		t.Fatal(err)
	}
	if object, err := s.Get(t.Context(), web); err != nil || object.GetName() != "web" {
		t.Errorf("%v: %v", object, err)
	}
	for _, text := range []string{"/none", os.DevNull} {
		if _, err := New(config.CommandLine{Server: secure.URL, Token: token, ServerCA: text}, nil); err == nil || !strings.Contains(err.Error(), "--server-ca") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestAnObjectIsAsTheManagerReturnsIt: a condition Ready about an older version is not taken for one about this.
func TestAnObjectIsAsTheManagerReturnsIt(t *testing.T) {
	m := started(t, 1000)
	token, _ := m.Token("project:acme/shop:view")
	s := newSource(t, m.URL, token)
	for observed, current := range map[int64]bool{1: false, 2: true} {
		m.Apply(app("web", observed))
		object, err := s.Get(t.Context(), web)
		if err != nil {
			t.Fatal(err)
		}
		ready := object.(*v1alpha1.App).Status.Conditions[0]
		if (ready.ObservedGeneration == object.GetGeneration()) != current || ready.Status != metav1.ConditionTrue || ready.Message != "delivered" {
			t.Errorf("observed %d: %+v", observed, ready)
		}
	}
}

// TestTheWatchOfATableShowsEachChange: what changed, what was deleted meanwhile, and nothing of other lists. It ends when the manager stops.
func TestTheWatchOfATableShowsEachChange(t *testing.T) {
	m := started(t, 1000)
	token, _ := m.Token("tenant:acme:view")
	s := newSource(t, m.URL, token)
	read, err := s.Table(t.Context(), shop)
	if err != nil {
		t.Fatal(err)
	}
	live.Forget(m.Index, app("db", 1))
	var got []string
	err = s.FollowTable(t.Context(), shop, read, func(row metav1.TableRow, deleted bool) {
		got = append(got, fmt.Sprint(row.Cells[0], " ", row.Cells[4], " ", deleted))
		switch len(got) {
		case 2:
			changed := app("web", 2)
			changed.Status.URL = "web.example.com"
			m.Apply(changed)
		case 3:
			m.Stop()
		}
	})
	if err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"web <nil> false", "db <nil> true", "web web.example.com false"}, got); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	all := target.Selection{Kind: target.App}
	if err := s.FollowTable(t.Context(), all, &metav1.Table{}, nil); err == nil || !strings.Contains(err.Error(), "--tenant") {
		t.Errorf("the apps of all tenants: %v", err)
	}
}

// TestAnObjectIsFollowedUntilItIsDeleted, also if that was before the stream began.
func TestAnObjectIsFollowedUntilItIsDeleted(t *testing.T) {
	m := started(t, 1000)
	token, _ := m.Token("tenant:acme:view")
	s := newSource(t, m.URL, token)
	seen := 0
	for object, err := range s.Follow(t.Context(), web, nil) {
		if err != nil {
			t.Fatal(err)
		}
		if object == nil {
			break
		}
		if seen++; object.GetName() != "web" {
			t.Errorf("%s is sent", object.GetName())
		}
		live.Forget(m.Index, app("web", 1))
	}
	if seen != 1 {
		t.Errorf("it was sent %d times", seen)
	}
	for object, err := range s.Follow(t.Context(), web, nil) {
		if object != nil || err != nil {
			t.Errorf("after it was deleted: %v, %v", object, err)
		}
		break
	}
}
