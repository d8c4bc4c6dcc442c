package stage

import (
	"context"
	"crypto/rand"
	"fmt"

	"github.com/kubeop/kubeop/gitops/examples"
)

// Samples are the repositories of gitops/examples on the stage's Git server.
type Samples struct{ Docs, Acme, Platform *Repository }

// platformSecret and platformHook name the platform repository's Secrets.
const (
	platformSecret = "platform-git"
	platformHook   = "platform-hook"
)

// CreateSamples makes the sample repositories, fills their clones and gives the operator the credentials. Nothing is
// pushed yet. The operator has to be there before, because the Git server is told where its hook is.
func (s *Stage) CreateSamples(ctx context.Context) (*Samples, error) {
	if _, err := s.PushHello(ctx, "v1"); err != nil {
		return nil, err
	}
	samples := &Samples{}
	places := map[string]**Repository{"docs": &samples.Docs, "acme": &samples.Acme, "platform": &samples.Platform}
	for _, name := range examples.Names() {
		key := ""
		if name != "docs" {
			key = rand.Text()
		}
		repository, err := s.CreateRepository(ctx, name, key)
		if err != nil {
			return nil, err
		}
		if err := s.fill(repository); err != nil {
			return nil, err
		}
		if err := s.setCredentials(ctx, repository, key); err != nil {
			return nil, err
		}
		*places[name] = repository
	}
	return samples, nil
}

// Push ships all samples, in an order in which everything is there when it is asked for.
func (x *Samples) Push(ctx context.Context, message string) error {
	for _, repository := range []*Repository{x.Docs, x.Acme, x.Platform} {
		if err := repository.Push(ctx, message); err != nil {
			return err
		}
	}
	return nil
}

func (s *Stage) fill(r *Repository) error {
	files, err := examples.Repository(r.Name, examples.Places{GitURL: s.GitURL(), Registry: s.Cluster.Registry.Host})
	if err != nil {
		return err
	}
	for name, content := range files {
		if err := r.Write(name, content); err != nil {
			return err
		}
	}
	return nil
}

// setCredentials writes the Secrets that the samples name: "<repository>-git" and "<repository>-hook".
func (s *Stage) setCredentials(ctx context.Context, r *Repository, hookKey string) error {
	if hookKey == "" {
		return nil
	}
	err := s.SetSecret(ctx, r.Name+"-git", map[string]string{"username": r.User, "password": r.Password})
	if err != nil {
		return err
	}
	if err := s.SetSecret(ctx, r.Name+"-hook", map[string]string{"token": hookKey}); err != nil {
		return fmt.Errorf("repository %s: %w", r.Name, err)
	}
	return nil
}
