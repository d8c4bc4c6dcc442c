package chart

import (
	"errors"
	"io/fs"
	"path"
	"strings"

	"github.com/Masterminds/semver/v3"
	"sigs.k8s.io/yaml"

	"github.com/kubeop/kubeop/delivery/fetch/chart/index"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/folder"
	"github.com/kubeop/kubeop/delivery/fetch/limit"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
	"github.com/kubeop/kubeop/delivery/few"
	"github.com/kubeop/kubeop/delivery/yamlcheck"
)

// maxChartFile bounds Chart.yaml and the files beside it, in bytes, because a parser needs many times the memory of its text.
const maxChartFile = limit.MiB

// chartFile has the needed fields of a Chart.yaml, and of the requirements.yaml of older charts.
type chartFile struct {
	Name         string            `json:"name"`
	Version      string            `json:"version"`
	Dependencies []dependencyEntry `json:"dependencies"`

	root   *folder.Folder
	at     string
	locked []dependencyEntry
	lock   string
}

type dependencyEntry struct {
	Name       string `json:"name"`
	Version    string `json:"version"`
	Repository string `json:"repository"`
}

func readChart(root *folder.Folder, at string) (*chartFile, error) {
	chart := &chartFile{root: root, at: at, lock: path.Join(at, "Chart.lock")}
	if err := readYAML(root, path.Join(at, "Chart.yaml"), chart); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, failure.New(failure.ErrNotFound, "there is no chart in %s: it has no Chart.yaml", at)
		}
		return nil, err
	}
	old := path.Join(at, "requirements.yaml")
	if len(chart.Dependencies) == 0 {
		if err := readYAML(root, old, chart); err == nil {
			chart.lock = path.Join(at, "requirements.lock")
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	var lock struct {
		Dependencies []dependencyEntry `json:"dependencies"`
	}
	err := readYAML(root, chart.lock, &lock)
	if errors.Is(err, fs.ErrNotExist) {
		chart.lock = ""
		return chart, nil
	}
	chart.locked = lock.Dependencies
	return chart, err
}

// readYAML leaves the parser's text out of the message, because it may quote the document.
func readYAML(root *folder.Folder, name string, into any) error {
	text, err := root.ReadFile(name)
	if err != nil {
		return err
	}
	if len(text) > maxChartFile {
		return failure.TooLarge(name, maxChartFile)
	}
	err = yamlcheck.Aliases(text)
	if errors.Is(err, yamlcheck.ErrTooLarge) {
		return failure.AliasesTooLarge(name)
	}
	if err == nil {
		err = yaml.Unmarshal(text, into)
	}
	if err != nil {
		return failure.New(failure.ErrInvalid, "%s is not the YAML of a chart: check it with \"helm lint\", and correct it in Git or where it is published", name)
	}
	return nil
}

// vendored returns the names of the charts in charts/. The name of an archive is read from its file name, which Helm makes from the chart's
// name and version.
func (c *chartFile) vendored() (map[string]bool, error) {
	entries, err := c.root.ReadDir(path.Join(c.at, "charts"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for _, entry := range entries {
		if !entry.IsDir() {
			names[archivedName(entry.Name())] = true
			continue
		}
		var inside chartFile
		err := readYAML(c.root, path.Join(c.at, "charts", entry.Name(), "Chart.yaml"), &inside)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		names[inside.Name] = true
	}
	return names, nil
}

// archivedName returns the name of the chart in the file name-1.2.3.tgz.
func archivedName(file string) string {
	stem, _ := strings.CutSuffix(file, archiveEnd)
	for i := range len(stem) {
		if stem[i] != '-' {
			continue
		}
		if _, err := semver.StrictNewVersion(strings.TrimPrefix(stem[i+1:], "v")); err == nil {
			return stem[:i]
		}
	}
	return stem
}

// missing returns what has to be fetched for a dependency. Its name is empty if nothing has to be fetched.
func (c *chartFile) missing(d dependencyEntry, vendored map[string]bool) (missingDependency, error) {
	switch {
	case vendored[d.Name]:
		return missingDependency{}, nil
	case !index.IsName(d.Name):
		return missingDependency{}, failure.New(failure.ErrInvalid, "is not the name of a chart: letters, digits, dots, dashes and underscores")
	case d.Repository == "":
		return missingDependency{}, failure.New(failure.ErrNotFound, "has no repository and is not in charts/: add one of them, in Chart.yaml or as its folder")
	case strings.HasPrefix(d.Repository, "@"), strings.HasPrefix(d.Repository, "alias:"):
		return missingDependency{}, failure.New(failure.ErrInvalid, "%s is an alias that only your own helm command knows: write the repository's URL in Chart.yaml, or put the chart into charts/ with \"helm dependency build\"", few.Quote(d.Repository))
	}
	l := missingDependency{Name: d.Name, Version: d.Version, Repository: d.Repository}
	if c.lock == "" || strings.HasPrefix(d.Repository, "file://") {
		// A dependency in the same commit is locked by that commit.
		return l, nil
	}
	for _, locked := range c.locked {
		if locked.Name != d.Name || strings.TrimSuffix(locked.Repository, "/") != strings.TrimSuffix(d.Repository, "/") {
			continue
		}
		if at, err := index.Choose(d.Name, d.Version, []index.Version{{Name: locked.Version}}); err == nil {
			l.Version = at.Name
			return l, nil
		}
	}
	return missingDependency{}, failure.New(failure.ErrInvalid, "version %q from %s is not in %s: write it with \"helm dependency update\" and commit it", few.Quote(d.Version), transport.SafeURL(d.Repository), c.lock)
}
