package charts

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"sync"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"

	"github.com/kubeop/kubeop/delivery/chartvalues"
	"github.com/kubeop/kubeop/delivery/lru"
	"github.com/kubeop/kubeop/delivery/release/fault"
	"github.com/kubeop/kubeop/delivery/yamlcheck"
)

// maxCachedBytes limits the parsed charts in the cache, by the size of their files.
const maxCachedBytes = 32 << 20

// Cache holds the most recently used parsed charts. They are never changed.
type Cache struct {
	mu sync.Mutex
	// reading are the charts that are being parsed, by digest.
	reading map[string]*reading
	parsed  *lru.Cache[string, *chart.Chart]
}

type reading struct {
	once  sync.Once
	chart *chart.Chart
	err   error
}

// Open returns the parsed chart, which the caller may change, as the SDK does, and the values in its values files
// with other values over them. A chart is parsed once for all apps that use it. Its errors are ErrRender, or the store's, which may pass.
func (s *Cache) Open(c Chart, valuesFiles []string, over map[string]any) (*chart.Chart, map[string]any, error) {
	parsed, err := s.get(c)
	if err != nil {
		return nil, nil, err
	}
	values, err := Values(parsed, valuesFiles, over)
	if err != nil {
		return nil, nil, fault.Render(err)
	}
	return copyOf(parsed), values, nil
}

// get returns a chart from the cache, or parses it. Concurrent callers wait for the same parsing.
func (s *Cache) get(c Chart) (*chart.Chart, error) {
	if c.Digest == "" {
		return c.Load()
	}
	known, r := s.known(c.Digest)
	if known != nil {
		return known, nil
	}
	r.once.Do(func() {
		defer fault.Recovered("loading the chart", &r.err)
		r.chart, r.err = c.Load()
	})
	s.keep(c.Digest, r)
	return r.chart, r.err
}

// Files returns the files of a chart, from the cache if it has the chart. Do not change them.
func (s *Cache) Files(c Chart) ([]*loader.BufferedFile, error) {
	s.mu.Lock()
	known, ok := s.charts().Get(c.Digest)
	s.mu.Unlock()
	if !ok {
		return c.Read()
	}
	out := make([]*loader.BufferedFile, 0, len(known.Raw))
	for _, f := range known.Raw {
		out = append(out, &loader.BufferedFile{Name: f.Name, Data: f.Data})
	}
	return out, nil
}

// known returns a chart from the cache, or the reading that all callers share.
func (s *Cache) known(digest string) (*chart.Chart, *reading) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c, ok := s.charts().Get(digest); ok {
		return c, nil
	}
	r := s.reading[digest]
	if r == nil {
		r = &reading{}
		if s.reading == nil {
			s.reading = map[string]*reading{}
		}
		s.reading[digest] = r
	}
	return nil, r
}

// keep adds a parsed chart to the cache, which evicts the least recently used ones above maxCachedBytes. A chart that could not be parsed
// is parsed again the next time.
func (s *Cache) keep(digest string, r *reading) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reading[digest] != r {
		return // Another caller added it.
	}
	delete(s.reading, digest)
	if r.err == nil {
		s.charts().Add(digest, r.chart)
	}
}

// charts is called with the lock held.
func (s *Cache) charts() *lru.Cache[string, *chart.Chart] {
	if s.parsed == nil {
		s.parsed = lru.New[string](maxCachedBytes, weight)
	}
	return s.parsed
}

// chartCost is the approximate memory of a chart without its files, so that tiny charts count.
const chartCost = 16 << 10

func weight(c *chart.Chart) int64 {
	var sum int64 = chartCost
	for _, f := range c.Raw {
		sum += int64(len(f.Data))
	}
	for _, sub := range c.Dependencies() {
		sum += weight(sub)
	}
	return sum
}

// copyOf copies a chart except for its files, which are never changed. The SDK changes dependencies, values and metadata, and a template
// can sort its lists of strings in place.
func copyOf(c *chart.Chart) *chart.Chart {
	out := &chart.Chart{
		Raw:       slices.Clone(c.Raw),
		Metadata:  CopyMetadata(c.Metadata),
		Lock:      c.Lock,
		Templates: slices.Clone(c.Templates),
		Schema:    c.Schema,
		Files:     slices.Clone(c.Files),
	}
	out.Values, _ = DeepCopy(c.Values).(map[string]any)
	for _, sub := range c.Dependencies() {
		out.AddDependency(copyOf(sub))
	}
	return out
}

// CopyMetadata returns a copy that may be changed completely.
func CopyMetadata(m *chart.Metadata) *chart.Metadata {
	if m == nil {
		return nil
	}
	out := *m
	out.Annotations = maps.Clone(m.Annotations)
	out.Keywords, out.Sources = slices.Clone(m.Keywords), slices.Clone(m.Sources)
	out.Dependencies = slices.Clone(m.Dependencies)
	for i, d := range out.Dependencies {
		if d == nil {
			continue
		}
		dependency := *d
		dependency.Tags = slices.Clone(d.Tags)
		dependency.ImportValues, _ = DeepCopy(d.ImportValues).([]any)
		out.Dependencies[i] = &dependency
	}
	return &out
}

// DeepCopy copies values as YAML has them. Nil stays nil, because a release record distinguishes null from an empty map.
func DeepCopy(value any) any {
	switch v := value.(type) {
	case map[string]any:
		if v == nil {
			return v
		}
		out := make(map[string]any, len(v))
		for key, inner := range v {
			out[key] = DeepCopy(inner)
		}
		return out
	case []any:
		if v == nil {
			return v
		}
		out := make([]any, len(v))
		for i, inner := range v {
			out[i] = DeepCopy(inner)
		}
		return out
	}
	return value
}

// Values merges values files of the chart in order, and other values over them.
func Values(c *chart.Chart, files []string, over map[string]any) (map[string]any, error) {
	merged := map[string]any{}
	for _, name := range files {
		i := slices.IndexFunc(c.Raw, func(f *chart.File) bool { return f.Name == path.Clean(name) })
		if i < 0 {
			return nil, fmt.Errorf("chart %s has no values file %s", c.Name(), name)
		}
		data := c.Raw[i].Data
		err := fault.OverLimit(yamlcheck.Aliases(data), yamlcheck.ErrTooLarge)
		var values chartutil.Values
		if err == nil {
			values, err = chartutil.ReadValues(data)
		}
		if err != nil {
			return nil, fmt.Errorf("values file %s of chart %s: %w", name, c.Name(), err)
		}
		merged = chartvalues.Merge(merged, values)
	}
	return chartvalues.Merge(merged, over), nil
}

// Resolve returns a copy of the chart without the subcharts that the values disable, which is what Helm renders. It works on a copy,
// because Helm works on the original afterwards and would not disable subcharts twice.
func Resolve(c *chart.Chart, values map[string]any) (*chart.Chart, error) {
	out := copyOf(c)
	own, _ := DeepCopy(values).(map[string]any)
	if err := chartutil.ProcessDependenciesWithMerge(out, own); err != nil {
		return nil, fault.Render(err)
	}
	return out, nil
}
