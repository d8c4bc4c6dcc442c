package project

import (
	"fmt"
	"slices"
	"strings"
	"time"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/delivered"
	"github.com/kubeop/kubeop/controllers/home"
	"github.com/kubeop/kubeop/controllers/refusal"
	"github.com/kubeop/kubeop/controllers/registry"
	"github.com/kubeop/kubeop/controllers/rollup"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/apply"
	"github.com/kubeop/kubeop/delivery/backoff"
	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/delivery/few"
	"github.com/kubeop/kubeop/delivery/fingerprint"
	"github.com/kubeop/kubeop/delivery/inventory"
	"github.com/kubeop/kubeop/delivery/isolation"
)

// scope holds the facts of one Reconcile.
type scope struct {
	project *v1alpha1.Project
	// tenant is the owner, set by resolve.
	tenant *v1alpha1.Tenant
	// namespace is the project's namespace, named after the tenant and the project.
	namespace string
	// made records which objects were applied.
	made    *apply.Ledger
	network network
	rules   rules
	bounds
	counted
	entrance
	// current reports whether a newer version of the project is refused.
	current refusal.Report
	// promotion is what is promoted to the project.
	promotion promotion
	// again is when to look whether a host name can be released; 0 for none.
	again time.Duration
	// stopped is set by stop.
	stopped halt
	// pulls are the pull Secrets of the project.
	pulls registry.Held
}

// counted is what the project's apps are, and what they delivered, set by resolve and again by grant.
type counted struct {
	// apps are nil before, and while the numbers in the status stay as they are for another rest, although they have changed.
	apps *rollup.Apps
	rest time.Duration
	// delivered is nil before, and while the project is being deleted.
	delivered *delivered.Report
}

// entrance is what is known of who gets in.
type entrance struct {
	// revoked is the error of revoke; nil if all was taken away that the tenant may not have any more.
	revoked error
	// widened is the name of a RoleBinding because of which people get no kubeconfigs, set by grant; "" for none.
	widened string
}

// bounds is what is to be said about the quota and the limits, set by guard.
type bounds struct {
	// lowered: the quota is lower than the project's own, because the tenant's other projects have many objects.
	lowered bool
	// excess says by how much the project uses more than its quota, which was lowered.
	excess string
	// conflicts say which limits of containers and claims do not fit together.
	conflicts []string
}

// promotion is the condition about promotions, and their status.
type promotion struct {
	note   step.Note
	status v1alpha1.PromotionStatus
}

// halt is the condition Stopped, and when to look again because of it; 0 for its interval.
type halt struct {
	note  step.Note
	again time.Duration
}

// byVersion are the kinds of objects that a change of a policy writes, so that this does not have to write the status of the Project as well. That of a
// ResourceQuota changes too often.
var byVersion = fingerprint.ByVersion{
	{Kind: "Namespace"}, {Kind: "LimitRange"}, {Group: v1alpha1.Group, Kind: v1alpha1.GuardrailsKind}, {Group: networkingv1.GroupName, Kind: "NetworkPolicy"},
	isolation.ClusterPolicyKind.GroupKind(),
}

func (r *Reconciler) newScope(project *v1alpha1.Project) *scope {
	note, promotions := r.Promotions(project)
	pulls, rest := registry.HeldBy(&project.Status)
	return &scope{
		promotion: promotion{note, promotions},
		project:   project,
		namespace: v1alpha1.ProjectNamespace(tenantOf(project), project.Name),
		made:      r.applied.Ledger(r.Applier, r.Direct, project.UID, rest, byVersion),
		pulls:     pulls,
		current:   r.Refusals.Report(v1alpha1.ProjectKind, project, project.Status.Refused),
	}
}

// tenantOf returns the tenant that owns the home namespace of the project. An object's namespace cannot be forged; its labels can.
func tenantOf(project *v1alpha1.Project) string {
	return strings.TrimPrefix(project.Namespace, v1alpha1.HomeNamespace(""))
}

// ofPlatform reports whether the project is one of the platform itself.
func (s *scope) ofPlatform() bool { return tenantOf(s.project) == v1alpha1.PlatformTenant }

// Record writes the results into the status.
func (s *scope) Record() {
	s.project.Status.Namespace = s.namespace
	counts := s.project.Status.AppCounts
	if s.apps != nil {
		s.apps.Record(&s.project.Status.AppCounts)
	}
	s.project.Status.Refused = s.current.Refused
	s.project.Status.PromotionStatus = s.promotion.status
	s.project.Status.PullSecrets = s.pulls.Secrets
	s.project.Status.Inventory = inventory.Join(s.made.Report(s.project.Status.Inventory.Entries, counts != s.project.Status.AppCounts).Entries, s.pulls.Entries)
}

// Summary is the message of the condition Ready.
func (s *scope) Summary() string {
	summary := fmt.Sprintf("Apps live in namespace %s", s.namespace)
	if len(s.network.closed) > 0 {
		summary += fmt.Sprintf("; the egress of tenant %s to %s is not let through, because all of it is the cluster's own", s.tenant.Name, strings.Join(s.network.closed, ", "))
	}
	if len(s.network.disjoint) > 0 {
		summary += fmt.Sprintf("; nothing outside of the cluster can be reached, because no address and port is in spec.egress of all of: %s", strings.Join(s.network.disjoint, ", "))
	}
	if len(s.network.absent) > 0 {
		summary += fmt.Sprintf("; spec.network.allowFrom names projects that tenant %s does not have: %s; each can connect once it is in Git", s.tenant.Name,
			strings.Join(s.network.absent, ", "))
	}
	if s.lowered {
		summary += fmt.Sprintf("; its quota lets fewer objects be made than usual, because those of tenant %s are near spec.limits.%s of the Tenant", s.tenant.Name, budget.StoreBytes.Name)
	}
	if s.widened != "" {
		summary += fmt.Sprintf("; nobody gets a kubeconfig by the management API, because RoleBinding %s gives rights to all service accounts of the namespace: whoever has it in an app lets it name the accounts of the app",
			s.widened)
	}
	if s.excess != "" {
		summary += fmt.Sprintf("; it uses more than its quota: %s; nothing is deleted, and nothing more of it is admitted", s.excess)
	}
	if len(s.conflicts) > 0 {
		summary += "; limits contradict each other: " + strings.Join(few.Of(s.conflicts, 3), "; ")
	}
	if len(s.rules.contradictions) > 0 {
		summary += "; policies contradict each other about labels and annotations, which no object gets until an administrator of the cluster changes one of them in Git: " +
			strings.Join(few.Of(s.rules.contradictions, 3), "; ")
	}
	return summary
}

// Notes returns the conditions other than those of the steps.
func (s *scope) Notes() []step.Note {
	notes := append(slices.Clone(s.current.Notes), s.promotion.note)
	if s.tenant != nil {
		frozen, _ := home.Frozen(s.tenant)
		notes = append(notes, frozen)
	}
	if s.stopped.note.Condition != "" {
		notes = append(notes, s.stopped.note)
	}
	if s.apps != nil {
		notes = append(notes, s.apps.Note())
	}
	if s.delivered != nil {
		notes = append(notes, s.delivered.Notes...)
	}
	return notes
}

// Again returns when to look whether a host name can be released, when to look at a namespace that is stopped or resumed, when to write how many apps there are,
// when to take away again what could not be taken away, or when apps that are still at work no longer keep back the event about what the others delivered,
// whichever comes first; 0 for none of these.
func (s *scope) Again() (first time.Duration) {
	looks := []time.Duration{s.again, s.stopped.again, s.rest}
	if step.Fails(s.revoked) {
		looks = append(looks, takesEffect)
	}
	if s.delivered != nil {
		looks = append(looks, s.delivered.Again)
	}
	for _, after := range looks {
		first = backoff.Sooner(first, after)
	}
	return first
}

// StatusWritten implements step.Notified: the events follow.
func (s *scope) StatusWritten() {
	if s.delivered != nil {
		s.delivered.Sent()
	}
}

// Heading returns the beginning of Ready's message, which says that a newer version of the project is refused, and that the tenant is frozen or
// stopped.
func (s *scope) Heading() string {
	heading := s.current.Heading()
	if s.tenant != nil {
		_, frozen := home.Frozen(s.tenant)
		heading += frozen + home.StoppedHeading(s.tenant)
	}
	return heading
}

// labels returns the labels of all objects that are created for the project.
func (s *scope) labels() map[string]string {
	return map[string]string{v1alpha1.TenantLabel: tenantOf(s.project), v1alpha1.ProjectLabel: s.project.Name}
}
