package index

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/few"
)

// Version is one version of a chart.
type Version struct {
	// Name is the version as the repository writes it.
	Name   string
	URLs   []string
	Digest string
}

// Choose returns the requested version: the one with exactly that name, or else the newest in the range.
func Choose(chart, requested string, versions []Version) (Version, error) {
	if requested == "" {
		requested = "*"
	}
	for _, v := range versions {
		if v.Name == requested {
			return v, nil
		}
	}
	wanted, err := semver.NewConstraint(requested)
	if err != nil {
		return Version{}, failure.New(failure.ErrInvalid, "%q is neither a version nor a range of versions, such as \">=1.2.0 <2.0.0\"", few.Quote(requested))
	}
	sorted := NewestFirst(versions)
	for _, v := range sorted {
		if wanted.Check(v.Parsed) {
			return v.Version, nil
		}
	}
	if len(sorted) == 0 {
		return Version{}, failure.New(failure.ErrNotFound, "chart %s has no versions", chart)
	}
	var newest []string
	for _, v := range sorted[:min(5, len(sorted))] {
		newest = append(newest, few.Quote(v.Name))
	}
	return Version{}, failure.New(failure.ErrNotFound, "chart %s has no version %q; the newest are %s", chart, few.Quote(requested), strings.Join(newest, ", "))
}

// Parsed is a parsed version.
type Parsed struct {
	Version
	Parsed *semver.Version
}

// NewestFirst parses and sorts the versions, and leaves out invalid ones.
func NewestFirst(versions []Version) []Parsed {
	var sorted []Parsed
	for _, v := range versions {
		if parsed, err := semver.NewVersion(v.Name); err == nil {
			sorted = append(sorted, Parsed{Version: v, Parsed: parsed})
		}
	}
	// Versions that differ only in build metadata are equal to semver. Then the names decide, so that the result is stable.
	slices.SortFunc(sorted, func(a, b Parsed) int { return cmp.Or(b.Parsed.Compare(a.Parsed), strings.Compare(b.Name, a.Name)) })
	return sorted
}

var name = regexp.MustCompile(`^[a-zA-Z0-9]([-._a-zA-Z0-9]*[a-zA-Z0-9])?$`)

// IsName reports whether a chart may have this name: the API allows it, and it becomes a part of a URL.
func IsName(chart string) bool { return name.MatchString(chart) }
