package image

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
	"github.com/kubeop/kubeop/delivery/few"
)

// imageRepository is a repository of images in a registry.
type imageRepository struct{ *transport.Registry }

func (s *Store) open(ask *tagRequest) (*imageRepository, error) {
	access := ask.access
	access.Insecure = access.Insecure || slices.Contains(s.plain, ask.host)
	repository, err := transport.OpenRegistry(s.network, ask.host+"/"+ask.path, access)
	if err != nil {
		return nil, err
	}
	repository.TagListPageSize, repository.TagListMaxPages = 1000, maxTagPages
	return &imageRepository{repository}, nil
}

// hub is the registry of images without a registry in their name.
const hub = "docker.io"

// split separates the registry from the name as container runtimes do: the part before the first slash is a registry if it looks like a
// host.
func split(name string) (host, repository string) {
	first, rest, found := strings.Cut(name, "/")
	switch {
	case !found:
		return hub, "library/" + name
	case first != "localhost" && !strings.ContainsAny(first, ".:"):
		return hub, name
	case (first == hub || first == "index."+hub) && !strings.Contains(rest, "/"):
		return hub, "library/" + rest
	}
	return first, rest
}

// pullAuth returns the first pull secret that has credentials for the place, together with the certificate authorities of all.
func pullAuth(secrets []transport.Auth, place string) (transport.Auth, error) {
	var chosen transport.Auth
	for _, s := range secrets {
		chosen.CA = append(chosen.CA, s.CA...)
		if len(chosen.DockerConfig) > 0 {
			continue
		}
		// A node would not use other keys of the Secret to pull images.
		own, refresh, err := transport.Auth{DockerConfig: s.DockerConfig}.ForHost(place)
		if err != nil {
			return transport.Auth{}, err
		}
		if !own.Anonymous() || refresh != "" {
			chosen.DockerConfig, chosen.Secret = s.DockerConfig, s.Secret
		}
	}
	return chosen, nil
}

// tags lists the tags and returns their size in bytes.
func (r *imageRepository) tags(ctx context.Context) ([]string, int, error) {
	var all []string
	size := 0
	err := r.Tags(ctx, "", func(page []string) error {
		for _, tag := range page {
			size += len(tag) + 16 // the memory of a string beside its letters
			if len(all) == maxTags {
				return failure.TooMany("the number of tags of the repository", maxTags)
			}
			if size > maxTagBytes {
				return failure.TooLarge("the list of the repository's tags", maxTagBytes)
			}
			// The page is one string; a substring would keep all of it in memory.
			all = append(all, strings.Clone(tag))
		}
		return nil
	})
	if errors.Is(err, errdef.ErrTooManyPages) {
		err = failure.TooMany("the number of pages in which the registry lists the repository's tags", maxTagPages)
	}
	return all, size, r.explain(err, "repository "+few.Quote(r.Reference.Repository))
}

// explain describes an error for the owner of the pull secrets.
func (r *imageRepository) explain(err error, what string) error {
	var (
		ours   *failure.Error
		answer *errcode.ErrorResponse
	)
	if err == nil || errors.As(err, &ours) {
		return err
	}
	refused := errors.Is(err, auth.ErrBasicCredentialNotFound) || errors.As(err, &answer) && answer.StatusCode == http.StatusUnauthorized
	if refused && r.Anonymous() {
		return r.Ungranted(failure.New(failure.ErrAuthentication, "%s has no %s, or it needs credentials: check the name, or name a Secret with .dockerconfigjson for it in spec.image.pullSecrets", r.Reference.Host(), what))
	}
	if err = r.Failed(err, what); errors.Is(err, failure.ErrNotFound) {
		return failure.New(failure.ErrNotFound, "%s has no %s, or the credentials may not see it", r.Reference.Host(), what)
	}
	return err
}

// FullName returns the name of an image repository with its registry, such as "docker.io/library/nginx" for "nginx".
func FullName(name string) string {
	host, repository := split(name)
	if host == "index."+hub {
		host = hub
	}
	return host + "/" + repository
}

// Host returns the registry of an image, for pool.Source.
func Host(name string) string {
	host, _ := split(name)
	return transport.HostOf("https://" + host)
}
