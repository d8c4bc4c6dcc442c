package chart

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/Masterminds/semver/v3"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"

	"github.com/kubeop/kubeop/delivery/fetch/chart/index"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/limit"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
	"github.com/kubeop/kubeop/delivery/few"
)

// chartMediaType is the media type of the layer with the chart (Helm HIP 6).
const chartMediaType = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"

// ociChart is a chart in an OCI registry.
type ociChart struct {
	*transport.Registry
	name string
}

// found is a version of a chart in a registry.
type found struct {
	index.Version
	// manifest is the digest of the manifest, layer its chart.
	manifest string
	layer    ocispec.Descriptor
}

// fromRegistry fetches a chart from an OCI registry.
func (s *Store) fromRegistry(ctx context.Context, r request) (Archive, error) {
	chart, err := s.openRegistry(r)
	if err != nil {
		return Archive{}, err
	}
	defer chart.Close()
	at, err := s.finds.Do(ctx, r.folder+" "+r.Name+" "+r.Version, r.arrived, func() (found, error) {
		return chart.find(ctx, r.Version)
	})
	switch {
	case err != nil:
		return Archive{}, err
	case at.layer.Size > s.limits.chart:
		return Archive{}, chartTooLarge(s.limits.chart)
	case r.Digest == at.manifest && r.Digest != at.Digest:
		return Archive{}, failure.New(failure.ErrDigest, "version %s: %s is the digest of its manifest: write in Git that of its archive, %s", few.Quote(at.Name), at.manifest, few.Quote(at.Digest))
	}
	archive, err := s.archive(ctx, r, at.Version, func(ctx context.Context) (io.ReadCloser, error) {
		body, err := chart.Blob(ctx, at.layer)
		return body, chart.Failed(err, "chart archive")
	})
	archive.Manifest = at.manifest
	return archive, err
}

// openRegistry opens the repository of a chart in a registry.
func (s *Store) openRegistry(r request) (*ociChart, error) {
	at := r.base.Host + strings.TrimSuffix(r.base.Path, "/") + "/" + r.Name
	repository, err := transport.OpenRegistry(s.network, at, transport.Access{Auth: r.Auth, Insecure: r.Insecure, Mirror: r.Mirror})
	return &ociChart{repository, r.Name}, err
}

// find resolves the version to a tag and reads its manifest.
func (c *ociChart) find(ctx context.Context, requested string) (found, error) {
	if _, err := semver.StrictNewVersion(requested); err == nil {
		// An exact version needs no list of tags; some registries do not allow it to be read.
		at, err := c.manifest(ctx, requested)
		if !errors.Is(err, failure.ErrNotFound) {
			return at, err
		}
	}
	versions, err := c.versions(ctx)
	if err != nil {
		return found{}, err
	}
	chosen, err := index.Choose(c.name, requested, versions)
	if err != nil {
		return found{}, err
	}
	return c.manifest(ctx, chosen.Name)
}

func (c *ociChart) versions(ctx context.Context) ([]index.Version, error) {
	var versions []index.Version
	err := c.Tags(ctx, "", func(tags []string) error {
		for _, tag := range tags {
			versions = append(versions, index.Version{Name: tagVersion(tag)})
		}
		return nil
	})
	if err := c.Failed(err, "chart"); err != nil {
		return nil, err
	}
	if len(versions) == 0 {
		return nil, failure.New(failure.ErrNotFound, "the registry has no chart %s: check repository and name in Git", c.name)
	}
	return versions, nil
}

// manifest reads the manifest that a version's tag names, and finds its chart.
func (c *ociChart) manifest(ctx context.Context, name string) (found, error) {
	about, body, err := c.FetchReference(ctx, versionTag(name))
	if err := c.Failed(err, "version "+few.Quote(name)+" of the chart"); err != nil {
		return found{}, err
	}
	defer body.Close()
	if about.Size > 4*limit.MiB {
		return found{}, failure.TooLarge("the chart's manifest", 4*limit.MiB)
	}
	raw, err := content.ReadAll(body, about)
	if err != nil {
		return found{}, fmt.Errorf("%w: reading the chart's manifest: %w", failure.ErrUnavailable, err)
	}
	var manifest ocispec.Manifest
	if err := json.Unmarshal(raw, &manifest); err != nil {
		return found{}, failure.New(failure.ErrInvalid, "the manifest of %s is not JSON", few.Quote(name))
	}
	for _, layer := range manifest.Layers {
		if layer.MediaType == chartMediaType {
			archive := index.Version{Name: name, Digest: layer.Digest.String()}
			return found{Version: archive, manifest: about.Digest.String(), layer: layer}, nil
		}
	}
	return found{}, failure.New(failure.ErrInvalid, "%s is not a Helm chart: it has no layer of type %s", few.Quote(name), chartMediaType)
}

// A tag cannot contain the "+" of build metadata; Helm writes "_" instead.
func versionTag(version string) string { return strings.ReplaceAll(version, "+", "_") }

func tagVersion(tag string) string { return strings.ReplaceAll(tag, "_", "+") }
