package invoices

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/internal/store"
	"github.com/kubeop/kubeop/internal/store/sqlite"
)

func newStore(t *testing.T) store.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "manager.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func newCluster(t *testing.T) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).Build()
}

func tenantOf(name, uid, list string) *v1alpha1.Tenant {
	return &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(uid)}, Spec: v1alpha1.TenantSpec{PriceList: list}}
}

// failing is a store that records no payers as long as it fails.
type failing struct {
	store.Payers
	err error
}

// RecordPayers implements store.Payers.
func (f *failing) RecordPayers(ctx context.Context, all []store.Payer, now time.Time) error {
	if f.err != nil {
		return f.err
	}
	return f.Payers.RecordPayers(ctx, all, now)
}

// TestWhoWasThereIsRecordedAlsoIfNobodyLookedMeanwhile: a tenant that is gone, with its price list, and one that was there only between two rounds.
func TestWhoWasThereIsRecordedAlsoIfNobodyLookedMeanwhile(t *testing.T) {
	cluster, s, now, behind := newCluster(t), newStore(t), at(3, 10, 0), error(nil)
	payers := &failing{Payers: s}
	r := &Roster{Reader: cluster, Store: payers, Following: func(context.Context) error { return behind }, Now: func() time.Time { return now }}
	create := func(o *v1alpha1.Tenant) {
		t.Helper()
		if err := cluster.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		r.Changed(o)
	}
	remove := func(o *v1alpha1.Tenant) {
		t.Helper()
		if err := cluster.Delete(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		r.Changed(o)
	}
	expect := func(want ...string) {
		t.Helper()
		now = now.Add(time.Minute)
		if err := r.Round(t.Context()); !errors.Is(err, payers.err) {
			t.Fatal(err)
		}
		all, err := s.ListPayers(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, p := range all {
			text := fmt.Sprint(p.Name, " ", p.UID, " ", p.PriceList)
			if !p.Gone.IsZero() {
				text += " gone " + p.Gone.Format("15:04")
			}
			got = append(got, text)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("-want +recorded:\n%s", diff)
		}
	}
	first := tenantOf("acme", "1", "standard")
	create(first)
	create(tenantOf(v1alpha1.PlatformTenant, "0", ""))
	r.Changed(&v1alpha1.Project{})
	expect("acme 1 standard")
	remove(first)
	second := tenantOf("acme", "2", "other")
	create(second)
	remove(second)
	payers.err = errors.New("the store does not answer")
	expect("acme 1 standard")
	payers.err, behind = nil, errors.New("the caches are behind")
	expect("acme 1 standard")
	behind = nil
	create(tenantOf("beta", "3", ""))
	expect("acme 1 standard gone 10:04", "acme 2 other gone 10:04", "beta 3 ")
	expect("acme 1 standard gone 10:04", "acme 2 other gone 10:04", "beta 3 ")
}
