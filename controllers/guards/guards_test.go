package guards

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/pod-security-admission/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
)

var ours = map[string]string{"app.kubernetes.io/name": "kubeop"}

func policy(name string) *admissionregistrationv1.ValidatingAdmissionPolicy {
	return &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: ours}}
}

// writes returns a MutatingAdmissionPolicy of the chart, and its binding.
func writes(name string) []client.Object {
	return []client.Object{
		&admissionregistrationv1.MutatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: ours}},
		&admissionregistrationv1.MutatingAdmissionPolicyBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: ours}, Spec: admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: name},
		},
	}
}

// changedBy returns an object with another spec than its digest says, as the cache has it.
func changedBy(o client.Object) client.Object {
	o.SetAnnotations(map[string]string{specDigest: "of another spec"})
	if _, err := Compare(o); err != nil {
		panic(err)
	}
	return o
}

func binding(name string, actions ...admissionregistrationv1.ValidationAction) *admissionregistrationv1.ValidatingAdmissionPolicyBinding {
	return &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: ours},
		Spec:       admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: name, ValidationActions: actions},
	}
}

// installed returns the policies and bindings of the chart, which deny, without those that broken names, and with those of other.
func installed(broken []string, other ...client.Object) []client.Object {
	all := other
	chart := slices.Concat([]string{"kubeop-guardrails-deny", "kubeop-guardrails-kinds-deny"}, rules)
	for _, r := range requested {
		chart = append(chart, r.policies...)
	}
	for _, name := range chart {
		if !slices.Contains(broken, "policy "+name) {
			all = append(all, policy(name))
		}
		if !slices.Contains(broken, "binding "+name) {
			all = append(all, binding(name, admissionregistrationv1.Deny))
		}
	}
	for _, name := range []string{"kubeop-guardrails-placing", "kubeop-guardrails-pulling", "kubeop-guardrails-classing", "kubeop-guardrails-marking"} {
		for i, kind := range []string{"policy ", "binding "} {
			if !slices.Contains(broken, kind+name) {
				all = append(all, writes(name)[i])
			}
		}
	}
	return all
}

// cluster is an API server that serves MutatingAdmissionPolicies unless it is old, with kubeop's flow control unless noFlow.
type cluster struct{ old, noFlow bool }

// stateOf returns the guards of a tenant, a line each.
func (c cluster) stateOf(t *testing.T, tenant *v1alpha1.Tenant, policies []v1alpha1.Policy, objects []client.Object) ([]string, step.Note) {
	t.Helper()
	admission, err := Read(t.Context(), fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(objects...).Build(), !c.old)
	if err != nil {
		t.Fatal(err)
	}
	all, err := Cluster{Admission: admission, FlowControl: !c.noFlow, Version: api.MajorMinorVersion(1, 36)}.Of(tenant, policies)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, g := range all {
		lines = append(lines, strings.TrimSpace(g.Name+" "+string(g.State)+" "+g.Reason))
	}
	return lines, Note(all)
}

const (
	none      = " Absent no policy of the tenant has such a rule"
	claims    = "Hostnames Enforced host names have to be claimed; no policy says which a tenant may claim"
	network   = "Network RenderedOnly NetworkPolicies are written; kubeop cannot see whether the network plugin of the cluster enforces them"
	tier      = "ClusterNetworkPolicy Absent the API server does not serve policy.networking.k8s.io/v1alpha2, or clusterNetworkPolicies is false in the values of kubeop's chart, so NetworkPolicies that administrators write into a project can open more than kubeop allows"
	enforces  = " Enforced"
	sources   = "Sources RenderedOnly kubeop fetches the sources of apps, and refuses others; the API server knows no sources"
	quota     = "Quota Enforced the ResourceQuota of each project, "
	egress    = "Egress RenderedOnly the NetworkPolicy of each project opens "
	unseen    = "; kubeop cannot see whether the network plugin of the cluster enforces it"
	unwritten = "Defaults RenderedOnly kubeop writes them into the objects of apps; the API server does not write all of them into others, and refuses pods that a rule wants to have them: "
)

// without is what a tenant without policies has in a cluster with the whole chart.
func without() []string {
	return []string{
		"Admission Enforced", "Requests Enforced", "Deletions Enforced", "Operator Enforced", "Images" + none, "Services" + none, claims, "Classes" + none, "Nodes" + none, "Kinds" + none, "Metadata" + none, "Sources" + none,
		"Limits" + none, quota + "which has at most the defaults of projects", egress + "nothing outside of the cluster" + unseen,
		"Defaults Absent no policy of the tenant has defaults", "AddedMetadata Absent no policy of the tenant adds labels or annotations", "PodSecurity Enforced level restricted, version latest, by spec.podSecurity of tenant.yaml", network, tier, "FairShare Enforced",
	}
}

// with is without, with other lines in place of those of the same guards.
func with(lines ...string) []string {
	all := without()
	for _, line := range lines {
		name, _, _ := strings.Cut(line, " ")
		i := slices.IndexFunc(all, func(l string) bool { return strings.HasPrefix(l, name+" ") })
		all[i] = line
	}
	return all
}

func rulesOf(action v1alpha1.PolicyAction) []v1alpha1.Policy {
	return []v1alpha1.Policy{{ObjectMeta: metav1.ObjectMeta{Name: "standard"}, Spec: v1alpha1.PolicySpec{PolicyRules: v1alpha1.PolicyRules{
		Images:  &v1alpha1.ImageRules{Action: action, RequireDigest: true},
		Sources: &v1alpha1.SourceRules{Action: action},
	}}}}
}

func levelOf(version string) []v1alpha1.Policy {
	return []v1alpha1.Policy{{ObjectMeta: metav1.ObjectMeta{Name: "hard"}, Spec: v1alpha1.PolicySpec{PodSecurity: &v1alpha1.PodSecurityRules{Level: "restricted", Version: version}}}}
}

func addedBy(team v1alpha1.LabelValue) []v1alpha1.Policy {
	return []v1alpha1.Policy{{ObjectMeta: metav1.ObjectMeta{Name: string(team)}, Spec: v1alpha1.PolicySpec{PolicyRules: v1alpha1.PolicyRules{Metadata: &v1alpha1.MetadataRules{
		Added: &v1alpha1.AddedMetadata{Labels: map[string]v1alpha1.LabelValue{"team": team}},
	}}}}}
}

func placed(action v1alpha1.PolicyAction) []v1alpha1.Policy {
	return []v1alpha1.Policy{{ObjectMeta: metav1.ObjectMeta{Name: "pool"}, Spec: v1alpha1.PolicySpec{PolicyRules: v1alpha1.PolicyRules{
		Nodes: &v1alpha1.NodeRules{Action: action, Selector: map[string]v1alpha1.LabelValue{"pool": "tenants"}},
	}}}}
}

func sandboxed() []v1alpha1.Policy {
	return []v1alpha1.Policy{{ObjectMeta: metav1.ObjectMeta{Name: "sandbox"}, Spec: v1alpha1.PolicySpec{PolicyRules: v1alpha1.PolicyRules{
		Classes: &v1alpha1.ClassRules{Defaults: &v1alpha1.ClassDefaults{Runtime: "gvisor"}},
	}}}}
}

func pulling() []v1alpha1.Policy {
	return []v1alpha1.Policy{{ObjectMeta: metav1.ObjectMeta{Name: "fresh"}, Spec: v1alpha1.PolicySpec{PolicyRules: v1alpha1.PolicyRules{
		Images: &v1alpha1.ImageRules{PullPolicies: []string{"Always"}}, Nodes: &v1alpha1.NodeRules{UserNamespaces: true},
	}}}}
}

// TestRulesThatKubernetesEnforcesAreReported, with the files that state it.
func TestRulesThatKubernetesEnforcesAreReported(t *testing.T) {
	one := resource.MustParse("1")
	policies := []v1alpha1.Policy{
		{ObjectMeta: metav1.ObjectMeta{Name: "sizes"}, Spec: v1alpha1.PolicySpec{Limits: &v1alpha1.LimitRules{Max: corev1.ResourceList{corev1.ResourceCPU: one}}, Quota: &v1alpha1.QuotaRules{Default: corev1.ResourceList{corev1.ResourcePods: one}}}},
		{ObjectMeta: metav1.ObjectMeta{Name: "narrow"}, Spec: v1alpha1.PolicySpec{Quota: &v1alpha1.QuotaRules{Max: corev1.ResourceList{corev1.ResourcePods: one}}, Egress: &v1alpha1.EgressRules{CIDRs: []string{"192.0.2.0/24"}}}},
	}
	tenant := &v1alpha1.Tenant{Spec: v1alpha1.TenantSpec{Quota: corev1.ResourceList{corev1.ResourcePods: one}, Egress: []string{"192.0.2.0/24"}}}
	got, note := cluster{}.stateOf(t, tenant, policies, installed(nil))
	want := with("Limits Enforced the LimitRange of each project, by spec.limits of policies/sizes.yaml", quota+"by spec.quota of policies/narrow.yaml, tenant.yaml",
		egress+"outside of the cluster only what spec.egress allows of policies/narrow.yaml, tenant.yaml"+unseen)
	if diff := cmp.Diff(want, got); diff != "" || note.Status == metav1.ConditionTrue {
		t.Errorf("guards (-want +got):\n%s\n%+v", diff, note)
	}
	if got, _ = (cluster{}).stateOf(t, tenant, nil, installed([]string{"policy kubeop-tenant-namespaces"})); got[0] != "Admission RenderedOnly ValidatingAdmissionPolicy kubeop-tenant-namespaces does not exist" {
		t.Errorf("without the policy about namespaces: %q", got[0])
	}
}

func TestAGuardHoldsOnlyIfItsPoliciesAreInTheCluster(t *testing.T) {
	const judging = "kubeop-guardrails-deny"
	both := append(rulesOf(v1alpha1.DenyAction), rulesOf(v1alpha1.WarnAction)...)
	for name, test := range map[string]struct {
		policies []v1alpha1.Policy
		domains  []string
		objects  []client.Object
		noFlow   bool
		// old: the API server does not serve MutatingAdmissionPolicies.
		old  bool
		want []string
		// message is a part of the condition NotEnforced; "" if there is none.
		message string
	}{
		"no policies":                  {objects: installed(nil), want: without()},
		"no shares":                    {objects: installed(nil), noFlow: true, want: with("FairShare Absent flowControl of the chart is turned off, so a tenant can slow down the requests of others to the API server")},
		"denied":                       {policies: rulesOf(v1alpha1.DenyAction), objects: installed(nil), want: with("Images"+enforces, sources)},
		"denied by one, warned by one": {policies: both, objects: installed(nil), want: with("Images"+enforces, sources)},
		"warned":                       {policies: rulesOf(v1alpha1.WarnAction), objects: installed(nil), want: with("Images Absent policies only warn", "Sources Absent policies only warn")},
		"recorded":                     {policies: rulesOf(v1alpha1.AuditAction), objects: installed(nil), want: with("Images Absent policies only record", "Sources Absent policies only record")},
		"domains":                      {domains: []string{"example.com"}, objects: installed(nil), want: with("Hostnames" + enforces)},
		"labels of a policy": {policies: addedBy("acme"), objects: installed(nil), want: with("AddedMetadata RenderedOnly kubeop writes them into the objects of apps; " +
			"into other new pods, Services and claims the API server writes those that are missing")},
		"labels of a policy, in an older Kubernetes": {policies: addedBy("acme"), objects: installed(nil), old: true, want: with("AddedMetadata RenderedOnly kubeop writes them into the objects of apps; " +
			"the API server writes them into no others: it does not serve MutatingAdmissionPolicy v1, which Kubernetes has from 1.36 on")},
		"labels of a policy, without a binding": {policies: addedBy("acme"), objects: installed([]string{"binding kubeop-guardrails-marking"}), want: with("AddedMetadata RenderedOnly kubeop writes them into " +
			"the objects of apps; the API server writes them into no others: MutatingAdmissionPolicyBinding kubeop-guardrails-marking does not exist: an administrator of the cluster installs the chart again")},
		"labels of nodes":                          {policies: placed(v1alpha1.DenyAction), objects: installed(nil), want: with("Nodes"+enforces, "Defaults"+enforces)},
		"labels of nodes, of which a policy warns": {policies: placed(v1alpha1.WarnAction), objects: installed(nil), want: with("Nodes Absent policies only warn")},
		"labels of nodes, in an older Kubernetes": {policies: placed(v1alpha1.DenyAction), objects: installed(nil), old: true,
			want: with("Nodes"+enforces, unwritten+"it does not serve MutatingAdmissionPolicy v1, which Kubernetes has from 1.36 on")},
		"a pull policy and user namespaces, without a policy": {policies: pulling(), objects: installed([]string{"policy kubeop-guardrails-pulling"}),
			want: with("Images"+enforces, "Nodes"+enforces, unwritten+"MutatingAdmissionPolicy kubeop-guardrails-pulling does not exist: an administrator of the cluster installs the chart again")},
		"a pull policy and user namespaces": {policies: pulling(), objects: installed(nil), want: with("Images"+enforces, "Nodes"+enforces, "Defaults"+enforces)},
		"a default class":                   {policies: sandboxed(), objects: installed(nil), want: with("Classes"+enforces, "Defaults"+enforces)},
		"a default class, without a binding": {policies: sandboxed(), objects: installed([]string{"binding kubeop-guardrails-classing"}),
			want: with("Classes"+enforces, unwritten+"MutatingAdmissionPolicyBinding kubeop-guardrails-classing does not exist: an administrator of the cluster installs the chart again")},
		"labels of nodes, without a policy": {policies: placed(v1alpha1.DenyAction), objects: installed([]string{"policy kubeop-guardrails-placing"}),
			want: with("Nodes"+enforces, unwritten+"MutatingAdmissionPolicy kubeop-guardrails-placing does not exist: an administrator of the cluster installs the chart again")},
		"labels of nodes, without a binding": {policies: placed(v1alpha1.DenyAction), objects: installed([]string{"binding kubeop-guardrails-placing"}),
			want: with("Nodes"+enforces, unwritten+"MutatingAdmissionPolicyBinding kubeop-guardrails-placing does not exist: an administrator of the cluster installs the chart again")},
		"policies that contradict each other about a label": {policies: append(addedBy("acme"), addedBy("beta")...), objects: installed(nil), want: without()},
		"Pod Security of a policy": {policies: levelOf("v1.35"), objects: installed(nil),
			want: with("PodSecurity Enforced level restricted, version v1.35, by spec.podSecurity of policies/hard.yaml, tenant.yaml")},
		"Pod Security of a newer Kubernetes": {policies: levelOf("v1.37"), objects: installed(nil),
			want: with("PodSecurity Enforced level restricted, version v1.37, by spec.podSecurity of policies/hard.yaml, tenant.yaml; the API server is v1.36 and has no newer checks: " +
				"an administrator of the cluster names at most that version in Git")},
		"a policy is missing": {
			policies: rulesOf(v1alpha1.DenyAction), objects: installed([]string{"policy " + judging}),
			want:    with("Images RenderedOnly ValidatingAdmissionPolicy "+judging+" does not exist", "Hostnames RenderedOnly ValidatingAdmissionPolicy "+judging+" does not exist", sources),
			message: "does not enforce Images, Hostnames: ValidatingAdmissionPolicy " + judging + " does not exist; kubeop checks apps",
		},
		"a binding is missing": {
			policies: rulesOf(v1alpha1.DenyAction), objects: installed([]string{"binding " + judging}),
			want: with("Images RenderedOnly ValidatingAdmissionPolicyBinding "+judging+" does not exist",
				"Hostnames RenderedOnly ValidatingAdmissionPolicyBinding "+judging+" does not exist", sources),
			message: "does not enforce Images, Hostnames: ",
		},
		"the policy of kinds is missing": {
			policies: []v1alpha1.Policy{{Spec: v1alpha1.PolicySpec{PolicyRules: v1alpha1.PolicyRules{Kinds: &v1alpha1.KindRules{Deny: []string{"Job.batch"}}}}}},
			objects:  installed([]string{"policy kubeop-guardrails-kinds-deny"}),
			want:     with("Kinds RenderedOnly ValidatingAdmissionPolicy kubeop-guardrails-kinds-deny does not exist"),
			message:  "does not enforce Kinds: ",
		},
		"what no rule needs is missing": {objects: installed([]string{"binding kubeop-guardrails-kinds-deny"}), want: without()},
		"a binding only warns and records": {
			objects: installed([]string{"binding kubeop-volumes"}, binding("kubeop-volumes", admissionregistrationv1.Warn, admissionregistrationv1.Audit)),
			want:    with("Admission RenderedOnly ValidatingAdmissionPolicyBinding kubeop-volumes has the actions [Warn Audit], without Deny"),
			message: "does not enforce Admission: ValidatingAdmissionPolicyBinding kubeop-volumes has",
		},
		"a binding warns and denies": {
			objects: installed([]string{"binding kubeop-volumes"}, binding("kubeop-volumes", admissionregistrationv1.Warn, admissionregistrationv1.Deny)), want: without(),
		},
		"somebody changed a policy": {
			objects: installed([]string{"policy kubeop-volumes"}, changedBy(policy("kubeop-volumes"))),
			want:    with("Admission RenderedOnly somebody changed the spec of ValidatingAdmissionPolicy kubeop-volumes, or removed its digest"),
			message: "does not enforce Admission: somebody changed the spec of ValidatingAdmissionPolicy kubeop-volumes, or removed its digest; kubeop checks",
		},
		"somebody changed a binding": {
			objects: installed([]string{"binding kubeop-volumes"}, changedBy(binding("kubeop-volumes", admissionregistrationv1.Deny))),
			want:    with("Admission RenderedOnly somebody changed the spec of ValidatingAdmissionPolicyBinding kubeop-volumes, or removed its digest"),
			message: "does not enforce Admission: somebody changed the spec of ValidatingAdmissionPolicyBinding kubeop-volumes, or removed its digest; kubeop checks",
		},
		"somebody changed what writes defaults": {
			policies: sandboxed(), objects: installed([]string{"binding kubeop-guardrails-classing"}, changedBy(writes("kubeop-guardrails-classing")[1])),
			want: with("Classes"+enforces, unwritten+"somebody changed the spec of MutatingAdmissionPolicyBinding kubeop-guardrails-classing, or removed its digest: an administrator of the cluster installs the chart again"),
		},
		"several bindings are missing": {
			objects: installed([]string{"binding kubeop-placement", "binding kubeop-volumes", "binding kubeop-stopped"}),
			want:    with("Admission RenderedOnly ValidatingAdmissionPolicyBinding kubeop-placement does not exist; and 2 more"),
			message: "does not enforce Admission: ValidatingAdmissionPolicyBinding kubeop-placement does not exist; and 2 more; kubeop checks",
		},
		"owners may change all of their objects": {
			objects: installed([]string{"policy kubeop-requests"}), want: with("Requests Absent ValidatingAdmissionPolicy kubeop-requests does not exist"),
			message: "does not enforce Requests: ValidatingAdmissionPolicy kubeop-requests does not exist; kubeop checks",
		},
		"nothing keeps a namespace": {
			objects: installed([]string{"binding kubeop-delete-namespaces"}, binding("kubeop-delete-namespaces", admissionregistrationv1.Audit)),
			want:    with("Deletions Absent ValidatingAdmissionPolicyBinding kubeop-delete-namespaces has the actions [Audit], without Deny"),
			message: "does not enforce Deletions: ",
		},
		"nothing holds the operator": {
			objects: installed([]string{"policy kubeop-operator-homes", "policy kubeop-platform-apps"}),
			want:    with("Operator Absent ValidatingAdmissionPolicy kubeop-operator-homes does not exist; and 1 more"),
			message: "does not enforce Operator: ",
		},
		"claims do not bind": {
			objects: installed([]string{"binding kubeop-guardrails-deny"}),
			want:    with("Hostnames RenderedOnly ValidatingAdmissionPolicyBinding kubeop-guardrails-deny does not exist"),
			message: "does not enforce Hostnames: ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			tenant := &v1alpha1.Tenant{Spec: v1alpha1.TenantSpec{Domains: test.domains}}
			got, note := cluster{test.old, test.noFlow}.stateOf(t, tenant, test.policies, test.objects)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("guards (-want +got):\n%s", diff)
			}
			if there := note.Status == metav1.ConditionTrue; there != (test.message != "") || there != (note.Event == corev1.EventTypeWarning) {
				t.Errorf("NotEnforced is %+v", note)
			}
			if !strings.Contains(note.Message, test.message) {
				t.Errorf("the message is %q, without %q", note.Message, test.message)
			}
		})
	}
}

// TestABindingOfAnotherNameCountsForNothing: it may select other objects, or another chart's policy.
func TestABindingOfAnotherNameCountsForNothing(t *testing.T) {
	other := binding("extra", admissionregistrationv1.Deny)
	other.Spec.PolicyName = "kubeop-volumes"
	foreign := binding("kubeop-volumes", admissionregistrationv1.Deny)
	foreign.Labels = nil
	for name, o := range map[string]client.Object{"name": other, "label": foreign} {
		got, _ := cluster{}.stateOf(t, &v1alpha1.Tenant{}, nil, installed([]string{"binding kubeop-volumes"}, o))
		if want := "Admission RenderedOnly ValidatingAdmissionPolicyBinding kubeop-volumes does not exist"; got[0] != want {
			t.Errorf("by its %s: %q, want %q", name, got[0], want)
		}
	}
}

// TestEveryPolicyOfTheChartIsInAGuard: a policy that is in none could go, or be changed, and no tenant would say so.
func TestEveryPolicyOfTheChartIsInAGuard(t *testing.T) {
	guard := map[string]string{"kubeop-tenant-namespaces": Rules, "kubeop-requests": Requests}
	for folder, name := range map[string]string{"tenants": Rules, "deletions": Deletions, "operator": Operator, "platform": Operator} {
		for _, policy := range namesIn(t, folder) {
			guard[policy] = name
		}
	}
	for _, policy := range namesIn(t, "requests") {
		if guard[policy] == "" {
			t.Errorf("this test does not know of which guard %s is", policy)
		}
	}
	want := map[string][]string{Rules: {"kubeop-guardrails-present"}}
	for policy, name := range guard {
		want[name] = append(want[name], policy)
	}
	for _, policies := range want {
		slices.Sort(policies)
	}
	got := map[string][]string{Rules: rules}
	for _, r := range requested {
		got[r.name] = r.policies
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-chart +guards.go:\n%s", diff)
	}
}

// namesIn returns the names of the policies in a folder of the chart.
func namesIn(t *testing.T, folder string) (names []string) {
	t.Helper()
	files, err := filepath.Glob("../../charts/kubeop/policies/" + folder + "/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%s has %d files: %v", folder, len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(text), "\n  name: ")
		name, _, _ := strings.Cut(rest, "\n")
		names = append(names, name)
	}
	return names
}

func TestAFailedListIsAnError(t *testing.T) {
	away := errors.New("the API server is away")
	for _, kind := range []string{"ValidatingAdmissionPolicies", "ValidatingAdmissionPolicyBindings", "MutatingAdmissionPolicies", "MutatingAdmissionPolicyBindings"} {
		reader := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithInterceptorFuncs(interceptor.Funcs{
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				gvk, err := apiutil.GVKForObject(list, scheme.Scheme)
				if err != nil {
					return err
				}
				if mapped, _ := meta.UnsafeGuessKindToResource(gvk.GroupVersion().WithKind(strings.TrimSuffix(gvk.Kind, "List"))); mapped.Resource == strings.ToLower(kind) {
					return away
				}
				return c.List(ctx, list, opts...)
			},
		}).Build()
		_, err := Read(t.Context(), reader, true)
		if want := "listing the " + kind + ": the API server is away"; !errors.Is(err, away) || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestOnlyWhatChangesAGuardWakes(t *testing.T) {
	denies := binding("kubeop-volumes", admissionregistrationv1.Deny)
	newer := denies.DeepCopy()
	newer.Spec.MatchResources = &admissionregistrationv1.MatchResources{}
	audits := binding("kubeop-volumes", admissionregistrationv1.Audit)
	foreign := audits.DeepCopy()
	foreign.Labels = nil
	policy := policy("kubeop-volumes")
	edited, mended := policy.DeepCopy(), policy.DeepCopy()
	edited.Annotations, mended.Annotations = map[string]string{compared: "false"}, map[string]string{compared: "true"}
	for name, test := range map[string]struct {
		wakes, want bool
	}{
		"created":                     {Changed.Create(event.CreateEvent{Object: denies}), true},
		"created by somebody else":    {Changed.Create(event.CreateEvent{Object: foreign}), false},
		"deleted":                     {Changed.Delete(event.DeleteEvent{Object: denies}), true},
		"other actions":               {Changed.Update(event.UpdateEvent{ObjectOld: denies, ObjectNew: audits}), true},
		"the same actions":            {Changed.Update(event.UpdateEvent{ObjectOld: denies, ObjectNew: newer}), false},
		"a policy is created":         {Changed.Create(event.CreateEvent{Object: policy}), true},
		"a policy is changed":         {Changed.Update(event.UpdateEvent{ObjectOld: mended, ObjectNew: edited}), true},
		"a policy is mended":          {Changed.Update(event.UpdateEvent{ObjectOld: edited, ObjectNew: mended}), true},
		"a policy is written again":   {Changed.Update(event.UpdateEvent{ObjectOld: policy, ObjectNew: policy}), false},
		"other actions, not kubeop's": {Changed.Update(event.UpdateEvent{ObjectOld: denies, ObjectNew: foreign}), false},
	} {
		if test.wakes != test.want {
			t.Errorf("%s: wakes is %t", name, test.wakes)
		}
	}
}
