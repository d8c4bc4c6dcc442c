package tenant

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/home"
	"github.com/kubeop/kubeop/controllers/rollup"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/apply"
)

// scope holds the facts of one Reconcile.
type scope struct {
	tenant *v1alpha1.Tenant
	// home is the tenant's namespace.
	home string
	// made records which objects were applied.
	made *apply.Ledger
	// declared are the tenant's existing projects, set by guard.
	declared v1alpha1.ProjectList
	// apps are the apps of these projects, set by guard; nil before.
	apps *rollup.Apps
	// budget is what the projects have of the tenant's budget, that of the last pass until guard sets it; nil without a budget.
	budget *v1alpha1.BudgetStatus
	// guards are the states of the tenant's guards, those of the last pass until guard sets them.
	guards []v1alpha1.GuardStatus
	// keys are the public keys for encrypted files, those of the last pass until makeKey sets them; nil if the tenant never had one.
	keys *v1alpha1.SopsStatus
	// over and unenforced are the conditions OverBudget and NotEnforced, set by guard.
	over, unenforced step.Note
	// projects is the number of projects, that of the last status until applyRepository sets it.
	projects int
	// unfollowed is the number of projects from a repository that the tenant does not have any more, set by applyRepository.
	unfollowed int
	// notes are conditions beside those of the steps, and heading the beginning of Ready's message.
	notes   []step.Note
	heading string
}

func (r *Reconciler) newScope(tenant *v1alpha1.Tenant) *scope {
	frozen, heading := home.Frozen(tenant)
	if frozen.Status != "" {
		frozen.Event = corev1.EventTypeNormal
	}
	return &scope{
		notes:    []step.Note{r.Notified(tenant), frozen},
		heading:  heading + home.StoppedHeading(tenant),
		tenant:   tenant,
		home:     v1alpha1.HomeNamespace(tenant.Name),
		made:     apply.NewLedger(r.Applier, r.Direct, tenant.Status.Inventory),
		projects: tenant.Status.Projects,
		budget:   tenant.Status.Budget,
		guards:   tenant.Status.Guards,
		keys:     tenant.Status.Sops,
	}
}

// Record writes the results into the status.
func (s *scope) Record() {
	s.tenant.Status.Namespace = s.home
	s.tenant.Status.Projects = s.projects
	s.tenant.Status.Budget = s.budget
	s.tenant.Status.Guards = s.guards
	s.tenant.Status.Sops = s.keys
	if s.apps != nil {
		s.apps.Record(&s.tenant.Status.AppCounts)
	}
	s.tenant.Status.Inventory = s.made.Inventory()
}

// Summary is the message of Ready. It points out settings that are valid but probably not intended.
func (s *scope) Summary() string {
	summary := fmt.Sprintf("Home is namespace %s", s.home)
	if len(s.tenant.Spec.Owners) == 0 {
		summary += "; spec.owners is empty, so that only administrators have access"
	}
	if s.unfollowed > 0 {
		summary += fmt.Sprintf("; %d of its projects stay as they are, because spec.repository was removed", s.unfollowed)
	}
	return summary
}

// Heading is the beginning of Ready's message: that the tenant is frozen or stopped.
func (s *scope) Heading() string { return s.heading }

// Notes returns the conditions beside those of the steps.
func (s *scope) Notes() []step.Note {
	notes := slices.Clone(s.notes)
	if s.apps != nil { // The projects are known, too.
		notes = append(notes, s.apps.Note(), s.stopped())
	}
	for _, note := range []step.Note{s.over, s.unenforced} {
		if note.Condition != "" {
			notes = append(notes, note)
		}
	}
	return notes
}

// labels returns the labels of all objects that are created for the tenant itself.
func (s *scope) labels() map[string]string {
	return map[string]string{v1alpha1.TenantLabel: s.tenant.Name}
}
