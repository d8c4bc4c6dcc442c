// Package registry serves container images and OCI charts, plain HTTP and without credentials, blobs on disk.
package registry

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"os"

	"github.com/google/go-containerregistry/pkg/registry"
)

// New returns the registry that keeps its blobs in dir and writes its requests to out. Manifests are kept in memory:
// they go when the cluster goes, as the blobs do.
func New(dir string, out io.Writer) (http.Handler, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the registry's directory: %w", err)
	}
	return registry.New(
		registry.WithBlobHandler(registry.NewDiskBlobHandler(dir)),
		registry.WithReferrersSupport(true),
		registry.Logger(log.New(out, "", log.LstdFlags)),
	), nil
}
