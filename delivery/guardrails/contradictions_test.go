package guardrails

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// TestPoliciesThatTogetherAllowNothingContradictEachOther, and no others do.
func TestPoliciesThatTogetherAllowNothingContradictEachOther(t *testing.T) {
	for name, c := range map[string]struct {
		policies []string
		// want is the whole text; "" if they do not contradict each other.
		want string
	}{
		"one policy":      {policies: []string{"images: {allow: [a.example]}"}},
		"a list and none": {policies: []string{"images: {allow: [a.example]}", "images: {deny: [a.example]}"}},
		"two registries": {policies: []string{"images: {allow: [a.example]}", "images: {allow: [b.example, c.example]}"},
			want: "spec.images.allow of policies/a.yaml has a.example, and that of policies/b.yaml has b.example, c.example, so no image is allowed"},
		"two of three": {policies: []string{"kinds: {allow: [Pod]}", "kinds: {allow: [Pod, Service]}", "kinds: {allow: [Service]}"},
			want: "spec.kinds.allow of policies/a.yaml has Pod, and that of policies/c.yaml has Service, so no kind is allowed"},
		"two PriorityClasses": {policies: []string{"classes: {priority: [batch]}", "classes: {priority: [low]}"},
			want: "spec.classes.priority of policies/a.yaml has batch, and that of policies/b.yaml has low, so no PriorityClass is allowed"},
		"a repository in the other's registry": {policies: []string{"images: {allow: [a.example/x/y]}", "images: {allow: [b.example, a.example/x]}"}},
		"wildcards with something in common":   {policies: []string{"images: {allow: ['*.example/x*z']}", "images: {allow: ['a.*/*yz/w']}"}},
		"wildcards with nothing in common": {policies: []string{"images: {allow: ['*.example/x*']}", "images: {allow: ['a.*/y*']}"},
			want: "spec.images.allow of policies/a.yaml has *.example/x*, and that of policies/b.yaml has a.*/y*, so no image is allowed"},
		"one only warns":        {policies: []string{"images: {allow: [a.example]}", "images: {action: Warn, allow: [b.example]}"}},
		"a domain below one":    {policies: []string{"hostnames: {suffixes: [example.com]}", "hostnames: {suffixes: [a.example.com]}"}},
		"two domains":           {policies: []string{"hostnames: {suffixes: [example.com]}", "hostnames: {suffixes: [badexample.com]}"}, want: "spec.hostnames.suffixes of policies/a.yaml has example.com, and that of policies/b.yaml has badexample.com, so no host name is allowed"},
		"all kinds of a group":  {policies: []string{"kinds: {allow: ['*.apps']}", "kinds: {allow: [Deployment.apps]}"}},
		"another group":         {policies: []string{"kinds: {allow: ['*.apps']}", "kinds: {allow: [Job.batch]}"}, want: "spec.kinds.allow of policies/a.yaml has *.apps, and that of policies/b.yaml has Job.batch, so no kind is allowed"},
		"types":                 {policies: []string{"services: {types: [ClusterIP]}", "services: {types: [NodePort]}"}, want: "spec.services.types of policies/a.yaml has ClusterIP, and that of policies/b.yaml has NodePort, so no type of Services is allowed"},
		"a range in the other":  {policies: []string{"egress: {cidrs: [10.0.0.0/8]}", "egress: {cidrs: [10.1.0.0/16, 'fd00::/8']}"}},
		"two ranges":            {policies: []string{"egress: {cidrs: [10.0.0.0/8]}", "egress: {cidrs: [11.0.0.0/8]}"}, want: "spec.egress.cidrs of policies/a.yaml has 10.0.0.0/8, and that of policies/b.yaml has 11.0.0.0/8, so no address outside of the cluster is allowed"},
		"pull policies":         {policies: []string{"images: {pullPolicies: [Always]}", "images: {pullPolicies: [Never]}"}, want: "spec.images.pullPolicies of policies/a.yaml has Always, and that of policies/b.yaml has Never, so no imagePullPolicy is allowed"},
		"load balancer classes": {policies: []string{"services: {loadBalancerClasses: [x.io/a]}", "services: {loadBalancerClasses: [x.io/b]}"}, want: "spec.services.loadBalancerClasses of policies/a.yaml has x.io/a, and that of policies/b.yaml has x.io/b, so no loadBalancerClass is allowed"},
		"source ranges":         {policies: []string{"services: {loadBalancerSourceRanges: [10.0.0.0/8]}", "services: {loadBalancerSourceRanges: [11.0.0.0/8]}"}, want: "spec.services.loadBalancerSourceRanges of policies/a.yaml has 10.0.0.0/8, and that of policies/b.yaml has 11.0.0.0/8, so no range that connects to load balancers is allowed"},
		"source ranges, nested": {policies: []string{"services: {loadBalancerSourceRanges: [10.0.0.0/8]}", "services: {loadBalancerSourceRanges: [10.1.0.0/16]}"}},
		"StorageClasses":        {policies: []string{"classes: {storage: [a]}", "classes: {storage: [b]}"}, want: "spec.classes.storage of policies/a.yaml has a, and that of policies/b.yaml has b, so no StorageClass is allowed"},
		"IngressClasses":        {policies: []string{"classes: {ingress: [a]}", "classes: {ingress: [b]}"}, want: "spec.classes.ingress of policies/a.yaml has a, and that of policies/b.yaml has b, so no IngressClass is allowed"},
		"GatewayClasses":        {policies: []string{"classes: {gateway: [a]}", "classes: {gateway: [b]}"}, want: "spec.classes.gateway of policies/a.yaml has a, and that of policies/b.yaml has b, so no GatewayClass is allowed"},
		"RuntimeClasses":        {policies: []string{"classes: {runtime: [a]}", "classes: {runtime: [b]}"}, want: "spec.classes.runtime of policies/a.yaml has a, and that of policies/b.yaml has b, so no RuntimeClass is allowed"},
		"the same of two": {policies: []string{
			"{images: {pullPolicies: [Always]}, services: {types: [ClusterIP], loadBalancerClasses: [x.io/a]}, classes: {storage: [a], ingress: [a], gateway: [a], priority: [a], runtime: [a]}, nodes: {selector: {pool: a}}}",
			"{images: {pullPolicies: [Never, Always]}, services: {types: [NodePort, ClusterIP], loadBalancerClasses: [x.io/b, x.io/a]}, classes: {storage: [b, a], ingress: [b, a], gateway: [b, a], priority: [b, a], runtime: [b, a]}, nodes: {selector: {pool: a}}}",
		}},
		"none and a list":                 {policies: []string{"images: {deny: [a.example]}", "images: {allow: [a.example]}"}},
		"a domain above one":              {policies: []string{"hostnames: {suffixes: [a.example.com]}", "hostnames: {suffixes: [example.com]}"}},
		"a kind of the other's group":     {policies: []string{"kinds: {allow: [Deployment.apps]}", "kinds: {allow: ['*.apps']}"}},
		"a kind with the name of a group": {policies: []string{"kinds: {allow: [apps]}", "kinds: {allow: [Deployment.apps]}"}, want: "spec.kinds.allow of policies/a.yaml has apps, and that of policies/b.yaml has Deployment.apps, so no kind is allowed"},
		"what is no range":                {policies: []string{"egress: {cidrs: [all]}", "egress: {cidrs: [10.0.0.0/8]}", "egress: {cidrs: [none]}"}},
		"labels of nodes":                 {policies: []string{"nodes: {selector: {pool: a, zone: east}}", "nodes: {selector: {pool: b, disk: fast}}"}, want: "spec.nodes.selector of policies/a.yaml has pool=a, and that of policies/b.yaml has b, so no pod is allowed"},
		"what is added":                   {policies: []string{"metadata: {added: {labels: {team: red}}}", "metadata: {added: {labels: {team: blue}}}"}, want: "spec.metadata.added.labels of policies/a.yaml has team=red, and that of policies/b.yaml has blue"},
	} {
		t.Run(name, func(t *testing.T) {
			var policies []v1alpha1.Policy
			for i, spec := range c.policies {
				policy := v1alpha1.Policy{ObjectMeta: metav1.ObjectMeta{Name: string(rune('a' + i))}}
				if err := yaml.UnmarshalStrict([]byte(spec), &policy.Spec); err != nil {
					t.Fatal(err)
				}
				policies = append(policies, policy)
			}
			if got := strings.Join(Contradictions(policies), "; "); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestGlobsOverlapAsTheirMatchesDo compares globs over two letters with all texts of up to four letters that they match.
func TestGlobsOverlapAsTheirMatchesDo(t *testing.T) {
	every := func(letters string, n int) (all []string) {
		all = []string{""}
		for last := all; n > 0; n-- {
			var next []string
			for _, text := range last {
				for _, letter := range letters {
					next = append(next, text+string(letter))
				}
			}
			all, last = append(all, next...), next
		}
		return all
	}
	globs, texts := every("ab*", 3), every("ab", 6)
	for _, a := range globs {
		for _, b := range globs {
			want := false
			for _, text := range texts {
				want = want || compiled(a).MatchString(text) && compiled(b).MatchString(text)
			}
			if got := globsOverlap(a, b); got != want {
				t.Errorf("%q and %q: got %t", a, b, got)
			}
		}
	}
}
