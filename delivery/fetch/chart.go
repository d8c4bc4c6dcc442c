package fetch

import (
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/Masterminds/semver/v3"
)

// Chart is a Helm chart in a repository, as somebody.
type Chart struct {
	// Repository is the https:// or http:// URL of a Helm repository, or the oci:// URL of the path in a registry
	// below which the chart is.
	Repository string
	// Name of the chart.
	Name string
	// Version is a version or a semver range, of which the newest match is taken. Default "*", the newest stable one;
	// prereleases match only a range that names one.
	Version string
	// Insecure speaks to an oci:// registry without TLS.
	Insecure bool
	// Auth is sent to the host of Repository only; a registry may name another host that checks it (its token service).
	Auth Auth
	// Tenant on whose behalf it is fetched: it may have a few fetches under way at once. Empty: no bound.
	Tenant string
}

// ChartArchive is a packaged chart on disk.
type ChartArchive struct {
	// Path of the .tgz. It is never changed.
	Path string
	// Name and Version of the chart, as the repository lists them.
	Name, Version string
	// Digest of the file, "sha256:<hex>".
	Digest string
}

// ChartStore keeps the charts that were fetched on disk, one file per content and source: what one credential fetched
// is never handed out to another. Safe for concurrent use.
type ChartStore struct {
	dir    string
	limits limits
	locks  locks
	gate   gate
	// arrivals is a logical clock, see index.
	arrivals atomic.Int64

	mu      sync.Mutex
	indexes map[string]*index
}

// NewChartStore keeps charts below dir, which is created when it is first needed.
func NewChartStore(dir string) *ChartStore {
	return &ChartStore{dir: dir, limits: defaultLimits(), indexes: map[string]*index{}}
}

// Fetch finds the newest version of the chart that src allows, and downloads it unless it is on disk. The repository is
// always asked, with the credentials of src. The time it may take is that of ctx, and 2 minutes at most; a server that is
// silent ends it sooner (see limits).
//
// Errors: ErrNotFound, ErrAuthentication, ErrInvalid, ErrTooLarge, ErrBusy; any other is transient.
func (s *ChartStore) Fetch(ctx context.Context, src Chart) (ChartArchive, error) {
	archive, err := s.inTurn(ctx, src)
	if err == nil {
		return archive, nil
	}
	return ChartArchive{}, fmt.Errorf("fetching chart %s of %s: %w", printable(src.Name), safeURL(src.Repository), err)
}

// inTurn fetches within the limits of time.
func (s *ChartStore) inTurn(ctx context.Context, src Chart) (ChartArchive, error) {
	leave, err := s.gate.enter(ctx, src.Tenant, s.limits)
	if err != nil {
		return ChartArchive{}, err
	}
	defer leave()
	ctx, done := watched(ctx, s.limits)
	defer done()
	archive, err := s.fetch(ctx, src)
	if err != nil && ctx.Err() != nil {
		return ChartArchive{}, fmt.Errorf("the time for it is over: %w", context.Cause(ctx))
	}
	return archive, err
}

// chartName is what the API allows; it becomes a part of a URL.
var chartName = regexp.MustCompile(`^[a-zA-Z0-9]([-._a-zA-Z0-9]*[a-zA-Z0-9])?$`)

func (s *ChartStore) fetch(ctx context.Context, src Chart) (ChartArchive, error) {
	if !chartName.MatchString(src.Name) {
		return ChartArchive{}, fail(ErrInvalid, "%q is not the name of a chart: letters, digits, dots, dashes and underscores", printable(src.Name))
	}
	u, err := url.Parse(src.Repository)
	switch {
	case err != nil || u.Host == "":
		return ChartArchive{}, fail(ErrInvalid, "the repository is not of the form https://host/path or oci://host/path")
	case u.User != nil:
		return ChartArchive{}, fail(ErrInvalid, "the URL holds credentials: move them to a Secret and name it in secretRef")
	case u.Fragment != "":
		return ChartArchive{}, fail(ErrInvalid, "the URL has a fragment")
	}
	if err := src.Auth.check(); err != nil {
		return ChartArchive{}, err
	}
	switch u.Scheme {
	case "https", "http":
		return s.fromIndex(ctx, src, u)
	case "oci":
		return s.fromRegistry(ctx, src, u)
	}
	return ChartArchive{}, fail(ErrInvalid, "the scheme %q is not supported: use https, http or oci", u.Scheme)
}

// source is the folder for one pair of repository and credentials.
func (s *ChartStore) source(src Chart) string {
	return filepath.Join(s.dir, src.Auth.digest(src.Repository))
}

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
		return version{}, fail(ErrInvalid, "%q is neither a version nor a range of versions, such as \">=1.2.0 <2.0.0\"", printable(wish))
	}
	sorted := newestFirst(versions)
	for _, v := range sorted {
		if wanted.Check(v.parsed) {
			return v.version, nil
		}
	}
	if len(sorted) == 0 {
		return version{}, fail(ErrNotFound, "chart %s has no versions", chart)
	}
	var newest []string
	for _, v := range sorted[:min(5, len(sorted))] {
		newest = append(newest, printable(v.Name))
	}
	return version{}, fail(ErrNotFound, "chart %s has no version %q; the newest are %s", chart, printable(wish), strings.Join(newest, ", "))
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
