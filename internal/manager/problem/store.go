package problem

import (
	"context"
	"errors"

	"github.com/go-logr/logr"

	"github.com/kubeop/kubeop/internal/store"
)

// FromStore returns the answer for an error of the store. The reason goes to the log.
func FromStore(ctx context.Context, err error) *Problem {
	if errors.Is(err, store.ErrNotFound) {
		return New(NotFound, "")
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return late(ctx, err)
	}
	logr.FromContextOrDiscard(ctx).Error(err, "Using the store")
	return New(Unavailable, "The store of the manager does not answer.")
}
