package live

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// Condition is the result of one step of the operator.
type Condition struct {
	Type    string    `json:"type" example:"Ready"`
	Status  string    `json:"status" enum:"True,False,Unknown"`
	Reason  string    `json:"reason" doc:"The stable reason. docs/errors.md explains each."`
	Message string    `json:"message,omitempty"`
	Since   time.Time `json:"since" doc:"When the status last changed."`
}

// State is what all kinds tell of themselves.
type State struct {
	Created time.Time `json:"created"`
	// Deleting is told because an object that is being deleted is still there.
	Deleting   bool        `json:"deleting,omitempty" doc:"Whether it is being deleted."`
	Ready      string      `json:"ready" enum:"True,False,Unknown" doc:"Whether every step succeeded for what Git has now."`
	Message    string      `json:"message,omitempty" doc:"What there is to say about it."`
	Conditions []Condition `json:"conditions" nullable:"false"`
}

// Tenant is what is told of a tenant.
type Tenant struct {
	Name      string `json:"name" example:"acme"`
	Projects  int    `json:"projects" doc:"How many projects it has."`
	Apps      int    `json:"apps" doc:"How many apps it has."`
	ReadyApps int    `json:"readyApps" doc:"How many of its apps are ready."`
	State
}

// Project is what is told of a project.
type Project struct {
	Tenant    string `json:"tenant"`
	Name      string `json:"name" example:"shop"`
	Namespace string `json:"namespace,omitempty" doc:"The namespace with its apps."`
	Apps      int    `json:"apps" doc:"How many apps it has."`
	ReadyApps int    `json:"readyApps" doc:"How many of its apps are ready."`
	State
}

// App is what is told of an app.
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

func stateOf(o metav1.ObjectMeta, s v1alpha1.ReconcileStatus) State {
	state := State{Created: o.CreationTimestamp.UTC(), Deleting: o.DeletionTimestamp != nil, Ready: string(metav1.ConditionUnknown), Conditions: []Condition{}}
	for _, c := range s.Conditions {
		state.Conditions = append(state.Conditions, Condition{Type: c.Type, Status: string(c.Status), Reason: c.Reason, Message: c.Message, Since: c.LastTransitionTime.UTC()})
	}
	// A condition about an older spec says nothing about this one.
	if ready := meta.FindStatusCondition(s.Conditions, v1alpha1.ReadyCondition); ready != nil && ready.ObservedGeneration == o.Generation {
		state.Ready, state.Message = string(ready.Status), ready.Message
	}
	return state
}

func tenantOf(t *v1alpha1.Tenant) Tenant {
	return Tenant{Name: t.Name, Projects: t.Status.Projects, Apps: t.Status.Apps, ReadyApps: t.Status.ReadyApps, State: stateOf(t.ObjectMeta, t.Status.ReconcileStatus)}
}

func projectOf(tenant string, p *v1alpha1.Project) Project {
	return Project{
		Tenant: tenant, Name: p.Name, Namespace: p.Status.Namespace, Apps: p.Status.Apps, ReadyApps: p.Status.ReadyApps, State: stateOf(p.ObjectMeta, p.Status.ReconcileStatus),
	}
}

func appOf(tenant, project string, a *v1alpha1.App) App {
	state := stateOf(a.ObjectMeta, a.Status.ReconcileStatus)
	// A commit may change files beside app.yaml, such as manifests, and leave the spec as it is.
	if state.Ready == string(metav1.ConditionTrue) && a.Status.ObservedTree != a.Annotations[v1alpha1.TreeAnnotation] {
		state.Ready, state.Message = string(metav1.ConditionUnknown), ""
	}
	return App{
		Tenant: tenant, Project: project, Name: a.Name, Type: string(a.Spec.Type), Revision: a.Status.LastAppliedRevision, Attempted: a.Status.LastAttemptedRevision, URL: a.Status.URL,
		State: state,
	}
}
