package image

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/apart"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/limit"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
	"github.com/kubeop/kubeop/delivery/reference"
)

var loopback = &transport.Network{Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}}

// imageServer is a registry with the repository acme/web, and faults of all kinds.
type imageServer struct {
	*httptest.Server
	mu       sync.Mutex
	tags     map[string]string // digest by tag
	password string
	fault    http.HandlerFunc
	seen     []string
}

func serveImages(t *testing.T, start func(http.Handler) *httptest.Server, tags ...string) *imageServer {
	t.Helper()
	s := &imageServer{tags: map[string]string{}}
	for _, tag := range tags {
		s.tags[tag] = digest.FromString(tag).String()
	}
	s.Server = start(s)
	t.Cleanup(s.Close)
	return s
}

func (s *imageServer) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = append(s.seen, req.Method+" "+req.URL.Path)
	if s.fault != nil {
		s.fault(w, req)
		return
	}
	if _, password, _ := req.BasicAuth(); password != s.password {
		w.Header().Set("WWW-Authenticate", "Basic")
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	name, of, _ := strings.Cut(strings.TrimPrefix(req.URL.Path, "/v2/acme/web/"), "/")
	switch {
	case name == "tags":
		s.page(w, req)
	case name == "manifests" && s.tags[of] != "":
		w.Header().Set("Content-Type", "application/vnd.oci.image.index.v1+json")
		w.Header().Set("Docker-Content-Digest", s.tags[of])
		w.Header().Set("Content-Length", "2")
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// page lists three tags at a time, whatever page size is requested.
func (s *imageServer) page(w http.ResponseWriter, req *http.Request) {
	var tags []string
	for tag := range s.tags {
		if tag > req.URL.Query().Get("last") {
			tags = append(tags, tag)
		}
	}
	slices.Sort(tags)
	if len(tags) > 3 {
		tags = tags[:3]
		w.Header().Set("Link", fmt.Sprintf(`</v2/acme/web/tags/list?last=%s>; rel="next"`, tags[2]))
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"name": "acme/web", "tags": tags})
}

func (s *imageServer) set(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// requests returns the requests since the last call.
func (s *imageServer) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := s.seen
	s.seen = nil
	return seen
}

func (s *imageServer) host() string { return s.Listener.Addr().String() }

// tagFixture is a store with a clock that tests move.
type tagFixture struct {
	*Store
	*imageServer
	clock atomic.Int64
}

func newTagFixture(t *testing.T, tags ...string) *tagFixture {
	t.Helper()
	b := &tagFixture{imageServer: serveImages(t, httptest.NewServer, tags...)}
	b.Store = NewStore(loopback, func() time.Time { return time.Unix(b.clock.Load(), 0) }, []string{b.host()}, apart.Runner{})
	return b
}

func (b *tagFixture) image() Repository {
	return Repository{Name: b.host() + "/acme/web", Tenant: "acme"}
}

func (b *tagFixture) pass(d time.Duration) { b.clock.Add(int64(d / time.Second)) }

var anyVersion = &v1alpha1.ImagePolicy{SemVer: "*"}

func TestChooseSendsOneRequestPerInterval(t *testing.T) {
	b := newTagFixture(t, "1.0.0", "1.1.0", "1.2.0", "1.3.0", "latest")
	want := b.host() + "/acme/web:1.3.0@" + digest.FromString("1.3.0").String()
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			got, err := b.Choose(t.Context(), b.image(), anyVersion, false)
			if err != nil || got.Reference != want || got.Tag != "1.3.0" || !got.Until.Equal(time.Unix(300, 0)) {
				t.Errorf("got %+v and %v, want %s", got, err, want)
			}
		})
	}
	all.Wait()
	asked := []string{"GET /v2/acme/web/tags/list", "GET /v2/acme/web/tags/list", "HEAD /v2/acme/web/manifests/1.3.0"}
	if diff := cmp.Diff(asked, b.requests()); diff != "" {
		t.Errorf("requests of 100 apps (-want +got):\n%s", diff)
	}

	b.set(func() { b.tags["1.4.0"] = digest.FromString("new").String() })
	b.pass(299 * time.Second)
	if got, ok := b.Known(b.image(), anyVersion); !ok || got.Reference != want || len(b.requests()) > 0 {
		t.Errorf("within the interval %+v is known: %t", got, ok)
	}
	if got, ok := b.Known(b.image(), &v1alpha1.ImagePolicy{SemVer: "1.0.x"}); ok {
		t.Errorf("%+v is known of a policy that was never asked for", got)
	}
	if got, err := b.Choose(t.Context(), b.image(), anyVersion, false); err != nil || got.Tag != "1.3.0" || len(b.requests()) > 0 {
		t.Errorf("within the interval: %+v, %v", got, err)
	}
	if got, err := b.Choose(t.Context(), b.image(), anyVersion, true); err != nil || got.Tag != "1.4.0" {
		t.Errorf("asked anew: %+v, %v", got, err)
	}
	b.requests()
	b.set(func() { b.tags["1.4.0"] = digest.FromString("moved").String() })
	b.pass(300 * time.Second)
	if got, ok := b.Known(b.image(), anyVersion); ok {
		t.Errorf("%+v is known after the interval", got)
	}
	if got, err := b.Choose(t.Context(), b.image(), anyVersion, false); err != nil || !strings.HasSuffix(got.Reference, digest.FromString("moved").String()) {
		t.Errorf("a tag that was moved: %+v, %v", got, err)
	}
}

// TestATimeoutOfTheCallerIsNoFailureOfTheRegistry: apps of many tenants share the answers of a public registry.
func TestATimeoutOfTheCallerIsNoFailureOfTheRegistry(t *testing.T) {
	b := newTagFixture(t, "1.0.0")
	hurried, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	b.set(func() { b.fault = func(http.ResponseWriter, *http.Request) { <-hurried.Done() } })
	if _, err := b.Choose(hurried, b.image(), anyVersion, false); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	b.set(func() { b.fault = nil })
	if got, err := b.Choose(t.Context(), b.image(), anyVersion, false); err != nil || got.Tag != "1.0.0" {
		t.Errorf("another gets %+v, %v", got, err)
	}
}

func TestFaultsOfARegistryAreExplained(t *testing.T) {
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, `{"errors":[{"message":"tiger"}]}`, code) }
	}
	list := func(count int, next bool) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			if next {
				w.Header().Set("Link", `</v2/acme/web/tags/list?last=a>; rel="next"`)
			}
			_ = json.NewEncoder(w).Encode(map[string]any{"tags": slices.Repeat([]string{strings.Repeat("a", 60)}, count)})
		}
	}
	tests := map[string]struct {
		fault http.HandlerFunc
		kind  error
		want  string
	}{
		"401":       {status(401), failure.ErrAuthentication, "HOST has no repository acme/web, or it needs credentials: check the name, or name a Secret with .dockerconfigjson for it in spec.image.pullSecrets"},
		"403":       {status(403), failure.ErrAuthentication, "HOST denies access without credentials (403): check the URL in Git, or name a Secret with credentials in secretRef there"},
		"404":       {status(404), failure.ErrNotFound, "HOST has no repository acme/web, or the credentials may not see it"},
		"500":       {status(500), failure.ErrUnavailable, "HOST answered 500 Internal Server Error"},
		"429":       {status(429), failure.ErrUnavailable, "HOST answered 429 Too Many Requests"},
		"garbage":   {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>tiger")) }, failure.ErrUnavailable, "HOST answers what cannot be used"},
		"no tags":   {list(0, false), failure.ErrNoTag, "none of the 0 tags is what the policy wants: semver *"},
		"endless":   {list(0, true), failure.ErrTooLarge, "the number of pages in which the registry lists the repository's tags is over the limit of 500"},
		"many tags": {list(1000, true), failure.ErrTooLarge, "the number of tags of the repository is over the limit of 50000"},
		"large":     {list(200_000, false), failure.ErrUnavailable, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b := newTagFixture(t)
			b.set(func() { b.fault = tc.fault })
			_, err := b.Choose(t.Context(), b.image(), anyVersion, false)
			if err == nil || !errors.Is(err, tc.kind) {
				t.Fatalf("got %v, want %v", err, tc.kind)
			}
			if got := strings.ReplaceAll(err.Error(), b.host(), "HOST"); !strings.HasPrefix(got, tc.want) || strings.Contains(got, "tiger") {
				t.Errorf("it says %q, want %q", got, tc.want)
			}
			b.requests()
			if _, again := b.Choose(t.Context(), b.image(), anyVersion, false); again == nil || len(b.requests()) > 0 && !errors.Is(err, failure.ErrNoTag) {
				t.Errorf("asked again at once: %v", again)
			}
		})
	}
}

func TestARegistryThatIsAwayIsUnavailable(t *testing.T) {
	b := newTagFixture(t)
	b.Close()
	_, err := b.Choose(t.Context(), b.image(), anyVersion, false)
	if !errors.Is(err, failure.ErrUnavailable) {
		t.Errorf("got %v", err)
	}
}

func TestChooseRefusesAnInvalidName(t *testing.T) {
	b := newTagFixture(t)
	image := b.image()
	image.Name = b.host() + "/Acme/web"
	_, err := b.Choose(t.Context(), image, anyVersion, false)
	if !errors.Is(err, failure.ErrInvalid) || !strings.Contains(err.Error(), "/Acme/web is not the name of a repository") || len(b.requests()) > 0 {
		t.Errorf("got %v", err)
	}
}

// TestACanceledRequestOfATenantEndsNoOther: another tenant sends the same request to the registry.
func TestACanceledRequestOfATenantEndsNoOther(t *testing.T) {
	b := newTagFixture(t, "1.0.0")
	hasty, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	other := b.image()
	other.Tenant = "mallory"
	if _, err := b.Choose(hasty, other, anyVersion, false); err == nil {
		t.Fatal("it did not give up")
	}
	if got, err := b.Choose(t.Context(), b.image(), anyVersion, false); err != nil || got.Tag != "1.0.0" {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestChooseGivesUpASilentServer(t *testing.T) {
	b := newTagFixture(t)
	b.limits.Answer = 50 * time.Millisecond
	hang := make(chan struct{})
	b.Config.Handler = http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hang })
	defer close(hang)
	_, err := b.Choose(t.Context(), b.image(), anyVersion, false)
	if err == nil || !strings.Contains(err.Error(), "the server gave no answer within the limit of 50ms") {
		t.Errorf("got %v", err)
	}
}

func TestAnAnswerWithoutAValidDigestIsRefused(t *testing.T) {
	b := newTagFixture(t, "1.0.0")
	b.set(func() { b.tags["1.0.0"] = "sha256:short" })
	if got, err := b.Choose(t.Context(), b.image(), anyVersion, false); !errors.Is(err, failure.ErrUnavailable) {
		t.Errorf("got %+v, %v", got, err)
	}
}

func dockerConfig(place, password string) transport.Auth {
	auth := base64.StdEncoding.EncodeToString([]byte("dev:" + password))
	return transport.Auth{DockerConfig: fmt.Appendf(nil, `{"auths":{%q:{"auth":%q}}}`, place, auth)}
}

func TestTheImagePullSecretOfTheHostIsUsed(t *testing.T) {
	b := newTagFixture(t, "1.0.0")
	b.set(func() { b.password = "tiger-word" })
	image := b.image()
	image.Pull = []transport.Auth{dockerConfig("elsewhere.example", "wrong"), dockerConfig(b.host()+"/acme", "tiger-word")}
	if got, err := b.Choose(t.Context(), image, anyVersion, false); err != nil || got.Tag != "1.0.0" {
		t.Fatalf("got %+v, %v", got, err)
	}
	// An answer for one credential is not given for another, nor without credentials.
	for name, pull := range map[string][]transport.Auth{"nobody": nil, "another": {dockerConfig(b.host(), "tiger-food")}} {
		image.Pull = pull
		_, err := b.Choose(t.Context(), image, anyVersion, false)
		if !errors.Is(err, failure.ErrAuthentication) || strings.Contains(err.Error(), "tiger") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestChooseTrustsTheSecretsAuthority(t *testing.T) {
	s := serveImages(t, httptest.NewTLSServer, "1.0.0")
	store := NewStore(loopback, time.Now, nil, apart.Runner{})
	image := Repository{Name: s.host() + "/acme/web"}
	if _, err := store.Choose(t.Context(), image, anyVersion, false); !errors.Is(err, failure.ErrAuthentication) {
		t.Errorf("an unknown authority: %v", err)
	}
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	image.Pull = []transport.Auth{{CA: ca}}
	if got, err := store.Choose(t.Context(), image, anyVersion, false); err != nil || got.Tag != "1.0.0" {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestTagListsHeldAreBounded(t *testing.T) {
	s := NewStore(loopback, time.Now, nil, apart.Runner{})
	remember := func(tenant, key string) {
		t.Helper()
		s.hold(&tagRequest{tenant: tenant, key: key, every: time.Hour}, maxTagBytes)
		if _, err := s.listsOf(tenant).get(key, time.Hour, func() (*tagList, error) { return &tagList{}, nil }); err != nil {
			t.Fatal(err)
		}
	}
	known := func(tenant, key string) bool {
		return s.listsOf(tenant).last(key) != nil
	}
	remember("acme", "its only one")
	for range 100 {
		remember("greedy", "same")
	}
	if !known("greedy", "same") {
		t.Error("one list, asked again and again, drove itself out")
	}
	for n := range 40 {
		remember("greedy", fmt.Sprint(n))
		held := 0
		for _, lists := range s.lists {
			held += lists.held
		}
		if held > maxTagsHeld {
			t.Fatalf("%d bytes are held, the limit is %d", held, maxTagsHeld)
		}
	}
	if !known("acme", "its only one") || known("greedy", "same") {
		t.Error("the lists of a tenant with many drove out those of one with few")
	}
}

// TestEmptyTagListsCountToo: the lists have no tags, or are too old to be used.
func TestEmptyTagListsCountToo(t *testing.T) {
	now := time.Now()
	s := NewStore(loopback, func() time.Time { return now }, nil, apart.Runner{})
	hold := func(tenant, key string, size int) {
		s.hold(&tagRequest{tenant: tenant, key: key, every: time.Hour}, size)
	}
	const many = maxTagsHeld / tagListCost
	most := 0
	for n := range many + 1 {
		hold("acme", fmt.Sprint(n), 0)
		most = max(most, len(s.listsOf("acme").lists))
	}
	if most >= many {
		t.Errorf("%d empty lists are held, want less than %d", most, many)
	}
	hold("idle", "old", 10*limit.MiB)
	hold("acme", "old", 0)
	now = now.Add(time.Hour)
	hold("busy", "1", 10*limit.MiB)
	hold("busy", "2", 10*limit.MiB)
	hold("busy", "3", 10*limit.MiB)
	if len(s.lists) != 1 || len(s.lists["busy"].lists) != 3 {
		t.Errorf("%d tenants are left, want the one whose lists serve", len(s.lists))
	}
}

func TestAnImageIsSplitIntoRegistryAndName(t *testing.T) {
	tests := map[string][2]string{
		"nginx":                      {"docker.io", "library/nginx"},
		"acme/web":                   {"docker.io", "acme/web"},
		"docker.io/nginx":            {"docker.io", "library/nginx"},
		"registry.example/web":       {"registry.example", "web"},
		"registry.example/team/web":  {"registry.example", "team/web"},
		"localhost/web":              {"localhost", "web"},
		"registry:5000/team/web/api": {"registry:5000", "team/web/api"},
	}
	for name, want := range tests {
		if host, path := split(name); host != want[0] || path != want[1] {
			t.Errorf("%s is %s and %s", name, host, path)
		}
	}
}

func TestTheFullNameOfAnImageHasItsRegistry(t *testing.T) {
	for image, want := range map[string][2]string{
		"nginx":                              {"nginx", "docker.io/library/nginx"},
		"nginx:1.27":                         {"nginx", "docker.io/library/nginx"},
		"nginx:1.27@sha256:0":                {"nginx", "docker.io/library/nginx"},
		"registry:5000/web":                  {"registry:5000/web", "registry:5000/web"},
		"registry:5000/web:v1":               {"registry:5000/web", "registry:5000/web"},
		"registry:5000/web@sha256:0":         {"registry:5000/web", "registry:5000/web"},
		"index.docker.io/library/nginx:1.27": {"index.docker.io/library/nginx", "docker.io/library/nginx"},
	} {
		if name := reference.Name(image); name != want[0] || FullName(name) != want[1] {
			t.Errorf("%s: got %s and %s, want %v", image, name, FullName(name), want)
		}
	}
}

func TestAcceptsOnlyTagsThatThePolicyMayChoose(t *testing.T) {
	const digest = "@sha256:0"
	tests := map[string]struct {
		name, semver, reference, tag string
		want                         bool
	}{
		"the same":           {"r/web", "^1", "r/web:1.2.0" + digest, "1.2.0", true},
		"another range":      {"r/web", "^2", "r/web:1.2.0" + digest, "1.2.0", false},
		"another repository": {"r/api", "^1", "r/web:1.2.0" + digest, "1.2.0", false},
		"a broken range":     {"r/web", "one", "r/web:1.2.0" + digest, "1.2.0", false},
		"no digest":          {"r/web", "^1", "r/web:1.2.0", "1.2.0", false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Accepts(tc.name, &v1alpha1.ImagePolicy{SemVer: tc.semver}, tc.reference, tc.tag); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}

// overLimit is the error of a process that exceeded a limit.
type overLimit struct{}

func (overLimit) Error() string {
	return "policy.filterTags.pattern takes more than the limit of processor time, 10s"
}

// OverLimit implements apart.OverLimit.
func (overLimit) OverLimit() {}

// TestAnExpensivePatternIsEvaluatedInAnotherProcess, and a cheap one in this process. A pattern that exceeded a limit is not tried again
// with the same tags.
func TestAnExpensivePatternIsEvaluatedInAnotherProcess(t *testing.T) {
	var tags []string
	for n := range 900 {
		tags = append(tags, fmt.Sprintf("1.0.%d-%s", n, strings.Repeat("a", 100)))
	}
	var over error
	calls := 0
	b := newTagFixture(t, tags...)
	b.apart.Run = func(ctx context.Context, c apart.Call) ([]byte, error) {
		if calls++; over != nil {
			return nil, over
		}
		return apart.Runner{}.Do(ctx, c)
	}
	choose := func(pattern string, anew bool) (string, error) {
		policy := &v1alpha1.ImagePolicy{Alphabetical: v1alpha1.TagsAscending, FilterTags: &v1alpha1.TagFilter{Pattern: pattern}}
		chosen, err := b.Choose(t.Context(), b.image(), policy, anew)
		return chosen.Tag, err
	}
	for _, step := range []struct {
		pattern string
		anew    bool
		over    error
		calls   int
		tag     string
		kind    error
		says    string
	}{
		{pattern: "^1", calls: 0, tag: tags[99]},
		{pattern: "(a|aa|a?){20}", calls: 1, tag: tags[99]},
		{pattern: "(a|aa|a?){20}", calls: 0, tag: tags[99]},
		{pattern: "(a|aa|a?){20}x", calls: 1, kind: failure.ErrNoTag, says: "none of the 900 tags is what the policy wants: tags that match (a|aa|a?){20}x"},
		{pattern: "(a|aa|a?){21}", over: overLimit{}, calls: 1, kind: failure.ErrTooLarge,
			says: "policy.filterTags.pattern takes more than the limit of processor time, 10s, held against 900 tags: write one that costs less"},
		{pattern: "(a|aa|a?){21}", calls: 0, kind: failure.ErrTooLarge, says: "processor time"},
		{pattern: "(a|aa|a?){21}", anew: true, calls: 1, tag: tags[99]},
		{pattern: "(a|aa|a?){22}", over: errors.New("somebody killed it"), calls: 1, says: "somebody killed it"},
		{pattern: "(a|aa|a?){22}", calls: 1, tag: tags[99]},
	} {
		calls, over = 0, step.over
		tag, err := choose(step.pattern, step.anew)
		if tag != step.tag || calls != step.calls || (err == nil) != (step.says == "") {
			t.Errorf("%+v: chose %q with %d calls, %v", step, tag, calls, err)
		}
		if err != nil && (!strings.Contains(err.Error(), step.says) || step.kind != nil && !errors.Is(err, step.kind)) {
			t.Errorf("%+v: %v", step, err)
		}
	}
}

func TestLimitsPerHostCountRegistriesByName(t *testing.T) {
	for image, want := range map[string]string{
		"nginx": "docker.io:443", "registry.example/team/web": "registry.example:443", "registry:5000/web": "registry:5000", "localhost/web": "localhost:443",
	} {
		if got := Host(image); got != want {
			t.Errorf("the host of %s is %q, want %q", image, got, want)
		}
	}
}

// TestAppsThatChooseTheSameTagGetTheSameDigest by different policies: the second App finds the digest that the first one asked for.
func TestAppsThatChooseTheSameTagGetTheSameDigest(t *testing.T) {
	b := newTagFixture(t, "1.0.0")
	want := b.host() + "/acme/web:1.0.0@" + digest.FromString("1.0.0").String()
	for _, versions := range []string{"*", "1.x", "1.0.x"} {
		policy := &v1alpha1.ImagePolicy{SemVer: versions}
		if got, err := b.Choose(t.Context(), b.image(), policy, false); err != nil || got.Reference != want {
			t.Fatalf("%s: got %+v and %v, want %s", versions, got, err, want)
		}
	}
}
