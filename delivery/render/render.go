// Package render turns the source of an app into the objects to apply, or, for a chart, into the values to install it
// with. It is pure: it reads only what it is handed, opens no connection, runs no program, and gives the same result
// for the same input. What an app may have is not decided here but in delivery/policy, and whose it is in delivery/own.
package render

import (
	"errors"

	"github.com/kubeop/kubeop/delivery/yamlcheck"
)

// ErrMissing is what a Lookup returns for a ConfigMap or Secret that does not exist.
var ErrMissing = errors.New("not found")

// absent says what is missing and matches kind, ErrMissing or fs.ErrNotExist, whose own text would only repeat it.
type absent struct {
	text string
	kind error
}

func (e *absent) Error() string { return e.text }
func (e *absent) Unwrap() error { return e.kind }

// ErrTooLarge is wrapped by every error that says a limit of this package was passed; the message names the limit.
var ErrTooLarge = yamlcheck.ErrTooLarge

// ErrTimeout is wrapped by errors that say a build took longer than it may.
var ErrTimeout = errors.New("took too long")

// Limits of one source, beside those that a Renderer has. They keep a tenant's repository from using up the memory that all tenants share.
const (
	// maxInline is the number of manifests in an App itself.
	maxInline = 256
	// maxEntries is the number of files and folders that are looked at for one app.
	maxEntries = 20_000
	// maxFileBytes is the size of one manifest, kustomization or values file.
	maxFileBytes = 1 << 20
	// What one kustomize build may hold and read. Its time grows with the square of the objects: a thousand take two
	// seconds. A base counts each time it is used, so overlays that double their base level by level end early too.
	maxBuildObjects = 1000
	maxBuildReads   = 1000
	maxBuildBytes   = 32 << 20
	maxBuildValues  = 150_000
	// maxProblems is the number of errors reported at once.
	maxProblems = 20
)
