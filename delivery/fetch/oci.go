package fetch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/Masterminds/semver/v3"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/errdef"
	ociremote "oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/errcode"
)

// chartMediaType is that of the layer with the chart (Helm HIP 6).
const chartMediaType = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"

// ociChart is a chart in an OCI registry.
type ociChart struct {
	*ociremote.Repository
	auth Auth
	name string
}

// fromRegistry fetches a chart from an OCI registry.
func (s *ChartStore) fromRegistry(ctx context.Context, src Chart, base *url.URL) (ChartArchive, error) {
	chart, err := openRegistry(src, base)
	if err != nil {
		return ChartArchive{}, err
	}
	tag, layer, err := chart.find(ctx, src.Version)
	if err != nil {
		return ChartArchive{}, err
	}
	if layer.Size > s.limits.chart {
		return ChartArchive{}, tooLarge("the chart", s.limits.chart)
	}
	path, digest, err := s.archive(ctx, s.source(src), layer.Digest.String(), func(ctx context.Context) (io.ReadCloser, error) {
		body, err := chart.Blobs().Fetch(ctx, layer)
		return body, chart.failed(err, "chart archive")
	})
	if err != nil {
		return ChartArchive{}, fmt.Errorf("version %s: %w", printable(tag), err)
	}
	return ChartArchive{Path: path, Name: src.Name, Version: tagVersion(tag), Digest: digest}, nil
}

// openRegistry prepares the way to the registry. The credentials are given to the library, and not to our client,
// because the registry decides by its challenge how they are used.
func openRegistry(src Chart, base *url.URL) (*ociChart, error) {
	at := base.Host + strings.TrimSuffix(base.Path, "/") + "/" + src.Name
	repo, err := ociremote.NewRepository(at)
	if err != nil {
		return nil, fail(ErrInvalid, "%s is not the name of a repository in an OCI registry: it is lower-case letters, digits, dots, dashes and slashes", printable(at))
	}
	repo.PlainHTTP = src.Insecure
	repo.TagListMaxPages = 100
	host := repo.Reference.Host()
	own, refresh, err := src.Auth.forHost(host)
	if err != nil {
		return nil, err
	}
	origin := &url.URL{Scheme: "https", Host: host}
	if src.Insecure {
		origin.Scheme = "http"
	}
	client, err := newHTTPClient(Auth{CA: src.Auth.CA}, origin, false)
	if err != nil {
		return nil, err
	}
	// A registry is asked rarely, and the client is not kept.
	client.Transport.(*guard).next.(*http.Transport).DisableKeepAlives = true
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
	return &ociChart{Repository: repo, auth: own, name: src.Name}, nil
}

// find resolves the version to a tag and reads its manifest.
func (c *ociChart) find(ctx context.Context, wish string) (tag string, layer ocispec.Descriptor, err error) {
	if _, err := semver.StrictNewVersion(wish); err == nil {
		// An exact version needs no list of tags, which some registries do not even allow to read.
		layer, err := c.manifest(ctx, versionTag(wish))
		if !errors.Is(err, ErrNotFound) {
			return versionTag(wish), layer, err
		}
	}
	versions, err := c.versions(ctx)
	if err != nil {
		return "", layer, err
	}
	chosen, err := choose(c.name, wish, versions)
	if err != nil {
		return "", layer, err
	}
	layer, err = c.manifest(ctx, versionTag(chosen.Name))
	return versionTag(chosen.Name), layer, err
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
		return nil, fail(ErrNotFound, "the registry has no chart %s: check repository and name", c.name)
	}
	return versions, nil
}

// manifest reads what is under a tag and returns its chart.
func (c *ociChart) manifest(ctx context.Context, tag string) (ocispec.Descriptor, error) {
	found, body, err := c.FetchReference(ctx, tag)
	if err := c.failed(err, "version "+printable(tagVersion(tag))+" of the chart"); err != nil {
		return ocispec.Descriptor{}, err
	}
	defer body.Close()
	if found.Size > 4*mebibyte {
		return ocispec.Descriptor{}, tooLarge("the chart's manifest", 4*mebibyte)
	}
	raw, err := content.ReadAll(body, found)
	if err != nil {
		return ocispec.Descriptor{}, fmt.Errorf("reading the chart's manifest: %w", err)
	}
	var manifest ocispec.Manifest
	if err := json.Unmarshal(raw, &manifest); err != nil {
		return ocispec.Descriptor{}, fail(ErrInvalid, "the manifest of %s is not JSON", printable(tag))
	}
	for _, layer := range manifest.Layers {
		if layer.MediaType == chartMediaType {
			return layer, nil
		}
	}
	return ocispec.Descriptor{}, fail(ErrInvalid, "%s is not a Helm chart: it has no layer of type %s", printable(tag), chartMediaType)
}

// failed explains an error of the library. Its own text may repeat what a server said, so only the status is used.
func (c *ociChart) failed(err error, what string) error {
	var answer *errcode.ErrorResponse
	switch {
	case err == nil:
		return nil
	case errors.Is(err, auth.ErrBasicCredentialNotFound):
		return fail(ErrAuthentication, "%s asks for credentials: name a Secret with username and password or .dockerconfigjson in secretRef", c.Reference.Host())
	case errors.As(err, &answer):
		res := &http.Response{StatusCode: answer.StatusCode, Request: &http.Request{URL: answer.URL}}
		return statusFailed(res, c.auth, what)
	case errors.Is(err, errdef.ErrNotFound):
		return fail(ErrNotFound, "there is no %s at this URL, or the credentials may not see it", what)
	}
	return requestFailed(err, c.Reference.Host())
}

// A tag cannot hold the "+" of build metadata; Helm writes "_" for it.
func versionTag(version string) string { return strings.ReplaceAll(version, "+", "_") }

func tagVersion(tag string) string { return strings.ReplaceAll(tag, "_", "+") }
