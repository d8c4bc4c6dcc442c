package git

import (
	"context"
	"fmt"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/kubeop/kubeop/delivery/fetch/transport"
)

// Logged is a commit of a log, as the commit has it, which nothing proves.
type Logged struct {
	// Author is as in Commit.
	Author  string
	Time    time.Time
	Message string
}

// Messages returns the messages of Log.
func (s *Store) Messages(ctx context.Context, src Source, commit Commit, since string, most int) (map[string]string, error) {
	log, err := s.Log(ctx, src, commit, since, most)
	if err != nil {
		return nil, err
	}
	messages := make(map[string]string, len(log))
	for hash, c := range log {
		messages[hash] = c.Message
	}
	return messages, nil
}

// Log returns a commit that Fetch returned and those that lead to it, by their hashes: at most the newest ones, and none of those that lead to
// the commit since; "" for no such commit. ErrMoved means that the source has a newer commit now. Its other errors are those of Fetch.
func (s *Store) Log(ctx context.Context, src Source, commit Commit, since string, most int) (map[string]Logged, error) {
	log, err := transport.Within(ctx, s.limits.Timeouts, func(ctx context.Context) (map[string]Logged, error) {
		ctx = onBehalfOf(ctx, src.Tenant)
		repo := s.repository(src)
		from, err := s.way(ctx, repo, src)
		if err != nil {
			return nil, err
		}
		log := map[string]Logged{}
		wanted := between{commit: commit.Hash, earlier: plumbing.NewHash(since), generations: most}
		err = repo.walk(ctx, from, src, wanted, func(g *generation, newest plumbing.Hash) error {
			_, err := g.find(newest, func(at *object.Commit) bool {
				log[at.Hash.String()] = Logged{Author: authorOf(at), Time: at.Committer.When, Message: at.Message}
				return len(log) == most
			})
			return err
		})
		return log, err
	})
	if err != nil {
		return nil, fmt.Errorf("reading the last commits of %s: %w", transport.SafeURL(src.URL), src.Auth.NameSecret(err))
	}
	return log, nil
}
