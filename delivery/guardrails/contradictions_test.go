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
		"a list and none": {policies: []string{"images: {allow: [a.example]}", "images: {requireDigest: true}"}},
		"all that is listed is refused": {policies: []string{"images: {allow: [a.example/x, a.example/y]}", "images: {deny: ['*/x', a.example/y, b.example]}"},
			want: "spec.images.allow of policies/a.yaml has a.example/x, a.example/y, and spec.images.deny of policies/b.yaml has */x, a.example/y, b.example, so no image is allowed"},
		"a part of what is listed is refused":  {policies: []string{"images: {allow: [a.example/x]}", "images: {deny: [a.example/x/y, a.*/z, b.example]}"}},
		"one of what is listed is not refused": {policies: []string{"images: {allow: [a.example/x, a.example/y]}", "images: {deny: [a.example/x]}"}},
		"kinds that are refused": {policies: []string{"kinds: {deny: ['*.apps', Pod]}", "kinds: {allow: [Deployment.apps, Pod]}"},
			want: "spec.kinds.allow of policies/b.yaml has Deployment.apps, Pod, and spec.kinds.deny of policies/a.yaml has *.apps, Pod, so no kind is allowed"},
		"Git repositories": {policies: []string{"sources: {git: {allow: [git.example/a]}}", "sources: {git: {allow: [git.example/b, 'http://git.example/a']}}"},
			want: "spec.sources.git.allow of policies/a.yaml has git.example/a, and that of policies/b.yaml has git.example/b, http://git.example/a, so no Git repository is allowed"},
		"Git repositories, by several spellings": {policies: []string{"sources: {git: {allow: ['https://git.example:443/a/b.git']}}", "sources: {git: {allow: ['git.*/a']}}"}},
		"schemes": {policies: []string{"sources: {helm: {allow: ['https://a.example']}}", "sources: {helm: {allow: ['http://a.example']}}"},
			want: "spec.sources.helm.allow of policies/a.yaml has https://a.example, and that of policies/b.yaml has http://a.example, so no Helm repository is allowed"},
		"registries of charts": {policies: []string{"sources: {oci: {allow: [a.example]}}", "sources: {oci: {allow: [b.example]}}"},
			want: "spec.sources.oci.allow of policies/a.yaml has a.example, and that of policies/b.yaml has b.example, so no chart or artifact of a registry is allowed"},
		"sources that are refused": {policies: []string{"sources: {git: {allow: ['https://Git.example/A']}}", "sources: {git: {deny: [git.example/a]}}"},
			want: "spec.sources.git.allow of policies/a.yaml has https://Git.example/A, and spec.sources.git.deny of policies/b.yaml has git.example/a, so no Git repository is allowed"},
		"sources that are refused by ssh alone": {policies: []string{"sources: {git: {allow: [git.example/a]}}", "sources: {git: {deny: ['ssh://git.example/a']}}"}},
		"tolerations": {policies: []string{"nodes: {tolerations: [{key: pool, value: a}]}", "nodes: {tolerations: [{key: pool, value: b}, {key: gpu}]}"},
			want: "spec.nodes.tolerations of policies/a.yaml has pool=a, and that of policies/b.yaml has pool=b, gpu, so no toleration of a taint is allowed"},
		"tolerations, of other effects": {policies: []string{"nodes: {tolerations: [{key: pool, effect: NoSchedule}]}", "nodes: {tolerations: [{key: pool, effect: NoExecute}]}"},
			want: "spec.nodes.tolerations of policies/a.yaml has pool:NoSchedule, and that of policies/b.yaml has pool:NoExecute, so no toleration of a taint is allowed"},
		"tolerations with something in common": {policies: []string{"nodes: {tolerations: [{key: pool}]}", "nodes: {tolerations: [{key: pool, value: a, effect: NoSchedule}]}", "nodes: {tolerations: [{key: pool, effect: NoSchedule}]}"}},
		"ports": {policies: []string{"egress: {cidrs: [10.0.0.0/8], ports: [{port: 443}]}", "egress: {cidrs: [10.0.0.0/8], ports: [{port: 80, endPort: 442}, {protocol: UDP, port: 443}]}"},
			want: "spec.egress.ports of policies/a.yaml has TCP/443-443, and that of policies/b.yaml has TCP/80-442, UDP/443-443, so no port outside of the cluster is allowed"},
		"ports with something in common": {policies: []string{"egress: {cidrs: [10.0.0.0/8], ports: [{port: 443}]}", "egress: {cidrs: [10.0.0.0/8], ports: [{port: 80, endPort: 443}]}", "egress: {cidrs: [10.0.0.0/8]}"}},
		"a label that is forbidden": {policies: []string{"metadata: {requiredLabels: [team]}", "metadata: {forbiddenLabels: ['te*']}"},
			want: "spec.metadata.requiredLabels of policies/a.yaml has team, and spec.metadata.forbiddenLabels of policies/b.yaml has te*, so no workload is allowed"},
		"a default class that is not listed": {policies: []string{"classes: {defaults: {runtime: gvisor, ingress: a}}", "classes: {runtime: [kata], ingress: [a], defaults: {runtime: kata}}"},
			want: "spec.classes.defaults.runtime of policies/a.yaml has gvisor, and spec.classes.runtime of policies/b.yaml has kata, so what names no class is refused"},
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
		"one only warns":          {policies: []string{"images: {allow: [a.example]}", "images: {action: Warn, allow: [b.example]}"}},
		"a domain below one":      {policies: []string{"hostnames: {suffixes: [example.com]}", "hostnames: {suffixes: [a.example.com]}"}},
		"two domains":             {policies: []string{"hostnames: {suffixes: [example.com]}", "hostnames: {suffixes: [badexample.com]}"}, want: "spec.hostnames.suffixes of policies/a.yaml has example.com, and that of policies/b.yaml has badexample.com, so no host name is allowed"},
		"all kinds of a group":    {policies: []string{"kinds: {allow: ['*.apps']}", "kinds: {allow: [Deployment.apps]}"}},
		"another group":           {policies: []string{"kinds: {allow: ['*.apps']}", "kinds: {allow: [Job.batch]}"}, want: "spec.kinds.allow of policies/a.yaml has *.apps, and that of policies/b.yaml has Job.batch, so no kind is allowed"},
		"types":                   {policies: []string{"services: {types: [ClusterIP]}", "services: {types: [NodePort]}"}, want: "spec.services.types of policies/a.yaml has ClusterIP, and that of policies/b.yaml has NodePort, so no type of Services is allowed"},
		"a range in the other":    {policies: []string{"egress: {cidrs: [10.0.0.0/8]}", "egress: {cidrs: [10.1.0.0/16, 'fd00::/8']}"}},
		"two ranges":              {policies: []string{"egress: {cidrs: [10.0.0.0/8]}", "egress: {cidrs: [11.0.0.0/8]}"}, want: "spec.egress.cidrs of policies/a.yaml has 10.0.0.0/8, and that of policies/b.yaml has 11.0.0.0/8, so no address outside of the cluster is allowed"},
		"pull policies":           {policies: []string{"images: {pullPolicies: [Always]}", "images: {pullPolicies: [Never]}"}, want: "spec.images.pullPolicies of policies/a.yaml has Always, and that of policies/b.yaml has Never, so no imagePullPolicy is allowed"},
		"load balancer classes":   {policies: []string{"services: {loadBalancerClasses: [x.io/a]}", "services: {loadBalancerClasses: [x.io/b]}"}, want: "spec.services.loadBalancerClasses of policies/a.yaml has x.io/a, and that of policies/b.yaml has x.io/b, so no loadBalancerClass is allowed"},
		"source ranges":           {policies: []string{"services: {loadBalancerSourceRanges: [10.0.0.0/8]}", "services: {loadBalancerSourceRanges: [11.0.0.0/8]}"}, want: "spec.services.loadBalancerSourceRanges of policies/a.yaml has 10.0.0.0/8, and that of policies/b.yaml has 11.0.0.0/8, so no range that connects to load balancers is allowed"},
		"source ranges, nested":   {policies: []string{"services: {loadBalancerSourceRanges: [10.0.0.0/8]}", "services: {loadBalancerSourceRanges: [10.1.0.0/16]}"}},
		"external names":          {policies: []string{"services: {externalNames: [a.example]}", "services: {externalNames: [b.example]}"}, want: "spec.services.externalNames of policies/a.yaml has a.example, and that of policies/b.yaml has b.example, so no external name is allowed"},
		"external names, nested":  {policies: []string{"services: {externalNames: [a.example]}", "services: {externalNames: [x.a.example]}"}},
		"external IPs":            {policies: []string{"services: {externalIPs: [192.0.2.0/28]}", "services: {externalIPs: [192.0.2.16/28]}"}, want: "spec.services.externalIPs of policies/a.yaml has 192.0.2.0/28, and that of policies/b.yaml has 192.0.2.16/28, so no external IP is allowed"},
		"node ports":              {policies: []string{"services: {nodePorts: [{port: 30000, endPort: 30009}]}", "services: {nodePorts: [{port: 30010}]}"}, want: "spec.services.nodePorts of policies/a.yaml has TCP/30000-30009, and that of policies/b.yaml has TCP/30010-30010, so no node port is allowed"},
		"node ports in both":      {policies: []string{"services: {nodePorts: [{port: 30000, endPort: 30009}]}", "services: {nodePorts: [{port: 30009}]}"}},
		"StorageClasses":          {policies: []string{"classes: {storage: [a]}", "classes: {storage: [b]}"}, want: "spec.classes.storage of policies/a.yaml has a, and that of policies/b.yaml has b, so no StorageClass is allowed"},
		"VolumeAttributesClasses": {policies: []string{"classes: {volumeAttributes: [a]}", "classes: {volumeAttributes: [b]}"}, want: "spec.classes.volumeAttributes of policies/a.yaml has a, and that of policies/b.yaml has b, so no VolumeAttributesClass is allowed"},
		"IngressClasses":          {policies: []string{"classes: {ingress: [a]}", "classes: {ingress: [b]}"}, want: "spec.classes.ingress of policies/a.yaml has a, and that of policies/b.yaml has b, so no IngressClass is allowed"},
		"GatewayClasses":          {policies: []string{"classes: {gateway: [a]}", "classes: {gateway: [b]}"}, want: "spec.classes.gateway of policies/a.yaml has a, and that of policies/b.yaml has b, so no GatewayClass is allowed"},
		"RuntimeClasses":          {policies: []string{"classes: {runtime: [a]}", "classes: {runtime: [b]}"}, want: "spec.classes.runtime of policies/a.yaml has a, and that of policies/b.yaml has b, so no RuntimeClass is allowed"},
		"the same of two": {policies: []string{
			"{images: {pullPolicies: [Always]}, services: {types: [ClusterIP], loadBalancerClasses: [x.io/a]}, classes: {storage: [a], ingress: [a], gateway: [a], priority: [a], runtime: [a]}, nodes: {selector: {pool: a}}}",
			"{images: {pullPolicies: [Never, Always]}, services: {types: [NodePort, ClusterIP], loadBalancerClasses: [x.io/b, x.io/a]}, classes: {storage: [b, a], ingress: [b, a], gateway: [b, a], priority: [b, a], runtime: [b, a]}, nodes: {selector: {pool: a}}}",
		}},
		"none and a list":                 {policies: []string{"images: {requireDigest: true}", "images: {allow: [a.example]}"}},
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
			if got := strings.Join(new(Comparison).Contradictions(policies), "; "); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestDomainsOfATenantAreBeyondPolicies that allow none of their names.
func TestDomainsOfATenantAreBeyondPolicies(t *testing.T) {
	suffixes := func(name string, action v1alpha1.PolicyAction, all ...string) v1alpha1.Policy {
		return named(name, false, v1alpha1.PolicyRules{Hostnames: &v1alpha1.HostnameRules{Action: action, Suffixes: all}})
	}
	policies := []v1alpha1.Policy{suffixes("a", "", "example.com"), suffixes("b", v1alpha1.WarnAction, "example.net"), named("c", false, v1alpha1.PolicyRules{})}
	for domain, want := range map[string]string{
		"shop.example.com": "", "com": "", "": "",
		"example.org": "spec.domains of tenant.yaml has example.org, and spec.hostnames.suffixes of policies/a.yaml has example.com, so no host name is allowed",
	} {
		var domains []string
		if domain != "" {
			domains = []string{domain}
		}
		if got := strings.Join(Beyond(domains, policies), "; "); got != want {
			t.Errorf("%q: got %q, want %q", domain, got, want)
		}
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
