package git

import (
	"context"
	"fmt"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/kubeop/kubeop/delivery/fetch/transport"
)

// Messages returns the messages of a commit that Fetch returned and of those that lead to it, by their hashes: at most the newest ones, and
// none of those that lead to the commit since; "" for no such commit. ErrMoved means that the source has a newer commit now. Its other errors
// are those of Fetch.
func (s *Store) Messages(ctx context.Context, src Source, commit Commit, since string, most int) (map[string]string, error) {
	messages, err := transport.Within(ctx, s.limits.Timeouts, func(ctx context.Context) (map[string]string, error) {
		ctx = onBehalfOf(ctx, src.Tenant)
		repo := s.repository(src)
		from, err := s.way(ctx, repo, src)
		if err != nil {
			return nil, err
		}
		messages := map[string]string{}
		wanted := between{commit: commit.Hash, earlier: plumbing.NewHash(since), generations: most}
		err = repo.walk(ctx, from, src, wanted, func(g *generation, newest plumbing.Hash) error {
			_, err := g.find(newest, func(at *object.Commit) bool {
				messages[at.Hash.String()] = at.Message
				return len(messages) == most
			})
			return err
		})
		return messages, err
	})
	if err != nil {
		return nil, fmt.Errorf("reading the last commits of %s: %w", transport.SafeURL(src.URL), src.Auth.NameSecret(err))
	}
	return messages, nil
}
