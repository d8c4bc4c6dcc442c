package host

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
)

// The answers of hosts about three pull requests: of the same repository, of a fork, and of a fork that was deleted.
const (
	atGitHub = `[
{"number": 7, "state": "open", "title": "Scale web", "html_url": "L7", "head": {"ref": "scale", "sha": "aaa", "repo": {"full_name": "Acme/Shop"}}, "base": {"ref": "main", "repo": {"full_name": "Acme/Shop"}}},
{"number": 8, "state": "open", "title": "From a fork", "html_url": "L8", "head": {"ref": "scale", "sha": "bbb", "repo": {"full_name": "eve/shop"}}, "base": {"ref": "main"}},
{"number": 9, "state": "open", "title": "From nowhere", "html_url": "L9", "head": {"ref": "scale", "sha": "ccc", "repo": null}, "base": {"ref": "next"}}]`
	atGitLab = `[
{"iid": 7, "state": "opened", "title": "Scale web", "web_url": "L7", "source_branch": "scale", "target_branch": "main", "sha": "aaa", "source_project_id": 1, "target_project_id": 1},
{"iid": 8, "state": "opened", "title": "From a fork", "web_url": "L8", "source_branch": "scale", "target_branch": "main", "sha": "bbb", "source_project_id": 2, "target_project_id": 1},
{"iid": 9, "state": "opened", "title": "From nowhere", "web_url": "L9", "source_branch": "scale", "target_branch": "next", "sha": "ccc", "source_project_id": null, "target_project_id": 1}]`
	atGitea = `[
{"number": 7, "state": "open", "title": "Scale web", "html_url": "L7", "head": {"ref": "scale", "sha": "aaa", "repo": {"full_name": "acme/shop"}}, "base": {"ref": "main", "repo": {"full_name": "acme/shop"}}},
{"number": 8, "state": "open", "title": "From a fork", "html_url": "L8", "head": {"ref": "scale", "sha": "bbb", "repo": {"full_name": "eve/shop"}}, "base": {"ref": "main", "repo": {"full_name": "acme/shop"}}},
{"number": 9, "state": "open", "title": "From nowhere", "html_url": "L9", "head": {"ref": "scale", "sha": "ccc", "repo": null}, "base": {"ref": "next", "repo": {"full_name": "acme/shop"}}}]`
	atBitbucket = `{"pagelen": 20, "values": [
{"id": 7, "state": "OPEN", "title": "Scale web", "links": {"html": {"href": "L7"}}, "source": {"branch": {"name": "scale"}, "commit": {"hash": "aaa"}, "repository": {"full_name": "acme/shop"}}, "destination": {"branch": {"name": "main"}}},
{"id": 8, "state": "OPEN", "title": "From a fork", "links": {"html": {"href": "L8"}}, "source": {"branch": {"name": "scale"}, "commit": {"hash": "bbb"}, "repository": {"full_name": "eve/shop"}}, "destination": {"branch": {"name": "main"}}},
{"id": 9, "state": "OPEN", "title": "From nowhere", "links": {"html": {"href": "L9"}}, "source": {"branch": {"name": "scale"}, "commit": {"hash": "ccc"}, "repository": null}, "destination": {"branch": {"name": "next"}}}]}`
	atBitbucketServer = `{"isLastPage": true, "values": [
{"id": 7, "state": "OPEN", "title": "Scale web", "links": {"self": [{"href": "L7"}]}, "fromRef": {"displayId": "scale", "latestCommit": "aaa", "repository": {"slug": "shop", "project": {"key": "ACME"}}}, "toRef": {"displayId": "main", "repository": {"slug": "shop", "project": {"key": "ACME"}}}},
{"id": 8, "state": "OPEN", "title": "From a fork", "links": {"self": [{"href": "L8"}]}, "fromRef": {"displayId": "scale", "latestCommit": "bbb", "repository": {"slug": "shop", "project": {"key": "~EVE"}}}, "toRef": {"displayId": "main", "repository": {"slug": "shop", "project": {"key": "ACME"}}}},
{"id": 9, "state": "OPEN", "title": "From nowhere", "links": {"self": [{"href": "L9"}]}, "fromRef": {"displayId": "scale", "latestCommit": "ccc"}, "toRef": {"displayId": "next"}}]}`
)

// TestOpenPullRequestsAreListed, with their branches and commits, and those of another or an unknown repository count as from a fork.
func TestOpenPullRequestsAreListed(t *testing.T) {
	want := []PullRequest{
		{Number: 7, Title: "Scale web", From: "scale", Into: "main", Commit: "aaa", Link: "L7"},
		{Number: 8, Title: "From a fork", From: "scale", Into: "main", Commit: "bbb", Link: "L8", Fork: true},
		{Number: 9, Title: "From nowhere", From: "scale", Into: "next", Commit: "ccc", Link: "L9", Fork: true},
	}
	for kind, tc := range map[Type]struct{ answer, path string }{
		GitHub:          {atGitHub, "/api/v3/repos/acme/shop/pulls?page=1&per_page=20"},
		GitLab:          {atGitLab, "/api/v4/projects/acme%2Fshop/merge_requests?page=1&per_page=20&state=opened"},
		Gitea:           {atGitea, "/api/v1/repos/acme/shop/pulls?limit=20&page=1&state=open"},
		Bitbucket:       {atBitbucket, "/2.0/repositories/acme/shop/pullrequests?page=1&pagelen=20"},
		BitbucketServer: {atBitbucketServer, "/rest/api/1.0/projects/acme/repos/shop/pull-requests?limit=20&start=0&state=OPEN"},
	} {
		t.Run(string(kind), func(t *testing.T) {
			var asked []string
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked = append(asked, r.URL.EscapedPath()+"?"+r.URL.Query().Encode())
				w.Header().Set("Content-Type", "application/json")
				fmt.Fprint(w, tc.answer)
			}))
			defer server.Close()
			got, err := open(t, server, kind, transport.Auth{BearerToken: "t"}).PullRequests(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff([]string{tc.path}, asked); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestFurtherPagesOfPullRequestsAreReadUpToALimit, although a host answers without end.
func TestFurtherPagesOfPullRequestsAreReadUpToALimit(t *testing.T) {
	for kind, element := range map[Type]string{
		GitHub: `{"number": %d, "state": "open"}`, GitLab: `{"iid": %d}`, Gitea: `{"number": %d}`, Bitbucket: `{"id": %d}`, BitbucketServer: `{"id": %d}`,
	} {
		for name, tc := range map[string]struct{ open, requests int }{"two pages": {30, 2}, "too many": {1000, 5}} {
			t.Run(string(kind)+", "+name, func(t *testing.T) {
				requests := 0
				server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					var elements []string
					for i := requests * 20; i < min(tc.open, requests*20+20); i++ {
						elements = append(elements, fmt.Sprintf(element, i))
					}
					requests++
					answer := "[" + strings.Join(elements, ",") + "]"
					if kind == Bitbucket || kind == BitbucketServer {
						answer = `{"values": ` + answer + `}`
					}
					fmt.Fprint(w, answer)
				}))
				defer server.Close()
				got, err := open(t, server, kind, transport.Auth{BearerToken: "t"}).PullRequests(t.Context())
				if want := min(tc.open, maxPullRequests); err != nil || len(got) != want || requests != tc.requests || got[want-1].Number != want-1 {
					t.Errorf("got %d in %d requests, %v; want %d in %d", len(got), requests, err, want, tc.requests)
				}
			})
		}
	}
}

// TestAHostThatCannotListPullRequests says why, and a token that may not read them names its Secret.
func TestAHostThatCannotListPullRequests(t *testing.T) {
	for _, kind := range []Type{GitHub, GitLab, Gitea, Bitbucket, BitbucketServer} {
		for name, tc := range map[string]struct {
			status int
			body   string
			is     error
		}{
			"it is down":                         {502, "bad gateway", failure.ErrServer},
			"it refuses the token":               {403, `{"message": "no"}`, failure.ErrAuthentication},
			"the repository is gone":             {404, `{}`, failure.ErrNotFound},
			"its answer ends early":              {200, `[{"number": 7`, failure.ErrServer},
			"its answer is larger than the most": {200, `["` + strings.Repeat("x", maxAnswer), failure.ErrServer},
		} {
			t.Run(string(kind)+", "+name, func(t *testing.T) {
				server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					w.WriteHeader(tc.status)
					_, _ = fmt.Fprint(w, tc.body) // The client may close the connection.
				}))
				defer server.Close()
				r := open(t, server, kind, transport.Auth{BearerToken: "t0ken", Secret: "kubeop-system/acme"})
				got, err := r.PullRequests(t.Context())
				if !errors.Is(err, tc.is) || got != nil || strings.Contains(err.Error(), "t0ken") {
					t.Errorf("got %v, %v; want %v", got, err, tc.is)
				}
				if errors.Is(tc.is, failure.ErrAuthentication) && !strings.Contains(err.Error(), "kubeop-system/acme") {
					t.Errorf("the message does not name the Secret: %v", err)
				}
				server.Close()
				if _, err := r.PullRequests(t.Context()); !errors.Is(err, failure.ErrUnavailable) {
					t.Errorf("a host that does not listen: %v", err)
				}
			})
		}
	}
}
