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
)

// sharedSource is the kind of references to sources with shared answers. Their name is the key of the source; they have no namespace.
const sharedSource = "source"

// query is a query to a shared source: what identifies the source, and the Secret of the name secret has the credentials; "" for none.
type query[T any] struct {
	of                 *cache.Answers[T]
	what, host, secret string
	// prepare reads the credentials.
	prepare func() (cache.Fetcher[T], error)
}

// shared returns the source's last answer to any App that shares it. It fetches the source if the answer is older than the App's interval,
// or if the App's spec or reconcile request is new. Apps of one tenant share answers that were fetched with the same version of the same
// Secret. Tenants do not share answers, because the timeout and interval of one tenant would affect the others.
func shared[T any](ctx context.Context, f *Fetcher, p *pass, q query[T]) (T, error) {
	var none T
	query, err := f.query(ctx, p, q.host)
	if err != nil {
		return none, err
	}
	q.what += " of " + p.Owner.Tenant
	if q.secret != "" {
		version, err := f.Inputs.Version(ctx, p.App.Namespace, inputs.Secret, q.secret)
		if err != nil {
			return none, err
		}
		q.what += fmt.Sprintf(" as %q", []string{p.App.Namespace, q.secret, version})
	}
	p.last.source = q.what
	f.refer(p)
	query.Key, query.Version, query.Cause = q.what, "", p.causeOf(query.Question)
	answer, err := lastOf(p, q.of, query, q.prepare)
	if !p.found.stale.waits && !errors.Is(err, failure.ErrBusy) && !errors.As(err, new(*cache.Unanswered)) {
		p.last.question = query.Question
		p.last.cause = p.commonCause(query.Question)
	}
	return answer, err
}

// causeOf identifies why an App has a new question; "" if the question is not new. All Apps of one commit have the same cause, so that the
// source is fetched once for all of them. If the question of an App changes again with the same commit, a person changed the App by hand,
// and the App gets its own cause.
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

// commonCause returns the cause that all Apps of one commit with the same request have.
func (p *pass) commonCause(q cache.Question) string {
	return p.App.Annotations[v1alpha1.RevisionAnnotation] + " " + q.Request
}

// isNew reports whether the App's question is new. After a restart, the status decides.
func (p *pass) isNew(q cache.Question) bool {
	if (p.last.question != cache.Question{}) {
		return p.last.question != q
	}
	request, _ := meta.ReconcileAnnotationValue(p.App.Annotations)
	return p.App.Status.ObservedGeneration != p.App.Generation || p.App.Status.LastHandledReconcileAt != request
}
