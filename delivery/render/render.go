// Package render has the common parts of the packages that build objects from an app's source: reading files of the source, and looking up
// ConfigMaps and Secrets. Each kind of source is a package below: workload (of an image), kustomize, manifests, substitute, and values for
// a chart. They are pure: they read only their input, open no connection, run no program, and give the same result for the same input.
// delivery/policy decides what an app may have, and delivery/own which app owns it.
package render

import (
	"errors"
	"fmt"
)

// Lookup returns the data of a ConfigMap or Secret (kind) in the app's namespace; ErrMissing when it does not exist.
type Lookup func(kind, name string) (map[string][]byte, error)

// ErrMissing is what a Lookup returns for a ConfigMap or Secret that does not exist.
var ErrMissing = errors.New("does not exist in this namespace: create it, or correct the name in app.yaml")

// ErrTooLarge is wrapped by errors about an exceeded limit; the message names the limit.
var ErrTooLarge = errors.New("too large")

// Missing returns an error that names the missing thing and matches kind, ErrMissing or fs.ErrNotExist, without repeating the text of kind.
func Missing(kind error, format string, args ...any) error {
	return &missing{fmt.Sprintf(format, args...), kind}
}

type missing struct {
	text string
	kind error
}

func (e *missing) Error() string { return e.text }
func (e *missing) Unwrap() error { return e.kind }
