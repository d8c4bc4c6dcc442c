package check

import (
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// folder returns what is beside an app.yaml: files by their paths, a link as one that ends in "@".
func folder(t *testing.T, paths ...string) Folder {
	t.Helper()
	files := fstest.MapFS{}
	for _, path := range paths {
		if path[len(path)-1] == '@' {
			files[path[:len(path)-1]] = &fstest.MapFile{Mode: fs.ModeSymlink, Data: []byte("elsewhere")}
			continue
		}
		files[path] = &fstest.MapFile{}
	}
	all := Folder{}
	err := fs.WalkDir(files, ".", func(path string, e fs.DirEntry, err error) error {
		if path != "." {
			all[path] = e
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestPathsOfASpecLeadIntoTheFolder(t *testing.T) {
	for name, c := range map[string]struct {
		spec   string
		beside []string
		want   []string
	}{
		"manifests":                 {"{type: Raw, raw: {path: manifests}}", []string{"manifests/a.yaml"}, nil},
		"manifests with a slash":    {"{type: Raw, raw: {path: ./manifests/}}", []string{"manifests/a.yaml"}, nil},
		"no manifests":              {"{type: Raw, raw: {path: manifests}}", []string{"other/a.yaml"}, []string{`4: spec.raw.path: there is no folder "manifests" beside app.yaml: add it, or correct the path`}},
		"manifests that are a file": {"{type: Raw, raw: {path: manifests}}", []string{"manifests"}, []string{`4: spec.raw.path: "manifests" is a file`}},
		"manifests behind a link":   {"{type: Raw, raw: {path: link/manifests}}", []string{"link@"}, nil},
		"manifests that are a link": {"{type: Raw, raw: {path: link}}", []string{"link@"}, nil},
		"the app's own folder":      {"{type: Raw, raw: {path: .}}", []string{"app.yaml"}, []string{`4: spec.raw.path must be a folder of its own, such as "manifests": app.yaml is no manifest`}},
		"manifests in app.yaml":     {"{type: Raw, raw: {manifests: [{apiVersion: v1, kind: Service, metadata: {name: a}}]}}", nil, nil},
		"a link of a shorter name":  {"{type: Raw, raw: {path: manifests}}", []string{"m@"}, []string{`4: spec.raw.path: there is no folder "manifests" beside app.yaml: add it, or correct the path`}},
		"a chart of a repository":   {"{type: Helm, helm: {repository: https://a.example, chart: b, version: 1.0.0}}", nil, nil},
		"a chart that is a file":    {"{type: Helm, helm: {path: chart}}", []string{"chart"}, []string{`4: spec.helm.path: "chart" is a file`}},
		"a chart":                   {"{type: Helm, helm: {path: chart}}", []string{"chart/Chart.yaml"}, nil},
		"the folder is the chart":   {"{type: Helm, helm: {path: .}}", []string{"Chart.yaml"}, nil},
		"the folder is no chart":    {"{type: Helm, helm: {path: .}}", []string{"app.yaml"}, []string{`4: spec.helm.path: the folder "." is no chart: it has no Chart.yaml`}},
		"no chart":                  {"{type: Helm, helm: {path: chart}}", nil, []string{`4: spec.helm.path: there is no folder "chart" beside app.yaml: add it, or correct the path`}},
		"a folder that is no chart": {"{type: Helm, helm: {path: chart}}", []string{"chart/values.yaml"}, []string{`4: spec.helm.path: the folder "chart" is no chart: it has no Chart.yaml`}},
		"a Chart.yaml by a link":    {"{type: Helm, helm: {path: chart}}", []string{"chart/Chart.yaml@"}, nil},
		"values":                    {"{type: Helm, helm: {path: chart, valuesFiles: [a.yaml, b/c.yaml]}}", []string{"chart/Chart.yaml", "a.yaml", "b/c.yaml"}, nil},
		"no values": {"{type: Helm, helm: {path: chart, valuesFiles: [a.yaml, b.yaml]}}", []string{"chart/Chart.yaml", "a.yaml"},
			[]string{`4: spec.helm.valuesFiles[1]: there is no file "b.yaml" beside app.yaml: add it, or correct the name`}},
		"values that are a folder": {"{type: Helm, helm: {path: chart, valuesFiles: [b]}}", []string{"chart/Chart.yaml", "b/c.yaml"}, []string{`4: spec.helm.valuesFiles[0]: "b" is a folder`}},
		"values behind a link":     {"{type: Helm, helm: {path: chart, valuesFiles: [l/c.yaml]}}", []string{"chart/Chart.yaml", "l@"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			d, got := findings(t, anApp, app(c.spec), true)
			if len(got) != 0 {
				t.Fatalf("the document itself: %v", got)
			}
			d.Paths(folder(t, c.beside...))
			if diff := cmp.Diff(c.want, written(d)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestPathsOutsideOfAppsAreNotChecked(t *testing.T) {
	for name, text := range map[string]string{"wrong": "kind: App\n", "a project": project("metadata: {name: shop}")} {
		d, before := findings(t, aProject, text, false)
		d.Paths(Folder{})
		if diff := cmp.Diff(before, written(d)); diff != "" {
			t.Errorf("%s (-before +after):\n%s", name, diff)
		}
	}
}
