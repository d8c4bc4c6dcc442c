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

// keyLife is how long an Idempotency-Key is kept.
const keyLife = 7 * 24 * time.Hour

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

// Begun is a request whose Idempotency-Key the store has.
type Begun struct {
	// ID is derived from the key. It stays the same when the request is sent again, so that its result is found even if its answer was lost.
	ID string
	// Answered is true if the request was made before, and has an answer.
	Answered bool

	in   store.Requests
	kept store.Request
}

// Begin stores the key of a request. It sets answer, unless nil, to that of the same request that was made before. Its errors are Problems; one says that
// the key was used for another request.
func Begin(ctx context.Context, in store.Requests, r Request, answer any) (*Begun, error) {
	text, err := json.Marshal(r.Of)
	if err != nil {
		return nil, err
	}
	hash := sha256.Sum256(text)
	kept, err := in.BeginRequest(ctx, store.Request{Caller: r.Caller, Key: r.IdempotencyKey, Hash: hash[:], Created: r.Now, Expires: r.Now.Add(keyLife)})
	if err != nil {
		return nil, problem.FromStore(ctx, err)
	}
	if string(kept.Hash) != string(hash[:]) {
		return nil, problem.New(problem.Invalid, "The Idempotency-Key was used for another request. Nothing was written.", problem.Fault{Location: "header.Idempotency-Key", Message: "was used with another body or path"})
	}
	// The time is that of the first request with the key: once the store has forgotten it, the key is for another one.
	id := uuid.NewSHA1(uuid.NameSpaceOID, []byte(kept.Caller+"\x00"+kept.Key+"\x00"+strconv.FormatInt(kept.Created.UnixMicro(), 10)+"\x00"+string(hash[:])))
	b := &Begun{ID: id.String(), Answered: kept.Answer != nil, in: in, kept: kept}
	if b.Answered && answer != nil {
		err = json.Unmarshal(kept.Answer, answer)
	}
	return b, err
}

// Settle stores the answer of a request and the event of its write, or forgets the request if it was refused. An error here changes nothing for the
// caller, who finds the result by the ID.
func (b *Begun) Settle(ctx context.Context, answer any, event store.Event, failed error) {
	limited, cancel := store.Detached(ctx)
	defer cancel()
	var err error
	var refused *problem.Problem
	switch {
	case failed == nil:
		kept := b.kept
		if kept.Answer, err = json.Marshal(answer); err == nil {
			err = b.in.FinishRequest(limited, kept, event)
		}
	case errors.As(failed, &refused) && refused.Status < http.StatusInternalServerError:
		err = b.in.ForgetRequest(limited, b.kept)
	}
	if err != nil {
		logr.FromContextOrDiscard(ctx).Error(err, "Keeping the answer for an Idempotency-Key", "request", b.ID)
	}
}

// Do makes a write at most once for its Idempotency-Key. do gets an ID that is derived from the key, or a new one without a key. The answer is stored and sent
// again. Without an answer, as for one with a secret that would be stored as plain text, do runs again, gets whether the write was made before, and finds its
// result by the ID.
func Do(ctx context.Context, in store.Requests, r Request, answer any, do func(id string, done bool) error) error {
	if r.IdempotencyKey == "" {
		return do(uuid.NewString(), false)
	}
	begun, err := Begin(ctx, in, r, answer)
	if err != nil || begun.Answered && answer != nil {
		return err
	}
	failed := do(begun.ID, begun.Answered)
	if !begun.Answered {
		begun.Settle(ctx, answer, store.Event{}, failed) // What was written has its event.
	}
	return failed
}
