package webhooks

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/uuid"

	"github.com/kubeop/kubeop/internal/kms"
	"github.com/kubeop/kubeop/internal/manager/auth"
	"github.com/kubeop/kubeop/internal/manager/problem"
	"github.com/kubeop/kubeop/internal/store"
)

const (
	// keyLife is how long an Idempotency-Key is kept, as that of writes to repositories.
	keyLife = 7 * 24 * time.Hour
	// recordTimeout is how long the store may take for what is recorded when the caller may have left.
	recordTimeout = 5 * time.Second
)

// Once has the header by which a request is made once.
type Once struct {
	IdempotencyKey string `header:"Idempotency-Key" maxLength:"255" pattern:"^[!-~]*$" doc:"Any text that is used for one request, such as a UUID. If the request is sent again, with the same body, it has the same answer, also with its secret."`
}

// once makes a write at most once for its Idempotency-Key. of is what is requested. do gets an ID that is derived from the key, or a new one without a key.
// Answers are stored and sent again, but those with a secret are not, because they would be stored as plain text. Then do runs again, gets whether the
// write was made before, and finds its result by the ID.
func (o *Operations) once(ctx context.Context, key Once, of []any, answer any, do func(id string, done bool) error) error {
	if key.IdempotencyKey == "" {
		return do(uuid.NewString(), false)
	}
	text, err := json.Marshal(of)
	if err != nil {
		return err
	}
	hash, now := sha256.Sum256(text), o.now()
	kept, err := o.Store.BeginRequest(ctx, store.Request{Caller: auth.Of(ctx).Token.ID, Key: key.IdempotencyKey, Hash: hash[:], Created: now, Expires: now.Add(keyLife)})
	switch {
	case err != nil:
		return problem.FromStore(ctx, err)
	case string(kept.Hash) != string(hash[:]):
		return problem.New(problem.Invalid, "The Idempotency-Key was used for another request. Nothing was written.", problem.Fault{Location: "header.Idempotency-Key", Message: "was used with another body or path"})
	case kept.Answer != nil && answer != nil:
		return json.Unmarshal(kept.Answer, answer)
	}
	// The time is that of the first request with the key: once the store has forgotten it, the key is for another one.
	id := uuid.NewSHA1(uuid.NameSpaceOID, []byte(kept.Caller+"\x00"+kept.Key+"\x00"+strconv.FormatInt(kept.Created.UnixMicro(), 10)+"\x00"+string(hash[:])))
	done := kept.Answer != nil
	failed := do(id.String(), done)
	if done {
		return failed
	}
	o.settle(ctx, kept, answer, failed)
	return failed
}

// settle keeps the answer of a request, or forgets the request if it was refused. What fails here changes nothing for the caller.
func (o *Operations) settle(ctx context.Context, kept store.Request, answer any, failed error) {
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	var err error
	var refused *problem.Problem
	switch {
	case failed == nil:
		if kept.Answer, err = json.Marshal(answer); err == nil {
			err = o.Store.FinishRequest(limited, kept, store.Event{}) // What was written has its event.
		}
	case errors.As(failed, &refused) && refused.Status < http.StatusInternalServerError:
		err = o.Store.ForgetRequest(limited, kept)
	}
	if err != nil {
		logr.FromContextOrDiscard(ctx).Error(err, "Keeping the answer for an Idempotency-Key")
	}
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
	return &answer[WebhookSecret]{WebhookSecret{answerOf(w, o.now()), string(text)}}, nil
}
