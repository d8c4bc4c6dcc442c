// Package denial recognizes refusals of the API server that have no type: neither a reason of their own nor a cause, only a message. No other
// package compares such messages; what has a type is recognized with apierrors. The tests get each message from a real API server. Pure.
package denial

import (
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// The messages are parts of those of Kubernetes; the comments say where they are made.
const (
	// plugin/pkg/admission/resourcequota, in apiserver's resourcequota/controller.go.
	overQuota = "exceeded quota:"
	uncounted = "status unknown for quota:"
	// apiserver's admission/plugin/policy/validating, about a policy or a binding.
	unjudged = "denied request: failed to configure "
	// pkg/registry/rbac, in rbac/validation.
	escalation = "attempting to grant RBAC permissions not currently held"
	// apiextensions-apiserver, customresource_handler.go.
	definitionEnds = "custom resource definition is terminating"
	// etcd's rpctypes, and the API server's client of etcd, which sends no more than 2 MiB.
	tooLarge = "etcdserver: request is too large"
	unsent   = "trying to send message larger than max"
)

// ByQuota reports whether an object would exceed a quota.
func ByQuota(err error) bool { return apierrors.IsForbidden(err) && says(err, overQuota) }

// ByNewQuota reports whether a quota refused an object because it is so new that nothing was counted yet. The same request succeeds soon.
func ByNewQuota(err error) bool { return apierrors.IsForbidden(err) && says(err, uncounted) }

// Unjudged reports whether an object was refused because an admission policy could not judge it: the API server does not serve the parameters of
// the policy yet, as just after its start, has not seen those of the namespace, or could not read them in time. Such a refusal is Invalid, as all
// refusals of policies are, but the same request may succeed later.
func Unjudged(err error) bool { return says(err, unjudged) }

// Escalation reports whether a Role or a binding was refused because it grants rights that the account that writes it does not have. It needs
// only the text of the error: of one in a Helm release only the masked text is left.
func Escalation(err error) bool { return err != nil && strings.Contains(err.Error(), escalation) }

// DefinitionEnds reports whether an object was refused because the CustomResourceDefinition of its kind is being deleted.
func DefinitionEnds(err error) bool {
	return (apierrors.IsForbidden(err) || apierrors.IsMethodNotSupported(err)) && says(err, definitionEnds)
}

// ForSize reports whether an object was refused because it is larger than the API server accepts or etcd stores. What etcd refuses, or is not
// even sent to it, is answered by an internal error.
func ForSize(err error) bool {
	return apierrors.IsRequestEntityTooLargeError(err) || says(err, tooLarge) || says(err, unsent)
}

// says reports whether an answer of the API server has words in its message. It reports false for any other error with these words.
func says(err error, words string) bool {
	var answer apierrors.APIStatus
	return errors.As(err, &answer) && strings.Contains(answer.Status().Message, words)
}
