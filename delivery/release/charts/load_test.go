package charts

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"helm.sh/helm/v3/pkg/chart/loader"

	"github.com/kubeop/kubeop/delivery/release/fault"
	"github.com/kubeop/kubeop/delivery/yamlcheck"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

// aliasBomb is 20 KiB of YAML and 2 MiB of JSON.
var aliasBomb = "a: &a " + strings.Repeat("x", 20<<10) + "\nb: [*a" + strings.Repeat(",*a", 100) + "]\n"

func archived(t testing.TB, data []byte) Chart {
	t.Helper()
	file := filepath.Join(t.TempDir(), "chart.tgz")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return Chart{Archive: file}
}

func TestAChartIsLoadedFromAFolder(t *testing.T) {
	c, err := Chart{Files: sources.ChartFolder(map[string]string{
		"values.yaml":                   "a: 1\n",
		"templates/a.yaml":              "kind: ConfigMap\n",
		".helmignore":                   "drafts/\n*.bak\n",
		"drafts/b.yaml":                 "x",
		"templates/c.yaml.bak":          "x",
		"templates/.d.yaml":             "kind: Pod\n",
		"charts/redis/Chart.yaml":       "apiVersion: v2\nname: redis\nversion: 1.0.0\n",
		"charts/redis/templates/r.yaml": "kind: Service\n",
		"charts/db-2.0.0.tgz":           string(sources.ChartArchive(t, "db", map[string]string{"Chart.yaml": "apiVersion: v2\nname: db\nversion: 2.0.0\n"})),
	})}.Load()
	if err != nil {
		t.Fatal(err)
	}
	var templates, subcharts []string
	for _, f := range c.Templates {
		templates = append(templates, f.Name)
	}
	for _, s := range c.Dependencies() {
		subcharts = append(subcharts, s.Name())
	}
	slices.Sort(subcharts)
	if !slices.Equal(templates, []string{"templates/a.yaml"}) || !slices.Equal(subcharts, []string{"db", "redis"}) {
		t.Errorf("templates %v, subcharts %v", templates, subcharts)
	}
}

func TestLoadArchiveAnewEachTime(t *testing.T) {
	source := archived(t, sources.ChartArchive(t, "web", map[string]string{"Chart.yaml": sources.ChartYAML, "values.yaml": "a: 1\n"}))
	first, err := source.Load()
	if err != nil {
		t.Fatal(err)
	}
	first.Values["a"] = "changed"
	second, err := source.Load()
	if err != nil {
		t.Fatal(err)
	}
	if second.Values["a"] == "changed" {
		t.Error("two actions share a chart")
	}
}

func TestChartsThatCannotBeLoaded(t *testing.T) {
	many := map[string]string{"Chart.yaml": sources.ChartYAML}
	for i := range maxChartFiles {
		many["files/"+strconv.Itoa(i)] = "x"
	}
	zeros := strings.Repeat("\x00", 4<<20)
	bomb := map[string]string{"Chart.yaml": sources.ChartYAML}
	for i := range 10 {
		bomb["charts/"+strconv.Itoa(i)+".tgz"] = string(sources.ChartArchive(t, "sub", map[string]string{"Chart.yaml": sources.ChartYAML, "a": zeros}))
	}
	nested := map[string]string{"charts/s/Chart.yaml": "apiVersion: v2\nname: s\nversion: 1.0.0\n"}
	for name, text := range bomb {
		if name != "Chart.yaml" {
			nested["charts/s/"+name] = text
		}
	}
	deep := sources.ChartArchive(t, "web", map[string]string{"Chart.yaml": sources.ChartYAML})
	for range maxNesting + 1 {
		deep = sources.ChartArchive(t, "web", map[string]string{"Chart.yaml": sources.ChartYAML, "charts/sub.tgz": string(deep)})
	}
	linked := sources.ChartFolder(nil)
	linked["values.yaml"] = &fstest.MapFile{Data: []byte("/etc/passwd"), Mode: fs.ModeSymlink}
	huge := sources.ChartFolder(map[string]string{"big": strings.Repeat("x", maxFileBytes+1)})

	tests := map[string]struct {
		chart Chart
		want  string
	}{
		"no Chart.yaml":                     {Chart{Files: sources.ChartFolder(map[string]string{"Chart.yaml": "", "a": "b"})}, "Chart.yaml file is missing"},
		"broken Chart.yaml":                 {Chart{Files: sources.ChartFolder(map[string]string{"Chart.yaml": "a: ["})}, "cannot load Chart.yaml"},
		"library":                           {Chart{Files: sources.ChartFolder(map[string]string{"Chart.yaml": sources.ChartYAML + "type: library\n"})}, "of type library"},
		"missing dependency":                {Chart{Files: sources.ChartFolder(map[string]string{"Chart.yaml": sources.ChartYAML + "dependencies:\n- name: redis\n  version: 1.0.0\n"})}, "charts/ directory: redis; vendor them"},
		"symlink":                           {Chart{Files: linked}, "values.yaml is not an ordinary file"},
		"large file":                        {Chart{Files: huge}, "big is larger than 5 MiB"},
		"many files":                        {archived(t, sources.ChartArchive(t, "web", many)), "larger than"},
		"archive bomb":                      {archived(t, sources.ChartArchive(t, "web", bomb)), "larger than"},
		"bomb in a subchart":                {Chart{Files: sources.ChartFolder(nested)}, "larger than"},
		"nested too deep":                   {archived(t, deep), "nested more than 8 deep"},
		"no archive":                        {archived(t, []byte("hello, I am no archive")), "gzip"},
		"climbs out":                        {archived(t, sources.ChartArchive(t, "web", map[string]string{"Chart.yaml": sources.ChartYAML, "../../x": "y"})), "references parent directory"},
		"a pattern that Helm does not have": {Chart{Files: sources.ChartFolder(map[string]string{".helmignore": "a/**/b\n"})}, ".helmignore: double-star (**) syntax is not supported"},
		"schema is no JSON":                 {Chart{Files: sources.ChartFolder(map[string]string{"values.schema.json": "{"})}, "values.schema.json of chart web: unexpected end of JSON input"},
		"a broken archive in a folder":      {Chart{Files: sources.ChartFolder(map[string]string{"charts/a.tgz": "no archive"})}, "charts/a.tgz: "},
		"schema reads a file":               {Chart{Files: sources.ChartFolder(map[string]string{"values.schema.json": `{"properties":{"a":{"$ref":"file:///etc/passwd"}}}`})}, "refers to file:///etc/passwd"},
		"schema, dynamically":               {Chart{Files: sources.ChartFolder(map[string]string{"values.schema.json": `{"items":[{"$dynamicRef":"other.json#a"}]}`})}, "refers to other.json#a"},
		"schema, recursively":               {Chart{Files: sources.ChartFolder(map[string]string{"values.schema.json": `{"not":{"$recursiveRef":"other.json"}}`})}, "refers to other.json"},
		"schema calls out":                  {Chart{Files: sources.ChartFolder(map[string]string{"values.schema.json": `{"allOf":[{"$ref":"http://169.254.169.254/"}]}`})}, "refers to http://169.254.169.254/"},
		"a subchart's schema": {
			Chart{Files: sources.ChartFolder(map[string]string{
				"charts/s/Chart.yaml":         "apiVersion: v2\nname: s\nversion: 1.0.0\n",
				"charts/s/values.schema.json": `{"$schema":"https://internal/x"}`,
			})}, "of chart s refers to https://internal/x",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := test.chart.Load()
			if !errors.Is(err, fault.ErrRender) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want ErrRender with %q", err, test.want)
			}
		})
	}
}

func TestTooLargeHasItsOwnError(t *testing.T) {
	huge := sources.ChartFolder(map[string]string{"big": strings.Repeat("x", maxFileBytes+1)})
	bomb := sources.ChartArchive(t, "web", map[string]string{"Chart.yaml": sources.ChartYAML, "a": strings.Repeat("\x00", maxChartBytes+1)})
	for name, c := range map[string]Chart{"a file": {Files: huge}, "an archive": archived(t, bomb)} {
		if _, err := c.Load(); !errors.Is(err, fault.ErrTooLarge) || !errors.Is(err, fault.ErrRender) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAliasBombsInChartsAreRefused(t *testing.T) {
	const sub = "apiVersion: v2\nname: s\nversion: 1.0.0\n"
	inner := string(sources.ChartArchive(t, "s", map[string]string{"Chart.yaml": sub, "values.yaml": aliasBomb}))
	for name, files := range map[string]map[string]string{
		"values":               {"values.yaml": aliasBomb},
		"chart":                {"Chart.yaml": sources.ChartYAML + aliasBomb},
		"lock":                 {"Chart.lock": aliasBomb},
		"requirements":         {"requirements.yaml": aliasBomb},
		"requirements lock":    {"requirements.lock": aliasBomb},
		"a subchart":           {"charts/s/Chart.yaml": sub, "charts/s/values.yaml": aliasBomb},
		"a subchart's":         {"charts/s/Chart.yaml": sub, "charts/s/charts/r/Chart.yaml": sub + aliasBomb},
		"an archive":           {"charts/s.tgz": inner},
		"a subchart's archive": {"charts/r/Chart.yaml": sub, "charts/r/charts/s.tgz": inner},
	} {
		if _, err := (Chart{Files: sources.ChartFolder(files)}).Load(); !errors.Is(err, fault.ErrTooLarge) || !errors.Is(err, fault.ErrRender) {
			t.Errorf("%s: %v", name, err)
		}
	}
	chosen := Chart{Files: sources.ChartFolder(map[string]string{"prod.yaml": aliasBomb})}
	if _, _, err := (&Cache{}).Open(chosen, []string{"prod.yaml"}, nil); !errors.Is(err, fault.ErrTooLarge) || !errors.Is(err, fault.ErrRender) {
		t.Errorf("a values file of the app: %v", err)
	}
	harmless := sources.ChartFolder(map[string]string{"values.yaml": "a: &a 1\nb: *a\n", "templates/values.yaml": aliasBomb + "{{", "other.yaml": aliasBomb})
	if _, err := (Chart{Files: harmless}).Load(); err != nil {
		t.Errorf("an ordinary alias, and what Helm does not parse: %v", err)
	}
}

func TestASchemaMayReferToItself(t *testing.T) {
	schema := `{"$schema":"https://json-schema.org/draft-07/schema#","definitions":{"a":{}},"properties":{"a":{"$ref":"#/definitions/a"},"b":{"default":"http://localhost/"},"c":{"$ref":"http://json-schema.org/draft-07/schema"}}}`
	if _, err := (Chart{Files: sources.ChartFolder(map[string]string{"values.schema.json": schema})}).Load(); err != nil {
		t.Error(err)
	}
}

func TestAFileThatCannotBeReadIsNoFaultOfTheChart(t *testing.T) {
	_, err := Chart{Archive: filepath.Join(t.TempDir(), "gone.tgz")}.Load()
	if err == nil || errors.Is(err, fault.ErrRender) {
		t.Errorf("a missing archive gives %v, want an error that may pass", err)
	}
	if _, err := (Chart{}).Load(); err == nil || errors.Is(err, fault.ErrRender) {
		t.Errorf("no chart gives %v", err)
	}
}

func FuzzLoadArchive(f *testing.F) {
	f.Add(sources.ChartArchive(f, "web", map[string]string{"Chart.yaml": sources.ChartYAML, "values.yaml": "a: 1"}))
	f.Add(sources.ChartArchive(f, "web", map[string]string{"Chart.yaml": sources.ChartYAML, "charts/a.tgz": "no"}))
	f.Add([]byte("\x1f\x8b\x08"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := archived(t, data).Load()
		if err == nil && c.Name() == "" {
			t.Error("a chart without a name was loaded")
		}
	})
}

// TestValuesOfSchemasCountForTheLimit as values of YAML do. Values of files that Helm does not parse do not count.
func TestValuesOfSchemasCountForTheLimit(t *testing.T) {
	many := []byte("[" + strings.Repeat("0,", yamlcheck.MaxNodes) + "0]")
	half := []byte("[" + strings.Repeat("0,", yamlcheck.MaxNodes/2) + "0]")
	for name, c := range map[string]struct {
		files []*loader.BufferedFile
		want  error
	}{
		"a schema":               {[]*loader.BufferedFile{{Name: "values.schema.json", Data: many}}, yamlcheck.ErrNodes},
		"one of a subchart":      {[]*loader.BufferedFile{{Name: "charts/db/values.schema.json", Data: many}}, yamlcheck.ErrNodes},
		"two of half the values": {[]*loader.BufferedFile{{Name: "values.schema.json", Data: half}, {Name: "charts/db/values.schema.json", Data: half}}, yamlcheck.ErrNodes},
		"one of half the values": {[]*loader.BufferedFile{{Name: "values.schema.json", Data: half}}, nil},
		"another JSON file":      {[]*loader.BufferedFile{{Name: "files/dashboard.json", Data: many}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if err := safeToParse(c.files, func(string) {}); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
}

// unreadable is a folder in which opening or reading one entry fails.
type unreadable struct {
	fs.FS
	name string
	// stat: the entry cannot even be opened.
	stat bool
}

var errDisk = errors.New("the disk fails")

func (u unreadable) Open(name string) (fs.File, error) {
	if name == u.name && u.stat {
		return nil, &fs.PathError{Op: "open", Path: name, Err: errDisk}
	}
	return u.FS.Open(name)
}

func (u unreadable) ReadFile(name string) ([]byte, error) {
	if name == u.name {
		return nil, errDisk
	}
	return fs.ReadFile(u.FS, name)
}

func (u unreadable) ReadDir(name string) ([]fs.DirEntry, error) {
	if name == u.name {
		return nil, errDisk
	}
	return fs.ReadDir(u.FS, name)
}

// TestAFolderThatCannotBeReadIsNoFaultOfTheChart: the store may be able to read it later.
func TestAFolderThatCannotBeReadIsNoFaultOfTheChart(t *testing.T) {
	chart := sources.ChartFolder(map[string]string{".helmignore": "*.bak\n", "templates/a.yaml": "kind: A\n"})
	for name, folder := range map[string]fs.FS{
		"the patterns cannot be found": unreadable{FS: chart, name: ".helmignore", stat: true},
		"the patterns cannot be read":  unreadable{FS: chart, name: ".helmignore"},
		"a file cannot be read":        unreadable{FS: chart, name: "templates/a.yaml"},
		"a folder cannot be listed":    unreadable{FS: chart, name: "templates"},
	} {
		t.Run(name, func(t *testing.T) {
			files, err := Chart{Files: folder}.Read()
			if !errors.Is(err, errDisk) || errors.Is(err, fault.ErrRender) || !strings.HasPrefix(err.Error(), "reading the chart: ") || files != nil {
				t.Errorf("got %d files, %v", len(files), err)
			}
		})
	}
}

// TestAFolderIsBoundedLikeAnArchive: as many bytes and files as are allowed, and no more.
func TestAFolderIsBoundedLikeAnArchive(t *testing.T) {
	folder := func(files, bytes int) fstest.MapFS {
		chart := fstest.MapFS{"Chart.yaml": {Data: []byte(sources.ChartYAML)}}
		for i := range files - 1 {
			chart["f"+strconv.Itoa(i)] = &fstest.MapFile{}
		}
		for i := 0; bytes > 0; i++ {
			n := min(bytes, maxFileBytes)
			chart["f"+strconv.Itoa(i)] = &fstest.MapFile{Data: make([]byte, n)}
			bytes -= n
		}
		return chart
	}
	rest := maxChartBytes - len(sources.ChartYAML)
	for name, c := range map[string]struct {
		files    fstest.MapFS
		tooLarge bool
	}{
		"as many files as are allowed": {files: folder(maxChartFiles, 0)},
		"one file more":                {files: folder(maxChartFiles+1, 0), tooLarge: true},
		"as many bytes as are allowed": {files: folder(8, rest)},
		"one byte more":                {files: folder(8, rest+1), tooLarge: true},
	} {
		t.Run(name, func(t *testing.T) {
			files, err := Chart{Files: c.files}.Read()
			if c.tooLarge != (err != nil) || c.tooLarge && (!errors.Is(err, fault.ErrRender) || !errors.Is(err, errTooLarge)) || !c.tooLarge && len(files) != len(c.files) {
				t.Errorf("got %d files of %d, %v", len(files), len(c.files), err)
			}
		})
	}
}
