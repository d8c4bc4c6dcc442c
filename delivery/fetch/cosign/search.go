package cosign

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/few"
)

// search looks for signatures that satisfy rules. It keeps no signature: each is checked when it is read.
type search struct {
	// digest of what is signed, "sha256:<hex>".
	digest string
	// left are the rules that no signature satisfies so far.
	left []*rule
	// tried is how many signatures were found, and unread is why the last of those that cannot be read cannot be.
	tried  int
	unread error
	// failed is why the registry did not serve a signature. The next time it may, so there is no verdict without it.
	failed error
}

// take checks a signature by the rules that are left.
func (s *search) take(ctx context.Context, found signature) error {
	if found.damaged != nil {
		s.unread = found.damaged
		return nil
	}
	var left []*rule
	for _, r := range s.left {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if r.why = r.check(s.digest, found); r.why != nil {
			left = append(left, r)
		}
	}
	s.left = left
	return nil
}

// skip goes on without what cannot be read, because anybody with the right to push may have put it beside a good signature. It returns the error if the
// registry is not to be asked for more.
func (s *search) skip(ctx context.Context, err error) error {
	unusable := func(kind error) bool { return errors.Is(err, kind) }
	switch {
	case ctx.Err() != nil || errors.Is(err, failure.ErrAuthentication):
		return err
	case slices.ContainsFunc([]error{failure.ErrSignature, failure.ErrTooLarge, failure.ErrNotFound}, unusable):
		s.unread = err
	default:
		s.failed = err
	}
	return nil
}

// verdict returns nil if each rule is satisfied.
func (s *search) verdict() error {
	switch {
	case len(s.left) == 0:
		return nil
	case s.failed != nil:
		return s.failed
	case s.tried == 0 && s.unread == nil:
		return failure.New(failure.ErrSignature, "it has no signature in its registry")
	}
	why := s.left[0].why
	switch {
	case why == nil:
		why = s.unread
	case s.unread != nil:
		why = fmt.Errorf("%w; another one cannot be read: %w", why, s.unread)
	}
	return failure.New(failure.ErrSignature, "none of its %d signatures is %s: %s", s.tried, s.left[0].wanted, few.Quote(why.Error()))
}
