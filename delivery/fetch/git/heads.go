package git

import (
	"context"
	"fmt"
	"strings"

	"github.com/kubeop/kubeop/delivery/fetch/transport"
)

// Heads lists the branches of a repository with the hashes of their commits, in one request. Its errors are those of Fetch.
func (s *Store) Heads(ctx context.Context, src Source) (map[string]string, error) {
	heads, err := transport.Within(ctx, s.limits.Timeouts, func(ctx context.Context) (map[string]string, error) {
		ctx = onBehalfOf(ctx, src.Tenant)
		from, err := s.way(ctx, s.repository(src), src)
		if err != nil {
			return nil, err
		}
		refs, err := from.open(ctx)
		if err != nil {
			return nil, err
		}
		defer refs.Close()
		heads := map[string]string{}
		for name, hash := range refs.advertised().References {
			if branch, ok := strings.CutPrefix(name, branchRefs); ok {
				heads[branch] = hash.String()
			}
		}
		return heads, nil
	})
	if err != nil {
		return nil, fmt.Errorf("listing the branches of %s: %w", transport.SafeURL(src.URL), src.Auth.NameSecret(err))
	}
	return heads, nil
}
