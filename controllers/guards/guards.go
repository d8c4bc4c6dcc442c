// Package guards says for a tenant which guards hold, and where, so that nobody assumes isolation that is not there.
package guards

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/pod-security-admission/api"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/few"
	"github.com/kubeop/kubeop/delivery/guardrails"
	"github.com/kubeop/kubeop/delivery/isolation"
)

// Names of the guards that no policy has to state; the others have the names of package guardrails.
const (
	// Rules are the rules of docs/admission.md.
	Rules       = "Admission"
	PodSecurity = "PodSecurity"
	Network     = "Network"
	FairShare   = "FairShare"
	// Requests holds the owners of a tenant to the annotations by which they request something of kubeop.
	Requests = "Requests"
	// Deletions keeps what is of the tenant from being deleted by mistake.
	Deletions = "Deletions"
	// Operator holds the operator's own account to what is of tenants, and others from having it act with the rights of the platform.
	Operator = "Operator"
	// Tier are the ClusterNetworkPolicies of projects.
	Tier = "ClusterNetworkPolicy"
	// Added are the labels and annotations that policies add.
	Added = "AddedMetadata"
	// Defaults are what policies have the API server write into pods, and classes into other objects, that do not say it.
	Defaults = "Defaults"
)

// rules are the admission policies of the guard Rules: those of policies/tenants in the chart, the one that keeps pods from starting without Guardrails, and the one that keeps
// the tenant from changing its namespaces, by whose labels and annotations the others go.
var rules = []string{
	"kubeop-control-plane", "kubeop-disruption-budget", "kubeop-events", "kubeop-external-service", "kubeop-foreign-subject", "kubeop-forged-mark", "kubeop-frozen",
	"kubeop-grace-period", "kubeop-guardrails-present", "kubeop-home-finalizer", "kubeop-ingress-annotation", "kubeop-ingress-path", "kubeop-job-by-hand", "kubeop-kubeconfig-secret", "kubeop-network-policies", "kubeop-object-size",
	"kubeop-placement", "kubeop-platform-identity", "kubeop-platform-object", "kubeop-platform-token", "kubeop-priority-class", "kubeop-reserved-name", "kubeop-route-match",
	"kubeop-stopped", "kubeop-tenant-namespaces", "kubeop-volumes",
}

// requested are the guards about requests that kubeop does not check itself: without their admission policies nothing refuses these.
var requested = []struct {
	name     string
	policies []string
}{
	{Requests, []string{"kubeop-requests"}},
	{Deletions, []string{"kubeop-delete-definitions", "kubeop-delete-namespaces", "kubeop-delete-tenants", "kubeop-deletion-marks", "kubeop-force-removal"}},
	{Operator, []string{
		"kubeop-operator-cluster-network-policies", "kubeop-operator-cluster-roles", "kubeop-operator-flow-schemas", "kubeop-operator-homes", "kubeop-operator-namespaces",
		"kubeop-operator-volumes", "kubeop-platform-apps",
	}},
}

// judging is the admission policy of the rules of policies that deny. Those about kinds have another one, too, for kinds that no other rule is about.
const judging = "kubeop-guardrails-deny"

// families are the rules of policies, by the names of their guards.
var families = []string{
	guardrails.Images, guardrails.Services, guardrails.Hostnames, guardrails.Classes, guardrails.Nodes, guardrails.Kinds, guardrails.Metadata, guardrails.Sources,
}

// Cluster is what holds in the whole cluster.
type Cluster struct {
	*Admission
	// FlowControl: tenants have fair shares of the API server.
	FlowControl bool
	// Tier: kubeop writes ClusterNetworkPolicies.
	Tier bool
	// Version is that of the Pod Security checks that the API server enforces.
	Version api.Version
}

// Of returns the guards of a tenant that is under these policies, in a fixed order.
func (c Cluster) Of(tenant *v1alpha1.Tenant, policies []v1alpha1.Policy) ([]v1alpha1.GuardStatus, error) {
	spec := guardrails.For(tenant, policies)
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&spec)
	if err != nil {
		return nil, fmt.Errorf("encoding the guardrails of tenant %s: %w", tenant.Name, err)
	}
	stated := guardrails.Labels(content)
	all := []v1alpha1.GuardStatus{enforced(Rules, "", c.faults(rules...))}
	for _, r := range requested {
		guard := enforced(r.name, "", c.faults(r.policies...))
		if guard.State != v1alpha1.GuardEnforced {
			guard.State = v1alpha1.GuardAbsent
		}
		all = append(all, guard)
	}
	for _, family := range families {
		all = append(all, c.family(family, stated))
	}
	fair := v1alpha1.GuardStatus{Name: FairShare, State: v1alpha1.GuardEnforced}
	if !c.FlowControl {
		fair.State, fair.Reason = v1alpha1.GuardAbsent, "flowControl of the chart is turned off, so a tenant can slow down the requests of others to the API server"
	}
	all = append(all, written(tenant, policies)...)
	return append(all, c.defaults(&spec), c.added(&spec),
		v1alpha1.GuardStatus{Name: PodSecurity, State: v1alpha1.GuardEnforced, Reason: c.podSecurity(guardrails.PodSecurity(tenant, &spec), spec.PodSecurityNotices)},
		v1alpha1.GuardStatus{Name: Network, State: v1alpha1.GuardRenderedOnly, Reason: "NetworkPolicies are written; kubeop cannot see whether the network plugin of the cluster enforces them"},
		c.tier(), fair), nil
}

// tier says whether NetworkPolicies in a project can open more than kubeop's.
func (c Cluster) tier() v1alpha1.GuardStatus {
	if c.Tier {
		return v1alpha1.GuardStatus{Name: Tier, State: v1alpha1.GuardRenderedOnly,
			Reason: "one of each project keeps NetworkPolicies from opening more connections with pods, or to addresses, than kubeop allows, and cannot refuse those from addresses; kubeop cannot see whether the network plugin of the cluster enforces it"}
	}
	return v1alpha1.GuardStatus{Name: Tier, State: v1alpha1.GuardAbsent,
		Reason: "the API server does not serve " + isolation.ClusterPolicyKind.GroupVersion().String() + ", or clusterNetworkPolicies is false in the values of kubeop's chart, so NetworkPolicies that administrators write into a project can open more than kubeop allows"}
}

// family returns the state of one family of rules; stated are the labels of the tenant's Guardrails.
func (c Cluster) family(name string, stated map[string]string) v1alpha1.GuardStatus {
	field := strings.ToLower(name)
	has := func(action string) bool { return stated[v1alpha1.Group+"/"+action+"-"+field] != "" }
	switch {
	case name == guardrails.Sources && has("deny"):
		return v1alpha1.GuardStatus{Name: name, State: v1alpha1.GuardRenderedOnly, Reason: "kubeop fetches the sources of apps, and refuses others; the API server knows no sources"}
	case name == guardrails.Hostnames && !has("deny"):
		return enforced(name, "host names have to be claimed; no policy says which a tenant may claim", c.faults(judging))
	case name == guardrails.Kinds && has("deny"):
		return enforced(name, "", c.faults(judging, "kubeop-guardrails-kinds-deny"))
	case has("deny"):
		return enforced(name, "", c.faults(judging))
	case has("warn"):
		return v1alpha1.GuardStatus{Name: name, State: v1alpha1.GuardAbsent, Reason: "policies only warn"}
	case has("audit"):
		return v1alpha1.GuardStatus{Name: name, State: v1alpha1.GuardAbsent, Reason: "policies only record"}
	}
	return v1alpha1.GuardStatus{Name: name, State: v1alpha1.GuardAbsent, Reason: "no policy of the tenant has such a rule"}
}

// defaults says whether all objects get what policies write into those that do not say it.
func (c Cluster) defaults(spec *v1alpha1.GuardrailsSpec) v1alpha1.GuardStatus {
	of := guardrails.DefaultsOf(spec)
	var policies []string
	if len(of.Nodes) > 0 || of.UserNamespaces {
		policies = append(policies, "kubeop-guardrails-placing")
	}
	if of.Pull {
		policies = append(policies, "kubeop-guardrails-pulling")
	}
	if of.Classes != (v1alpha1.ClassDefaults{}) {
		policies = append(policies, "kubeop-guardrails-classing")
	}
	if len(policies) == 0 {
		return v1alpha1.GuardStatus{Name: Defaults, State: v1alpha1.GuardAbsent, Reason: "no policy of the tenant has defaults"}
	}
	for _, policy := range policies {
		if fault := c.unwritten(policy); fault != "" {
			return v1alpha1.GuardStatus{Name: Defaults, State: v1alpha1.GuardRenderedOnly,
				Reason: "kubeop writes them into the objects of apps; the API server does not write all of them into others, and refuses pods that a rule wants to have them: " + fault}
		}
	}
	return v1alpha1.GuardStatus{Name: Defaults, State: v1alpha1.GuardEnforced}
}

// added says where the labels and annotations are that policies add.
func (c Cluster) added(spec *v1alpha1.GuardrailsSpec) v1alpha1.GuardStatus {
	if spec.Added == nil {
		return v1alpha1.GuardStatus{Name: Added, State: v1alpha1.GuardAbsent, Reason: "no policy of the tenant adds labels or annotations"}
	}
	reason := "kubeop writes them into the objects of apps; into other new pods, Services and claims the API server writes those that are missing"
	if fault := c.unwritten("kubeop-guardrails-marking"); fault != "" {
		reason = "kubeop writes them into the objects of apps; the API server writes them into no others: " + fault
	}
	return v1alpha1.GuardStatus{Name: Added, State: v1alpha1.GuardRenderedOnly, Reason: reason}
}

// podSecurity says which level of Pod Security holds, in which version, and which files say so, and which levels are only warned about or recorded.
func (c Cluster) podSecurity(held v1alpha1.AppliedPodSecurity, notices []v1alpha1.AppliedPodSecurity) string {
	text := fmt.Sprintf("level %s, version %s, by spec.podSecurity of %s", held.Level, held.Version, filesOf(held.Policies))
	if pinned, err := api.ParseVersion(held.Version); err == nil && !pinned.Latest() && c.Version.Older(pinned) {
		text += fmt.Sprintf("; the API server is %s and has no newer checks: an administrator of the cluster names at most that version in Git", c.Version)
	}
	for _, of := range notices {
		what := "only warned about"
		if of.Action == v1alpha1.AuditAction {
			what = "only recorded"
		}
		text += fmt.Sprintf("; level %s, version %s, is %s, by spec.podSecurity of %s", of.Level, of.Version, what, filesOf(of.Policies))
	}
	return text
}

// enforced is a guard that holds in apps, and everywhere if nothing is wrong with its admission policies.
func enforced(name, reason string, faults []string) v1alpha1.GuardStatus {
	if len(faults) == 0 {
		return v1alpha1.GuardStatus{Name: name, State: v1alpha1.GuardEnforced, Reason: reason}
	}
	return v1alpha1.GuardStatus{Name: name, State: v1alpha1.GuardRenderedOnly, Reason: strings.Join(few.Of(faults, 1), "; ")}
}

// lacking reports whether the API server does not refuse what it would with the whole chart.
func lacking(g v1alpha1.GuardStatus) bool {
	for _, r := range requested {
		if r.name == g.Name {
			return g.State != v1alpha1.GuardEnforced
		}
	}
	return g.State == v1alpha1.GuardRenderedOnly && !slices.Contains(beside, g.Name)
}

// Note is the condition NotEnforced: it is there while the API server does not refuse what it would with the whole chart.
func Note(all []v1alpha1.GuardStatus) step.Note {
	note := step.Note{
		Condition: v1alpha1.NotEnforcedCondition, Reason: v1alpha1.SucceededReason, Message: "the API server enforces what it did not", Event: corev1.EventTypeNormal,
	}
	var names, why []string
	for _, g := range all {
		if lacking(g) {
			names, why = append(names, g.Name), append(why, g.Reason)
		}
	}
	if len(names) == 0 {
		return note
	}
	note.Status, note.Reason, note.Event = metav1.ConditionTrue, v1alpha1.RenderedOnlyReason, corev1.EventTypeWarning
	note.Message = fmt.Sprintf("the API server does not enforce %s: %s; kubeop checks apps, but nothing checks what people and pods write to the API server. An administrator of the cluster installs the "+
		"chart again, with admissionPolicies.enabled=true", strings.Join(names, ", "), strings.Join(slices.Compact(why), "; "))
	return note
}
