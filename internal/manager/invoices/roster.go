package invoices

import (
	"context"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/internal/store"
)

// Roster records which Tenants there are, so that one that is deleted gets the invoice of its last month.
type Roster struct {
	// Reader reads the Tenants, from caches.
	Reader client.Reader
	Store  store.Payers
	// Following returns nil while the caches follow the cluster.
	Following func(context.Context) error
	Now       func() time.Time

	mu sync.Mutex
	// seen has the Tenants since the last round, also those that are deleted before the next one; nil before the first round.
	seen map[string]store.Payer
}

// Changed notices a Tenant, whether it was added, changed or deleted.
func (r *Roster) Changed(object client.Object) {
	t, is := object.(*v1alpha1.Tenant)
	if !is || t.Name == v1alpha1.PlatformTenant {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seen != nil {
		r.seen[string(t.UID)] = payerFrom(t)
	}
}

func payerFrom(t *v1alpha1.Tenant) store.Payer {
	return store.Payer{TenantRef: store.TenantRef{Name: t.Name, UID: string(t.UID), Created: t.CreationTimestamp.UTC()}, PriceList: t.Spec.PriceList}
}

// Round records who is there, and who is gone. While the caches do not follow the cluster it records nothing, because they may lack Tenants. What was recorded of caches that were behind is corrected by the
// next round.
func (r *Roster) Round(ctx context.Context) error {
	if r.Following(ctx) != nil { // /readyz names it.
		return nil
	}
	seen := r.take()
	var found v1alpha1.TenantList
	if err := r.Reader.List(ctx, &found, client.UnsafeDisableDeepCopy); err != nil {
		r.giveBack(seen)
		return err
	}
	now, all := r.Now(), []store.Payer(nil)
	for i := range found.Items {
		t := &found.Items[i]
		delete(seen, string(t.UID))
		if t.Name != v1alpha1.PlatformTenant {
			all = append(all, payerFrom(t))
		}
	}
	for _, p := range seen {
		p.Gone = now
		all = append(all, p)
	}
	if err := r.Store.RecordPayers(ctx, all, now); err != nil {
		r.giveBack(seen)
		return err
	}
	return nil
}

// take returns what was seen since the last round.
func (r *Roster) take() map[string]store.Payer {
	r.mu.Lock()
	defer r.mu.Unlock()
	seen := r.seen
	r.seen = map[string]store.Payer{}
	return seen
}

// giveBack has the next round record what could not be recorded.
func (r *Roster) giveBack(seen map[string]store.Payer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for uid, p := range seen {
		if _, newer := r.seen[uid]; !newer {
			r.seen[uid] = p
		}
	}
}
