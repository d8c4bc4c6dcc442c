package api

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/internal/manager/kubeconfigs"
	"github.com/kubeop/kubeop/internal/manager/live"
	"github.com/kubeop/kubeop/internal/manager/problem"
	"github.com/kubeop/kubeop/internal/store"
)

// TestAKubeconfigOfAProjectThatIsBeingDeletedIsRevoked although the manager has no rights there any more: the operator removed them with the accounts.
func TestAKubeconfigOfAProjectThatIsBeingDeletedIsRevoked(t *testing.T) {
	plane := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`)
	}))
	t.Cleanup(plane.Close)
	client, err := corev1client.NewForConfig(&rest.Config{Host: plane.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}})
	if err != nil {
		t.Fatal(err)
	}
	m, cluster, _ := newCluster(t)
	of := &kubeconfigs.Operations{Cluster: client}
	m.Handler, err = New(Options{
		Log: logr.Discard(), Registry: prometheus.NewRegistry(), Checks: noChecks(), Store: m.store, Signing: m.signing, Issuers: m.issuers, Owners: m.owners, RequestsPerSecond: 10_000, Burst: 10_000, Now: func() time.Time { return m.now },
		Live:     &live.Operations{Index: cluster, Synced: func(context.Context) error { return nil }},
		Optional: Optional{Kubeconfigs: of},
	})
	if err != nil {
		t.Fatal(err)
	}
	ann := m.holder("ann", "tenant:acme:view")
	for id, expires := range map[string]time.Time{"ended": m.now.Add(-time.Hour), "valid": m.now.Add(time.Hour)} {
		k := store.Kubeconfig{ID: id, Tenant: "acme", Project: "shop", Role: "view", CreatedBy: "ann", Created: m.now.Add(-2 * time.Hour), Expires: expires}
		if err := m.store.BeginKubeconfig(t.Context(), k); err != nil {
			t.Fatal(err)
		}
	}
	const valid = "/v1/projects/acme/shop/kubeconfigs/valid"
	if p := problemOf(t, m.as(ann, "DELETE", valid, "")); p.Code != problem.Unavailable {
		t.Errorf("of a project that is not being deleted: %+v", p)
	}
	if err := of.Sweep(t.Context()); err == nil {
		t.Error("the sweep has no error of a project that is not being deleted")
	}
	apply(t, cluster, &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-acme", Name: "shop", DeletionTimestamp: new(metav1.NewTime(m.now))}})
	if err := of.Sweep(t.Context()); err != nil {
		t.Errorf("the sweep of a project that is being deleted: %v", err)
	}
	if answer := m.as(ann, "DELETE", valid, ""); answer.Code != http.StatusNoContent {
		t.Errorf("of a project that is being deleted: %d %s", answer.Code, answer.Body)
	}
	if left, err := m.store.ListKubeconfigs(t.Context(), store.KubeconfigFilter{}, 10); err != nil || len(left) > 0 {
		t.Errorf("%v: %v are left", err, left)
	}
}
