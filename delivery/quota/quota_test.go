package quota

import (
	"slices"
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

func TestAQuotaNeverExceedsWhatIsAllowed(t *testing.T) {
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
			got, err := Of(list(c.requested), Terms{Max: list(c.allowed)}, some)
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

// TestTheDefaultsOfAProjectGrowWithItsPods, from 50 pods on, but not what does not come with pods, and what all tenants share.
func TestTheDefaultsOfAProjectGrowWithItsPods(t *testing.T) {
	const constant = "requests.cpu=4 requests.memory=8Gi limits.memory=16Gi requests.storage=20Gi services.loadbalancers=0 services.nodeports=0 count/configmaps=500 count/secrets=500"
	for pods, defaults := range map[string]string{
		"50": "requests.ephemeral-storage=100Gi limits.ephemeral-storage=2000Gi count/services=100 count/persistentvolumeclaims=100 count/serviceaccounts=100 count/pods=300 " +
			"count/deployments.apps=60 count/statefulsets.apps=30 count/daemonsets.apps=10 count/replicasets.apps=700 count/controllerrevisions.apps=450 " +
			"count/jobs.batch=200 count/cronjobs.batch=40 count/horizontalpodautoscalers.autoscaling=100 count/poddisruptionbudgets.policy=100 count/ingresses.networking.k8s.io=100 " +
			"count/httproutes.gateway.networking.k8s.io=100 count/roles.rbac.authorization.k8s.io=100 count/rolebindings.rbac.authorization.k8s.io=100 count/leases.coordination.k8s.io=200",
		"51": "requests.ephemeral-storage=200Gi limits.ephemeral-storage=4000Gi count/services=200 count/persistentvolumeclaims=200 count/serviceaccounts=200 count/pods=600 " +
			"count/deployments.apps=120 count/statefulsets.apps=60 count/daemonsets.apps=20 count/replicasets.apps=1400 count/controllerrevisions.apps=900 " +
			"count/jobs.batch=400 count/cronjobs.batch=80 count/horizontalpodautoscalers.autoscaling=200 count/poddisruptionbudgets.policy=200 count/ingresses.networking.k8s.io=200 " +
			"count/httproutes.gateway.networking.k8s.io=200 count/roles.rbac.authorization.k8s.io=200 count/rolebindings.rbac.authorization.k8s.io=200 count/leases.coordination.k8s.io=400",
	} {
		got, err := Of(list(map[string]string{"pods": pods}), Terms{Max: list(map[string]string{"pods": "100"})}, Usual())
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]string{"pods": pods}
		for _, one := range strings.Fields(constant + " " + defaults) {
			name, amount, _ := strings.Cut(one, "=")
			want[name] = amount
		}
		if holds(t, got, want); len(got) != len(want) {
			t.Errorf("of %s pods: %d resources, want %d: %v", pods, len(got), len(want), got)
		}
	}
}

func TestTheQuotaOfAHomeCountsEveryKind(t *testing.T) {
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

// TestAmountsThatNoQuotaCanHaveCountAsTheNextOnes: the API server would refuse all of the quota.
func TestAmountsThatNoQuotaCanHaveCountAsTheNextOnes(t *testing.T) {
	requested := list(map[string]string{"pods": "-1", "count/jobs.batch": "1500m", "services.nodeports": "1n", "requests.cpu": "500m", "limits.memory": "-1Gi", "count/services": "1e30"})
	got, _ := Of(requested, Terms{Max: list(map[string]string{"services.nodeports": "5"})}, some)
	for name, want := range map[string]string{"pods": "0", "count/jobs.batch": "2", "services.nodeports": "1", "requests.cpu": "500m", "limits.memory": "0", "count/services": "100"} {
		if amount := got[corev1.ResourceName(name)]; amount.String() != want {
			t.Errorf("%s is %s, want %s", name, amount.String(), want)
		}
	}
	want := []Fault{
		{"quota[count/jobs.batch]", "1500m is not a whole number, such as 2"}, {"quota[limits.memory]", "-1Gi is negative; it must be 0 or more"},
		{"quota[pods]", "-1 is negative; it must be 0 or more"}, {"quota[services.nodeports]", "1n is not a whole number, such as 1"},
	}
	if faults := CheckRequested("quota", requested); !slices.Equal(faults, want) {
		t.Errorf("got %v, want %v", faults, want)
	}
}
