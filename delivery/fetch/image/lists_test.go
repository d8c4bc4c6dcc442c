package image

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/apart"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

// listsOf returns a store, the lists of one tenant, and a function that sets the clock forward.
func listsOf() (s *Store, lists *tagLists, later func(time.Duration)) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	s = NewStore(nil, func() time.Time { return now }, nil, apart.Runner{})
	return s, s.listsOf("acme"), func(by time.Duration) { now = now.Add(by) }
}

func TestAnAnswerIsCachedForTheInterval(t *testing.T) {
	_, lists, later := listsOf()
	asked := 0
	get := func() *tagList {
		t.Helper()
		list, err := lists.get("key", time.Minute, func() (*tagList, error) { asked++; return &tagList{tags: []string{fmt.Sprint(asked)}}, nil })
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	for _, tc := range []struct {
		after time.Duration
		want  string
	}{{0, "1"}, {time.Minute - 1, "1"}, {1, "2"}, {time.Minute - 1, "2"}, {time.Hour, "3"}} {
		later(tc.after)
		if got := get().tags[0]; got != tc.want {
			t.Errorf("after %s the %s. answer, want the %s.", tc.after, got, tc.want)
		}
	}
	lists.forget("key")
	if get().tags[0] != "4" {
		t.Error("what was forgotten serves")
	}
}

// TestAFailurePausesLongerEachTime but never longer than the interval.
func TestAFailurePausesLongerEachTime(t *testing.T) {
	_, lists, later := listsOf()
	broken, asked := errors.New("broken"), 0
	fail := func() {
		t.Helper()
		if _, err := lists.get("key", 5*time.Second, func() (*tagList, error) { asked++; return nil, broken }); !errors.Is(err, broken) {
			t.Fatalf("got %v", err)
		}
	}
	fail()
	for n, pause := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 5 * time.Second, 5 * time.Second} {
		later(pause - 1)
		if fail(); asked != n+1 {
			t.Fatalf("failure %d: asked again before %s", n+1, pause)
		}
		later(1)
		if fail(); asked != n+2 {
			t.Fatalf("failure %d: not asked again after %s", n+1, pause)
		}
	}
	later(5 * time.Second)
	if _, err := lists.get("key", 5*time.Second, func() (*tagList, error) { return &tagList{}, nil }); err != nil {
		t.Fatal(err)
	}
	later(5 * time.Second)
	fail()
	later(time.Second)
	before := asked
	if fail(); asked != before+1 {
		t.Error("after an answer the pauses do not begin anew")
	}
}

func TestAFailureKeepsTheLastAnswer(t *testing.T) {
	_, lists, _ := listsOf()
	if lists.last("key") != nil {
		t.Error("there is an answer before one was given")
	}
	list := &tagList{}
	lists.remember("key", time.Minute, list, nil)
	lists.remember("key", time.Minute, nil, errors.New("broken"))
	if lists.last("key") != list {
		t.Error("the last answer is lost")
	}
}

func TestACancelledRequestIsNotCached(t *testing.T) {
	_, lists, _ := listsOf()
	asked := 0
	for range 2 {
		_, _ = lists.get("key", time.Minute, func() (*tagList, error) { asked++; return nil, fmt.Errorf("asking: %w", context.Canceled) })
	}
	if asked != 2 {
		t.Errorf("asked %d times, want 2", asked)
	}
}

func TestTheTenantWithMostListsLosesThem(t *testing.T) {
	s, _, later := listsOf()
	hold := func(tenant, key string, every time.Duration, size int) {
		lists := s.listsOf(tenant)
		lists.remember(key, every, &tagList{}, nil)
		s.hold(&tagRequest{tenant: tenant, key: key, every: every}, size)
	}
	there := func(tenant, key string) bool { return s.listsOf(tenant).last(key) != nil }
	const beside = tagListCost + 2
	hold("acme", "a", time.Hour, maxTagsHeld/2-beside)
	hold("acme", "a", time.Hour, maxTagsHeld/2-beside) // The same key again.
	hold("other", "b", time.Minute, maxTagsHeld/4-2*beside)
	hold("other", "f", time.Hour, 0)
	hold("third", "c", time.Hour, maxTagsHeld/4-beside)
	if !there("acme", "a") || !there("other", "b") || !there("third", "c") {
		t.Fatal("what meets the limit is forgotten")
	}
	later(time.Minute)
	hold("third", "d", time.Hour, 0)
	if there("other", "b") || !there("other", "f") || !there("acme", "a") || !there("third", "c") {
		t.Error("not only what would be asked for anew is forgotten")
	}
	hold("third", "e", time.Hour, maxTagsHeld/4)
	if there("acme", "a") && there("third", "c") {
		t.Error("nobody lost anything")
	}
	if sum, _ := s.mostLocked(); sum > maxTagsHeld {
		t.Errorf("%d bytes are held", sum)
	}
}

// TestARegistryIsForImagesWithoutPullSecret, and its lists are of its own.
func TestARegistryIsForImagesWithoutPullSecret(t *testing.T) {
	access := &transport.Access{Auth: dockerConfig("r.example", "robot"), Insecure: true}
	secure := &transport.Access{Auth: access.Auth}
	own, foreign := dockerConfig("r.example", "own"), dockerConfig("other.example", "x")
	keys := map[string]string{}
	for name, tc := range map[string]struct {
		pull     []transport.Auth
		registry *transport.Access
		password string
		insecure bool
	}{
		"neither":                 {nil, nil, "", false},
		"a Registry":              {nil, access, "robot", true},
		"one with TLS":            {nil, secure, "robot", false},
		"a pull secret":           {[]transport.Auth{own}, access, "own", false},
		"one of another registry": {[]transport.Auth{foreign, {CA: []byte("ca")}}, access, "robot", true},
	} {
		ask, err := newTagRequest(Repository{Name: "r.example/web", Pull: tc.pull, Registry: tc.registry}, anyVersion, false)
		if err != nil {
			t.Fatal(err)
		}
		used, _, err := ask.access.Auth.ForHost("r.example/web")
		if err != nil || used.Password != tc.password || ask.access.Insecure != tc.insecure {
			t.Errorf("%s: password %q, insecure %t, %v", name, used.Password, ask.access.Insecure, err)
		}
		if other, known := keys[ask.key]; known && tc.registry != nil {
			t.Errorf("%s shares the list with %s", name, other)
		}
		keys[ask.key] = name
	}
}

func TestTheFirstPullSecretOfTheHostIsUsed(t *testing.T) {
	config := func(host, user string) []byte {
		return fmt.Appendf(nil, `{"auths":{%q:{"username":%q,"password":"p"}}}`, host, user)
	}
	for name, tc := range map[string]struct {
		secrets  []transport.Auth
		user, ca string
		kind     error
	}{
		"none":                      {nil, "", "", nil},
		"the first that knows it":   {[]transport.Auth{{DockerConfig: config("other.example", "x")}, {DockerConfig: config("r.example", "a")}, {DockerConfig: config("r.example", "b")}}, "a", "", nil},
		"the authorities of all":    {[]transport.Auth{{CA: []byte("1")}, {DockerConfig: config("r.example", "a"), CA: []byte("2")}, {CA: []byte("3")}}, "a", "123", nil},
		"no other keys of a Secret": {[]transport.Auth{{Username: "u", Password: "p"}}, "", "", nil},
		"one that cannot be read":   {[]transport.Auth{{DockerConfig: []byte("x")}}, "", "", failure.ErrInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := pullAuth(tc.secrets, "r.example/web")
			if tc.kind != nil {
				sources.WantError(t, err, tc.kind, "")
				return
			}
			used, _, failed := got.ForHost("r.example/web")
			if err != nil || failed != nil || used.Username != tc.user || string(got.CA) != tc.ca {
				t.Errorf("user %q, authorities %q, %v, %v", used.Username, got.CA, err, failed)
			}
		})
	}
}

func TestAppsWithTheSameCredentialsShareAList(t *testing.T) {
	policy := &v1alpha1.ImagePolicy{SemVer: "*"}
	of := func(r Repository, p *v1alpha1.ImagePolicy) string {
		t.Helper()
		ask, err := newTagRequest(r, p, false)
		if err != nil {
			t.Fatal(err)
		}
		return ask.key
	}
	mine := of(Repository{Name: "r.example/web", Tenant: "acme"}, policy)
	if other := of(Repository{Name: "r.example/web", Tenant: "acme"}, &v1alpha1.ImagePolicy{Alphabetical: v1alpha1.TagsAscending}); other != mine {
		t.Error("another policy has another list")
	}
	for name, other := range map[string]string{
		"another tenant":     of(Repository{Name: "r.example/web", Tenant: "other"}, policy),
		"another repository": of(Repository{Name: "r.example/api", Tenant: "acme"}, policy),
		"other credentials": of(Repository{Name: "r.example/web", Tenant: "acme", Pull: []transport.Auth{{DockerConfig: []byte(`{"auths":{"r.example":{"username":"u","password":"p"}}}`)}}},
			policy),
	} {
		if other == mine {
			t.Errorf("%s shares the list", name)
		}
	}
}

func TestAnExpensivePatternIsMeasuredByLettersAndSteps(t *testing.T) {
	ten := "123456789" // and one more each
	chooser := &tagChooser{steps: 100}
	if chooser.isExpensive(make([]string, 1_000_000)) {
		t.Error("a policy without a filter is expensive")
	}
	with, err := newTagChooser(&v1alpha1.ImagePolicy{Alphabetical: v1alpha1.TagsAscending, FilterTags: &v1alpha1.TagFilter{Pattern: "a"}})
	if err != nil {
		t.Fatal(err)
	}
	with.steps = 100
	tags := make([]string, maxCostHere/1000)
	for i := range tags {
		tags[i] = ten
	}
	if with.isExpensive(tags) {
		t.Error("at the limit")
	}
	if !with.isExpensive(append(tags, "")) {
		t.Error("over the limit")
	}
}
