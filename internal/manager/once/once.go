// Package once does a write once for its Idempotency-Key.
package once

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

	"github.com/kubeop/kubeop/internal/manager/problem"
	"github.com/kubeop/kubeop/internal/store"
)

const (
	// keyLife is how long an Idempotency-Key is kept, as that of writes to repositories.
	keyLife = 7 * 24 * time.Hour
	// recordTimeout is how long the store may take for what is recorded when the caller may have left.
	recordTimeout = 5 * time.Second
)

// Key has the header by which a request is made once.
type Key struct {
	IdempotencyKey string `header:"Idempotency-Key" maxLength:"255" pattern:"^[!-~]*$" doc:"A text that is unique to the request, such as a UUID. If the request is sent again with the same text and body, it gets the same answer, with the same secret if it has one."`
}

// Request is a write of a caller.
type Request struct {
	Key
	// Caller is the ID of the caller. Keys of different callers are independent.
	Caller string
	// Of is what is requested.
	Of []any
	// Now is as exact as the store.
	Now time.Time
}

// Do makes a write at most once for its Idempotency-Key. do gets an ID that is derived from the key, or a new one without a key. The answer is stored and sent
// again. Without an answer, as for one with a secret that would be stored as plain text, do runs again, gets whether the write was made before, and finds its
// result by the ID.
func Do(ctx context.Context, in store.Requests, r Request, answer any, do func(id string, done bool) error) error {
	if r.IdempotencyKey == "" {
		return do(uuid.NewString(), false)
	}
	text, err := json.Marshal(r.Of)
	if err != nil {
		return err
	}
	hash := sha256.Sum256(text)
	kept, err := in.BeginRequest(ctx, store.Request{Caller: r.Caller, Key: r.IdempotencyKey, Hash: hash[:], Created: r.Now, Expires: r.Now.Add(keyLife)})
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
	settle(ctx, in, kept, answer, failed)
	return failed
}

// settle keeps the answer of a request, or forgets the request if it was refused. What fails here changes nothing for the caller.
func settle(ctx context.Context, in store.Requests, kept store.Request, answer any, failed error) {
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	var err error
	var refused *problem.Problem
	switch {
	case failed == nil:
		if kept.Answer, err = json.Marshal(answer); err == nil {
			err = in.FinishRequest(limited, kept, store.Event{}) // What was written has its event.
		}
	case errors.As(failed, &refused) && refused.Status < http.StatusInternalServerError:
		err = in.ForgetRequest(limited, kept)
	}
	if err != nil {
		logr.FromContextOrDiscard(ctx).Error(err, "Keeping the answer for an Idempotency-Key")
	}
}
