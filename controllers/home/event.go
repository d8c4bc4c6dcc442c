package home

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// event sends an event about the object and one about the namespace, because the namespace and its events may be deleted soon.
func (h Home) event(kind, reason, message string) {
	h.Steps.Events.Eventf(h.Of, nil, kind, reason, "Reconcile", "%s", message)
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: h.Name}}
	h.Steps.Events.Eventf(ns, nil, kind, reason, "Reconcile", "%s", message)
}
