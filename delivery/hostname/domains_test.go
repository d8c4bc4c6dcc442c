package hostname

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

func tenant(name string, created int64, domains string) v1alpha1.Tenant {
	return v1alpha1.Tenant{
		ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.Time{Time: time.Unix(created, 0)}},
		Spec:       v1alpha1.TenantSpec{Domains: strings.Fields(domains)},
	}
}

// TestADomainOfTwoTenantsIsContestedForTheYounger, whether it is the same one or one is below the other.
func TestADomainOfTwoTenantsIsContestedForTheYounger(t *testing.T) {
	all := []v1alpha1.Tenant{
		tenant("above", 3, "late.example.org example.com"), tenant("old", 1, "shop.example.com"), tenant("same", 2, "shop.example.com"),
		tenant("below", 2, "a.shop.example.com"), tenant("beside", 2, "evilshop.example.com shop.example.com.example"), tenant("twin", 1, "x.shop.example.com"), tenant("none", 4, ""),
	}
	for i, want := range []string{"example.com", "", "shop.example.com", "a.shop.example.com", "", "x.shop.example.com", ""} {
		if got := Contested(&all[i], all); got != want {
			t.Errorf("of tenant %s, %q is contested, want %q", all[i].Name, got, want)
		}
	}
}

func TestADomainHasWhatIsBelowIt(t *testing.T) {
	for host, want := range map[string]bool{
		"example.com": true, "web.example.com": true, "a.b.example.com": true, "evilexample.com": false, "example.com.evil.org": false, "com": false, "": false,
	} {
		if got := Below("example.com", host); got != want {
			t.Errorf("%s below example.com: %t", host, got)
		}
	}
}

// TestNamesInADomainOfAnOlderTenantAreReserved, also by a wildcard above it. A tenant without domains may have every name.
func TestNamesInADomainOfAnOlderTenantAreReserved(t *testing.T) {
	all := []v1alpha1.Tenant{tenant("old", 1, "shop.example.com"), tenant("young", 2, "example.com"), tenant("none", 3, "")}
	for name, want := range map[string]bool{
		"shop.example.com": true, "a.shop.example.com": true, "*.shop.example.com": true, "*.a.shop.example.com": true, "*.example.com": true,
		"example.com": false, "web.example.com": false, "*.web.example.com": false, "evilshop.example.com": false,
	} {
		if got := Reserved(&all[1], all, name); got != want {
			t.Errorf("%s: %t", name, got)
		}
		for _, other := range []int{0, 2} {
			if Reserved(&all[other], all, name) {
				t.Errorf("%s is kept from tenant %s", name, all[other].Name)
			}
		}
	}
}
