package live

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/internal/billing"
)

// Condition is the result of one step of the operator.
type Condition struct {
	Type    string    `json:"type" example:"Ready"`
	Status  string    `json:"status" enum:"True,False,Unknown"`
	Reason  string    `json:"reason" doc:"The stable reason. docs/errors.md explains each."`
	Message string    `json:"message,omitempty"`
	Since   time.Time `json:"since" doc:"When the status last changed."`
}

// State has the fields that all kinds share.
type State struct {
	Created time.Time `json:"created"`
	// Deleting is needed because an object that is being deleted still exists.
	Deleting   bool        `json:"deleting,omitempty" doc:"Whether it is being deleted."`
	Ready      string      `json:"ready" enum:"True,False,Unknown" doc:"Whether every step succeeded for what Git has now."`
	Message    string      `json:"message,omitempty" doc:"What there is to say about it."`
	Conditions []Condition `json:"conditions" nullable:"false"`
}

// Tenant is the answer about a tenant.
type Tenant struct {
	Name      string `json:"name" example:"acme"`
	Projects  int    `json:"projects" doc:"How many projects it has."`
	Apps      int    `json:"apps" doc:"How many apps it has."`
	ReadyApps int    `json:"readyApps" doc:"How many of its apps are ready."`
	Budget    string `json:"budget,omitempty" doc:"How much of its budget it uses, in one line." example:"pods 150/200, requests.cpu 12/16"`
	PriceList string `json:"priceList,omitempty" doc:"The price list that it names. Default: the one that is the default."`
	State
}

// Project is the answer about a project.
type Project struct {
	Tenant    string `json:"tenant"`
	Name      string `json:"name" example:"shop"`
	Namespace string `json:"namespace,omitempty" doc:"The namespace with its apps."`
	Apps      int    `json:"apps" doc:"How many apps it has."`
	ReadyApps int    `json:"readyApps" doc:"How many of its apps are ready."`
	State
}

// App is the answer about an app.
type App struct {
	Tenant    string `json:"tenant"`
	Project   string `json:"project"`
	Name      string `json:"name" example:"web"`
	Type      string `json:"type" enum:"Image,Git,Helm,Raw"`
	Revision  string `json:"revision,omitempty" doc:"The last revision that was applied completely." example:"main@sha1:0123456789012345678901234567890123456789"`
	Attempted string `json:"attempted,omitempty" doc:"The revision of the last attempt."`
	URL       string `json:"url,omitempty" doc:"Where it is served first."`
	State
}

// stateOf returns the state of an object. current reports whether a condition Ready is about the newest version in Git; a condition about an older
// version does not count.
func stateOf(o metav1.ObjectMeta, s v1alpha1.ReconcileStatus, current func(*metav1.Condition) bool) State {
	state := State{Created: o.CreationTimestamp.UTC(), Deleting: o.DeletionTimestamp != nil, Ready: string(metav1.ConditionUnknown), Conditions: []Condition{}}
	for _, c := range s.Conditions {
		state.Conditions = append(state.Conditions, Condition{Type: c.Type, Status: string(c.Status), Reason: c.Reason, Message: c.Message, Since: c.LastTransitionTime.UTC()})
	}
	if ready := meta.FindStatusCondition(s.Conditions, v1alpha1.ReadyCondition); ready != nil && current(ready) {
		state.Ready, state.Message = string(ready.Status), ready.Message
	}
	return state
}

// ofSpec returns the function current of stateOf for objects whose spec is all that matters.
func ofSpec(o metav1.ObjectMeta) func(*metav1.Condition) bool {
	return func(ready *metav1.Condition) bool { return ready.ObservedGeneration == o.Generation }
}

func tenantOf(t *v1alpha1.Tenant) Tenant {
	tenant := Tenant{
		Name: t.Name, Projects: t.Status.Projects, Apps: t.Status.Apps, ReadyApps: t.Status.ReadyApps, PriceList: t.Spec.PriceList, State: stateOf(t.ObjectMeta, t.Status.ReconcileStatus, ofSpec(t.ObjectMeta)),
	}
	if t.Status.Budget != nil {
		tenant.Budget = t.Status.Budget.Summary
	}
	return tenant
}

func projectOf(tenant string, p *v1alpha1.Project) Project {
	return Project{
		Tenant: tenant, Name: p.Name, Namespace: p.Status.Namespace, Apps: p.Status.Apps, ReadyApps: p.Status.ReadyApps,
		State: stateOf(p.ObjectMeta, p.Status.ReconcileStatus, ofSpec(p.ObjectMeta)),
	}
}

func appOf(tenant, project string, a *v1alpha1.App) App {
	return App{
		Tenant: tenant, Project: project, Name: a.Name, Type: string(a.Spec.Type), Revision: a.Status.LastAppliedRevision, Attempted: a.Status.LastAttemptedRevision, URL: a.Status.URL,
		State: stateOf(a.ObjectMeta, a.Status.ReconcileStatus, a.StatusIsCurrent),
	}
}

func pricesOf(p *v1alpha1.PriceList) billing.Prices {
	return billing.Prices{Name: p.Name, Spec: &p.Spec, Revision: p.Annotations[v1alpha1.RevisionAnnotation], Author: p.Annotations[v1alpha1.AuthorAnnotation]}
}
