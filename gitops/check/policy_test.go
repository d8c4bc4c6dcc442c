package check

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/gitops/identity"
)

func TestAPolicyIsCheckedLikeTheAPIServerDoes(t *testing.T) {
	const head = "apiVersion: paas.kubeop.io/v1alpha1\nkind: Policy\nmetadata: {name: baseline}\nspec:\n"
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"all rules": {head + "  default: true\n  images: {allow: [registry.example.com, '*', docker.io/library/nginx, '*.example.com/team'], requireDigest: true}\n" +
			"  services: {action: Audit, types: [ClusterIP], loadBalancerClasses: [example.com/internal]}\n  hostnames: {action: Warn, suffixes: [example.com], wildcards: true}\n" +
			"  classes: {storage: [fast], ingress: [nginx], runtime: [gvisor]}\n", nil},
		"no rules":              {"apiVersion: paas.kubeop.io/v1alpha1\nkind: Policy\nmetadata: {name: baseline}\n", nil},
		"another name":          {"apiVersion: paas.kubeop.io/v1alpha1\nkind: Policy\nmetadata: {name: base}\n", []string{`3: metadata.name is "base", but its file is "baseline": give both the same name`}},
		"no name":               {"apiVersion: paas.kubeop.io/v1alpha1\nkind: Policy\nmetadata: {labels: {a: b}}\n", []string{`3: metadata.name is missing; its file is "baseline"`}},
		"of another product":    {"apiVersion: kyverno.io/v1\nkind: Policy\nmetadata: {name: baseline}\n", []string{`1: apiVersion is "kyverno.io/v1"; it must be "paas.kubeop.io/v1alpha1"`}},
		"another kind":          {"apiVersion: paas.kubeop.io/v1alpha1\nkind: App\nmetadata: {name: baseline}\n", []string{`2: kind is "App"; at this path it must be "Policy"`}},
		"a tenant's label":      {"apiVersion: paas.kubeop.io/v1alpha1\nkind: Policy\nmetadata: {name: baseline, labels: {paas.kubeop.io/tenant: acme}}\n", []string{`3: metadata.labels: "paas.kubeop.io/tenant" is written by kubeop; remove it`}},
		"a misspelt field":      {head + "  image: {allow: ['*']}\n", []string{"5: unknown field spec.image (did you mean spec.images?)"}},
		"an unknown action":     {head + "  images:\n    action: Block\n", []string{`6: spec.images.action: "Block" is not one of Deny, Warn, Audit`}},
		"an image":              {head + "  images:\n    allow:\n    - ok.example.com\n    - nginx:v1/x\n    - Nginx\n", []string{"9: spec.images.allow[2]: must be a registry, or a repository with its registry, such as registry.example.com or docker.io/library/nginx, in lowercase and without tag"}},
		"signatures":            {head + verify + "      keys: [" + publicKey + "]\n    - images: ['*']\n      identities: [{issuer: 'https://i.example.com', subject: a}, {issuer: 'https://i.example.com', subjectRegExp: 'a.*'}]\n", nil},
		"a signature by nobody": {head + verify, []string{"7: spec.images.verify[0]: a rule of verify needs keys or identities"}},
		"a key in another form": {head + verify + "      keys:\n      - ssh-ed25519 AAAA\n", []string{"9: spec.images.verify[0].keys[0]: must be a public key in PEM, as cosign.pub has it"}},
		"a key with garbage": {head + verify + "      keys:\n      - \"-----BEGIN PUBLIC KEY-----\\nAAAA\\n-----END PUBLIC KEY-----\\n\"\n", []string{
			"9: spec.images.verify[0].keys[0]: must be a public key in PEM, as cosign.pub has it"}},
		"a subject that is no expression": {head + verify + "      identities:\n      - issuer: i\n        subjectRegExp: '['\n", []string{
			"10: spec.images.verify[0].identities[0].subjectRegExp: must be a regular expression of RE2, such as https://github\\.com/acme/.*"}},
		"a subject twice": {head + verify + "      identities:\n      - {issuer: i, subject: a, subjectRegExp: b}\n", []string{
			"9: spec.images.verify[0].identities[0]: an identity needs either subject or subjectRegExp"}},
		"a signature of a tag": {head + "  images:\n    verify:\n    - images: ['a.example.com/b:1']\n      identities: [{issuer: i, subject: a}]\n", []string{
			"7: spec.images.verify[0].images[0]: must be a registry, or a repository with its registry, such as registry.example.com or docker.io/library/nginx, in lowercase and without tag"}},
		"an empty list": {head + "  images:\n    deny: []\n", []string{"6: spec.images.deny: must not be empty"}},
		"twice":         {head + "  services:\n    types: [ClusterIP, ClusterIP]\n", []string{`6: spec.services.types[1]: "ClusterIP" is there twice: keep one`}},
		"a class of balancer": {head + "  services:\n    loadBalancerClasses: [a b]\n", []string{
			"6: spec.services.loadBalancerClasses[0]: must be a name, which may have a domain before it, such as pool or example.org/pool"}},
		"external services": {head + "  services: {externalNames: [db.example.com], externalIPs: [203.0.113.0/28, '2001:db8::/48'], nodePorts: [{port: 30000, endPort: 30009}, {port: 30020}]}\n", nil},
		"an external name of the cluster": {head + "  services:\n    externalNames: [svc.cluster.local]\n", []string{
			"6: spec.services.externalNames: externalNames must not have the names of Services of the cluster, which end with svc or local"}},
		"an external name with a wildcard": {head + "  services:\n    externalNames:\n    - '*.example.com'\n", []string{
			"7: spec.services.externalNames[0]: must be a host name such as web.example.org, in lowercase and without port"}},
		"every external IP": {head + "  services:\n    externalIPs: [0.0.0.0/0]\n", []string{
			"6: spec.services.externalIPs: every entry of externalIPs must be a CIDR with a part of all addresses, such as 203.0.113.0/28"}},
		"an external IP of no range": {head + "  services:\n    externalIPs: [203.0.113.7]\n", []string{
			"6: spec.services.externalIPs: every entry of externalIPs must be a CIDR with a part of all addresses, such as 203.0.113.0/28"}},
		"node ports backwards":    {head + "  services:\n    nodePorts:\n    - {port: 30009, endPort: 30000}\n", []string{"7: spec.services.nodePorts[0]: endPort must not be below port"}},
		"a node port as a number": {head + "  services:\n    nodePorts: [30009]\n", []string{"6: spec.services.nodePorts[0]: must be of type object, not integer"}},
		"egress":                  {head + "  egress: {cidrs: [203.0.113.0/24, '2001:db8::/32'], ports: [{port: 443}, {protocol: UDP, port: 8000, endPort: 8999}]}\n", nil},
		"egress to nothing":       {head + "  egress:\n    ports: [{port: 443}]\n", []string{"5: spec.egress.cidrs is required"}},
		"egress to no range": {head + "  egress:\n    cidrs:\n    - 203.0.113.0\n", []string{
			"6: spec.egress.cidrs: every entry of cidrs must be a CIDR, such as 203.0.113.0/24 or 2001:db8::/32"}},
		"egress to a name": {head + "  egress:\n    cidrs: [example.com]\n", []string{
			"6: spec.egress.cidrs: every entry of cidrs must be a CIDR, such as 203.0.113.0/24 or 2001:db8::/32"}},
		"egress to no port":           {head + "  egress:\n    cidrs: [0.0.0.0/0]\n    ports:\n    - port: 65536\n", []string{"8: spec.egress.ports[0].port: must be less than or equal to 65535"}},
		"egress to ports backwards":   {head + "  egress:\n    cidrs: [0.0.0.0/0]\n    ports:\n    - {port: 90, endPort: 80}\n", []string{"8: spec.egress.ports[0]: endPort must not be below port"}},
		"egress by no protocol":       {head + "  egress:\n    cidrs: [0.0.0.0/0]\n    ports: [{port: 1, protocol: ICMP}]\n", []string{`7: spec.egress.ports[0].protocol: "ICMP" is not one of TCP, UDP, SCTP`}},
		"egress as a list of numbers": {head + "  egress:\n    cidrs: [0.0.0.0/0]\n    ports: [443]\n", []string{"7: spec.egress.ports[0]: must be of type object, not integer; write - port: 443"}},
		"limits":                      {head + "  limits: {max: {cpu: 4, memory: 1Gi}, min: {cpu: 10m}, default: {cpu: 2}, defaultRequest: {cpu: 1}, ratio: {cpu: 1500m}, claims: {max: 10Gi, min: 1Gi}}\n", nil},
		"limits that contradict each other": {head + "  limits:\n    max: {cpu: 1}\n    min:\n      memory: 1Gi\n      cpu: 2\n    claims:\n      max: 1Gi\n      min: 2Gi\n", []string{
			"12: spec.limits.claims.min: 2Gi is above 1Gi in claims.max; it must be at most that", "9: spec.limits.min[cpu]: 2 is above 1 in max; it must be at most that"}},
		"a limit of a device":                  {head + "  limits:\n    max: {example.com/gpu: 1}\n", []string{"6: spec.limits.max[example.com/gpu]: only cpu, memory and ephemeral-storage of containers are limited"}},
		"a quota":                              {head + "  quota: {max: {requests.cpu: 16, pods: '20'}, default: {requests.cpu: 2}}\n", nil},
		"a quota below zero":                   {head + "  quota:\n    max:\n      pods: -1\n", []string{"7: spec.quota.max[pods]: -1 is negative; it must be 0 or more"}},
		"a default above the maximum":          {head + "  quota:\n    max: {requests.cpu: 4}\n    default:\n      requests.cpu: 8\n", []string{"8: spec.quota.default[requests.cpu]: 8 is above 4 in max; it must be at most that"}},
		"a quota of no quantity":               {head + "  quota:\n    max: {pods: many}\n", []string{"6: spec.quota.max.pods: must be a quantity such as 100m or 256Mi"}},
		"an action of Pod Security":            {head + "  podSecurity: {action: Warn, level: restricted}\n", nil},
		"no action of Pod Security":            {head + "  podSecurity: {action: Refuse, level: restricted}\n", []string{`5: spec.podSecurity.action: "Refuse" is not one of Deny, Warn, Audit`}},
		"an action of egress":                  {head + "  egress: {action: Warn, cidrs: [0.0.0.0/0]}\n", []string{"5: unknown field spec.egress.action"}},
		"tolerations":                          {head + "  nodes: {tolerations: [{key: example.org/pool, value: tenants}, {key: gpu, operator: Exists, effect: NoExecute}, {key: lone, operator: Equal}]}\n", nil},
		"default classes":                      {head + "  classes: {runtime: [gvisor], defaults: {runtime: gvisor, ingress: public}}\n", nil},
		"a default class that is not allowed":  {head + "  classes:\n    priority: [batch]\n    defaults: {priority: high}\n", []string{"5: spec.classes: each class of defaults must be in the list of the same name"}},
		"nodes without a rule":                 {head + "  nodes:\n    action: Warn\n", []string{"5: spec.nodes: nodes must have a selector, tolerations or userNamespaces"}},
		"a toleration of everything":           {head + "  nodes:\n    tolerations:\n    - operator: Exists\n", []string{"7: spec.nodes.tolerations[0].key is required"}},
		"a toleration of every value with one": {head + "  nodes:\n    tolerations:\n    - {key: a, operator: Exists, value: b}\n", []string{"7: spec.nodes.tolerations[0]: a toleration with the operator Exists has no value"}},
		"a toleration of no effect":            {head + "  nodes:\n    tolerations:\n    - {key: a, effect: Evict}\n", []string{`7: spec.nodes.tolerations[0].effect: "Evict" is not one of NoSchedule, PreferNoSchedule, NoExecute`}},
		"a pattern with two stars":             {head + "  metadata: {forbiddenLabels: ['*a*'], forbiddenAnnotations: ['*a*', 'a*b*c']}\n", nil},
		"a pattern with three stars":           {head + "  metadata:\n    forbiddenLabels: [a, '*a*b*']\n", []string{"6: spec.metadata.forbiddenLabels[1]: a pattern has at most two *"}},
		"added metadata":                       {head + "  metadata: {added: {labels: {team: acme, example.org/cost: ''}, annotations: {example.org/note: any text}}}\n", nil},
		"an added label of Kubernetes": {head + "  metadata:\n    added:\n      labels:\n        app.kubernetes.io/name: x\n", []string{
			"8: spec.metadata.added.labels[app.kubernetes.io/name]: is in the domain kubernetes.io, whose labels and annotations Kubernetes, Helm or kubeop act on; use a domain of your own in Git"}},
		"an added annotation of Helm and of kubeop": {head + "  metadata:\n    added:\n      annotations:\n        helm.sh/hook: x\n        paas.kubeop.io/x: x\n", []string{
			"8: spec.metadata.added.annotations[helm.sh/hook]: is in the domain helm.sh, whose labels and annotations Kubernetes, Helm or kubeop act on; use a domain of your own in Git",
			"9: spec.metadata.added.annotations[paas.kubeop.io/x]: is in the domain kubeop.io, whose labels and annotations Kubernetes, Helm or kubeop act on; use a domain of your own in Git"}},
		"an added label that is forbidden": {head + "  metadata:\n    forbiddenLabels: [te*]\n    added:\n      labels: {team: x}\n", []string{
			"8: spec.metadata.added.labels[team]: is forbidden by the same policy; take it out of one of them in Git"}},
		"an added label that has no such value": {head + "  metadata:\n    added:\n      labels: {team: a b}\n", []string{
			"7: spec.metadata.added.labels.team: must be the value of a label: letters, digits, and between them dashes, dots and underscores"}},
		"a level of pods":                 {head + "  podSecurity: {level: baseline, version: v1.34}\n", nil},
		"a level that no tenant may have": {head + "  podSecurity:\n    level: privileged\n", []string{`6: spec.podSecurity.level: "privileged" is not one of restricted, baseline`}},
		"a version without a level":       {head + "  podSecurity:\n    version: latest\n", []string{"5: spec.podSecurity.level is required"}},
		"an unreadable version":           {head + "  podSecurity:\n    level: baseline\n    version: '1.34'\n", []string{"7: spec.podSecurity.version: must be latest or a minor version of Kubernetes, such as v1.34"}},
		"a patch version":                 {head + "  podSecurity:\n    level: baseline\n    version: v1.34.2\n", []string{"7: spec.podSecurity.version: must be latest or a minor version of Kubernetes, such as v1.34"}},
		"no suffixes":                     {head + "  hostnames:\n    wildcards: true\n", []string{"5: spec.hostnames.suffixes is required"}},
		"a class":                         {head + "  classes:\n    storage: [Fast]\n", []string{"6: spec.classes.storage[0]: must be a name of lowercase letters, digits, dashes and dots, such as tenants-high"}},
	} {
		t.Run(name, func(t *testing.T) {
			d, got := findings(t, identity.Ref{Policy: "baseline"}, c.text, false)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if policy, ok := d.Object.(*v1alpha1.Policy); len(c.want) == 0 && (!ok || policy.Name != "baseline") {
				t.Errorf("the object is %v", d.Object)
			}
		})
	}
}

// verify begins a rule about signatures, and publicKey is a key for it.
const (
	verify    = "  images:\n    verify:\n    - images: [a.example.com]\n"
	publicKey = `"-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEdaybSypmw3np2YGkdwcgRxt3jyRU\nORUFSxBT4bCl2prLA9Lf7B/aDlsSDE64FqXefes+eJG1G78SDoBGc4ouyw==\n-----END PUBLIC KEY-----\n"`
)

func TestAPolicyIsInAFileOfThePoliciesFolder(t *testing.T) {
	_, got := findings(t, aTenant, "apiVersion: paas.kubeop.io/v1alpha1\nkind: Policy\nmetadata: {name: acme}\n", false)
	if diff := cmp.Diff([]string{"2: Policies are declared in policies/<policy>.yaml of the platform repository only"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	kinds, err := compiled()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"baseline": "", "Base": "the file's name must be at most 63 lowercase letters, digits and dashes"} {
		if got := kinds.Name(identity.Ref{Policy: name}); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}
