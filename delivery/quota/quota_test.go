package quota

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func list(amounts map[string]string) corev1.ResourceList {
	l := corev1.ResourceList{}
	for name, amount := range amounts {
		l[corev1.ResourceName(name)] = resource.MustParse(amount)
	}
	return l
}

// some kinds: two of the role, and one that administrators added.
var some = []schema.GroupResource{
	{Resource: "services"}, {Resource: "configmaps"}, {Resource: "persistentvolumeclaims"}, {Resource: "pods"},
	{Group: "apps", Resource: "deployments"}, {Group: "batch", Resource: "jobs"}, {Group: "example.com", Resource: "queues"},
}

func TestOf(t *testing.T) {
	cases := map[string]struct {
		requested, allowed, want map[string]string
		excess                   []string
	}{
		"nothing asked": {want: map[string]string{
			"pods": "50", "services.nodeports": "0", "requests.cpu": "4", "count/services": "100", "count/pods": "300", "count/configmaps": "500",
			"count/deployments.apps": "60", "count/queues.example.com": "100", "requests.ephemeral-storage": "100Gi", "limits.ephemeral-storage": "2000Gi",
		}},
		"less asked":                   {requested: map[string]string{"pods": "5"}, want: map[string]string{"pods": "5", "requests.cpu": "4", "count/services": "100"}},
		"more asked than the default":  {requested: map[string]string{"pods": "51"}, excess: []string{"pods 51, of which 50 is allowed", "Tenant"}},
		"more allowed, not asked":      {allowed: map[string]string{"pods": "500"}, want: map[string]string{"pods": "50", "count/services": "100"}},
		"more allowed and asked":       {requested: map[string]string{"pods": "100"}, allowed: map[string]string{"pods": "500"}, want: map[string]string{"pods": "100"}},
		"less allowed than by default": {allowed: map[string]string{"pods": "10"}, want: map[string]string{"pods": "10", "count/services": "100"}},
		"something else":               {requested: map[string]string{"requests.example.com/gpu": "1"}, excess: []string{"requests.example.com/gpu 1, of which nothing is allowed"}},
		"something else, allowed": {
			requested: map[string]string{"count/plans.example.com": "1"}, allowed: map[string]string{"count/plans.example.com": "2"},
			want: map[string]string{"count/plans.example.com": "1"},
		},
		"two in excess": {requested: map[string]string{"pods": "1k", "services.nodeports": "1"}, excess: []string{"pods 1k", "services.nodeports 1"}},

		"a count in excess":           {requested: map[string]string{"count/jobs.batch": "201"}, excess: []string{"count/jobs.batch 201, of which 200 is allowed"}},
		"a count below the default":   {requested: map[string]string{"count/jobs.batch": "3"}, want: map[string]string{"count/jobs.batch": "3"}},
		"a count that is allowed":     {requested: map[string]string{"count/jobs.batch": "3000"}, allowed: map[string]string{"count/jobs.batch": "3000"}, want: map[string]string{"count/jobs.batch": "3000"}},
		"a count that is cut":         {allowed: map[string]string{"count/jobs.batch": "7"}, want: map[string]string{"count/jobs.batch": "7"}},
		"more allowed than the count": {allowed: map[string]string{"count/jobs.batch": "3000"}, want: map[string]string{"count/jobs.batch": "200"}},
		"many pods": {requested: map[string]string{"pods": "120"}, allowed: map[string]string{"pods": "1000"}, want: map[string]string{
			"count/pods": "900", "count/deployments.apps": "180", "count/queues.example.com": "300", "count/configmaps": "500", "limits.ephemeral-storage": "6000Gi",
		}},
		"many pods, and a count in excess of what goes with them": {
			requested: map[string]string{"pods": "50", "count/services": "2001"}, allowed: map[string]string{"pods": "1000"}, excess: []string{"count/services 2001, of which 2k is allowed"},
		},
		"an older name": {
			requested: map[string]string{"persistentvolumeclaims": "300"}, allowed: map[string]string{"persistentvolumeclaims": "700"},
			want: map[string]string{"persistentvolumeclaims": "300", "count/persistentvolumeclaims": "300"},
		},
		"an older name, allowed only": {
			allowed: map[string]string{"services": "700"}, want: map[string]string{"services": "700", "count/services": "100"},
		},
		"an older name for less": {
			requested: map[string]string{"services": "3"}, allowed: map[string]string{"services": "30"}, want: map[string]string{"services": "3", "count/services": "100"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Of(list(c.requested), list(c.allowed), some)
			if (err != nil) != (len(c.excess) > 0) {
				t.Fatalf("got %v", err)
			}
			for _, want := range c.excess {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the message does not say %q: %v", want, err)
				}
			}
			holds(t, got, c.want)
		})
	}
}

func TestHome(t *testing.T) {
	kinds := []schema.GroupResource{{Resource: "secrets"}, {Group: "batch", Resource: "jobs"}}
	holds(t, Home(nil, kinds), map[string]string{"count/secrets": "100", "count/jobs.batch": "50"})
	holds(t, Home(list(map[string]string{"count/secrets": "7", "count/x.example.com": "1"}), kinds),
		map[string]string{"count/secrets": "7", "count/jobs.batch": "50", "count/x.example.com": "1"})
	// What the API server serves is not known for a moment: Secrets are what a tenant's people can make there.
	holds(t, Home(nil, nil), map[string]string{"count/secrets": "100"})
}

func holds(t *testing.T, got corev1.ResourceList, want map[string]string) {
	t.Helper()
	for name, want := range want {
		amount, ok := got[corev1.ResourceName(name)]
		if !ok || amount.Cmp(resource.MustParse(want)) != 0 {
			t.Errorf("%s is %s, want %s", name, amount.String(), want)
		}
	}
}
