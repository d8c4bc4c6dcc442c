// Package registry serves container images and OCI charts over plain HTTP, without credentials.
package registry

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"os"

	"github.com/google/go-containerregistry/pkg/registry"
)

// New returns the registry. It keeps blobs in dir and manifests in memory, because neither outlives the cluster. It logs requests to out.
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
