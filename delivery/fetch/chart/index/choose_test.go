package index

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

func named(names ...string) []Version {
	var versions []Version
	for _, name := range names {
		versions = append(versions, Version{Name: name, Digest: "of " + name})
	}
	return versions
}

func TestChooseReturnsTheNewestVersionThatFits(t *testing.T) {
	for name, tc := range map[string]struct {
		wish     string
		versions []Version
		want     string
		kind     error
		says     string
	}{
		"the newest":                    {"", named("1.9.0", "1.10.0", "1.2.0"), "1.10.0", nil, ""},
		"no pre-release by itself":      {"", named("1.0.0", "2.0.0-rc.1"), "1.0.0", nil, ""},
		"a pre-release by its name":     {"2.0.0-rc.1", named("1.0.0", "2.0.0-rc.1"), "2.0.0-rc.1", nil, ""},
		"a pre-release in a range":      {">=1.0.0-0", named("1.0.0", "2.0.0-rc.1"), "2.0.0-rc.1", nil, ""},
		"the newest of a range":         {"^1.2", named("1.2.0", "1.3.1", "1.3.0", "2.0.0"), "1.3.1", nil, ""},
		"the name before the range":     {"1.2", named("1.2.9", "1.2"), "1.2", nil, ""},
		"a version without its v":       {"1.2.3", named("v1.2.3"), "v1.2.3", nil, ""},
		"a name that is no version":     {"edge", named("1.0.0", "edge"), "edge", nil, ""},
		"no versions are passed over":   {"*", named("edge", "1.0.0", "x.y.z"), "1.0.0", nil, ""},
		"the same but for build":        {"1.0.0", named("1.0.0+a", "1.0.0+b"), "1.0.0+b", nil, ""},
		"the same, in another order":    {"1.0.0", named("1.0.0+b", "1.0.0+a"), "1.0.0+b", nil, ""},
		"neither version nor range":     {"newest\n", named("1.0.0"), "", failure.ErrInvalid, `"newest" is neither a version nor a range of versions, such as ">=1.2.0 <2.0.0"`},
		"none in the range":             {">=9", named("1.0.0", "3.0.0", "2.0.0"), "", failure.ErrNotFound, `chart web has no version ">=9"; the newest are 3.0.0, 2.0.0, 1.0.0`},
		"none in the range, of many":    {">=9", named("1.0.0", "2.0.0", "3.0.0", "4.0.0", "5.0.0", "6.0.0"), "", failure.ErrNotFound, "the newest are 6.0.0, 5.0.0, 4.0.0, 3.0.0, 2.0.0"},
		"none at all":                   {"", nil, "", failure.ErrNotFound, "chart web has no versions"},
		"none that is one":              {"", named("edge"), "", failure.ErrNotFound, "chart web has no versions"},
		"an impossible name in a range": {">1.0.0 <", named("1.0.0"), "", failure.ErrInvalid, `">1.0.0 <" is neither a version nor a range of versions, such as ">=1.2.0 <2.0.0"`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Choose("web", tc.wish, tc.versions)
			if tc.kind != nil {
				sources.WantError(t, err, tc.kind, tc.says)
				if !strings.HasSuffix(err.Error(), tc.says) {
					t.Errorf("%q is not its end: %v", tc.says, err)
				}
				return
			}
			if err != nil || got.Name != tc.want || got.Digest != "of "+tc.want {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

func TestVersionsAreSortedNewestFirst(t *testing.T) {
	var got []string
	for _, v := range NewestFirst(named("1.0.0", "edge", "1.0.0-rc.2", "v2.0.0", "1.0.0-rc.10", "1.0.0+b", "1.0")) {
		got = append(got, v.Name)
	}
	if diff := cmp.Diff([]string{"v2.0.0", "1.0.0+b", "1.0.0", "1.0", "1.0.0-rc.10", "1.0.0-rc.2"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestANameOfAChartHasNoPath(t *testing.T) {
	for chart, want := range map[string]bool{
		"web": true, "Web2": true, "a": true, "a.b-c_d": true, "": false, "-web": false, "web-": false, ".web": false, "../web": false, "a/b": false, "a b": false, "web\n": false,
	} {
		if got := IsName(chart); got != want {
			t.Errorf("%q: %v, want %v", chart, got, want)
		}
	}
}

func TestCutKeySplitsALineOfYAML(t *testing.T) {
	for line, want := range map[string][3]string{
		"web:":            {"web", "", "ok"},
		"web: x: y ":      {"web", "x: y", "ok"},
		`"web": x`:        {"web", "x", "ok"},
		"'web:':":         {"web:", "", "ok"},
		`"web:": []`:      {"web:", "[]", "ok"},
		"web:x":           {},
		"web":             {},
		"":                {},
		`"web`:            {},
		`"web" : x`:       {},
		"https://h/a.tgz": {},
	} {
		key, value, ok := cutKey(line)
		got := [3]string{key, value}
		if ok {
			got[2] = "ok"
		}
		if got != want {
			t.Errorf("%q: got %q, want %q", line, got, want)
		}
	}
}
