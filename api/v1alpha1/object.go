package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Every kind gives the step runner its schedule and the part of its status that all kinds share.

// GetReconcileStatus returns what every kind reports alike.
func (o *Repository) GetReconcileStatus() *ReconcileStatus { return &o.Status.ReconcileStatus }

// GetSchedule returns when to work on the object.
func (o *Repository) GetSchedule() *Schedule { return &o.Spec.Schedule }

// GetConditions returns the conditions.
func (o *Repository) GetConditions() []metav1.Condition { return o.Status.Conditions }

// SetConditions replaces the conditions.
func (o *Repository) SetConditions(c []metav1.Condition) { o.Status.Conditions = c }

// GetReconcileStatus returns what every kind reports alike.
func (o *Tenant) GetReconcileStatus() *ReconcileStatus { return &o.Status.ReconcileStatus }

// GetSchedule returns when to work on the object.
func (o *Tenant) GetSchedule() *Schedule { return &o.Spec.Schedule }

// GetConditions returns the conditions.
func (o *Tenant) GetConditions() []metav1.Condition { return o.Status.Conditions }

// SetConditions replaces the conditions.
func (o *Tenant) SetConditions(c []metav1.Condition) { o.Status.Conditions = c }

// GetReconcileStatus returns what every kind reports alike.
func (o *Project) GetReconcileStatus() *ReconcileStatus { return &o.Status.ReconcileStatus }

// GetSchedule returns when to work on the object.
func (o *Project) GetSchedule() *Schedule { return &Schedule{Pace: o.Spec.Pace} }

// GetConditions returns the conditions.
func (o *Project) GetConditions() []metav1.Condition { return o.Status.Conditions }

// SetConditions replaces the conditions.
func (o *Project) SetConditions(c []metav1.Condition) { o.Status.Conditions = c }

// GetReconcileStatus returns what every kind reports alike.
func (o *App) GetReconcileStatus() *ReconcileStatus { return &o.Status.ReconcileStatus }

// GetSchedule returns when to work on the object.
func (o *App) GetSchedule() *Schedule { return &o.Spec.Schedule }

// GetConditions returns the conditions.
func (o *App) GetConditions() []metav1.Condition { return o.Status.Conditions }

// SetConditions replaces the conditions.
func (o *App) SetConditions(c []metav1.Condition) { o.Status.Conditions = c }
