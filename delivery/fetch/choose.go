package fetch

import (
	"sort"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
)

// version is one version of a chart.
type version struct {
	// Name is the version as the repository writes it.
	Name   string
	URLs   []string
	Digest string
}

// choose picks the version a wish means: the one of exactly that name, else the newest that is in the range.
func choose(chart, wish string, versions []version) (version, error) {
	if wish == "" {
		wish = "*"
	}
	for _, v := range versions {
		if v.Name == wish {
			return v, nil
		}
	}
	wanted, err := semver.NewConstraint(wish)
	if err != nil {
		return version{}, failure.New(failure.ErrInvalid, "%q is neither a version nor a range of versions, such as \">=1.2.0 <2.0.0\"", failure.Printable(wish))
	}
	sorted := newestFirst(versions)
	for _, v := range sorted {
		if wanted.Check(v.parsed) {
			return v.version, nil
		}
	}
	if len(sorted) == 0 {
		return version{}, failure.New(failure.ErrNotFound, "chart %s has no versions", chart)
	}
	var newest []string
	for _, v := range sorted[:min(5, len(sorted))] {
		newest = append(newest, failure.Printable(v.Name))
	}
	return version{}, failure.New(failure.ErrNotFound, "chart %s has no version %q; the newest are %s", chart, failure.Printable(wish), strings.Join(newest, ", "))
}

type parsedVersion struct {
	version
	parsed *semver.Version
}

// newestFirst leaves out what is not a version.
func newestFirst(versions []version) []parsedVersion {
	var sorted []parsedVersion
	for _, v := range versions {
		if parsed, err := semver.NewVersion(v.Name); err == nil {
			sorted = append(sorted, parsedVersion{version: v, parsed: parsed})
		}
	}
	// Equal to semver are versions that differ in build metadata only; the name decides, so that the answer is stable.
	sort.Slice(sorted, func(i, j int) bool {
		if order := sorted[i].parsed.Compare(sorted[j].parsed); order != 0 {
			return order > 0
		}
		return sorted[i].Name > sorted[j].Name
	})
	return sorted
}
