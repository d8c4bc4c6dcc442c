package source

import (
	"context"
	"errors"
	"fmt"

	"github.com/fluxcd/pkg/apis/meta"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/app/inputs"
	"github.com/kubeop/kubeop/delivery/fetch/cache"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
)

// sharedSource is the kind of a reference to a source with shared answers. The name is that of the source, and there is no namespace.
const sharedSource = "source"

// query is a query to a source: what, at which host, with which credentials, and how.
type query[T any] struct {
	of         *cache.Answers[T]
	what, host string
	secret     *v1alpha1.LocalSecretReference
	// fetch must not use the pass.
	fetch func(context.Context, transport.Auth) (T, error)
}

// shared returns the source's last answer to any App, or fetches it: when the answer is older than the App's interval, or the App's spec or
// reconcile request is new. Apps of one tenant share answers that were fetched with the same version of the same Secret. Tenants do not
// share answers, because the timeout and interval of one tenant would affect the others.
func shared[T any](ctx context.Context, f *Fetcher, p *pass, q query[T]) (T, error) {
	var none T
	query, err := f.query(ctx, p, q.host)
	if err != nil {
		return none, err
	}
	q.what += " of " + p.Owner.Tenant
	if q.secret != nil {
		version, err := f.Inputs.Version(ctx, p.App.Namespace, inputs.Secret, q.secret.Name)
		if err != nil {
			return none, err
		}
		q.what += fmt.Sprintf(" as %q", []string{p.App.Namespace, q.secret.Name, version})
	}
	p.last.source = q.what
	f.refer(p)
	query.Key, query.Version, query.Cause = q.what, "", p.causeOf(query.Question)
	answer, err := lastOf(p, q.of, query, func() (cache.Fetcher[T], error) {
		auth, err := transport.ReadAuth(ctx, f.Inputs.Secrets(p.Subject), p.App.Namespace, q.secret)
		return func(ctx context.Context) (T, error) { return q.fetch(ctx, auth) }, err
	})
	if !p.found.stale.waits && !errors.Is(err, failure.ErrBusy) && !errors.As(err, new(*cache.Unanswered)) {
		p.last.question = query.Question
		p.last.cause = p.commonCause(query.Question)
	}
	return answer, err
}

// causeOf names why the source is fetched again: the App's question is new; "" if it is not. The many Apps that one commit declares have
// one cause. If the question of an App changes again with the same commit, a person changed it by hand, and it gets its own cause.
func (p *pass) causeOf(q cache.Question) string {
	if !p.isNew(q) {
		return ""
	}
	cause := p.commonCause(q)
	if p.App.Annotations[v1alpha1.RevisionAnnotation] == "" || p.last.cause == cause {
		return fmt.Sprintf("%s generation %d of %s", cause, p.App.Generation, p.App.UID)
	}
	return cause
}

// commonCause names what the Apps of one commit with the same question have in common.
func (p *pass) commonCause(q cache.Question) string {
	return p.App.Annotations[v1alpha1.RevisionAnnotation] + " " + q.Request
}

// isNew reports whether the App has a new question. After a restart, its status has the last one.
func (p *pass) isNew(q cache.Question) bool {
	if (p.last.question != cache.Question{}) {
		return p.last.question != q
	}
	request, _ := meta.ReconcileAnnotationValue(p.App.Annotations)
	return p.App.Status.ObservedGeneration != p.App.Generation || p.App.Status.LastHandledReconcileAt != request
}
