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

	"github.com/kubeop/kubeop/delivery/release/fault"
	"github.com/kubeop/kubeop/delivery/release/manifest"
)

// maxCachedBytes is how much of parsed charts is kept, by the size of their files.
const maxCachedBytes = 32 << 20

// Cache are the parsed charts used last. Nobody changes them.
type Cache struct {
	mu    sync.Mutex
	known map[string]*parsedChart
	clock int64
}

type parsedChart struct {
	once  sync.Once
	chart *chart.Chart
	err   error
	bytes int64
	used  int64
}

// Open returns the parsed chart, which is the caller's to change, as the SDK does, and the values in its values files.
// A chart is parsed once for all apps that use it. Its errors are ErrRender, or the store's, which may pass.
func (s *Cache) Open(c Chart, valuesFiles []string) (*chart.Chart, map[string]any, error) {
	parsed, err := s.get(c)
	if err != nil {
		return nil, nil, err
	}
	values, err := Values(parsed, valuesFiles)
	if err != nil {
		return nil, nil, fault.Render(err)
	}
	return copyOf(parsed), values, nil
}

// get reads a chart unless it is known. Who asks for one that is just being read waits for it.
func (s *Cache) get(c Chart) (*chart.Chart, error) {
	if c.Digest == "" {
		return c.Load()
	}
	p := s.entry(c.Digest)
	p.once.Do(func() {
		defer fault.Recovered("loading the chart", &p.err)
		p.chart, p.err = c.Load()
	})
	s.settle(c.Digest, p)
	return p.chart, p.err
}

// Files of a chart, which nobody changes: as they were read if the chart is known.
func (s *Cache) Files(c Chart) ([]*loader.BufferedFile, error) {
	s.mu.Lock()
	p := s.known[c.Digest]
	known := p != nil && p.bytes > 0 // What is being read has no size yet.
	s.mu.Unlock()
	if !known {
		return c.Read()
	}
	out := make([]*loader.BufferedFile, 0, len(p.chart.Raw))
	for _, f := range p.chart.Raw {
		out = append(out, &loader.BufferedFile{Name: f.Name, Data: f.Data})
	}
	return out, nil
}

func (s *Cache) entry(digest string) *parsedChart {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil {
		s.known = map[string]*parsedChart{}
	}
	p, ok := s.known[digest]
	if !ok {
		p = &parsedChart{}
		s.known[digest] = p
	}
	s.clock++
	p.used = s.clock
	return p
}

// settle forgets a chart that could not be read, and those used longest ago when there are too many.
func (s *Cache) settle(digest string, p *parsedChart) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.err != nil {
		if s.known[digest] == p {
			delete(s.known, digest)
		}
		return
	}
	p.bytes = weight(p.chart)
	for s.total() > maxCachedBytes && len(s.known) > 1 {
		s.dropOldest()
	}
}

func (s *Cache) total() int64 {
	var sum int64
	for _, p := range s.known {
		sum += p.bytes
	}
	return sum
}

func (s *Cache) dropOldest() {
	oldest := ""
	for digest, p := range s.known {
		if oldest == "" || p.used < s.known[oldest].used {
			oldest = digest
		}
	}
	delete(s.known, oldest)
}

// chartCost is about what a chart takes beside the bytes of its files, so that tiny ones are not for free.
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

// copyOf shares with the chart what nobody changes: the files. The SDK changes dependencies, values and metadata, and a
// template can sort its lists of strings where they are.
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

// CopyMetadata returns a copy of which everything may be changed.
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

// DeepCopy copies what YAML can hold. What is nil stays nil: a record tells null from an empty map.
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

// Values merges values files of the chart in order.
func Values(c *chart.Chart, files []string) (map[string]any, error) {
	merged := map[string]any{}
	for _, name := range files {
		i := slices.IndexFunc(c.Raw, func(f *chart.File) bool { return f.Name == path.Clean(name) })
		if i < 0 {
			return nil, fmt.Errorf("chart %s has no values file %s", c.Name(), name)
		}
		data := c.Raw[i].Data
		err := manifest.NotBlownUp(data)
		var values chartutil.Values
		if err == nil {
			values, err = chartutil.ReadValues(data)
		}
		if err != nil {
			return nil, fmt.Errorf("values file %s of chart %s: %w", name, c.Name(), err)
		}
		merged = Merge(merged, values)
	}
	return merged, nil
}

// Merge lays over on base and changes neither. A null stays: over the chart's own values it takes the key away.
func Merge(base, over map[string]any) map[string]any {
	out := maps.Clone(base)
	for key, value := range over {
		above, isMap := value.(map[string]any)
		below, both := out[key].(map[string]any)
		if isMap && both {
			value = Merge(below, above)
		}
		out[key] = value
	}
	return out
}

// Resolve is a copy of the chart without the subcharts that the values disable, as Helm sees it when it renders. Helm
// works on the original afterwards; it would not do so twice.
func Resolve(c *chart.Chart, values map[string]any) (*chart.Chart, error) {
	out := copyOf(c)
	own, _ := DeepCopy(values).(map[string]any)
	if err := chartutil.ProcessDependenciesWithMerge(out, own); err != nil {
		return nil, fault.Render(err)
	}
	return out, nil
}
