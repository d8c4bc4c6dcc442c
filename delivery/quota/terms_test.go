package quota

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// amounts of a resource list, by name.
type amounts = map[string]string

func ruling(name string, most, usually amounts) v1alpha1.Policy {
	return v1alpha1.Policy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.PolicySpec{Quota: &v1alpha1.QuotaRules{Max: list(most), Default: list(usually)}}}
}

// TestTheStrictestOfSeveralPoliciesHolds, for each resource by itself. Who says nothing about a resource has no part in it.
func TestTheStrictestOfSeveralPoliciesHolds(t *testing.T) {
	for name, c := range map[string]struct {
		tenant    amounts
		policies  []v1alpha1.Policy
		requested amounts
		want      amounts
		excess    string
	}{
		"a policy without quota":       {policies: []v1alpha1.Policy{{}}, want: amounts{"requests.cpu": "4", "pods": "50"}},
		"more than by default":         {policies: []v1alpha1.Policy{ruling("a", amounts{"requests.cpu": "16"}, nil)}, requested: amounts{"requests.cpu": "12"}, want: amounts{"requests.cpu": "12"}},
		"more than by default, unused": {policies: []v1alpha1.Policy{ruling("a", amounts{"requests.cpu": "16"}, nil)}, want: amounts{"requests.cpu": "4"}},
		"less than by default":         {policies: []v1alpha1.Policy{ruling("a", amounts{"requests.cpu": "2"}, nil)}, want: amounts{"requests.cpu": "2"}},
		"the smaller of two":           {policies: []v1alpha1.Policy{ruling("a", amounts{"requests.cpu": "16"}, nil), ruling("b", amounts{"requests.cpu": "8"}, nil)}, requested: amounts{"requests.cpu": "16"}, want: amounts{"requests.cpu": "8"}, excess: "requests.cpu 16, of which 8 is allowed by b"},
		"the smaller comes first":      {policies: []v1alpha1.Policy{ruling("a", amounts{"requests.cpu": "8"}, nil), ruling("b", amounts{"requests.cpu": "16"}, nil)}, requested: amounts{"requests.cpu": "16"}, want: amounts{"requests.cpu": "8"}, excess: "requests.cpu 16, of which 8 is allowed by a"},
		"of the tenant":                {tenant: amounts{"requests.cpu": "6"}, policies: []v1alpha1.Policy{ruling("a", amounts{"requests.cpu": "8"}, nil)}, requested: amounts{"requests.cpu": "8"}, want: amounts{"requests.cpu": "6"}, excess: "requests.cpu 8, of which 6 is allowed by the tenant"},
		"the same of both":             {tenant: amounts{"requests.cpu": "6"}, policies: []v1alpha1.Policy{ruling("a", amounts{"requests.cpu": "6000m"}, nil)}, requested: amounts{"requests.cpu": "8"}, want: amounts{"requests.cpu": "6"}, excess: "requests.cpu 8, of which 6 is allowed by the tenant"},
		"below the tenant":             {tenant: amounts{"requests.cpu": "6"}, policies: []v1alpha1.Policy{ruling("a", amounts{"requests.cpu": "5"}, nil)}, requested: amounts{"requests.cpu": "6"}, want: amounts{"requests.cpu": "5"}, excess: "requests.cpu 6, of which 5 is allowed by a"},
		"each resource by itself": {
			tenant:    amounts{"requests.cpu": "6", "pods": "80"},
			policies:  []v1alpha1.Policy{ruling("a", amounts{"requests.cpu": "5"}, nil), ruling("b", amounts{"pods": "70", "requests.memory": "9Gi"}, nil)},
			requested: amounts{"requests.cpu": "6", "pods": "80", "requests.memory": "9Gi"}, want: amounts{"requests.cpu": "5", "pods": "70", "requests.memory": "9Gi"},
			excess: "pods 80, of which 70 is allowed by b; requests.cpu 6, of which 5 is allowed by a",
		},
		"nothing of it":               {policies: []v1alpha1.Policy{ruling("a", amounts{"pods": "0"}, nil)}, requested: amounts{"pods": "1"}, want: amounts{"pods": "0"}, excess: "pods 1, of which 0 is allowed by a"},
		"of what is not counted else": {policies: []v1alpha1.Policy{ruling("a", amounts{"requests.example.com/gpu": "2"}, nil)}, want: amounts{"requests.example.com/gpu": "2"}},
		"of what nobody allows":       {requested: amounts{"requests.example.com/gpu": "2"}, want: amounts{"requests.cpu": "4"}, excess: "requests.example.com/gpu 2, of which nothing is allowed by the tenant"},
		"a count": {policies: []v1alpha1.Policy{ruling("a", amounts{"count/services": "7"}, nil)}, requested: amounts{"count/services": "8"}, want: amounts{"count/services": "7"},
			excess: "count/services 8, of which 7 is allowed by a"},

		"a default":                       {policies: []v1alpha1.Policy{ruling("a", nil, amounts{"requests.cpu": "1"})}, want: amounts{"requests.cpu": "1", "pods": "50"}},
		"a default is the most otherwise": {policies: []v1alpha1.Policy{ruling("a", nil, amounts{"requests.cpu": "1"})}, requested: amounts{"requests.cpu": "2"}, want: amounts{"requests.cpu": "1"}, excess: "requests.cpu 2, of which 1 is allowed by the tenant"},
		"a default and a maximum":         {policies: []v1alpha1.Policy{ruling("a", amounts{"requests.cpu": "8"}, amounts{"requests.cpu": "6"})}, want: amounts{"requests.cpu": "6"}},
		"more than the default":           {policies: []v1alpha1.Policy{ruling("a", amounts{"requests.cpu": "8"}, amounts{"requests.cpu": "6"})}, requested: amounts{"requests.cpu": "7"}, want: amounts{"requests.cpu": "7"}},
		"a default above the tenant":      {tenant: amounts{"requests.cpu": "3"}, policies: []v1alpha1.Policy{ruling("a", nil, amounts{"requests.cpu": "6"})}, want: amounts{"requests.cpu": "3"}},
		"a default above another maximum": {policies: []v1alpha1.Policy{ruling("a", nil, amounts{"requests.cpu": "6"}), ruling("b", amounts{"requests.cpu": "2"}, nil)}, want: amounts{"requests.cpu": "2"}},
		"the smaller default":             {policies: []v1alpha1.Policy{ruling("a", amounts{"pods": "90"}, amounts{"pods": "30"}), ruling("b", nil, amounts{"pods": "20"})}, want: amounts{"pods": "20", "count/pods": "300"}},
		"counts grow with the default": {policies: []v1alpha1.Policy{ruling("a", amounts{"pods": "200"}, amounts{"pods": "100"})},
			want: amounts{"pods": "100", "count/pods": "600", "limits.ephemeral-storage": "4000Gi"}},
		"counts grow with what is requested": {policies: []v1alpha1.Policy{ruling("a", amounts{"pods": "200"}, amounts{"pods": "100"})}, requested: amounts{"pods": "200"},
			want: amounts{"pods": "200", "count/pods": "1200"}},
	} {
		t.Run(name, func(t *testing.T) {
			tenant := &v1alpha1.Tenant{Spec: v1alpha1.TenantSpec{Quota: list(c.tenant)}}
			got, excess := Of(list(c.requested), TermsOf(tenant, c.policies), some)
			holds(t, got, c.want)
			text := ""
			if excess != nil {
				for i, b := range excess.Beyond {
					allowed := "nothing"
					if b.Allowed != nil {
						allowed = b.Allowed.String()
					}
					if b.Policy == "" {
						b.Policy = "the tenant"
					}
					if i > 0 {
						text += "; "
					}
					text += fmt.Sprintf("%s %s, of which %s is allowed by %s", b.Name, b.Wants.String(), allowed, b.Policy)
				}
			}
			if text != c.excess {
				t.Errorf("got %q, want %q", text, c.excess)
			}
			if diff := cmp.Diff(list(c.tenant), tenant.Spec.Quota); diff != "" {
				t.Errorf("the quota of the Tenant has changed:\n%s", diff)
			}
		})
	}
}

// TestOnlyWhatGrowsIsRefused: a project that had too much before can be changed in other fields, and take less.
func TestOnlyWhatGrowsIsRefused(t *testing.T) {
	terms := TermsOf(&v1alpha1.Tenant{Spec: v1alpha1.TenantSpec{Quota: list(amounts{"requests.memory": "1Gi"})}}, []v1alpha1.Policy{ruling("a", amounts{"requests.cpu": "4", "pods": "10"}, nil)})
	for name, c := range map[string]struct {
		requested, before amounts
		want              string
	}{
		"nothing":                 {},
		"within":                  {requested: amounts{"requests.cpu": "4", "pods": "10"}},
		"new":                     {requested: amounts{"requests.cpu": "5"}, want: "requests.cpu"},
		"as before":               {requested: amounts{"requests.cpu": "5"}, before: amounts{"requests.cpu": "5"}},
		"less than before":        {requested: amounts{"requests.cpu": "5"}, before: amounts{"requests.cpu": "9"}},
		"more than before":        {requested: amounts{"requests.cpu": "9"}, before: amounts{"requests.cpu": "5"}, want: "requests.cpu"},
		"another one than before": {requested: amounts{"requests.cpu": "5", "pods": "11"}, before: amounts{"requests.cpu": "5"}, want: "pods"},
		"of the tenant":           {requested: amounts{"requests.memory": "2Gi"}},
		"of nobody":               {requested: amounts{"requests.example.com/gpu": "2"}},
	} {
		got := ""
		if e := terms.Grown(list(c.requested), list(c.before)); e != nil {
			got = string(e.Beyond[0].Name)
			if len(e.Beyond) != 1 {
				t.Errorf("%s: %v", name, e)
			}
		}
		if got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

func TestAnExcessNamesEveryFieldOnce(t *testing.T) {
	terms := TermsOf(&v1alpha1.Tenant{}, []v1alpha1.Policy{ruling("a", amounts{"requests.cpu": "1", "pods": "1"}, nil)})
	_, excess := Of(list(amounts{"pods": "2", "requests.cpu": "2", "services.nodeports": "2"}), terms, nil)
	const want = "spec.quota requests pods 2, of which 1 is allowed; requests.cpu 2, of which 1 is allowed; services.nodeports 2, of which 0 is allowed; ask for less, or ask an administrator of the " +
		"cluster for more with spec.quota.max of policies/a.yaml in the platform repository and spec.quota of the Tenant, in tenant.yaml of the platform repository"
	if excess == nil || excess.Error() != want || excess.Field() != "spec.quota.pods" {
		t.Errorf("got %v, want %s", excess, want)
	}
}

func TestTheQuotaOfAPolicyIsChecked(t *testing.T) {
	for name, c := range map[string]struct {
		most, usually amounts
		want          []Fault
	}{
		"nothing":   {},
		"fine":      {most: amounts{"pods": "5"}, usually: amounts{"pods": "5", "requests.cpu": "1"}},
		"zero":      {most: amounts{"pods": "0"}},
		"negative":  {most: amounts{"pods": "-1"}, want: []Fault{{"quota.max[pods]", "-1 is negative; it must be 0 or more"}}},
		"backwards": {most: amounts{"requests.cpu": "900m"}, usually: amounts{"requests.cpu": "1"}, want: []Fault{{"quota.default[requests.cpu]", "1 is above 900m in max; it must be at most that"}}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, CheckRules(&v1alpha1.QuotaRules{Max: list(c.most), Default: list(c.usually)})); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
