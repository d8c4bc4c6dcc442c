package chart

import (
	"context"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/kubeop/kubeop/delivery/fetch/chart/index"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/folder"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
	"github.com/kubeop/kubeop/delivery/few"
	"github.com/kubeop/kubeop/delivery/reference"
)

// Folder is a chart in a folder. Its dependencies may have to be fetched.
type Folder struct {
	// Root has the chart. Dependencies of the form file://../other may lead anywhere in it, but not out of it.
	Root *folder.Folder
	// Path of the chart in Root, as for Overlay.
	Path string
	// Auth was given for URL. A repository on another host gets only the parts that name their hosts, which is DockerConfig, and the
	// certificate authorities.
	Auth transport.Auth
	URL  string
	// Registries say how the registries of dependencies for which Auth has no credentials are reached, by their hosts as Registries have them.
	Registries map[string]transport.Access
	// Tenant for whom it is fetched, see Chart.
	Tenant string
	// Allow returns an error if a dependency may not be fetched from a repository; nil allows all.
	Allow func(repository, chart string) error
}

// Dependency is a chart that another one needs and does not have in its charts/: an archive, or a folder of the same Root.
type Dependency struct {
	// Name and Version of the chart.
	Name, Version string
	// Archive is the fetched archive; zero for a folder.
	Archive Archive
	// Path of its folder in Root; empty for an archive.
	Path string
	// Needs are the missing dependencies of the chart in that folder.
	Needs []Dependency
}

// Reads returns what a chart in a folder is made from: that folder, and the folders of its dependencies.
func Reads(at string, needs []Dependency) folder.Reads {
	reads := folder.Reads{path.Clean(at) + "/"}
	for _, d := range needs {
		if d.Path != "" {
			reads = append(reads, Reads(d.Path, d.Needs)...)
		}
	}
	return reads
}

// Bounds of the dependencies of one chart.
const (
	// maxDependencies bounds the number of all dependencies.
	maxDependencies = 64
	// maxDependencyDepth bounds how deep folders depend on folders; a cycle exceeds it.
	maxDependencyDepth = 8
)

// missingDependency is a dependency of Chart.yaml or Chart.lock that is not in charts/ and has to be fetched.
type missingDependency struct {
	Name, Version, Repository string
	// Path is its folder in the same root, and Missing are the missing dependencies of the chart in that folder.
	Path    string
	Missing []missingDependency
}

// Missing returns a digest of everything that decides which dependencies the chart needs; it is empty when charts/ has them all. While the
// digest is the same, an earlier result of Dependencies can be used again.
//
// Errors: ErrNotFound, ErrInvalid, ErrTooLarge; any other is transient.
func (c Folder) Missing() (string, error) {
	missing, err := c.plan()
	if err != nil || len(missing) == 0 {
		return "", err
	}
	text, err := yaml.Marshal(missing)
	if err != nil {
		return "", fmt.Errorf("writing down the dependencies: %w", err)
	}
	return digestOf(text), nil
}

// Dependencies fetches the charts that Chart.yaml lists and charts/ lacks, like "helm dependency build": the versions are those of
// Chart.lock; without it, the newest that Chart.yaml allows now. Every repository is contacted each time. Folders of the same repository
// are named, not copied: see Overlay.
//
// Errors: those of Fetch.
func (s *Store) Dependencies(ctx context.Context, chart Folder) ([]Dependency, error) {
	missing, err := chart.plan()
	if err != nil {
		return nil, err
	}
	return s.get(ctx, chart, missing)
}

func (s *Store) get(ctx context.Context, chart Folder, missing []missingDependency) ([]Dependency, error) {
	var got []Dependency
	for _, l := range missing {
		d := Dependency{Name: l.Name, Version: l.Version, Path: l.Path}
		var err error
		if l.Path != "" {
			d.Needs, err = s.get(ctx, chart, l.Missing)
		} else {
			d.Archive, err = s.fetchFor(ctx, chart, l)
			d.Version = d.Archive.Version
		}
		if err == nil && !fs.ValidPath(d.file()) {
			err = failure.New(failure.ErrInvalid, "version %q cannot be the name of a file", few.Quote(d.Version))
		}
		if err != nil {
			return nil, fmt.Errorf("dependency %s: %w", few.Quote(l.Name), err)
		}
		got = append(got, d)
	}
	return got, nil
}

// fetchFor fetches the archive of a dependency.
func (s *Store) fetchFor(ctx context.Context, chart Folder, l missingDependency) (Archive, error) {
	access, err := chart.accessTo(l.Repository, l.Name)
	if err != nil {
		return Archive{}, err
	}
	return s.Fetch(ctx, Source{
		Repository: l.Repository, Name: l.Name, Version: l.Version, Auth: access.Auth, Insecure: access.Insecure, Mirror: access.Mirror, Tenant: chart.Tenant,
	})
}

// accessTo returns how the repository of a dependency is reached.
func (c Folder) accessTo(repository, name string) (transport.Access, error) {
	own := transport.Access{Auth: c.authFor(repository)}
	place, oci := strings.CutPrefix(repository, "oci://")
	if !oci {
		return own, nil
	}
	auth, refresh, err := own.Auth.ForHost(strings.TrimSuffix(place, "/") + "/" + name)
	if err != nil || !auth.Anonymous() || refresh != "" {
		return own, err
	}
	if registry, known := c.Registries[reference.Host(place+"/")]; known {
		return registry, nil
	}
	return own, nil
}

// authFor returns the credentials that the repository of a dependency may get.
func (c Folder) authFor(repository string) transport.Auth {
	own, err := url.Parse(c.URL)
	other, also := url.Parse(repository)
	if c.URL == "" || err != nil || also != nil {
		return c.Auth.ForOtherHosts()
	}
	if other.Scheme == "oci" {
		other.Scheme = "https"
	}
	if !transport.SameOrigin(own, other) {
		return c.Auth.ForOtherHosts()
	}
	return c.Auth
}

// plan returns the dependencies that are needed and missing.
func (c Folder) plan() ([]missingDependency, error) {
	at, err := inside(c.Path)
	if err != nil {
		return nil, err
	}
	p := planner{root: c.Root, allow: c.Allow}
	missing, err := p.folder(at, 0)
	if err != nil {
		return nil, fmt.Errorf("reading the chart's dependencies: %w", err)
	}
	return missing, nil
}

type planner struct {
	root  *folder.Folder
	allow func(repository, chart string) error
	count int
}

func (p *planner) folder(at string, depth int) ([]missingDependency, error) {
	if depth > maxDependencyDepth {
		return nil, failure.New(failure.ErrInvalid, "%s: folders depend on each other more than %d deep; is there a circle?", at, maxDependencyDepth)
	}
	chart, err := readChart(p.root, at)
	if err != nil {
		return nil, err
	}
	vendored, err := chart.vendored()
	if err != nil {
		return nil, err
	}
	var missing []missingDependency
	known := map[[3]string]bool{}
	for _, d := range chart.Dependencies {
		l, err := chart.missing(d, vendored)
		if err != nil {
			return nil, fmt.Errorf("%s: dependency %s: %w", at, few.Quote(d.Name), err)
		}
		// A chart with two aliases is fetched once.
		key := [3]string{l.Name, l.Version, l.Repository}
		if l.Name == "" || known[key] {
			continue
		}
		known[key] = true
		if p.count++; p.count > maxDependencies {
			return nil, failure.TooMany("the number of dependencies", maxDependencies)
		}
		if l, err = p.local(l, at, depth); err != nil {
			return nil, fmt.Errorf("%s: dependency %s: %w", at, few.Quote(d.Name), err)
		}
		missing = append(missing, l)
	}
	return missing, nil
}

// local follows a dependency to a folder of the same root. It asks whether any other may be fetched.
func (p *planner) local(l missingDependency, from string, depth int) (missingDependency, error) {
	to, local := strings.CutPrefix(l.Repository, "file://")
	if !local {
		if p.allow == nil {
			return l, nil
		}
		return l, p.allow(l.Repository, l.Name)
	}
	at := path.Join(from, to)
	if strings.HasPrefix(to, "/") || !fs.ValidPath(at) {
		return missingDependency{}, failure.New(failure.ErrInvalid, "%s leads out of the folders that belong to this app: move the chart into them, or put it into charts/, both in Git", few.Quote(l.Repository))
	}
	chart, err := readChart(p.root, at)
	if err != nil {
		return missingDependency{}, err
	}
	if chart.Name != l.Name {
		return missingDependency{}, failure.New(failure.ErrInvalid, "the chart in %s has the name %q", at, few.Quote(chart.Name))
	}
	if _, err := index.Choose(l.Name, l.Version, []index.Version{{Name: chart.Version}}); err != nil {
		return missingDependency{}, fmt.Errorf("%s: %w", at, err)
	}
	l.Version, l.Path = chart.Version, at
	l.Missing, err = p.folder(at, depth+1)
	return l, err
}
