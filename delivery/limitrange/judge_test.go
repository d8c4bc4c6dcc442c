package limitrange

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

func field(t *testing.T, text string) (value any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(text), &value); err != nil {
		t.Fatal(err)
	}
	return value
}

// TestAContainerIsJudgedWithItsDefaults. controllers has a test that asks an API server about such containers.
func TestAContainerIsJudgedWithItsDefaults(t *testing.T) {
	for name, c := range map[string]struct {
		policies           []string
		project, resources string
		want               []Breach
	}{
		"nothing that is limited":  {resources: "{limits: {memory: 900Gi}, requests: {cpu: 900}}"},
		"nothing, under a maximum": {policies: []string{"max: {memory: 1Gi}"}, resources: "{}"},
		"no field at all":          {policies: []string{"{max: {memory: 64Mi}, min: {cpu: 1}, ratio: {memory: 1}}"}, resources: "null"},
		"the maximum":              {policies: []string{"max: {memory: 1Gi, cpu: 1}"}, resources: "{limits: {memory: 1024Mi, cpu: 1000m}}"},
		"a number":                 {policies: []string{"max: {cpu: 1}"}, resources: "{limits: {cpu: 1.5}}", want: []Breach{{"a", "limits.max", "has the container web with limits.cpu 1500m; at most 1 is allowed"}}},
		"a limit above it": {policies: []string{"max: {memory: 2Gi}", "max: {memory: 1Gi}"}, resources: "{limits: {memory: 1025Mi}}",
			want: []Breach{{"b", "limits.max", "has the container web with limits.memory 1025Mi; at most 1Gi is allowed"}}},
		"a request above it": {policies: []string{"max: {memory: 1Gi}"}, resources: "{requests: {memory: 2Gi}}",
			want: []Breach{{"a", "limits.max", "has the container web with requests.memory 2Gi; at most 1Gi is allowed"}}},
		"the minimum": {policies: []string{"min: {cpu: 100m}"}, resources: "{requests: {cpu: 0.1}}"},
		"a request below it": {policies: []string{"min: {cpu: 100m}"}, resources: "{requests: {cpu: 50m}}",
			want: []Breach{{"a", "limits.min", "has the container web with requests.cpu 50m; at least 100m is required"}}},
		"a limit below it": {policies: []string{"min: {memory: 100Mi}"}, resources: "{requests: {memory: 100Mi}, limits: {memory: 50Mi}}",
			want: []Breach{{"a", "limits.min", "has the container web with limits.memory 50Mi; at least 100Mi is required"}}},
		"a limit below it, which is the request": {policies: []string{"min: {memory: 100Mi}"}, resources: "{limits: {memory: 50Mi}}",
			want: []Breach{{"a", "limits.min", "has the container web with requests.memory 50Mi by default; at least 100Mi is required"}}},
		"the ratio": {policies: []string{"ratio: {cpu: 3}"}, resources: "{requests: {cpu: 100m}, limits: {cpu: 300m}}"},
		"a ratio of a fraction": {policies: []string{"ratio: {cpu: 1500m}"}, resources: "{requests: {cpu: 100m}, limits: {cpu: 151m}}",
			want: []Breach{{"a", "limits.ratio", "has the container web with limits.cpu 151m and requests.cpu 100m; a limit may be at most 1500m times the request"}}},
		"a limit far above the default request": {policies: []string{"ratio: {memory: 4}"}, resources: "{limits: {memory: 8Gi}}"}, // The limit is the request, too.
		"a request of nothing": {policies: []string{"ratio: {memory: 4}"}, resources: "{requests: {memory: 0}}",
			want: []Breach{{"a", "limits.ratio", "has the container web with limits.memory 256Mi by default and requests.memory 0; a limit may be at most 4 times the request"}}},
		"a request far below the default limit": {policies: []string{"ratio: {memory: 4}"}, resources: "{requests: {memory: 32Mi}}",
			want: []Breach{{"a", "limits.ratio", "has the container web with limits.memory 256Mi by default and requests.memory 32Mi; a limit may be at most 4 times the request"}}},
		"a request below the project's default limit": {policies: []string{"ratio: {memory: 4}"}, project: "128Mi", resources: "{requests: {memory: 32Mi}}"},
		"a request above the default limit": {policies: []string{"default: {memory: 512Mi}", "max: {memory: 8Gi}"}, resources: "{requests: {memory: 1Gi}}",
			want: []Breach{{"a", "limits.default", "has the container web with requests.memory 1Gi; that is above limits.memory 512Mi by default, so it needs a limit of its own"}}},
		"a request above the default limit, with a limit": {policies: []string{"default: {memory: 512Mi}"}, resources: "{requests: {memory: 1Gi}, limits: {memory: 1Gi}}"},
		"a request above the project's default limit": {policies: []string{"default: {memory: 512Mi}"}, project: "128Mi", resources: "{requests: {memory: 256Mi}}",
			want: []Breach{{"", "limits.default", "has the container web with requests.memory 256Mi; that is above limits.memory 128Mi by default, so it needs a limit of its own"}}},
		"a request above the limit that nobody states": {policies: []string{"max: {cpu: 1}"}, resources: "{requests: {ephemeral-storage: 11Gi}}",
			want: []Breach{{"", "limits.default", "has the container web with requests.ephemeral-storage 11Gi; that is above limits.ephemeral-storage 10Gi by default, so it needs a limit of its own"}}},
		"what is implied":      {policies: []string{"{min: {cpu: 1}, max: {cpu: 2}, ratio: {cpu: 3}}"}, resources: "{requests: {cpu: 1}, limits: {cpu: 2}}"},
		"contradicting rules":  {policies: []string{"min: {cpu: 2}", "max: {cpu: 1}"}, resources: "{requests: {cpu: 1}, limits: {cpu: 1}}"},
		"what nobody can read": {policies: []string{"max: {memory: 1Gi}"}, resources: "{limits: {memory: lots}}"},
		"what is no mapping":   {policies: []string{"max: {memory: 1Gi}"}, resources: "[a]"},
		"several": {policies: []string{"{max: {memory: 1Gi}, min: {cpu: 100m}}", "ratio: {ephemeral-storage: 2}"}, resources: "{limits: {memory: 2Gi, ephemeral-storage: 3Gi}, requests: {cpu: 10m, ephemeral-storage: 1Gi}}",
			want: []Breach{
				{"a", "limits.max", "has the container web with limits.memory 2Gi; at most 1Gi is allowed"},
				{"a", "limits.min", "has the container web with requests.cpu 10m; at least 100m is required"},
				{"b", "limits.ratio", "has the container web with limits.ephemeral-storage 3Gi and requests.ephemeral-storage 1Gi; a limit may be at most 2 times the request"},
			}},
	} {
		t.Run(name, func(t *testing.T) {
			var project v1alpha1.ContainerLimits
			if c.project != "" {
				project.Default = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(c.project)}
			}
			if diff := cmp.Diff(c.want, Of(policies(t, c.policies...), project).Container("web", field(t, c.resources))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestAClaimIsJudgedByItsSize(t *testing.T) {
	between := []string{"claims: {max: 10Gi}", "claims: {min: 1Gi}"}
	for name, c := range map[string]struct {
		policies  []string
		resources string
		want      []Breach
	}{
		"no limit":   {policies: []string{"max: {memory: 1Gi}"}, resources: "{requests: {storage: 900Gi}}"},
		"the most":   {policies: between, resources: "{requests: {storage: 10Gi}}"},
		"the least":  {policies: between, resources: "{requests: {storage: 1Gi}}"},
		"more":       {policies: between, resources: "{requests: {storage: 11Gi}}", want: []Breach{{"a", "limits.claims.max", "has a claim of 11Gi; at most 10Gi is allowed"}}},
		"less":       {policies: between, resources: "{requests: {storage: 1Mi}}", want: []Breach{{"b", "limits.claims.min", "has a claim of 1Mi; at least 1Gi is required"}}},
		"no size":    {policies: between, resources: "{}", want: []Breach{{"b", "limits.claims.min", "has a claim of 0; at least 1Gi is required"}}},
		"unreadable": {policies: between, resources: "x"},
	} {
		if diff := cmp.Diff(c.want, Of(policies(t, c.policies...), v1alpha1.ContainerLimits{}).Claim(field(t, c.resources))); diff != "" {
			t.Errorf("%s, -want +got:\n%s", name, diff)
		}
	}
}
