package problem

import (
	"context"
	"errors"

	"github.com/go-logr/logr"

	"github.com/kubeop/kubeop/internal/store"
)

// Late returns what is answered when an operation was ended by its deadline.
func Late(ctx context.Context, err error) *Problem {
	logr.FromContextOrDiscard(ctx).Error(err, "Ending an operation that took too long")
	return New(TookTooLong, "Look whether something was written before you send the request again.")
}

// FromStore returns what is answered when the store returned an error. The reason is for the log.
func FromStore(ctx context.Context, err error) *Problem {
	if errors.Is(err, store.ErrNotFound) {
		return New(NotFound, "")
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return Late(ctx, err)
	}
	logr.FromContextOrDiscard(ctx).Error(err, "Using the store")
	return New(Unavailable, "The store of the manager does not answer.")
}
