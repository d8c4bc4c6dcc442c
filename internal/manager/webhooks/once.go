package webhooks

import (
	"context"
	"errors"

	"github.com/kubeop/kubeop/internal/kms"
	"github.com/kubeop/kubeop/internal/manager/auth"
	"github.com/kubeop/kubeop/internal/manager/once"
	"github.com/kubeop/kubeop/internal/manager/problem"
	"github.com/kubeop/kubeop/internal/store"
)

// once does a write of the caller once for its Idempotency-Key.
func (o *Operations) once(ctx context.Context, key once.Key, of []any, answer any, do func(id string, done bool) error) error {
	return once.Do(ctx, o.Store, once.Request{Key: key, Caller: auth.Of(ctx).Token.ID, Of: of, Now: store.Time(o.Now())}, answer, do)
}

// again answers a request that was made before, with the secret that it made. It returns nil if it was not made.
func (o *Operations) again(ctx context.Context, of, id, secret string, done bool) (*answer[WebhookSecret], error) {
	w, err := o.Store.GetWebhook(ctx, of, id)
	switch {
	case err != nil && !errors.Is(err, store.ErrNotFound):
		return nil, problem.FromStore(ctx, err)
	case err != nil || w.Secret.ID != secret:
		if done {
			return nil, problem.New(problem.Conflict, "The request was made before, and the secret that it made is not that of the webhook any more. Nothing was written.")
		}
		return nil, nil
	}
	keys, err := kms.Read(o.KeyFile)
	if err != nil {
		return nil, unreadable(ctx, err)
	}
	text, err := keys.Open(kms.Place{Table: w.Secret.Kind, ID: w.Secret.ID}, kms.Sealed{Key: w.Secret.Key, Data: w.Secret.Data})
	if err != nil {
		return nil, unreadable(ctx, err)
	}
	return &answer[WebhookSecret]{WebhookSecret{answerOf(w, store.Time(o.Now())), string(text)}}, nil
}
