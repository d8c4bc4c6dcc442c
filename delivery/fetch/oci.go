package fetch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"strings"

	"github.com/Masterminds/semver/v3"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/errdef"
	ociremote "oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/limit"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
)

// chartMediaType is that of the layer with the chart (Helm HIP 6).
const chartMediaType = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"

// ociChart is a chart in an OCI registry.
type ociChart struct {
	*ociremote.Repository
	auth   transport.Auth
	name   string
	client *http.Client
	tokens *transport.TokenService
}

// found is a version of a chart in a registry.
type found struct {
	version
	// manifest is its digest, layer the chart in it.
	manifest string
	layer    ocispec.Descriptor
}

// fromRegistry fetches a chart from an OCI registry.
func (s *ChartStore) fromRegistry(ctx context.Context, r request) (ChartArchive, error) {
	chart, err := s.openRegistry(r)
	if err != nil {
		return ChartArchive{}, err
	}
	defer chart.client.CloseIdleConnections()
	at, err := s.finds.Do(ctx, r.folder+" "+r.Name+" "+r.Version, r.arrived, func() (found, error) {
		return chart.find(ctx, r.Version)
	})
	switch {
	case err != nil:
		return ChartArchive{}, err
	case at.layer.Size > s.limits.chart:
		return ChartArchive{}, chartTooLarge(s.limits.chart)
	case r.Digest == at.manifest && r.Digest != at.Digest:
		return ChartArchive{}, failure.New(failure.ErrDigest, "version %s: %s is the digest of its manifest: write that of its archive, %s", failure.Printable(at.Name), at.manifest, failure.Printable(at.Digest))
	}
	return s.archive(ctx, r, at.version, func(ctx context.Context) (io.ReadCloser, error) {
		body, err := chart.Blobs().Fetch(transport.FromStorage(ctx), at.layer)
		return body, chart.failed(err, "chart archive")
	})
}

// openRegistry is the way to a chart in a registry.
func (s *ChartStore) openRegistry(r request) (*ociChart, error) {
	at := r.base.Host + strings.TrimSuffix(r.base.Path, "/") + "/" + r.Name
	return openRegistry(s.network, at, r.Insecure, r.Auth)
}

// openRegistry prepares the way to a repository of a registry, host/path. The credentials are given to the library, and not to our client,
// because the registry decides by its challenge how they are used.
func openRegistry(network *transport.Network, at string, insecure bool, as transport.Auth) (*ociChart, error) {
	repo, err := ociremote.NewRepository(at)
	if err != nil {
		return nil, failure.New(failure.ErrInvalid, "%s is not the name of a repository in an OCI registry: it is lower-case letters, digits, dots, dashes and slashes", failure.Printable(at))
	}
	repo.PlainHTTP = insecure
	repo.TagListMaxPages = 100
	host := repo.Reference.Host()
	own, refresh, err := as.ForHost(host + "/" + repo.Reference.Repository)
	if err != nil {
		return nil, err
	}
	origin := &url.URL{Scheme: "https", Host: host}
	if insecure {
		origin.Scheme = "http"
	}
	client, tokens, err := transport.NewRegistryClient(network, transport.Auth{CA: as.CA, Certificate: as.Certificate, PrivateKey: as.PrivateKey}, origin)
	if err != nil {
		return nil, err
	}
	repo.Client = &auth.Client{
		Client: client,
		Cache:  auth.NewCache(),
		Credential: auth.StaticCredential(host, auth.Credential{
			Username: own.Username, Password: own.Password, AccessToken: own.BearerToken, RefreshToken: refresh,
		}),
	}
	if refresh != "" {
		own.BearerToken = refresh
	}
	return &ociChart{Repository: repo, auth: own, name: path.Base(at), client: client, tokens: tokens}, nil
}

// find resolves the version to a tag and reads its manifest.
func (c *ociChart) find(ctx context.Context, wish string) (found, error) {
	if _, err := semver.StrictNewVersion(wish); err == nil {
		// An exact version needs no list of tags, which some registries do not even allow to read.
		at, err := c.manifest(ctx, wish)
		if !errors.Is(err, failure.ErrNotFound) {
			return at, err
		}
	}
	versions, err := c.versions(ctx)
	if err != nil {
		return found{}, err
	}
	chosen, err := choose(c.name, wish, versions)
	if err != nil {
		return found{}, err
	}
	return c.manifest(ctx, chosen.Name)
}

func (c *ociChart) versions(ctx context.Context) ([]version, error) {
	var versions []version
	err := c.Tags(ctx, "", func(tags []string) error {
		for _, tag := range tags {
			versions = append(versions, version{Name: tagVersion(tag)})
		}
		return nil
	})
	if err := c.failed(err, "chart"); err != nil {
		return nil, err
	}
	if len(versions) == 0 {
		return nil, failure.New(failure.ErrNotFound, "the registry has no chart %s: check repository and name", c.name)
	}
	return versions, nil
}

// manifest reads what is under the tag of a version and finds its chart.
func (c *ociChart) manifest(ctx context.Context, name string) (found, error) {
	about, body, err := c.FetchReference(ctx, versionTag(name))
	if err := c.failed(err, "version "+failure.Printable(name)+" of the chart"); err != nil {
		return found{}, err
	}
	defer body.Close()
	if about.Size > 4*limit.MiB {
		return found{}, limit.TooLarge("the chart's manifest", 4*limit.MiB)
	}
	raw, err := content.ReadAll(body, about)
	if err != nil {
		return found{}, fmt.Errorf("%w: reading the chart's manifest: %w", failure.ErrUnavailable, err)
	}
	var manifest ocispec.Manifest
	if err := json.Unmarshal(raw, &manifest); err != nil {
		return found{}, failure.New(failure.ErrInvalid, "the manifest of %s is not JSON", failure.Printable(name))
	}
	for _, layer := range manifest.Layers {
		if layer.MediaType == chartMediaType {
			archive := version{Name: name, Digest: layer.Digest.String()}
			return found{version: archive, manifest: about.Digest.String(), layer: layer}, nil
		}
	}
	return found{}, failure.New(failure.ErrInvalid, "%s is not a Helm chart: it has no layer of type %s", failure.Printable(name), chartMediaType)
}

// failed explains an error of the library. Its own text may repeat what a server said, so only the status is used.
func (c *ociChart) failed(err error, what string) error {
	var (
		answer *errcode.ErrorResponse
		asked  *url.Error
	)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, auth.ErrBasicCredentialNotFound):
		return failure.New(failure.ErrAuthentication, "%s has no %s at this URL, or it needs credentials: check the URL, or name a Secret with username and password or .dockerconfigjson in secretRef", c.Reference.Host(), what)
	case errors.As(err, &answer) && c.tokens.Refusal(answer.StatusCode) != nil:
		return c.tokens.Refusal(answer.StatusCode)
	case errors.As(err, &answer):
		res := &http.Response{StatusCode: answer.StatusCode, Request: &http.Request{URL: answer.URL}}
		return transport.StatusError(res, c.auth, what)
	case errors.Is(err, errdef.ErrNotFound):
		return failure.New(failure.ErrNotFound, "there is no %s at this URL, or the credentials may not see it", what)
	case !errors.As(err, &asked):
		// Something in an answer the library makes no sense of, such as a token server it does not trust. What it wraps its
		// error in are URLs, which may be signed.
		for cause := err; cause != nil; cause = errors.Unwrap(cause) {
			err = cause
		}
		return failure.New(failure.ErrServer, "%s answers what cannot be used: %s", c.Reference.Host(), failure.Printable(c.auth.Redact(err.Error())))
	}
	return transport.RequestError(err, c.Reference.Host())
}

// A tag cannot hold the "+" of build metadata; Helm writes "_" for it.
func versionTag(version string) string { return strings.ReplaceAll(version, "+", "_") }

func tagVersion(tag string) string { return strings.ReplaceAll(tag, "_", "+") }
