package chart

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

func TestTheNameOfAnArchiveHasTheNameOfItsChart(t *testing.T) {
	for file, want := range map[string]string{
		"web-1.2.3.tgz": "web", "web-v1.2.3.tgz": "web", "my-web-1.2.3.tgz": "my-web", "web-2-1.2.3.tgz": "web-2", "web-1.2.3-rc.1.tgz": "web",
		"web-1.2.3-4.5.6.tgz": "web", "web.tgz": "web", "web-1.2.tgz": "web-1.2", "web-1.2.3": "web", "-1.2.3.tgz": "",
	} {
		if got := archivedName(file); got != want {
			t.Errorf("%s: got %q, want %q", file, got, want)
		}
	}
}

func TestADependencyThatIsNotLockedIsExplained(t *testing.T) {
	const stable = "https://charts.example/stable"
	locked := []dependencyEntry{{Name: "cache", Version: "1.9.9", Repository: stable}, {Name: "db", Version: "1.2.3", Repository: stable + "/"}, {Name: "db", Version: "9.0.0", Repository: "https://other.example"}}
	for name, tc := range map[string]struct {
		chart chartFile
		of    dependencyEntry
		want  missingDependency
		kind  error
		says  string
	}{
		"what is in charts/":         {chartFile{}, dependencyEntry{Name: "vendored", Repository: "@mine"}, missingDependency{}, nil, ""},
		"without a lock":             {chartFile{}, dependencyEntry{"db", "^1", stable}, missingDependency{Name: "db", Version: "^1", Repository: stable}, nil, ""},
		"the version of the lock":    {chartFile{lock: "Chart.lock", locked: locked}, dependencyEntry{"db", "^1", stable}, missingDependency{Name: "db", Version: "1.2.3", Repository: stable}, nil, ""},
		"of its own repository":      {chartFile{lock: "Chart.lock", locked: locked}, dependencyEntry{"db", ">=1", "https://other.example/"}, missingDependency{Name: "db", Version: "9.0.0", Repository: "https://other.example/"}, nil, ""},
		"in the same commit":         {chartFile{lock: "Chart.lock"}, dependencyEntry{"db", "^1", "file://../db"}, missingDependency{Name: "db", Version: "^1", Repository: "file://../db"}, nil, ""},
		"a lock that is out of date": {chartFile{lock: "Chart.lock", locked: locked}, dependencyEntry{"db", "^2", stable}, missingDependency{}, failure.ErrInvalid, `version "^2" from https://charts.example/stable is not in Chart.lock: write it with "helm dependency update"`},
		"not in the lock":            {chartFile{lock: "Chart.lock", locked: locked}, dependencyEntry{"mq", "^1", "https://bot:hunter2@charts.example/stable"}, missingDependency{}, failure.ErrInvalid, `version "^1" from https://charts.example/stable is not in Chart.lock`},
		"no repository":              {chartFile{}, dependencyEntry{Name: "db"}, missingDependency{}, failure.ErrNotFound, "has no repository and is not in charts/"},
		"an alias":                   {chartFile{}, dependencyEntry{Name: "db", Repository: "@stable"}, missingDependency{}, failure.ErrInvalid, "@stable is an alias that only your own helm command knows"},
		"an alias, written out":      {chartFile{}, dependencyEntry{Name: "db", Repository: "alias:stable"}, missingDependency{}, failure.ErrInvalid, "alias:stable is an alias"},
		"a path as a name":           {chartFile{}, dependencyEntry{Name: "../db", Repository: stable}, missingDependency{}, failure.ErrInvalid, "is not the name of a chart"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := tc.chart.missing(tc.of, map[string]bool{"vendored": true})
			if tc.kind != nil {
				sources.WantError(t, err, tc.kind, tc.says)
				sources.WantNoSecret(t, err, "hunter2")
			} else if err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(missingDependency{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestADependencyLiesInChartsUnderNoPath(t *testing.T) {
	for name, tc := range map[string]struct {
		of   Dependency
		want string
	}{
		"an archive":           {Dependency{Name: "db", Version: "1.0.0"}, "db-1.0.0.tgz"},
		"a folder":             {Dependency{Name: "db", Version: "1.0.0", Path: "db"}, "db-1.0.0"},
		"a path in a version":  {Dependency{Name: "db", Version: "1/../../x"}, ""},
		"a backslash in a one": {Dependency{Name: "db", Version: `1\x`, Path: "db"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.of.file(); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
