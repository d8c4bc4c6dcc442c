package release

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/kubeop/kubeop/delivery/release/fault"
)

const chartYAML = "apiVersion: v2\nname: web\nversion: 1.2.3\nappVersion: \"9\"\n"

// folder is a chart folder; a file without text is absent.
// aliasBomb is 20 KiB of YAML and 2 MiB of JSON.
var aliasBomb = "a: &a " + strings.Repeat("x", 20<<10) + "\nb: [*a" + strings.Repeat(",*a", 100) + "]\n"

func folder(files map[string]string) fstest.MapFS {
	out := fstest.MapFS{"Chart.yaml": {Data: []byte(chartYAML)}}
	for name, text := range files {
		out[name] = &fstest.MapFile{Data: []byte(text)}
		if text == "" {
			delete(out, name)
		}
	}
	return out
}

// packed is a chart archive.
func packed(t testing.TB, name string, files map[string]string) []byte {
	t.Helper()
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	w := tar.NewWriter(zipped)
	for _, file := range slices.Sorted(maps.Keys(files)) {
		header := &tar.Header{Name: name + "/" + file, Size: int64(len(files[file])), Mode: 0o644, Typeflag: tar.TypeReg}
		if err := w.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(files[file])); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), zipped.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func archived(t testing.TB, data []byte) Chart {
	t.Helper()
	file := filepath.Join(t.TempDir(), "chart.tgz")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return Chart{Archive: file}
}

func TestLoadFolder(t *testing.T) {
	c, err := Chart{Files: folder(map[string]string{
		"values.yaml":                   "a: 1\n",
		"templates/a.yaml":              "kind: ConfigMap\n",
		".helmignore":                   "drafts/\n*.bak\n",
		"drafts/b.yaml":                 "x",
		"templates/c.yaml.bak":          "x",
		"charts/redis/Chart.yaml":       "apiVersion: v2\nname: redis\nversion: 1.0.0\n",
		"charts/redis/templates/r.yaml": "kind: Service\n",
		"charts/db-2.0.0.tgz":           string(packed(t, "db", map[string]string{"Chart.yaml": "apiVersion: v2\nname: db\nversion: 2.0.0\n"})),
	})}.load()
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
	source := archived(t, packed(t, "web", map[string]string{"Chart.yaml": chartYAML, "values.yaml": "a: 1\n"}))
	first, err := source.load()
	if err != nil {
		t.Fatal(err)
	}
	first.Values["a"] = "changed"
	second, err := source.load()
	if err != nil {
		t.Fatal(err)
	}
	if second.Values["a"] == "changed" {
		t.Error("two actions share a chart")
	}
}

func TestChartsThatCannotBeLoaded(t *testing.T) {
	many := map[string]string{"Chart.yaml": chartYAML}
	for i := range maxChartFiles {
		many["files/"+strconv.Itoa(i)] = "x"
	}
	zeros := strings.Repeat("\x00", 4<<20)
	bomb := map[string]string{"Chart.yaml": chartYAML}
	for i := range 10 {
		bomb["charts/"+strconv.Itoa(i)+".tgz"] = string(packed(t, "sub", map[string]string{"Chart.yaml": chartYAML, "a": zeros}))
	}
	nested := map[string]string{"charts/s/Chart.yaml": "apiVersion: v2\nname: s\nversion: 1.0.0\n"}
	for name, text := range bomb {
		if name != "Chart.yaml" {
			nested["charts/s/"+name] = text
		}
	}
	deep := packed(t, "web", map[string]string{"Chart.yaml": chartYAML})
	for range maxNesting + 1 {
		deep = packed(t, "web", map[string]string{"Chart.yaml": chartYAML, "charts/sub.tgz": string(deep)})
	}
	linked := folder(nil)
	linked["values.yaml"] = &fstest.MapFile{Data: []byte("/etc/passwd"), Mode: fs.ModeSymlink}
	huge := folder(map[string]string{"big": strings.Repeat("x", maxFileBytes+1)})

	tests := map[string]struct {
		chart Chart
		want  string
	}{
		"no Chart.yaml":       {Chart{Files: folder(map[string]string{"Chart.yaml": "", "a": "b"})}, "Chart.yaml file is missing"},
		"broken Chart.yaml":   {Chart{Files: folder(map[string]string{"Chart.yaml": "a: ["})}, "cannot load Chart.yaml"},
		"library":             {Chart{Files: folder(map[string]string{"Chart.yaml": chartYAML + "type: library\n"})}, "of type library"},
		"missing dependency":  {Chart{Files: folder(map[string]string{"Chart.yaml": chartYAML + "dependencies:\n- name: redis\n  version: 1.0.0\n"})}, "charts/ directory: redis; vendor them"},
		"symlink":             {Chart{Files: linked}, "values.yaml is not an ordinary file"},
		"large file":          {Chart{Files: huge}, "big is larger than 5 MiB"},
		"many files":          {archived(t, packed(t, "web", many)), "larger than"},
		"archive bomb":        {archived(t, packed(t, "web", bomb)), "larger than"},
		"bomb in a subchart":  {Chart{Files: folder(nested)}, "larger than"},
		"nested too deep":     {archived(t, deep), "nested more than 8 deep"},
		"no archive":          {archived(t, []byte("hello, I am no archive")), "gzip"},
		"climbs out":          {archived(t, packed(t, "web", map[string]string{"Chart.yaml": chartYAML, "../../x": "y"})), "references parent directory"},
		"schema reads a file": {Chart{Files: folder(map[string]string{"values.schema.json": `{"properties":{"a":{"$ref":"file:///etc/passwd"}}}`})}, "refers to file:///etc/passwd"},
		"schema calls out":    {Chart{Files: folder(map[string]string{"values.schema.json": `{"allOf":[{"$ref":"http://169.254.169.254/"}]}`})}, "refers to http://169.254.169.254/"},
		"a subchart's schema": {
			Chart{Files: folder(map[string]string{
				"charts/s/Chart.yaml":         "apiVersion: v2\nname: s\nversion: 1.0.0\n",
				"charts/s/values.schema.json": `{"$schema":"https://internal/x"}`,
			})}, "of chart s refers to https://internal/x",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := test.chart.load()
			if !errors.Is(err, fault.ErrRender) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want ErrRender with %q", err, test.want)
			}
		})
	}
}

func TestTooLargeHasItsOwnError(t *testing.T) {
	huge := folder(map[string]string{"big": strings.Repeat("x", maxFileBytes+1)})
	bomb := packed(t, "web", map[string]string{"Chart.yaml": chartYAML, "a": strings.Repeat("\x00", maxChartBytes+1)})
	for name, c := range map[string]Chart{"a file": {Files: huge}, "an archive": archived(t, bomb)} {
		if _, err := c.load(); !errors.Is(err, fault.ErrTooLarge) || !errors.Is(err, fault.ErrRender) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAliasesThatBlowUp(t *testing.T) {
	const sub = "apiVersion: v2\nname: s\nversion: 1.0.0\n"
	inner := string(packed(t, "s", map[string]string{"Chart.yaml": sub, "values.yaml": aliasBomb}))
	for name, files := range map[string]map[string]string{
		"values":               {"values.yaml": aliasBomb},
		"chart":                {"Chart.yaml": chartYAML + aliasBomb},
		"lock":                 {"Chart.lock": aliasBomb},
		"requirements":         {"requirements.yaml": aliasBomb},
		"requirements lock":    {"requirements.lock": aliasBomb},
		"a subchart":           {"charts/s/Chart.yaml": sub, "charts/s/values.yaml": aliasBomb},
		"a subchart's":         {"charts/s/Chart.yaml": sub, "charts/s/charts/r/Chart.yaml": sub + aliasBomb},
		"an archive":           {"charts/s.tgz": inner},
		"a subchart's archive": {"charts/r/Chart.yaml": sub, "charts/r/charts/s.tgz": inner},
	} {
		if _, err := (Chart{Files: folder(files)}).load(); !errors.Is(err, fault.ErrTooLarge) || !errors.Is(err, fault.ErrRender) {
			t.Errorf("%s: %v", name, err)
		}
	}
	chosen := Chart{Files: folder(map[string]string{"prod.yaml": aliasBomb})}
	if _, _, err := (&Engine{}).chart(chosen, []string{"prod.yaml"}); !errors.Is(err, fault.ErrTooLarge) || !errors.Is(err, fault.ErrRender) {
		t.Errorf("a values file of the app: %v", err)
	}
	harmless := folder(map[string]string{"values.yaml": "a: &a 1\nb: *a\n", "templates/values.yaml": aliasBomb + "{{", "other.yaml": aliasBomb})
	if _, err := (Chart{Files: harmless}).load(); err != nil {
		t.Errorf("an ordinary alias, and what Helm does not parse: %v", err)
	}
}

func TestSchemaWithinItself(t *testing.T) {
	schema := `{"$schema":"https://json-schema.org/draft-07/schema#","definitions":{"a":{}},"properties":{"a":{"$ref":"#/definitions/a"}}}`
	if _, err := (Chart{Files: folder(map[string]string{"values.schema.json": schema})}).load(); err != nil {
		t.Error(err)
	}
}

func TestReadingTroubleMayPass(t *testing.T) {
	_, err := Chart{Archive: filepath.Join(t.TempDir(), "gone.tgz")}.load()
	if err == nil || errors.Is(err, fault.ErrRender) {
		t.Errorf("a missing archive gives %v, want an error that may pass", err)
	}
	if _, err := (Chart{}).load(); err == nil || errors.Is(err, fault.ErrRender) {
		t.Errorf("no chart gives %v", err)
	}
}

func FuzzLoadArchive(f *testing.F) {
	f.Add(packed(f, "web", map[string]string{"Chart.yaml": chartYAML, "values.yaml": "a: 1"}))
	f.Add(packed(f, "web", map[string]string{"Chart.yaml": chartYAML, "charts/a.tgz": "no"}))
	f.Add([]byte("\x1f\x8b\x08"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := archived(t, data).load()
		if err == nil && c.Name() == "" {
			t.Error("a chart without a name was loaded")
		}
	})
}
