// Package examples holds sample repositories that show the layout and every type of app. README.md describes them.
package examples

import (
	"embed"
	"fmt"
	"io/fs"
	"regexp"
)

//go:embed all:platform all:acme all:docs all:stages
var files embed.FS

// Stages is the sample of a tenant's repository with previews of branches and a promotion. It is to read and copy: no tenant is bound to it.
const Stages = "stages"

// Names of the sample repositories that `make run` pushes, in the order in which to create them in a new installation: docs holds what the apps
// of acme refer to, and the platform repository binds acme.
func Names() []string { return []string{"docs", "acme", "platform"} }

// Places are the addresses to fill into the samples.
type Places struct {
	// GitURL is where the repositories are, such as "https://git.example.com/demo".
	GitURL string
	// Registry is where the image hello:v1 is, such as "registry.example.com/demo".
	Registry string
}

var placeholder = regexp.MustCompile(`\$\{[A-Z_]*\}`)

// Repository returns the files of one sample repository, by path from its root, with the addresses filled in. An unknown name, or a
// placeholder that Places does not have, is an error.
func Repository(name string, places Places) (map[string][]byte, error) {
	root, err := fs.Sub(files, name)
	if err != nil {
		return nil, fmt.Errorf("opening the sample %s: %w", name, err)
	}
	filled := map[string][]byte{}
	err = fs.WalkDir(root, ".", func(file string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := fs.ReadFile(root, file)
		if err != nil {
			return err
		}
		filled[file], err = places.fill(text)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading the sample %s: %w", name, err)
	}
	return filled, nil
}

func (p Places) fill(text []byte) ([]byte, error) {
	values := map[string]string{"${GIT_URL}": p.GitURL, "${REGISTRY}": p.Registry}
	var unknown error
	filled := placeholder.ReplaceAllFunc(text, func(found []byte) []byte {
		value := values[string(found)]
		if value == "" {
			unknown = fmt.Errorf("no value for %s", found)
		}
		return []byte(value)
	})
	return filled, unknown
}
