package artifact

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kubeop/kubeop/delivery/fetch/disk"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
	"github.com/kubeop/kubeop/delivery/few"
)

// Flux is the artifact in the status of a Flux source.
type Flux struct {
	// URL of the archive, on one of the hosts of the store.
	URL string
	// Revision is the revision of the source. Digest is the digest of the archive, "sha256:<hex>".
	Revision, Digest string
	// Namespace of the source. The path of the URL must be "/<kind>/<namespace>/…", like that of the source's artifacts.
	Namespace string
	// Tenant is the tenant for whom the artifact is fetched, and whose share of the disk it uses.
	Tenant string
}

// Download fetches the archive of a Flux source unless it is on disk. It uses no credentials, and fetches only from the hosts of the store
// and below the source's own namespace: anyone who may write the status of an object writes the URL, and Flux serves the artifacts of all
// namespaces to everyone.
//
// Errors: ErrNotFound, ErrInvalid, ErrTooLarge; any other is transient.
func (s *Store) Download(ctx context.Context, src Flux) (Artifact, error) {
	s.Begin()
	artifact, err := transport.Within(ctx, s.limits.Timeouts, func(ctx context.Context) (Artifact, error) {
		return s.download(ctx, src)
	})
	if err != nil {
		return Artifact{}, fmt.Errorf("fetching the artifact %s: %w", transport.SafeURL(src.URL), err)
	}
	return artifact, nil
}

func (s *Store) download(ctx context.Context, src Flux) (Artifact, error) {
	at, err := s.artifactURL(src)
	if err != nil {
		return Artifact{}, err
	}
	folder := filepath.Join(s.Dir, transport.Auth{}.Digest("flux for "+src.Tenant))
	kept, err := s.keep(ctx, archived{folder: folder, name: src.Digest, tenant: src.Tenant, get: func(ctx context.Context) (io.ReadCloser, string, error) {
		// Administrators configure these hosts, and those of Flux are Services of the cluster.
		client, err := transport.NewClient(s.network.IntoCluster(), transport.Auth{}, at)
		if err != nil {
			return nil, "", err
		}
		body, err := transport.GetBody(ctx, client, transport.Auth{}, at, "artifact")
		return body, src.Digest, err
	}})
	return Artifact{Revision: few.Quote(src.Revision), Digest: src.Digest, path: kept}, err
}

func (s *Store) artifactURL(src Flux) (*url.URL, error) {
	at, err := url.Parse(src.URL)
	if err != nil || at.Host == "" || (at.Scheme != "http" && at.Scheme != "https") || at.User != nil {
		return nil, failure.New(failure.ErrInvalid, "its URL is not of the form http://host/path")
	}
	host := strings.TrimSuffix(strings.ToLower(at.Hostname()), ".")
	if !slices.ContainsFunc(s.hosts, func(pattern string) bool { return matchesHost(strings.TrimSpace(pattern), host) }) {
		return nil, failure.New(failure.ErrInvalid, "%s is not a host from which artifacts are fetched: ask an administrator of the cluster to list it in fluxArtifactHosts of the values of kubeop's chart", few.Quote(host))
	}
	// Flux writes a path that needs no decoding or cleaning, by us or by the server.
	parts := strings.Split(at.Path, "/")
	if at.EscapedPath() != at.Path || path.Clean(at.Path) != at.Path || len(parts) < 4 || parts[2] != src.Namespace {
		return nil, failure.New(failure.ErrInvalid, "its URL is not that of an artifact of namespace %s: its path begins with /<kind>/%s/", src.Namespace, src.Namespace)
	}
	if !disk.IsSHA256(strings.TrimPrefix(src.Digest, "sha256:")) || !strings.HasPrefix(src.Digest, "sha256:") {
		return nil, failure.New(failure.ErrInvalid, "its digest %q is not of the form sha256:<64 hexadecimal digits>", few.Quote(src.Digest))
	}
	return at, nil
}

// matchesHost compares host names label by label; "*" matches any one label.
func matchesHost(pattern, host string) bool {
	wanted, labels := strings.Split(strings.ToLower(pattern), "."), strings.Split(host, ".")
	return slices.EqualFunc(wanted, labels, func(want, label string) bool { return want == label || (want == "*" && label != "") })
}
