package limitrange

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// policies reads spec.limits of policies a, b, ….
func policies(t *testing.T, specs ...string) (all []v1alpha1.Policy) {
	t.Helper()
	for i, text := range specs {
		of := &v1alpha1.LimitRules{}
		if err := yaml.UnmarshalStrict([]byte(text), of); err != nil {
			t.Fatal(err)
		}
		all = append(all, v1alpha1.Policy{ObjectMeta: metav1.ObjectMeta{Name: string(rune('a' + i))}, Spec: v1alpha1.PolicySpec{Limits: of}})
	}
	return all
}

// flat returns the limits of an item as text, such as " max.cpu=2 limit.memory=1Gi ".
func flat(t *testing.T, item any) string {
	t.Helper()
	text, err := json.Marshal(item)
	if err != nil {
		t.Fatal(err)
	}
	decoded := &corev1.LimitRangeItem{}
	if err := json.Unmarshal(text, decoded); err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, list := range []struct {
		name string
		of   corev1.ResourceList
	}{{"max", decoded.Max}, {"min", decoded.Min}, {"limit", decoded.Default}, {"request", decoded.DefaultRequest}, {"ratio", decoded.MaxLimitRequestRatio}} {
		for _, name := range []corev1.ResourceName{"cpu", "memory", "ephemeral-storage", "storage", "example.com/gpu"} {
			if amount, there := list.of[name]; there {
				all = append(all, list.name+"."+string(name)+"="+amount.String())
			}
		}
	}
	return " " + strings.Join(all, " ") + " "
}

// TestTheStrictestLimitsHold, and a container that names nothing is admitted.
func TestTheStrictestLimitsHold(t *testing.T) {
	for name, c := range map[string]struct {
		policies                []string
		limit, request          map[string]string
		want, absent, conflicts []string
	}{
		"no policy":                    {want: []string{"limit.memory=256Mi", "limit.ephemeral-storage=10Gi", "request.cpu=50m", "request.memory=64Mi", "request.ephemeral-storage=64Mi"}, absent: []string{"max.", "min.", "ratio.", "limit.cpu"}},
		"the project's own":            {limit: map[string]string{"memory": "1Gi", "cpu": "2"}, request: map[string]string{"cpu": "5m"}, want: []string{"limit.memory=1Gi", "limit.cpu=2", "request.cpu=5m"}},
		"a small limit of the project": {limit: map[string]string{"memory": "32Mi"}, want: []string{"limit.memory=32Mi", "request.memory=32Mi"}},
		"what the project contradicts is refused by the API server": {limit: map[string]string{"memory": "32Mi"}, request: map[string]string{"memory": "1Gi"}, want: []string{"limit.memory=32Mi", "request.memory=1Gi"}},
		"the smaller maximum": {policies: []string{"max: {cpu: 4}", "max: {cpu: 2, memory: 1Gi}"}, want: []string{"max.cpu=2", "max.memory=1Gi", "limit.cpu=2", "request.cpu=50m"}},
		"the larger minimum":  {policies: []string{"min: {cpu: 10m}", "min: {cpu: 100m}"}, want: []string{"min.cpu=100m", "request.cpu=100m"}, absent: []string{"limit.cpu"}},
		"the smaller defaults": {policies: []string{"{default: {memory: 2Gi}, defaultRequest: {memory: 1Gi}}", "{default: {memory: 1Gi}, defaultRequest: {memory: 512Mi}}"},
			want: []string{"limit.memory=1Gi", "request.memory=512Mi"}},
		"a project's own before a policy's": {policies: []string{"default: {memory: 2Gi}"}, limit: map[string]string{"memory": "3Gi"}, want: []string{"limit.memory=3Gi"}},
		"a maximum below the usual":         {policies: []string{"max: {memory: 32Mi}"}, want: []string{"limit.memory=32Mi", "request.memory=32Mi"}},
		"a minimum above the usual":         {policies: []string{"min: {memory: 1Gi}"}, want: []string{"limit.memory=1Gi", "request.memory=1Gi"}},
		"a default above another maximum":   {policies: []string{"default: {memory: 2Gi}", "max: {memory: 1Gi}"}, want: []string{"limit.memory=1Gi", "max.memory=1Gi"}},
		"a project above the maximum": {policies: []string{"max: {memory: 1Gi}"}, limit: map[string]string{"memory": "3Gi"}, want: []string{"limit.memory=1Gi"},
			conflicts: []string{"spec.limits.default of project.yaml has memory 3Gi, and spec.limits.max of policies/a.yaml has 1Gi, which holds"}},
		"a project below the minimum": {policies: []string{"min: {cpu: 100m}"}, request: map[string]string{"cpu": "5m"}, want: []string{"request.cpu=100m"},
			conflicts: []string{"spec.limits.defaultRequest of project.yaml has cpu 5m, and spec.limits.min of policies/a.yaml has 100m, which holds"}},
		"contradicting policies": {policies: []string{"min: {cpu: 2}", "max: {cpu: 1}"}, want: []string{"min.cpu=1", "max.cpu=1", "limit.cpu=1", "request.cpu=1"},
			conflicts: []string{"spec.limits.min of policies/a.yaml has cpu 2, and spec.limits.max of policies/b.yaml has 1, which holds"}},
		"a ratio raises the request":          {policies: []string{"ratio: {memory: 3}"}, want: []string{"ratio.memory=3", "limit.memory=256Mi", "request.memory=89478486"}},
		"a ratio without a limit":             {policies: []string{"ratio: {cpu: 4}"}, want: []string{"ratio.cpu=4", "limit.cpu=200m", "request.cpu=50m"}},
		"a ratio within a maximum":            {policies: []string{"{ratio: {cpu: 4}, max: {cpu: 100m}}"}, want: []string{"limit.cpu=100m", "request.cpu=50m", "ratio.cpu=4"}},
		"the smaller ratio":                   {policies: []string{"ratio: {cpu: 4}", "ratio: {cpu: 1500m}"}, want: []string{"ratio.cpu=1500m", "limit.cpu=75m"}},
		"a ratio that the limits imply":       {policies: []string{"{min: {cpu: 1}, max: {cpu: 2}, ratio: {cpu: 3}}"}, want: []string{"max.cpu=2", "min.cpu=1"}, absent: []string{"ratio."}},
		"a ratio below what the limits imply": {policies: []string{"{min: {cpu: 1}, max: {cpu: 4}, ratio: {cpu: 3}}"}, want: []string{"ratio.cpu=3"}},
		"a ratio and only a minimum":          {policies: []string{"{min: {cpu: 10m}, ratio: {cpu: 3}}"}, want: []string{"ratio.cpu=3", "limit.cpu=150m"}},
		"a minimum of nothing":                {policies: []string{"{min: {cpu: 0}, max: {cpu: 4}, ratio: {cpu: 3}}"}, want: []string{"ratio.cpu=3"}},
		"a large request of the project":      {request: map[string]string{"memory": "1Gi"}, want: []string{"limit.memory=256Mi", "request.memory=256Mi"}},
		"a device of the project":             {limit: map[string]string{"example.com/gpu": "1"}, want: []string{"limit.example.com/gpu=1"}, absent: []string{"request.example.com/gpu"}},
		"the smaller maximum first":           {policies: []string{"max: {cpu: 2}", "max: {cpu: 4}"}, want: []string{"max.cpu=2"}},
		"a maximum of the disk":               {policies: []string{"max: {ephemeral-storage: 1Gi}"}, want: []string{"max.ephemeral-storage=1Gi", "limit.ephemeral-storage=1Gi"}},
		"one amount":                          {policies: []string{"{min: {cpu: 1}, max: {cpu: 1}}"}, want: []string{"max.cpu=1", "min.cpu=1"}},
		"a project at the maximum and the minimum": {
			policies: []string{"{min: {cpu: 100m}, max: {memory: 1Gi}}"}, limit: map[string]string{"memory": "1Gi"}, request: map[string]string{"cpu": "100m"},
			want: []string{"limit.memory=1Gi", "request.cpu=100m"},
		},
		"a project within the limits": {
			policies: []string{"{min: {cpu: 100m}, max: {memory: 1Gi}}"}, limit: map[string]string{"memory": "512Mi"}, request: map[string]string{"cpu": "200m"},
			want: []string{"limit.memory=512Mi", "request.cpu=200m"},
		},
		"the first of equal maximums is named": {policies: []string{"max: {cpu: 1}", "max: {cpu: 1}"}, limit: map[string]string{"cpu": "2"}, want: []string{"limit.cpu=1"},
			conflicts: []string{"spec.limits.default of project.yaml has cpu 2, and spec.limits.max of policies/a.yaml has 1, which holds"}},
		"a device": {policies: []string{"max: {example.com/gpu: 1}"}, absent: []string{"gpu"}},
	} {
		t.Run(name, func(t *testing.T) {
			var project v1alpha1.ContainerLimits
			for own, list := range map[*corev1.ResourceList]map[string]string{&project.Default: c.limit, &project.DefaultRequest: c.request} {
				*own = corev1.ResourceList{}
				for name, amount := range list {
					(*own)[corev1.ResourceName(name)] = resource.MustParse(amount)
				}
			}
			got := Of(policies(t, c.policies...), project)
			text := flat(t, got.Items()[0])
			for _, want := range c.want {
				if !strings.Contains(text, " "+want+" ") {
					t.Errorf("%s lacks %s", text, want)
				}
			}
			for _, absent := range c.absent {
				if strings.Contains(text, absent) {
					t.Errorf("%s has %s", text, absent)
				}
			}
			if diff := cmp.Diff(c.conflicts, got.Conflicts); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if len(got.Items()) != 1 || *got.Items()[0].Type != corev1.LimitTypeContainer {
				t.Errorf("%d items", len(got.Items()))
			}
		})
	}
}

func TestTheStrictestSizesOfClaimsHold(t *testing.T) {
	got := Of(policies(t, "claims: {max: 10Gi}", "claims: {max: 5Gi, min: 1Gi}", "claims: {min: 2Gi}"), v1alpha1.ContainerLimits{})
	if items := got.Items(); len(items) != 2 || flat(t, items[1]) != " max.storage=5Gi min.storage=2Gi " || *items[1].Type != corev1.LimitTypePersistentVolumeClaim || got.Conflicts != nil {
		t.Errorf("got %v, %v", items, got.Conflicts)
	}
	for text, want := range map[string]string{"claims: {max: 10Gi}": " max.storage=10Gi ", "claims: {min: 1Gi}": " min.storage=1Gi ", "claims: {min: 1Gi, max: 1Gi}": " max.storage=1Gi min.storage=1Gi "} {
		got := Of(append(policies(t, text), v1alpha1.Policy{}), v1alpha1.ContainerLimits{})
		if items := got.Items(); len(items) != 2 || flat(t, items[1]) != want || got.Conflicts != nil {
			t.Errorf("%s: got %v, %v", text, items, got.Conflicts)
		}
	}
	got = Of(policies(t, "claims: {max: 10Gi}", "claims: {min: 20Gi}"), v1alpha1.ContainerLimits{})
	want := []string{"spec.limits.claims.min of policies/b.yaml has storage 20Gi, and spec.limits.claims.max of policies/a.yaml has 10Gi, which holds"}
	if diff := cmp.Diff(want, got.Conflicts); diff != "" || flat(t, got.Items()[1]) != " max.storage=10Gi min.storage=10Gi " {
		t.Errorf("%s, -want +got:\n%s", flat(t, got.Items()[1]), diff)
	}
}

func TestTheLimitsOfAPolicyAreChecked(t *testing.T) {
	for text, want := range map[string][]Fault{
		"{max: {cpu: 2}, min: {cpu: 1}, default: {cpu: 2}, defaultRequest: {cpu: 1}, ratio: {cpu: 1}, claims: {min: 1Gi, max: 1Gi}}": nil,
		"{max: {cpu: 1}, min: {cpu: 2}}":                {{"limits.min[cpu]", "2 is above 1 in max; it must be at most that"}},
		"{max: {cpu: 1}, default: {cpu: 2}}":            {{"limits.default[cpu]", "2 is above 1 in max; it must be at most that"}},
		"{default: {cpu: 1}, defaultRequest: {cpu: 2}}": {{"limits.defaultRequest[cpu]", "2 is above 1 in default; it must be at most that"}},
		"{min: {cpu: 2}, defaultRequest: {cpu: 1}}":     {{"limits.min[cpu]", "2 is above 1 in defaultRequest; it must be at most that"}},
		"ratio: {cpu: 900m}":                            {{"limits.ratio[cpu]", "900m is below 1; a limit is never below the request"}},
		"{max: {cpu: 500m}, min: {cpu: 0}}":             nil,
		"max: {memory: -1}":                             {{"limits.max[memory]", "-1 is negative; it must be 0 or more"}},
		"max: {requests.cpu: 1}":                        {{"limits.max[requests.cpu]", "only cpu, memory and ephemeral-storage of containers are limited"}},
		"claims: {min: 2Gi, max: 1Gi}":                  {{"limits.claims.min", "2Gi is above 1Gi in claims.max; it must be at most that"}},
	} {
		if diff := cmp.Diff(want, Check(policies(t, text)[0].Spec.Limits)); diff != "" {
			t.Errorf("%s, -want +got:\n%s", text, diff)
		}
	}
}
