package quota

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func TestSharesAreThoseOfTheQuota(t *testing.T) {
	budget := map[string]string{"requests.cpu": "100", "pods": "1k", "count/services": "1k", "requests.example.com/gpu": "8"}
	cases := map[string]struct{ requested, allowed, want map[string]string }{
		"the defaults":                    {want: map[string]string{"requests.cpu": "4", "pods": "50", "count/services": "100"}},
		"what is requested":               {requested: map[string]string{"requests.cpu": "1500m", "pods": "120"}, allowed: map[string]string{"pods": "500"}, want: map[string]string{"requests.cpu": "1500m", "pods": "120", "count/services": "300"}},
		"a lower maximum":                 {allowed: map[string]string{"requests.cpu": "2"}, want: map[string]string{"requests.cpu": "2", "pods": "50", "count/services": "100"}},
		"more than is allowed":            {requested: map[string]string{"requests.cpu": "9"}, want: map[string]string{"requests.cpu": "4", "pods": "50", "count/services": "100"}},
		"a resource of the tenant":        {allowed: map[string]string{"requests.example.com/gpu": "2"}, want: map[string]string{"requests.cpu": "4", "pods": "50", "count/services": "100", "requests.example.com/gpu": "2"}},
		"a negative amount frees nothing": {requested: map[string]string{"requests.cpu": "-40"}, want: map[string]string{"requests.cpu": "0", "pods": "50", "count/services": "100"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := map[string]string{}
			for name, amount := range SharesOf(list(budget), Terms{Max: list(c.allowed)}, some).Of(list(c.requested)) {
				got[string(name)] = amount.String()
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestABudgetNamesOnlyWhatEveryQuotaCounts(t *testing.T) {
	allowed := map[string]string{"requests.example.com/gpu": "2", "cpu": "4"}
	for name, want := range map[string]string{
		"requests.cpu": "", "limits.memory": "", "pods": "", "services.nodeports": "", "requests.ephemeral-storage": "", "count/pods": "",
		"count/deployments.apps": "", "count/queues.example.com": "", "requests.example.com/gpu": "", "cpu": "",
		"memory":                     "the quotas of projects have it as requests.memory; write that",
		"storage":                    "requests.storage",
		"secrets":                    "count/secrets",
		"persistentvolumeclaims":     "count/persistentvolumeclaims",
		"count/deployments":          "count/deployments.apps",
		"deployments":                "count/deployments.apps",
		"requests.example.com/disks": "does not count it, so projects could use more than the budget; remove it, or set in spec.quota",
		"request.cpu":                "does not count it",
		"projects":                   "write spec.limits.projects of the Tenant instead",
		"treeBytes":                  "write spec.limits.treeBytes of the Tenant instead",
		"limits.cpu":                 "does not count it",
		"count/":                     "does not count it",
		"count/Queues":               "does not count it",
		"":                           "does not count it",
	} {
		var got []string
		for _, fault := range CheckBudget(list(map[string]string{name: "1"}), list(allowed)) {
			got = append(got, fault.Error())
		}
		if text := strings.Join(got, "\n"); (want == "") != (text == "") || !strings.Contains(text, want) {
			t.Errorf("%q: got %q, want %q", name, text, want)
		}
	}
}

func TestTheUsualKindsAreSorted(t *testing.T) {
	var names []string
	for _, kind := range Usual() {
		names = append(names, kind.String())
	}
	if !slices.IsSorted(names) || len(names) != 20 {
		t.Errorf("got %v", names)
	}
}

func TestOverByNamesWhatExceedsItsLimit(t *testing.T) {
	limits := list(map[string]string{"pods": "10", "requests.cpu": "2", "requests.memory": "1Gi"})
	for used, want := range map[string]string{
		"10": "", "13": "pods over by 3 (13 of 10)",
	} {
		if got := OverBy(list(map[string]string{"pods": used, "requests.cpu": "2", "secrets": "7"}), limits); got != want {
			t.Errorf("%s pods: got %q, want %q", used, got, want)
		}
	}
	all := list(map[string]string{"a": "0", "b": "0", "c": "0", "d": "0", "e": "0", "f": "0", "g": "0"})
	used := list(map[string]string{"a": "1", "b": "1", "c": "1", "d": "1", "e": "1", "f": "1", "g": "1"})
	if got := OverBy(used, all); !strings.HasPrefix(got, "a over by 1 (1 of 0), b over") || !strings.HasSuffix(got, "e over by 1 (1 of 0), and 2 more") {
		t.Errorf("of seven resources: %q", got)
	}
	if got := OverBy(nil, limits); got != "" {
		t.Errorf("of nothing: %q", got)
	}
}

func TestANegativeBudgetIsNamed(t *testing.T) {
	faults := CheckBudget(list(map[string]string{"requests.cpu": "-1", "pods": "-3", "requests.memory": "0", "cpu": "-2"}), nil)
	var names []corev1.ResourceName
	for _, fault := range faults {
		names = append(names, fault.Name)
		if !strings.Contains(fault.Error(), " is negative; write 0 or more") {
			t.Error(fault)
		}
	}
	if diff := cmp.Diff([]corev1.ResourceName{"cpu", "pods", "requests.cpu"}, names); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
