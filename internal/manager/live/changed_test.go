package live

import (
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// TestEachChangeIsReportedWithTheRightsOfTheChart, also of a kind that is followed only for webhooks. Its objects can be read then.
func TestEachChangeIsReportedWithTheRightsOfTheChart(t *testing.T) {
	admin, manager := accounts(t)
	var claims atomic.Int32
	c := followWith(t, manager, func(o client.Object) {
		if claim, is := o.(*v1alpha1.HostnameClaim); is && claim.Name == "reported.example.com" {
			claims.Add(1)
		}
	}, &v1alpha1.HostnameClaim{})
	claim := &v1alpha1.HostnameClaim{ObjectMeta: metav1.ObjectMeta{Name: "reported.example.com"}, Spec: v1alpha1.HostnameClaimSpec{Hostname: "reported.example.com", Tenant: "acme", Project: "shop"}}
	create(t, admin, claim)
	eventually(t, func() bool { return claims.Load() == 1 })
	found := &v1alpha1.HostnameClaim{}
	if err := c.Reader().Get(t.Context(), client.ObjectKeyFromObject(claim), found); err != nil || found.Spec != claim.Spec {
		t.Errorf("%v: %+v", err, found.Spec)
	}
	if err := admin.Delete(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { return claims.Load() == 2 })
}
