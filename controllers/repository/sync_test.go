package repository

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/refusal"
	"github.com/kubeop/kubeop/controllers/repository/upstream"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/pool"
	"github.com/kubeop/kubeop/delivery/freeze"
	"github.com/kubeop/kubeop/gitops/tree"
	"github.com/kubeop/kubeop/internal/testenv/steptest"
)

// TestTheFirstReadingOfAllTenantsIsAnnounced: once for a commit that the status does not know, and never for a tenant's repository, of
// which limits bound the files.
func TestTheFirstReadingOfAllTenantsIsAnnounced(t *testing.T) {
	const revision = "main@sha1:1"
	for name, tt := range map[string]struct {
		change func(*scope)
		want   bool
	}{
		"a first commit":                    {func(*scope) {}, true},
		"a commit that came while stopped":  {func(s *scope) { s.repository.Status.LastAttemptedRevision = "main@sha1:0" }, true},
		"the commit of the last process":    {func(s *scope) { s.repository.Status.LastAttemptedRevision = revision }, false},
		"a commit after one that was read":  {func(s *scope) { s.progress.tree = &tree.Tree{} }, false},
		"a tenant's repository":             {func(s *scope) { s.repository.Spec.Tenant = "acme" }, false},
		"a commit that has been announced":  {func(s *scope) { s.progress.announced = revision }, false},
		"a newer one before that was ended": {func(s *scope) { s.progress.announced = "main@sha1:0" }, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := &scope{repository: &v1alpha1.Repository{}, progress: newProgress()}
			s.commit.Revision = revision
			tt.change(s)
			err := s.announce()
			if announces := err != nil && step.Waits(err) && strings.Contains(err.Error(), "reading the files of "+revision); announces != tt.want {
				t.Errorf("got %v, want an announcement: %t", err, tt.want)
			}
			if err := s.announce(); err != nil {
				t.Errorf("the second time: %v", err)
			}
		})
	}
}

// TestAFailureIsReportedUntilTheRemoteAnswers: also by a process that has not asked it to the end yet.
func TestAFailureIsReportedUntilTheRemoteAnswers(t *testing.T) {
	s := &scope{repository: &v1alpha1.Repository{Spec: v1alpha1.RepositorySpec{URL: "https://git.example.com/acme"}}}
	if got, want := steptest.Outcome(t, s.unanswered()), "waits Progressing: fetching https://git.example.com/acme: it has not answered yet, after 15s"; got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if got, want := steptest.AfterFailure(t, s.unanswered()), "soon, after 15s"; got != want {
		t.Errorf("after a failure: got %q, want %q", got, want)
	}
}

// TestASourceIsNamedByItsRef, and only a semver range that nothing overrides selects tags that need not descend from each other.
func TestASourceIsNamedByItsRef(t *testing.T) {
	for name, c := range map[string]struct {
		ref      *sourcev1.GitRepositoryRef
		want     string
		bySemver bool
	}{
		"none":                {nil, "u", false},
		"empty":               {&sourcev1.GitRepositoryRef{}, "u", false},
		"a branch":            {&sourcev1.GitRepositoryRef{Branch: "main"}, "u branch=main", false},
		"a tag":               {&sourcev1.GitRepositoryRef{Tag: "v1"}, "u tag=v1", false},
		"a range":             {&sourcev1.GitRepositoryRef{SemVer: ">1"}, "u semver=>1", true},
		"a range of a branch": {&sourcev1.GitRepositoryRef{SemVer: ">1", Branch: "main"}, "u semver=>1 branch=main", true},
		"a commit, and range": {&sourcev1.GitRepositoryRef{SemVer: ">1", Commit: "c"}, "u commit=c semver=>1", false},
		"a name, and range":   {&sourcev1.GitRepositoryRef{SemVer: ">1", Name: "refs/x"}, "u name=refs/x semver=>1", false},
		"a name":              {&sourcev1.GitRepositoryRef{Name: "refs/x"}, "u name=refs/x", false},
	} {
		repository := &v1alpha1.Repository{Spec: v1alpha1.RepositorySpec{URL: "u"}}
		repository.Spec.Ref = c.ref
		if got := upstream.Source(repository); got != c.want || upstream.BySemver(repository) != c.bySemver {
			t.Errorf("%s: %q, by range %t, want %q, %t", name, got, upstream.BySemver(repository), c.want, c.bySemver)
		}
	}
}

// TestACommitIsComparedWithTheLastOneOfTheSameSource, unless the spec allows any history.
func TestACommitIsComparedWithTheLastOneOfTheSameSource(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*v1alpha1.Repository)
		want   bool
	}{
		"the same source":        {func(*v1alpha1.Repository) {}, true},
		"a source of before":     {func(r *v1alpha1.Repository) { r.Status.Source = "" }, true},
		"another source":         {func(r *v1alpha1.Repository) { r.Status.Source = "other" }, false},
		"no commit before":       {func(r *v1alpha1.Repository) { r.Status.LastAttemptedRevision = "" }, false},
		"any history is allowed": {func(r *v1alpha1.Repository) { r.Spec.History = v1alpha1.HistoryAny }, false},
	} {
		repository := &v1alpha1.Repository{Spec: v1alpha1.RepositorySpec{URL: "u"}}
		repository.Status.LastAttemptedRevision, repository.Status.Source = "main@sha1:1", "u"
		c.change(repository)
		if got := upstream.Compared(repository); got != c.want {
			t.Errorf("%s: compared %t, want %t", name, got, c.want)
		}
	}
}

// TestTheAppliedCommitStaysWhileTheRemoteIsAway, as long as it is known for the present spec.
func TestTheAppliedCommitStaysWhileTheRemoteIsAway(t *testing.T) {
	b := newFixture(t)
	b.want("1")
	b.repository.Status.LastAppliedRevision = b.repository.Status.LastAttemptedRevision
	b.update(b.repository)
	if err := os.Rename(b.bare, b.bare+".away"); err != nil {
		t.Fatal(err)
	}
	content, err := b.pass()
	if end := steptest.Outcome(t, err); content != "1" || !strings.HasPrefix(end, "later steps run; ") || !strings.Contains(end, "; applied is "+b.repository.Status.LastAppliedRevision+", which stays") {
		t.Errorf("in force is %q, and the outcome %s", content, end)
	}
	b.repository.Generation++
	b.update(b.repository)
	if content, err := b.pass(); content != "" || err == nil {
		t.Errorf("for another spec, %q is in force: %v", content, err)
	}
}

// TestAFailedFetchIsRetriedUnlessOnlyPeopleCanHelp, and an accepted commit is still reconciled.
func TestAFailedFetchIsRetriedUnlessOnlyPeopleCanHelp(t *testing.T) {
	for err, want := range map[error]string{
		failure.ErrBusy:           "waits WaitingForTurn: ",
		failure.ErrAuthentication: "stopped AuthenticationFailed: ",
		failure.ErrUnavailable:    "failed FetchFailed: ",
	} {
		for _, attempted := range []string{"", "main@sha1:1"} {
			s := newScope(&v1alpha1.Repository{})
			s.repository.Status.LastAttemptedRevision = attempted
			goesOn := ""
			if attempted != "" {
				goesOn = "later steps run; "
			}
			if got := steptest.Outcome(t, s.withoutRemote(err)); !strings.HasPrefix(got, goesOn+want) || strings.Contains(got, "which stays") {
				t.Errorf("attempted is %q: %s, want %s%s", attempted, got, goesOn, want)
			}
			s.repository.Status.LastAppliedRevision = "main@sha1:0"
			if got := steptest.Outcome(t, s.withoutRemote(err)); !strings.Contains(got, "; applied is main@sha1:0, which stays") {
				t.Errorf("with an applied commit: %s", got)
			}
		}
	}
}

// TestTheEndOfAFreezeIsNotMissed, and a pass that is due earlier is not put off.
func TestTheEndOfAFreezeIsNotMissed(t *testing.T) {
	k := newCluster(t)
	for again, want := range map[time.Duration]time.Duration{0: time.Hour, time.Minute: time.Minute, 2 * time.Hour: time.Hour} {
		s := k.scope(nil)
		s.again, s.hold = again, &freeze.Hold{Name: "weekend", Until: k.clock.Now().Add(time.Hour)}
		if err := k.waitFor(s, ""); s.again != want || err == nil {
			t.Errorf("the next pass was to be after %s, and is after %s, want %s; %v", again, s.again, want, err)
		}
	}
}

// TestAFetchIsReportedOnlyAfterAWhile: at a start all repositories are fetched at once, and most have an applied commit.
func TestAFetchIsReportedOnlyAfterAWhile(t *testing.T) {
	repository := &v1alpha1.Repository{}
	if got := unreportedFor(repository); got != reportAfter {
		t.Errorf("before the first commit: %s", got)
	}
	repository.Status.LastAppliedRevision = "main@sha1:1"
	if got := unreportedFor(repository); got != reportAppliedAfter {
		t.Errorf("with an applied commit: %s", got)
	}
}

// TestThePlatformIsFetchedBeforeTenants.
func TestThePlatformIsFetchedBeforeTenants(t *testing.T) {
	k := newCluster(t)
	for name, want := range map[string]pool.Priority{v1alpha1.PlatformRepository: pool.Platform, "acme": pool.Repository} {
		repository := withSecrets()
		repository.Name, repository.UID, repository.Spec.URL = name, "uid", "https://git.example.com/acme"
		repository.Spec.Timeout.Duration = 7 * time.Minute
		query := k.query(repository, time.Minute)
		if query.Timeout != 7*time.Minute || query.Priority != want || query.Host != "git.example.com:443" || query.Key != "uid" || query.Caller.Name != name {
			t.Errorf("%s: the query is %+v", name, query)
		}
	}
}

// TestNothingIsKnownOfADeletedRepository.
func TestNothingIsKnownOfADeletedRepository(t *testing.T) {
	b := newFixture(t)
	b.fetchNow()
	b.records.begin(b.repository.UID, "acme")
	b.Refusals = &refusal.Index{}
	unit := refusal.Unit{Kind: v1alpha1.AppKind, ObjectKey: client.ObjectKeyFromObject(b.app)}
	b.Refusals.Set("acme", map[refusal.Unit]refusal.Refusal{unit: {Problem: "no"}})
	b.repository.Finalizers = []string{v1alpha1.Finalizer, "example.com/held"}
	b.update(b.repository)
	if err := b.Client.Delete(t.Context(), b.repository); err != nil {
		t.Fatal(err)
	}
	if err := b.Client.Get(t.Context(), client.ObjectKeyFromObject(b.repository), b.repository); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Reconcile(t.Context(), b.repository); err != nil {
		t.Fatal(err)
	}
	_, _, known := b.Commits.Last("repository")
	if refused, _ := b.Refusals.Of("acme", unit); known || refused.Problem != "" || !slices.Equal(b.pulls.forgot, []string{"acme"}) {
		t.Errorf("its commit is known: %t, what was refused: %q; plans are dropped of %v", known, refused.Problem, b.pulls.forgot)
	}
	if len(b.records.of) != 0 {
		t.Error("its progress is known")
	}
	if slices.Contains(b.repository.Finalizers, v1alpha1.Finalizer) {
		t.Error("the repository keeps its finalizer")
	}
}
