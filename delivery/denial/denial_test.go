package denial

import (
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// recognizers are the functions of this package by name.
var recognizers = map[string]func(error) bool{
	"ByQuota": ByQuota, "ByNewQuota": ByNewQuota, "Unjudged": Unjudged, "Escalation": Escalation, "DefinitionEnds": DefinitionEnds, "ForSize": ForSize,
}

// TestOnlyAnswersOfTheAPIServerAreRecognized by their messages, and only those with the reason that such an answer has.
func TestOnlyAnswersOfTheAPIServerAreRecognized(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	forbidden := func(why string) error { return apierrors.NewForbidden(pods, "web", errors.New(why)) }
	answer := func(code int32, reason metav1.StatusReason, message string) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Code: code, Reason: reason, Message: message}}
	}
	for name, c := range map[string]struct {
		err  error
		want string // The name of the function that recognizes it; "" for none.
	}{
		"over a quota":                   {forbidden("exceeded quota: kubeop, requested: pods=1"), "ByQuota"},
		"over a quota, wrapped":          {fmt.Errorf("Pod/web: %w", forbidden("exceeded quota: kubeop")), "ByQuota"},
		"an invalid name like a quota's": {answer(422, metav1.StatusReasonInvalid, "exceeded quota: kubeop"), ""},
		"a new quota":                    {forbidden("status unknown for quota: small, resources: pods"), "ByNewQuota"},
		"a policy without parameters":    {answer(422, metav1.StatusReasonInvalid, "ValidatingAdmissionPolicy 'a' denied request: failed to configure binding: no params found"), "Unjudged"},
		"a policy that judged":           {answer(422, metav1.StatusReasonInvalid, "ValidatingAdmissionPolicy 'a' denied request: Images: no"), ""},
		"a role":                         {forbidden("user is attempting to grant RBAC permissions not currently held: []"), "Escalation"},
		"a role, only its text":          {errors.New("attempting to grant RBAC permissions not currently held: []"), "Escalation"},
		"a kind that ends":               {forbidden("create not allowed while custom resource definition is terminating"), "DefinitionEnds"},
		"a conflict about such a kind":   {answer(409, metav1.StatusReasonConflict, "custom resource definition is terminating"), ""},
		"too large for the API server":   {apierrors.NewRequestEntityTooLargeError("limit is 3145728"), "ForSize"},
		"too large for etcd":             {answer(500, "", "etcdserver: request is too large"), "ForSize"},
		"too large to be sent to etcd":   {answer(500, "", "rpc error: code = ResourceExhausted desc = trying to send message larger than max (2097459 vs. 2097152)"), "ForSize"},
		"another refusal":                {forbidden("no right"), ""},
		"only text about a quota":        {errors.New("exceeded quota: kubeop"), ""},
		"only text about a policy":       {errors.New("denied request: failed to configure policy"), ""},
		"only text about a kind":         {errors.New("custom resource definition is terminating"), ""},
		"only text about a size":         {errors.New("etcdserver: request is too large"), ""},
		"no error":                       {nil, ""},
	} {
		t.Run(name, func(t *testing.T) { recognized(t, c.err, c.want) })
	}
}

// recognized checks that only the named function recognizes an error.
func recognized(t *testing.T, err error, by string) {
	t.Helper()
	for name, is := range recognizers {
		if got := is(err); got != (name == by) {
			t.Errorf("%s is %t for %v", name, got, err)
		}
	}
}
