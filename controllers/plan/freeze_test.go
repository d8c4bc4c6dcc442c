package plan

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// TestAPlanSaysThatAFreezeHoldsTheCommit, unless it is the first one, or the platform's.
func TestAPlanSaysThatAFreezeHoldsTheCommit(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	window := func(start string) *v1alpha1.Tenant {
		return &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "acme"}, Spec: v1alpha1.TenantSpec{
			Freeze: []v1alpha1.FreezeWindow{{Name: "weekend", Start: start, Duration: metav1.Duration{Duration: 62 * time.Hour}}},
		}}
	}
	frozen := window("0 18 * * FRI")
	frozen.Name, frozen.Spec.Frozen = "still", true
	const friday = "0 18 * * FRI"
	for name, tc := range map[string]struct {
		start, tenant, accepted string
		want                    string
	}{
		"in a window":           {friday, "acme", "main@sha1:1", "until 2026-11-30 08:00 UTC by freeze weekend"},
		"outside of it":         {"0 18 * * MON", "acme", "main@sha1:1", ""},
		"the first commit":      {friday, "acme", "", ""},
		"of the platform":       {friday, "", "main@sha1:1", ""},
		"of a frozen tenant":    {friday, "still", "main@sha1:1", "until an administrator of the cluster removes spec.frozen from tenant.yaml of the platform repository in Git"},
		"its first commit, too": {friday, "still", "", "until an administrator of the cluster removes spec.frozen from tenant.yaml of the platform repository in Git"},
		"an unknown tenant":     {friday, "other", "main@sha1:1", ""},
		"a window that nobody can read": {"now", "acme", "main@sha1:1",
			`because the freeze window weekend of the tenant cannot be evaluated: start "now" is not five fields of crontab, such as "0 18 * * FRI": expected exactly 5 fields, found 1: [now]: an administrator of the cluster may correct spec.freeze in tenant.yaml`},
	} {
		t.Run(name, func(t *testing.T) {
			c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(window(tc.start), frozen.DeepCopy()).Build()
			p := &Planner{Client: c, Clock: clocktesting.NewFakeClock(time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC))}
			repository := &v1alpha1.Repository{Spec: v1alpha1.RepositorySpec{Tenant: tc.tenant}, Status: v1alpha1.RepositoryStatus{LastAttemptedRevision: tc.accepted}}
			if got, err := p.frozen(t.Context(), repository); err != nil || got != tc.want {
				t.Errorf("got %q, %v, want %q", got, err, tc.want)
			}
		})
	}
}
