// Package charts reads charts within limits, and caches the most recently used ones.
package charts

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/ignore"

	"github.com/kubeop/kubeop/delivery/release/fault"
	"github.com/kubeop/kubeop/delivery/yamlcheck"
)

// Limits of a chart, including its subcharts. Helm stores the chart in a Secret of at most 1 MiB, compressed.
const (
	maxChartBytes = 32 << 20
	maxFileBytes  = 5 << 20
	maxChartFiles = 5000
	maxNesting    = 8
)

var errTooLarge = fault.TooLarge(fmt.Sprintf("the chart is larger than %d MiB or %d files", maxChartBytes>>20, maxChartFiles))

// Chart is an archive or a folder.
type Chart struct {
	// Archive is the path of a chart's .tgz.
	Archive string
	// Files is a chart folder with its dependencies in charts/; used when Archive is empty.
	Files fs.FS
	// Digest changes when the content does.
	Digest string
}

// Load reads and parses the chart.
func (c Chart) Load() (*chart.Chart, error) {
	files, err := c.Read()
	if err != nil {
		return nil, err
	}
	return Parse(files, func(string) {})
}

// Parse parses the files of a chart. It calls note before each step with what is being read.
func Parse(files []*loader.BufferedFile, note func(string)) (*chart.Chart, error) {
	if err := safeToParse(files, note); err != nil {
		return nil, fault.Render(fmt.Errorf("loading the chart: %w", fault.OverLimit(err, yamlcheck.ErrTooLarge)))
	}
	note("reading the files of the chart")
	loaded, err := loader.LoadFiles(files)
	if err != nil {
		return nil, fault.Render(fmt.Errorf("loading the chart: %w", err))
	}
	if err := installable(loaded); err != nil {
		return nil, fault.Render(err)
	}
	return loaded, nil
}

// parsedFiles are the files that Helm parses as YAML in a chart and in each subchart. Templates are text until they are rendered.
var parsedFiles = []string{"Chart.yaml", "Chart.lock", "values.yaml", "requirements.yaml", "requirements.lock"}

// safeToParse refuses files that Helm could not parse within limited memory.
func safeToParse(files []*loader.BufferedFile, note func(string)) error {
	n := &yamlcheck.NodeCount{Note: note}
	for _, f := range files {
		if InItsChart(f.Name) == "values.schema.json" {
			if n.Sum += yamlcheck.JSONNodes(f.Data); n.Sum > yamlcheck.MaxNodes {
				return fmt.Errorf("%s: %w", f.Name, yamlcheck.ErrNodes)
			}
		}
		if !slices.Contains(parsedFiles, InItsChart(f.Name)) {
			continue
		}
		if err := n.Text(f.Name, f.Data); err != nil {
			return err
		}
		if err := yamlcheck.Aliases(f.Data); err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
	}
	return nil
}

// InItsChart returns a file's path in the innermost chart folder that contains it.
func InItsChart(name string) string {
	for {
		below, ok := strings.CutPrefix(name, "charts/")
		if !ok {
			return name
		}
		if _, below, ok = strings.Cut(below, "/"); !ok {
			return name
		}
		name = below
	}
}

// installable checks what the helm command checks before it calls the SDK, and that no schema refers to something outside of the chart.
func installable(c *chart.Chart) error {
	if kind := c.Metadata.Type; kind != "" && kind != "application" {
		return fmt.Errorf("chart %s is of type %s, which cannot be installed", c.Name(), kind)
	}
	if err := action.CheckDependencies(c, c.Metadata.Dependencies); err != nil {
		return fmt.Errorf("dependencies %w; vendor them with \"helm dependency build\"", err)
	}
	return selfContained(c)
}

func (c Chart) Read() ([]*loader.BufferedFile, error) {
	l := limits{bytes: maxChartBytes, files: maxChartFiles}
	if c.Archive != "" {
		return l.archiveFile(c.Archive)
	}
	if c.Files == nil {
		return nil, errors.New("the release has no chart")
	}
	return l.folder(c.Files)
}

// limits is what may still be read of one chart.
type limits struct {
	bytes int64
	files int
}

func (l *limits) archiveFile(name string) ([]*loader.BufferedFile, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("opening the chart: %w", err)
	}
	defer f.Close()
	files, err := l.archive(f, 0)
	if err != nil {
		return nil, fault.Render(fmt.Errorf("reading the chart: %w", err))
	}
	return files, nil
}

// archive reads a .tgz. It inflates the archive twice, first only to learn its size: Helm's reader counts neither tar headers nor the sum
// of nested archives.
func (l *limits) archive(in io.ReadSeeker, depth int) ([]*loader.BufferedFile, error) {
	if depth > maxNesting {
		return nil, fmt.Errorf("charts are nested more than %d deep", maxNesting)
	}
	if err := l.spend(in); err != nil {
		return nil, err
	}
	if _, err := in.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	files, err := loader.LoadArchiveFiles(in)
	if err != nil {
		return nil, err
	}
	return l.unpack(files, depth)
}

func (l *limits) spend(in io.Reader) error {
	unzipped, err := gzip.NewReader(in)
	if err != nil {
		return err
	}
	n, err := io.Copy(io.Discard, io.LimitReader(unzipped, l.bytes+1))
	if err != nil {
		return err
	}
	if l.bytes -= n; l.bytes < 0 {
		return errTooLarge
	}
	return nil
}

// unpack replaces the archives in charts/, also those of a subchart, by their files, within the same limits: Helm would unpack them with
// limits of its own.
func (l *limits) unpack(files []*loader.BufferedFile, depth int) ([]*loader.BufferedFile, error) {
	if l.files -= len(files); l.files < 0 {
		return nil, errTooLarge
	}
	out := make([]*loader.BufferedFile, 0, len(files))
	for _, f := range files {
		dir, _ := path.Split(InItsChart(f.Name))
		stem, isArchive := strings.CutSuffix(f.Name, ".tgz")
		if dir != "charts/" || !isArchive {
			out = append(out, f)
			continue
		}
		inner, err := l.archive(bytes.NewReader(f.Data), depth+1)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		for _, i := range inner {
			out = append(out, &loader.BufferedFile{Name: path.Join(stem, i.Name), Data: i.Data})
		}
	}
	return out, nil
}

// folder reads a chart folder as Helm would package it, without the files that .helmignore excludes.
func (l *limits) folder(files fs.FS) ([]*loader.BufferedFile, error) {
	rules, size, err := ignored(files)
	if err != nil {
		return nil, err
	}
	w := walk{limits: l, files: files, rules: rules, patterns: size}
	if err := fs.WalkDir(files, ".", w.visit); err != nil {
		return nil, err
	}
	out, err := l.unpack(w.out, 0)
	if err != nil {
		return nil, fault.Render(err)
	}
	return out, nil
}

// Limits of .helmignore, which is matched in this process: its size, and how often a character of it is compared with one of a path.
// Matching costs at most that, which takes about half a second.
const (
	maxIgnoreBytes = 64 << 10
	maxIgnoreSteps = 1_000_000_000
)

// ignored parses the patterns, and returns their size in bytes.
func ignored(files fs.FS) (*ignore.Rules, int, error) {
	rules := ignore.Empty()
	info, err := fs.Stat(files, ignore.HelmIgnore)
	var text []byte
	switch {
	case err == nil && info.Size() > maxIgnoreBytes:
		return nil, 0, fault.Render(fault.TooLarge(fmt.Sprintf("%s is larger than %d KiB", ignore.HelmIgnore, maxIgnoreBytes>>10)))
	case err == nil:
		text, err = fs.ReadFile(files, ignore.HelmIgnore)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, 0, fmt.Errorf("reading the chart: %w", err)
	default:
		if rules, err = ignore.Parse(bytes.NewReader(text)); err != nil {
			return nil, 0, fault.Render(fmt.Errorf("%s: %w", ignore.HelmIgnore, err))
		}
	}
	rules.AddDefaults()
	return rules, len(text), nil
}

type walk struct {
	*limits
	files fs.FS
	rules *ignore.Rules
	// patterns is the size of the rules in bytes, and steps is the cost of matching them so far.
	patterns, steps int
	out             []*loader.BufferedFile
}

// visit handles one entry of the folder. Errors that are not about the chart are the store's, and may be transient.
func (w *walk) visit(name string, d fs.DirEntry, err error) error {
	if err != nil {
		return fmt.Errorf("reading the chart: %w", err)
	}
	if name == "." {
		return nil
	}
	info, err := d.Info()
	if err != nil {
		return fmt.Errorf("reading the chart: %w", err)
	}
	if w.steps += w.patterns * len(name); w.steps > maxIgnoreSteps {
		return fault.Render(fault.TooLarge(fmt.Sprintf("%s has too many patterns for the files and folders of the chart: ignore folders as a whole", ignore.HelmIgnore)))
	}
	switch {
	case w.rules.Ignore(name, info):
		if d.IsDir() {
			return fs.SkipDir
		}
		return nil
	case d.IsDir():
		return nil
	case !info.Mode().IsRegular():
		return fault.Render(fmt.Errorf("%s is not an ordinary file", name))
	case info.Size() > maxFileBytes:
		return fault.Render(fault.TooLarge(fmt.Sprintf("%s is larger than %d MiB", name, maxFileBytes>>20)))
	}
	return w.take(name, info.Size())
}

var byteOrderMark = []byte("\xef\xbb\xbf")

func (w *walk) take(name string, size int64) error {
	if w.bytes -= size; w.bytes < 0 || len(w.out) >= w.limits.files {
		return fault.Render(errTooLarge)
	}
	data, err := fs.ReadFile(w.files, name)
	if err != nil {
		return fmt.Errorf("reading the chart: %w", err)
	}
	w.out = append(w.out, &loader.BufferedFile{Name: name, Data: bytes.TrimPrefix(data, byteOrderMark)})
	return nil
}
