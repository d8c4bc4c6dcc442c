package host

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/drone/go-scm/scm"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
)

// What the messages say of the token: what it needs, and where it is written.
const (
	ofSecret = "; the credentials are those of Secret kubeop-system/acme; an administrator of the cluster may run: " +
		"kubectl create secret generic acme -n kubeop-system --from-literal=bearerToken=... --dry-run=client -o yaml | kubectl apply -f -"
	ofGitea  = "it needs the scope write:repository, for pull requests also write:issue, and its user write access to the repository" + ofSecret
	ofGitHub = `it needs the scope repo:status, or as a fine-grained token the permission "Commit statuses: write"; for pull requests "Pull requests: write"` + ofSecret
)

// TestTheStatusOfAnAnswerGivesTheKindOfError, tested at the borders of each kind.
func TestTheStatusOfAnAnswerGivesTheKindOfError(t *testing.T) {
	said := errors.New("the host says t0ken-of-mine\x1b[2J")
	for name, tc := range map[string]struct {
		status int
		err    error
		is     error
		says   string
	}{
		"accepted":           {201, nil, nil, ""},
		"unchanged":          {400, errUnchanged, nil, ""},
		"unreadable":         {200, said, failure.ErrServer, "the answer of git.example.com cannot be read: the host says ***\ufffd[2J"},
		"unreadable, still":  {299, said, failure.ErrServer, "the answer of git.example.com cannot be read: the host says ***\ufffd[2J"},
		"moved":              {300, said, failure.ErrInvalid, "git.example.com redirects (300): write the URL it redirects to as the URL in Git"},
		"moved, still":       {399, said, failure.ErrInvalid, "git.example.com redirects (399): write the URL it redirects to as the URL in Git"},
		"refused":            {400, said, failure.ErrInvalid, "git.example.com does not accept it (400): the host says ***\ufffd[2J"},
		"refused, still":     {499, said, failure.ErrInvalid, "git.example.com does not accept it (499): the host says ***\ufffd[2J"},
		"down":               {500, said, failure.ErrServer, "git.example.com answered 500 Internal Server Error"},
		"down for longer":    {599, said, failure.ErrServer, "git.example.com answered 599 "},
		"no token":           {401, said, failure.ErrAuthentication, "git.example.com rejected the token (401): it may have expired; its user may make another there: " + ofGitea},
		"too small a token":  {403, said, failure.ErrAuthentication, "the token may not do this at git.example.com (403, \"the host says ***\ufffd[2J\"): " + `its user may make another there: ` + ofGitea},
		"no such repository": {404, said, failure.ErrNotFound, "git.example.com has no such repository or commit, or the token may not see it (404): its user may make another there: " + ofGitea},
		"no answer":          {0, errors.New("it is closed"), failure.ErrUnavailable, "unavailable: git.example.com gives no answer: it is closed"},
	} {
		t.Run(name, func(t *testing.T) {
			at, err := repositoryAt(t, "https://git.example.com/acme/shop")
			if err != nil {
				t.Fatal(err)
			}
			var res *scm.Response
			if tc.status != 0 {
				res = &scm.Response{Status: tc.status, Header: http.Header{}}
			}
			err = at.explain(res, tc.err)
			if !errors.Is(err, tc.is) || err != nil && err.Error() != tc.says {
				t.Errorf("got %q, want %q", err, tc.says)
			}
		})
	}
}

// noon is the time of these tests.
var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func repositoryAt(t *testing.T, url string) (*Repository, error) {
	t.Helper()
	r, err := Open(loopback, Place{URL: url, Type: Gitea}, transport.Auth{BearerToken: "t0ken-of-mine", Secret: "kubeop-system/acme"}, func() time.Time { return noon })
	if err == nil {
		t.Cleanup(r.Close)
	}
	return r, err
}

func TestTheHeadersOfAHostSayHowLongItLimitsRequests(t *testing.T) {
	for name, tc := range map[string]struct {
		status  int
		header  map[string]string
		limited bool
		after   time.Duration
	}{
		"no limit":                         {403, nil, false, 0},
		"requests are left":                {403, map[string]string{"X-Ratelimit-Remaining": "1", "X-Ratelimit-Reset": "1767272400"}, false, 0},
		"another refusal":                  {404, map[string]string{"Retry-After": "5", "X-Ratelimit-Remaining": "0"}, false, 0},
		"none are left":                    {403, map[string]string{"X-Ratelimit-Remaining": "0", "X-Ratelimit-Reset": "1767269400"}, true, 10 * time.Minute},
		"GitLab's header":                  {429, map[string]string{"Ratelimit-Reset": "1767268860"}, true, time.Minute},
		"the first header counts":          {429, map[string]string{"Retry-After": "7", "Ratelimit-Reset": "1767268860"}, true, 7 * time.Second},
		"one that is none is passed over":  {429, map[string]string{"Retry-After": "soon", "Ratelimit-Reset": "1767268860"}, true, time.Minute},
		"a date":                           {429, map[string]string{"Retry-After": "Thu, 01 Jan 2026 12:00:30 GMT"}, true, 30 * time.Second},
		"a date that is past":              {429, map[string]string{"Retry-After": "Thu, 01 Jan 2026 11:00:00 GMT"}, true, 0},
		"the longest pause":                {429, map[string]string{"Retry-After": "3600"}, true, time.Hour},
		"a longer one":                     {429, map[string]string{"Retry-After": "3601"}, true, time.Hour},
		"a number that is larger than all": {429, map[string]string{"Retry-After": "99999999999999"}, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			at, err := repositoryAt(t, "https://git.example.com/acme/shop")
			if err != nil {
				t.Fatal(err)
			}
			res := &scm.Response{Status: tc.status, Header: http.Header{}}
			for k, v := range tc.header {
				res.Header.Set(k, v)
			}
			after, limited := at.limit(res)
			if limited != tc.limited || after != tc.after {
				t.Errorf("limited: %v, for %s; want %v, %s", limited, after, tc.limited, tc.after)
			}
			var limit *RateLimitError
			if is := errors.As(at.explain(res, errors.New("no")), &limit); is != tc.limited || is && (limit.RetryAfter() != tc.after || limit.Error() != "git.example.com limits the number of requests: kubeop waits as long as it says") {
				t.Errorf("it is explained as %v", limit)
			}
		})
	}
}

func TestThePlaceOfARepositoryIsThatOfItsCommitStatus(t *testing.T) {
	repository := &v1alpha1.Repository{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
	repository.Spec.URL = "https://git.example.com/acme/shop"
	if diff := cmp.Diff(Place{URL: repository.Spec.URL}, Of(repository)); diff != "" {
		t.Error(diff)
	}
	repository.Spec.CommitStatus = &v1alpha1.CommitStatus{Type: "gitea", Address: "https://pages.example.com"}
	at := Of(repository)
	if diff := cmp.Diff(Place{URL: repository.Spec.URL, Type: Gitea, Address: "https://pages.example.com"}, at); diff != "" {
		t.Error(diff)
	}
	if at.Host() != "pages.example.com:443" || (Place{URL: "ssh://git@git.example.com/a/b"}).Host() != "git.example.com:22" {
		t.Errorf("the hosts are %s and %s", at.Host(), Place{URL: "ssh://git@git.example.com/a/b"}.Host())
	}
	r, err := Open(loopback, at, transport.Auth{BearerToken: "t"}, time.Now)
	if err != nil || r.Host() != "pages.example.com:443" {
		t.Errorf("the host of the API is %v, %v", r, err)
	}
}

// TestOpenRefusesWhatCanNeverWork, and says what to write instead.
func TestOpenRefusesWhatCanNeverWork(t *testing.T) {
	const toWrite = "an administrator of the cluster may run: kubectl create secret generic git -n acme --from-literal=bearerToken=... --dry-run=client -o yaml | kubectl apply -f -"
	for name, tc := range map[string]struct {
		at   Place
		auth transport.Auth
		says string
	}{
		"a URL without an owner":         {Place{URL: "https://github.com/shop"}, transport.Auth{BearerToken: "t"}, `the path "/shop" of the URL is not the owner and the name of a repository`},
		"an authority that is none":      {Place{URL: "https://github.com/acme/shop"}, transport.Auth{BearerToken: "t", CA: []byte("none")}, "ca.crt of the Secret holds no certificate in PEM"},
		"half a certificate":             {Place{URL: "https://github.com/acme/shop"}, transport.Auth{BearerToken: "t", Certificate: []byte("none")}, "the Secret holds tls.crt but no tls.key: add it"},
		"a key without its certificate":  {Place{URL: "https://github.com/acme/shop"}, transport.Auth{Password: "t", PrivateKey: []byte("none")}, "the Secret holds tls.key but no tls.crt: add it"},
		"a type that the name is not of": {Place{URL: "https://git.example.com/acme/shop"}, transport.Auth{BearerToken: "t"}, "git.example.com does not say which Git host it is: set type in Git to github, gitlab, gitea (also for Forgejo), bitbucket or bitbucketserver"},
		"a type that is none":            {Place{URL: "https://git.example.com/acme/shop", Type: "svn"}, transport.Auth{BearerToken: "t"}, "git.example.com does not say which Git host it is: set type in Git to github, gitlab, gitea (also for Forgejo), bitbucket or bitbucketserver"},
		"no host":                        {Place{URL: "shop", Type: Gitea}, transport.Auth{BearerToken: "t"}, "the URL of the repository cannot be used"},
		"no URL":                         {Place{URL: "https://[", Type: Gitea}, transport.Auth{BearerToken: "t"}, "the URL of the repository cannot be used"},
		"an address of files":            {Place{URL: "https://git.example.com/acme/shop", Type: Gitea, Address: "file:///x"}, transport.Auth{BearerToken: "t"}, "the address of the Git host is not an http or https URL"},
		"an address that is none":        {Place{URL: "https://git.example.com/acme/shop", Type: Gitea, Address: "git.example.com"}, transport.Auth{BearerToken: "t"}, "the address of the Git host is not an http or https URL"},
		"too many folders":               {Place{URL: "https://git.example.com/a/b/c", Type: Gitea}, transport.Auth{BearerToken: "t"}, `the path "/a/b/c" of the URL is not the owner and the name of a repository`},
		"an SSH key and its passphrase":  {Place{URL: "https://github.com/acme/shop"}, transport.Auth{Identity: []byte("key"), Password: "passphrase", Secret: "acme/git"}, "the Secret holds no token for the API of the Git host: add it; " + toWrite},
		"no credentials":                 {Place{URL: "https://github.com/acme/shop"}, transport.Auth{}, "the Secret holds no token for the API of the Git host: add it; the field secretRef in Git names it"},
		"a GitHub App at GitLab":         {Place{URL: "https://gitlab.com/acme/shop"}, transport.Auth{App: &transport.GitHubApp{ID: "7"}, Secret: "acme/git"}, "the Secret holds a GitHub App, and the Git host is not GitHub: write a token into it; " + toWrite},
	} {
		if r, err := Open(loopback, tc.at, tc.auth, time.Now); !errors.Is(err, failure.ErrInvalid) || err.Error() != tc.says {
			t.Errorf("%s: %v, got %q, want %q", name, r, err, tc.says)
		}
	}
	// The type may be that of the web pages, where the URL is another host's.
	if _, err := Open(loopback, Place{URL: "ssh://git@ssh.example.com/acme/shop", Address: "https://gitlab.example.com"}, transport.Auth{BearerToken: "t"}, time.Now); err != nil {
		t.Error(err)
	}
}

func TestTheAPIGetsOnlyTheCredentialsThatItTakes(t *testing.T) {
	of := func(a transport.Auth) string {
		return strings.Join([]string{a.Username, a.Password, a.BearerToken, string(a.Identity), string(a.KnownHosts), string(a.CA), string(a.Certificate), string(a.PrivateKey), a.Secret}, "|")
	}
	tls := transport.Auth{CA: []byte("ca"), Certificate: []byte("crt"), PrivateKey: []byte("key"), Secret: "acme/git", KnownHosts: []byte("hosts")}
	with := func(username, password, token, identity string) transport.Auth {
		a := tls
		a.Username, a.Password, a.BearerToken = username, password, token
		if identity != "" {
			a.Identity = []byte(identity)
		}
		return a
	}
	for name, tc := range map[string]struct {
		auth transport.Auth
		kind Type
		want string
	}{
		"a token":                   {with("", "", "t", ""), GitHub, "||t|||ca|crt|key|acme/git"},
		"a token beside an SSH key": {with("", "phrase", "t", "id"), Gitea, "||t|||ca|crt|key|acme/git"},
		"a password alone":          {with("", "p", "", ""), GitHub, "||p|||ca|crt|key|acme/git"},
		"a user":                    {with("u", "p", "", ""), Bitbucket, "u|p||||ca|crt|key|acme/git"},
		"a user at GitLab":          {with("u", "p", "", ""), GitLab, "||p|||ca|crt|key|acme/git"},
	} {
		if got, err := forAPI(tc.auth, tc.kind); err != nil || of(got) != tc.want {
			t.Errorf("%s: got %s, %v, want %s", name, of(got), err, tc.want)
		}
	}
	app := tls
	app.App = &transport.GitHubApp{ID: "7"}
	if got, err := forAPI(app, GitHub); err != nil || of(got) != "|||||ca|crt|key|acme/git" || got.App != app.App {
		t.Errorf("a GitHub App: %s, %v", of(got), err)
	}
}

func TestADescriptionIsShortenedToOneLine(t *testing.T) {
	whole := strings.Repeat("ä", MaxDescription)
	for text, want := range map[string]string{
		"": "", "a": "a", " a\n\tb  c ": "a b c", whole: whole, whole + "b": strings.Repeat("ä", MaxDescription-1) + "…",
	} {
		if got := Shortened(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}

// TestCommentsThatCannotBeListedOrDeleted: a failure ends the replacement, and one that is gone does not.
func TestCommentsThatCannotBeListedOrDeleted(t *testing.T) {
	for name, tc := range map[string]struct {
		list, remove int
		want         string
		is           error
	}{
		"deleted":        {200, 204, "GET DELETE POST", nil},
		"gone meanwhile": {200, 404, "GET DELETE POST", nil},
		"another's":      {200, 403, "GET DELETE POST", nil},
		"down at first":  {502, 204, "GET", failure.ErrServer},
		"down at last":   {200, 502, "GET DELETE", failure.ErrServer},
		"a bad token":    {200, 401, "GET DELETE", failure.ErrAuthentication},
	} {
		for _, kind := range []Type{GitHub, GitLab, Gitea} {
			t.Run(name+", "+string(kind), func(t *testing.T) {
				var asked []string
				server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					asked = append(asked, r.Method)
					switch r.Method {
					case http.MethodGet:
						w.WriteHeader(tc.list)
						_, _ = io.WriteString(w, `[{"id": 1, "body": "mark old"}]`)
					case http.MethodDelete:
						w.WriteHeader(tc.remove)
					default:
						created(w)
					}
				}))
				defer server.Close()
				err := open(t, server, kind, transport.Auth{BearerToken: "t"}).ReplaceComment(t.Context(), 7, "mark", "new")
				if got := strings.Join(asked, " "); got != tc.want || !errors.Is(err, tc.is) {
					t.Errorf("asked %s, %v; want %s, %v", got, err, tc.want, tc.is)
				}
			})
		}
	}
}

// TestAPullRequestThatCannotBeLookedFor: both errors are reported.
func TestAPullRequestThatCannotBeLookedFor(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			w.WriteHeader(http.StatusUnprocessableEntity)
			_, _ = io.WriteString(w, `{"message": "none of these branches differ"}`)
			return
		}
		w.WriteHeader(http.StatusBadGateway)
	}))
	defer server.Close()
	number, link, err := open(t, server, GitHub, transport.Auth{BearerToken: "t0ken"}).OpenPullRequest(t.Context(), PullRequest{Title: "Scale", From: "scale", Into: "main"})
	if number != 0 || link != "" || !errors.Is(err, failure.ErrInvalid) || !errors.Is(err, failure.ErrServer) {
		t.Fatalf("got %d %s, %v", number, link, err)
	}
	if got, want := strings.ReplaceAll(err.Error(), server.Listener.Addr().String(), "the host"), "opening a pull request of acme/shop: the host does not accept it (422): none of these branches differ\n"+
		"listing the open pull requests of acme/shop: the host answered 502 Bad Gateway"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestCloseEndsIdleConnections: a connection that is kept costs memory at both ends.
func TestCloseEndsIdleConnections(t *testing.T) {
	r, err := repositoryAt(t, "https://git.example.com/acme/shop")
	if err != nil {
		t.Fatal(err)
	}
	closes := &closing{RoundTripper: r.api.Client.Transport}
	r.api.Client.Transport = bounded{closes}
	if r.Close(); closes.times != 1 {
		t.Errorf("closed %d times, want 1", closes.times)
	}
}

// closing counts the calls of CloseIdleConnections.
type closing struct {
	http.RoundTripper
	times int
}

// CloseIdleConnections is called by http.Client.CloseIdleConnections.
func (c *closing) CloseIdleConnections() { c.times++ }
