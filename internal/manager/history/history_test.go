package history

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/kubeop/kubeop/internal/manager/access"
	"github.com/kubeop/kubeop/internal/manager/auth"
	"github.com/kubeop/kubeop/internal/manager/filediff"
	"github.com/kubeop/kubeop/internal/manager/problem"
	"github.com/kubeop/kubeop/internal/testenv/operated"
)

const (
	older, newer = "0123456789012345678901234567890123456789", "89abcdef0123456789abcdef0123456789abcdef"
	at           = "/v1/apps/acme/shop/web"
)

// deliveries are repositories with one app, and its folder at two commits. err, if set, is their answer.
type deliveries struct {
	err error
	// platform is what the last request said about the rights of its caller.
	platform bool
}

// History implements Repositories.
func (d *deliveries) History(_ context.Context, of App, ofPlatform bool) (History, error) {
	d.platform = ofPlatform
	if d.err != nil {
		return History{}, d.err
	}
	started := time.Date(2026, 11, 28, 11, 0, 0, 0, time.UTC)
	return History{Items: []Delivery{
		{Commit: newer, Revision: "main@sha1:" + newer, Started: started, Result: "Progressing"},
		{Commit: older, Author: "Ann", Date: started.Add(-time.Hour), Message: "Deploy " + of.App, Revision: "main@sha1:" + older, Started: started, Finished: started.Add(time.Minute), Result: "Failed", Reason: "HealthCheckFailed"},
	}, Incomplete: "The repository does not answer."}, nil
}

// Diff implements Repositories.
func (d *deliveries) Diff(ctx context.Context, _ App, from, to string, ofPlatform bool) (Comparison, error) {
	d.platform = ofPlatform
	if d.err != nil {
		return Comparison{}, d.err
	}
	if to == "" {
		to = newer
	}
	folder := func(commit string) fstest.MapFS {
		return fstest.MapFS{
			"app.yaml":    {Data: []byte("spec: {replicas: " + commit[:1] + "}\n")},
			"secret.yaml": {Data: []byte("kind: Secret\nstringData: {password: hunter2-" + commit[:1] + "}\n")},
		}
	}
	found, err := filediff.Of(ctx, folder(from), folder(to), "projects/shop/apps/web")
	return Comparison{From: from, To: to, Diff: found}, err
}

// serve serves the operations. By the table of access, a caller may do what it may in the project.
func serve(t *testing.T, d *deliveries) *operated.Served {
	t.Helper()
	return operated.Start(t, func(_ *operated.Served, api huma.API) {
		(&Operations{
			Repositories: d,
			Allowed: func(ctx context.Context, verb access.Verb, of App) error {
				grant := auth.Of(ctx).Grant
				switch {
				case !grant.May(access.Apps, access.Read, of.Tenant, of.Project):
					return problem.New(problem.NotFound, "")
				case !grant.May(access.Apps, verb, of.Tenant, of.Project):
					return problem.New(problem.Forbidden, "")
				}
				return nil
			},
			OfPlatform: func(ctx context.Context) bool { return auth.Of(ctx).Grant.May(access.Tenants, access.Update, "", "") },
		}).Register(api)
	})
}

func TestOnlyWhoMayChangeAnAppReadsItsFiles(t *testing.T) {
	d := &deliveries{}
	s := serve(t, d)
	for role, c := range map[string]struct {
		history, diff problem.Code
		platform      bool
	}{
		"admin":                    {"", "", true},
		"tenant:acme:admin":        {"", "", false},
		"tenant:acme:edit":         {"", "", false},
		"tenant:acme:view":         {"", problem.Forbidden, false},
		"project:acme/shop:edit":   {"", "", false},
		"project:acme/shop:view":   {"", problem.Forbidden, false},
		"project:acme/blog:edit":   {problem.NotFound, problem.NotFound, false},
		"tenant:beta:admin":        {problem.NotFound, problem.NotFound, false},
		"project:acme/shop:deploy": {"", "", false},
	} {
		t.Run(role, func(t *testing.T) {
			secret := s.Token(role, role)
			for path, want := range map[string]problem.Code{at + "/history": c.history, at + "/diff?from=" + older: c.diff} {
				d.platform = false
				answer := s.Do(secret, "GET", path, "")
				if want != "" {
					operated.Refused(t, answer, want)
					continue
				}
				if answer.Code != http.StatusOK || d.platform != c.platform {
					t.Errorf("%s: %d, of the platform: %t", path, answer.Code, d.platform)
				}
			}
		})
	}
	operated.Refused(t, s.Do("", "GET", at+"/history", ""), problem.Unauthenticated)
	operated.Refused(t, s.Do("", "GET", at+"/diff?from="+older, ""), problem.Unauthenticated)
}

// TestAHistorySaysWhatIsMissing: a delivery that has not ended has no end, and one that was not found in the log no date.
func TestAHistorySaysWhatIsMissing(t *testing.T) {
	s := serve(t, &deliveries{})
	answer := s.Do(s.Token("view", "project:acme/shop:view"), "GET", at+"/history", "")
	got := operated.Read[struct {
		Items      []map[string]any
		Incomplete string
	}](t, answer, http.StatusOK)
	want := []map[string]any{
		{"commit": newer, "revision": "main@sha1:" + newer, "started": "2026-11-28T11:00:00Z", "result": "Progressing"},
		{"commit": older, "author": "Ann", "date": "2026-11-28T10:00:00Z", "message": "Deploy web", "revision": "main@sha1:" + older, "started": "2026-11-28T11:00:00Z",
			"finished": "2026-11-28T11:01:00Z", "result": "Failed", "reason": "HealthCheckFailed"},
	}
	if diff := cmp.Diff(want, got.Items); diff != "" || got.Incomplete != "The repository does not answer." {
		t.Errorf("incomplete %q (-want +got):\n%s", got.Incomplete, diff)
	}
}

// TestADiffIsToTheNewestCommitIfNoneIsNamed, and has of a Secret only its name.
func TestADiffIsToTheNewestCommitIfNoneIsNamed(t *testing.T) {
	s := serve(t, &deliveries{})
	edit := s.Token("edit", "project:acme/shop:edit")
	for _, query := range []string{"?from=" + older, "?from=" + older + "&to=" + newer} {
		answer := s.Do(edit, "GET", at+"/diff"+query, "")
		want := Comparison{From: older, To: newer, Diff: filediff.Diff{Files: []filediff.FileDiff{
			{Path: "projects/shop/apps/web/app.yaml", Change: filediff.Changed, Patch: "--- a/projects/shop/apps/web/app.yaml\n+++ b/projects/shop/apps/web/app.yaml\n@@ -1,1 +1,1 @@\n" +
				"-spec: {replicas: 0}\n+spec: {replicas: 8}\n"},
			{Path: "projects/shop/apps/web/secret.yaml", Change: filediff.Changed, Omitted: "the file may have a Secret, which is not shown"},
		}}}
		if diff := cmp.Diff(want, operated.Read[Comparison](t, answer, http.StatusOK)); diff != "" || strings.Contains(answer.Body.String(), "hunter2") {
			t.Errorf("%s (-want +got):\n%s", query, diff)
		}
	}
}

func TestInvalidNamesAndCommitsAreRefused(t *testing.T) {
	s := serve(t, &deliveries{err: errors.New("must not be asked")})
	root := s.Token("root", "admin")
	for _, path := range []string{
		"/v1/apps/acme/shop/-web/history", "/v1/apps/acme/shop/WEB/history", "/v1/apps/acme/%2e%2e%2fbeta/web/history", "/v1/apps/acme/shop/" + strings.Repeat("a", 64) + "/history", "/v1/apps/a%27b/shop/web/history",
		at + "/history?limit=3", at + "/diff", at + "/diff?from=", at + "/diff?from=main", at + "/diff?from=HEAD~1", at + "/diff?from=--output=x", at + "/diff?from=" + older[1:], at + "/diff?from=" + older + "0",
		at + "/diff?from=" + strings.ToUpper(newer), at + "/diff?from=" + older + "&to=main", at + "/diff?from=" + older + "%0a", at + "/diff?from=" + older + "&path=/etc",
	} {
		operated.Refused(t, s.Do(root, "GET", path, ""), problem.Invalid)
	}
}

// TestErrorsOfTheRepositoryAreAnsweredAsProblems. The answer about an unexpected error leaves out its reason.
func TestErrorsOfTheRepositoryAreAnsweredAsProblems(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want problem.Code
	}{
		"no such app":        {problem.New(problem.NotFound, "The repository declares no such app."), problem.NotFound},
		"an unknown commit":  {fmt.Errorf("reading: %w", problem.New(problem.Conflict, "The commit is not among the last 1,000.")), problem.Conflict},
		"it does not answer": {problem.New(problem.Unavailable, "The repository does not answer."), problem.Unavailable},
		"anything else":      {errors.New("dial 10.0.0.1 with password hunter2"), problem.Internal},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, &deliveries{err: c.err})
			root := s.Token("root", "admin")
			for _, path := range []string{at + "/history", at + "/diff?from=" + older} {
				answer := s.Do(root, "GET", path, "")
				if operated.Refused(t, answer, c.want); strings.Contains(answer.Body.String(), "hunter2") || strings.Contains(answer.Body.String(), `"items"`) {
					t.Errorf("%s: %s", path, answer.Body)
				}
			}
		})
	}
}
