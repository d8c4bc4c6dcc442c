// Package condition reads the conditions in the status of any object. It is pure.
package condition

import (
	"cmp"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Condition is one condition of an object. Missing fields are "".
type Condition struct{ Status, Reason, Message string }

// Of returns the object's condition of a type, whatever its status; false if the object has none of that type.
func Of(o *unstructured.Unstructured, conditionType string) (Condition, bool) {
	found, _, _ := unstructured.NestedFieldNoCopy(o.Object, "status", "conditions")
	all, _ := found.([]any)
	for _, item := range all {
		fields, _ := item.(map[string]any)
		if fields["type"] != conditionType {
			continue
		}
		text := func(key string) string { value, _ := fields[key].(string); return value }
		return Condition{text("status"), text("reason"), text("message")}, true
	}
	return Condition{}, false
}

// True returns the object's condition of a type if its status is True; false otherwise.
func True(o *unstructured.Unstructured, conditionType string) (Condition, bool) {
	c, ok := Of(o, conditionType)
	if !ok || c.Status != string(corev1.ConditionTrue) {
		return Condition{}, false
	}
	return c, true
}

// JobEnded reports whether a Job has ended and whether it failed. why is the message of the Job's failure or, without a message, the
// reason; "" if the Job has neither.
func JobEnded(job *unstructured.Unstructured) (ended, failed bool, why string) {
	if _, ok := True(job, string(batchv1.JobComplete)); ok {
		return true, false, ""
	}
	c, failed := True(job, string(batchv1.JobFailed))
	return failed, failed, cmp.Or(c.Message, c.Reason)
}
