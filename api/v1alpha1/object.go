package v1alpha1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The step runner needs the schedule and the common status, including conditions, of every kind.

// GetSchedule returns a copy, because the interval of a Repository has another default.
func (o *Repository) GetSchedule() *Schedule {
	p := &o.Spec.Polling
	return &Schedule{Pace: Pace{Interval: p.Interval, RetryInterval: p.RetryInterval}, Suspend: p.Suspend}
}
func (o *Repository) GetReconcileStatus() *ReconcileStatus { return &o.Status.ReconcileStatus }
func (o *Repository) GetConditions() []metav1.Condition    { return o.Status.Conditions }
func (o *Repository) SetConditions(c []metav1.Condition)   { o.Status.Conditions = c }

func (o *Tenant) GetSchedule() *Schedule               { return &o.Spec.Schedule }
func (o *Tenant) GetReconcileStatus() *ReconcileStatus { return &o.Status.ReconcileStatus }
func (o *Tenant) GetConditions() []metav1.Condition    { return o.Status.Conditions }
func (o *Tenant) SetConditions(c []metav1.Condition)   { o.Status.Conditions = c }

func (o *Project) GetSchedule() *Schedule               { return &Schedule{Pace: o.Spec.Pace} }
func (o *Project) GetReconcileStatus() *ReconcileStatus { return &o.Status.ReconcileStatus }
func (o *Project) GetConditions() []metav1.Condition    { return o.Status.Conditions }
func (o *Project) SetConditions(c []metav1.Condition)   { o.Status.Conditions = c }

// GetSchedule returns the default interval: events report what changes.
func (o *Registry) GetSchedule() *Schedule {
	return &Schedule{Pace: Pace{Interval: metav1.Duration{Duration: 10 * time.Minute}}}
}
func (o *Registry) GetReconcileStatus() *ReconcileStatus { return &o.Status.ReconcileStatus }
func (o *Registry) GetConditions() []metav1.Condition    { return o.Status.Conditions }
func (o *Registry) SetConditions(c []metav1.Condition)   { o.Status.Conditions = c }

func (o *App) GetSchedule() *Schedule               { return &o.Spec.Schedule }
func (o *App) GetReconcileStatus() *ReconcileStatus { return &o.Status.ReconcileStatus }
func (o *App) GetConditions() []metav1.Condition    { return o.Status.Conditions }
func (o *App) SetConditions(c []metav1.Condition)   { o.Status.Conditions = c }
