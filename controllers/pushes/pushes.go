// Package pushes decides how a push to a Repository is noticed: at once by the push hook, or by polling, and how often.
package pushes

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/command"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
)

const (
	// unreported is the interval while the push hook reports no pushes. Controllers spread intervals by 5 %, so it is at most a minute.
	unreported = 57 * time.Second
	// reported is the interval while the push hook reports pushes. calledLately is how long a call counts. A hook that no longer gets
	// through is noticed after this time.
	reported     = 10 * time.Minute
	calledLately = 24 * time.Hour
	// lockedOut is the interval while the Git host refuses the credentials. Hosts lock out clients after some failed logins, and the
	// operator is one client for all tenants. A change of the Secret causes a fetch at once.
	lockedOut = 5 * time.Minute
	// settling is the time after a start during which the push hook is not relied on: Git hosts send a call only once, so those that come
	// between the end of one operator and the moment when the Service forwards to the next are lost. Each repository is polled once more after it.
	settling = time.Minute
)

// tokenKey is the Secret's key that signs calls of the push hook.
const tokenKey = "token"

// Hook knows the keys of the push hook.
type Hook struct {
	// Namespace is that of the Secrets.
	Namespace string
	// Secrets reads the metadata of Secrets from a cache. Keys reads their key "token" from a cache; nil if the operator serves no hook.
	Secrets, Keys client.Reader

	start sync.Once
	// started is the time of the first reconciliation, which on a replica that becomes the leader is not that of its process.
	started time.Time
}

// Note returns the condition HookClosed: calls of the push hook for the repository are refused for lack of a key.
func (h *Hook) Note(ctx context.Context, repository *v1alpha1.Repository) step.Note {
	note := step.Note{Condition: v1alpha1.HookClosedCondition}
	ref := repository.Spec.HookSecretRef
	if ref == nil {
		note.Status, note.Reason = metav1.ConditionTrue, v1alpha1.HookNotSetReason
		note.Message = fmt.Sprintf("pushes are found by polling only, %s. To deliver them at once, an administrator sets %s", often(repository), setting(repository))
		return note
	}
	missing := h.missing(ctx, ref.Name)
	if missing == "" {
		return note
	}
	note.Status, note.Reason, note.Event = metav1.ConditionTrue, v1alpha1.SecretMissingReason, corev1.EventTypeWarning
	note.Message = fmt.Sprintf("%s, which spec.hookSecretRef names: reports of pushes are refused, and pushes are found by polling only, %s. token is the key "+
		"that the Git host signs with; %s", missing, often(repository), command.WriteSecret(h.Namespace, ref.Name, "token"))
	return note
}

// missing says what is missing of a Secret; "" if nothing is, or if it cannot be read.
func (h *Hook) missing(ctx context.Context, name string) string {
	key, about := client.ObjectKey{Namespace: h.Namespace, Name: name}, &metav1.PartialObjectMetadata{}
	about.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	if apierrors.IsNotFound(h.Secrets.Get(ctx, key, about)) {
		return fmt.Sprintf("there is no Secret %s/%s", h.Namespace, name)
	}
	if h.Keys == nil {
		return ""
	}
	secret := &corev1.Secret{}
	if err := h.Keys.Get(ctx, key, secret); err == nil && len(secret.Data[tokenKey]) == 0 {
		return fmt.Sprintf("there is no key %q in the Secret %s/%s", tokenKey, h.Namespace, name)
	}
	return ""
}

// setting says which setting names the Secret of the hook.
func setting(repository *v1alpha1.Repository) string {
	if repository.Name == v1alpha1.PlatformRepository {
		return "platform.hookSecretRef of the chart"
	}
	return fmt.Sprintf("spec.repository.hookSecretRef of Tenant %s", repository.Spec.Tenant)
}

// often says how often a repository without a push hook is polled.
func often(repository *v1alpha1.Repository) string {
	if d := repository.Spec.Interval.Duration; d > 0 {
		return fmt.Sprintf("every %s", d)
	}
	return "every minute"
}

// Interval returns the pause between two polls: that of the spec, or the default. closed means that calls of the push hook are refused, and failed is
// why the last fetch failed, nil if it did not.
func (h *Hook) Interval(repository *v1alpha1.Repository, closed bool, failed error, now time.Time) time.Duration {
	h.start.Do(func() { h.started = now })
	switch {
	case repository.Spec.Interval.Duration > 0:
		return repository.Spec.Interval.Duration
	case repository.Spec.SecretRef != nil && errors.Is(failed, failure.ErrAuthentication):
		return lockedOut
	case !closed && called(repository, now) && now.Sub(h.started) >= settling:
		return reported
	}
	return unreported
}

// called reports whether the push hook reported a push lately. The annotation is part of the object, so that all replicas and the next leader
// know of the call. A time in the future counts: the clock was set back since.
func called(repository *v1alpha1.Repository, now time.Time) bool {
	at, err := time.Parse(time.RFC3339, repository.Annotations[v1alpha1.HookCalledAnnotation])
	return err == nil && now.Sub(at) < calledLately
}
