package repository

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/refusal"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/fetch/git"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
	"github.com/kubeop/kubeop/gitops/code"
	"github.com/kubeop/kubeop/gitops/document"
	"github.com/kubeop/kubeop/gitops/plan"
	"github.com/kubeop/kubeop/gitops/tree"
	"github.com/kubeop/kubeop/internal/testenv/sources"
	"github.com/kubeop/kubeop/internal/testenv/steptest"
)

// acmeFiles are those of acme's repository with the project shop and these apps, by name with their spec.
func acmeFiles(apps map[string]string) map[string]string {
	const head = "apiVersion: paas.kubeop.io/v1alpha1\nkind: %s\nmetadata: {name: %s}\nspec: %s\n"
	all := map[string]string{"kubeop.yaml": "layout: v1\n", "projects/shop/project.yaml": fmt.Sprintf(head, "Project", "shop", "{}")}
	for name, spec := range apps {
		all["projects/shop/apps/"+name+"/app.yaml"] = fmt.Sprintf(head, "App", name, spec)
	}
	return all
}

const (
	nginx   = "{type: Image, image: {reference: nginx}}"
	invalid = "{type: Nonsense}"
)

func inMemory(files map[string]string) memory {
	m := memory{fstest.MapFS{}}
	for name, text := range files {
		m.MapFS[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return m
}

// reading is a cluster whose Reconciler can read trees.
func reading(t *testing.T, objects ...client.Object) *cluster {
	t.Helper()
	k := watching(t, objects...)
	var err error
	if k.Tree, err = reader(); err != nil {
		t.Fatal(err)
	}
	k.Refusals = &refusal.Index{}
	return k
}

// TestACommitIsReadOnce: later passes use the tree, until the commit, the path or the limits change.
func TestACommitIsReadOnce(t *testing.T) {
	five := int32(5)
	for name, c := range map[string]struct {
		change func(*cluster, *scope)
		again  bool
	}{
		"the same commit": {func(*cluster, *scope) {}, false},
		"a newer commit":  {func(_ *cluster, s *scope) { s.commit.Revision = "main@sha1:3" }, true},
		"another path":    {func(_ *cluster, s *scope) { s.repository.Spec.Path = "deploy" }, true},
		"other limits": {func(k *cluster, _ *scope) {
			tenant := acme()
			tenant.Spec.Limits.Apps = &five
			k.create(tenant)
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			k := reading(t)
			s, root := k.scope(nil), inMemory(acmeFiles(map[string]string{"web": nginx}))
			if err := k.read(t.Context(), s, root); err != nil || s.found.Counts().Apps != 1 {
				t.Fatalf("%+v, %v", s.found, err)
			}
			s.progress.tree, s.progress.revision = s.found, s.commit.Revision
			next := k.scope(nil)
			next.progress = s.progress
			c.change(k, next)
			k.lists = 0
			if err := k.read(t.Context(), next, root); err != nil || (next.found != s.found) != c.again {
				t.Errorf("read again: %t, want %t, %v", next.found != s.found, c.again, err)
			}
			// Only the first reading, and one of another path, need the digests of the live objects.
			if listed := k.lists > 0; listed != (name == "another path") {
				t.Errorf("the live objects were listed: %t", listed)
			}
		})
	}
}

// unreadable fails when a file is opened.
type unreadable struct {
	memory
	name string
}

func (u unreadable) Open(name string) (fs.File, error) {
	if name == u.name {
		return nil, &fs.PathError{Op: "open", Path: name, Err: errAway}
	}
	return u.memory.Open(name)
}

func (u unreadable) ReadFile(name string) ([]byte, error) {
	if name == u.name {
		return nil, &fs.PathError{Op: "open", Path: name, Err: errAway}
	}
	return u.memory.ReadFile(name)
}

func (u unreadable) Sub(path string) (tree.Files, error) {
	below, err := u.memory.Sub(path)
	return unreadable{below.(memory), strings.TrimPrefix(u.name, path+"/")}, err
}

func TestACommitThatCannotBeReadIsAFailure(t *testing.T) {
	whole := inMemory(acmeFiles(map[string]string{"web": nginx}))
	for name, c := range map[string]struct {
		root  tree.Files
		fails string
		want  string
	}{
		"the limits":       {whole, ".Tenant", "failed Failed: " + errAway.Error()},
		"the live objects": {whole, ".AppList", "failed Failed: listing what repository acme declared: " + errAway.Error()},
		"a file":           {unreadable{whole, "projects/shop/project.yaml"}, "", "failed FetchFailed: reading projects/shop/project.yaml: "},
	} {
		t.Run(name, func(t *testing.T) {
			k := reading(t)
			k.fails = c.fails
			s := k.scope(nil)
			s.progress = newProgress()
			if got := steptest.Outcome(t, k.read(t.Context(), s, c.root)); !strings.HasPrefix(got, c.want) || s.found != nil {
				t.Errorf("got %q, want %q; found %v", got, c.want, s.found)
			}
		})
	}
}

// TestAFirstReadingOfThePlatformIsAnnounced in the status, before it begins.
func TestAFirstReadingOfThePlatformIsAnnounced(t *testing.T) {
	k := reading(t)
	s := k.scope(nil)
	s.repository.Spec.Tenant, s.progress = "", newProgress()
	if got := steptest.Outcome(t, k.read(t.Context(), s, inMemory(nil))); got != "waits Progressing: reading the files of main@sha1:2, after 1ms" || s.found != nil {
		t.Errorf("got %q", got)
	}
}

// TestOnlyChangesOfACommitAreCompared: the first time, all objects are compared, and those that left may be deleted.
func TestOnlyChangesOfACommitAreCompared(t *testing.T) {
	const web, api, old = "acme/shop/web", "acme/shop/api", "acme/shop/old"
	k := reading(t, fromAcme(project("kubeop-acme", "shop")), fromAcme(app("kubeop-acme-shop", "old")))
	now := k.clock.Now()
	p := newProgress()
	look := func(name string, found *tree.Tree, pending, gone []string) *scope {
		t.Helper()
		s := k.scope(found)
		s.progress = p
		if err := k.look(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var left []string
		for ref := range p.Gone {
			left = append(left, ref.Path())
		}
		if diff := cmp.Diff([][]string{pending, gone}, [][]string{paths(p.pending.All()), left}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if p.tree != found || p.revision != s.commit.Revision {
			t.Errorf("%s: the tree of %s is not kept", name, p.revision)
		}
		for _, ref := range p.pending.All() {
			p.done(ref)
		}
		p.Gone.Clear()
		return s
	}
	read := func(before *tree.Tree, apps ...string) *tree.Tree {
		specs := map[string]string{}
		for _, name := range apps {
			specs[name] = nginx
		}
		return k.Tree.Read(inMemory(acmeFiles(specs)), tree.Scope{Repository: "acme", Tenant: "acme"}, before)
	}
	first := read(nil, "web", "api")
	look("the first commit", first, []string{"acme/shop", api, web}, []string{old})
	if want := now.Add(firstReport - reportEvery); !p.reported.Equal(want) {
		t.Errorf("the progress is reported from %s, want %s", p.reported, want)
	}
	look("the same tree", first, nil, nil)
	k.lists = 0
	second := read(first, "web")
	look("one app left", second, nil, []string{api})
	if k.lists != 0 {
		t.Errorf("the live objects were listed %d times for a tree that knows its changes", k.lists)
	}
	p.foreign = true
	look("the first had foreign objects", read(second, "web", "api"), []string{"acme/shop", api}, []string{old})
	if p.foreign {
		t.Error("a tree that declares a live object is foreign")
	}
	p.tree.Scope.Path = "before"
	look("another path", read(nil, "web"), []string{"acme/shop", web}, []string{old})

	k.fails, p.tree = ".TenantList", nil
	s := k.scope(first)
	s.progress = p
	if got := steptest.Outcome(t, k.look(t.Context(), s)); got != "failed Failed: listing what repository acme declared: "+errAway.Error() || p.tree != nil {
		t.Errorf("the live objects cannot be listed: %q", got)
	}
}

// TestProblemsAreReported: files first, then what the API server refused, each App and Project once.
func TestProblemsAreReported(t *testing.T) {
	k := reading(t)
	found := k.Tree.Read(inMemory(acmeFiles(map[string]string{"bad": invalid, "web": nginx, "api": nginx})), tree.Scope{Repository: "acme", Tenant: "acme"}, nil)
	s := k.scope(found)
	if s.problemCount() != 1 {
		t.Fatalf("the tree has the problems %v", s.problems(9))
	}
	inFile := s.problems(1)[0]
	const refusedApp = "projects/shop/apps/%s/app.yaml: the API server is away [write-refused]"
	for _, name := range []string{"web", "api", "bad"} {
		s.progress.refuse(ref("acme/shop/"+name), code.WriteRefused, errAway)
	}
	all := []string{inFile, fmt.Sprintf(refusedApp, "api"), fmt.Sprintf(refusedApp, "bad"), fmt.Sprintf(refusedApp, "web")}
	for most := range 6 {
		want := all[:min(max(most, 1), len(all))] // The status always has room for one.
		if diff := cmp.Diff(want, s.problems(most)); diff != "" {
			t.Errorf("at most %d (-want +got):\n%s", most, diff)
		}
	}
	if s.problemCount() != len(all) {
		t.Errorf("counted are %d problems, want %d", s.problemCount(), len(all))
	}
	s.progress.refused[ref("acme")] = tree.Problem{Finding: document.Finding{File: "tenant.yaml", Why: "no"}, Of: ref("acme")}
	k.reportRefusals(s)
	for name, why := range map[string]string{"web": "the API server is away", "bad": strings.TrimSuffix(strings.SplitN(inFile, ": ", 2)[1], " [unknown-value]"), "shop": ""} {
		unit := refusal.Unit{Kind: v1alpha1.AppKind, ObjectKey: client.ObjectKey{Namespace: "kubeop-acme-shop", Name: name}}
		got, known := k.Refusals.Of("acme", unit)
		if !known || got.Problem != why || (got.Revision == "main@sha1:2") != (why != "") {
			t.Errorf("%s: %+v, known %t, want %q", name, got, known, why)
		}
	}
	if got, _ := k.Refusals.Of("acme", refusal.Unit{Kind: v1alpha1.TenantKind, ObjectKey: client.ObjectKey{Name: "acme"}}); got.Problem != "" {
		t.Errorf("a Tenant reports no refused version, and has %+v", got)
	}
}

func TestACommitIsValidWithoutProblemsAndHeldDeletions(t *testing.T) {
	held := plan.Verdict{Held: []plan.Loss{{Ref: ref("acme/shop")}}, Lines: []string{"Project shop"}, Why: "it goes", Token: "1234"}
	for name, c := range map[string]struct {
		apps   map[string]string
		change func(*scope)
		want   string
	}{
		"synced":     {nil, func(*scope) {}, "done"},
		"not synced": {nil, func(s *scope) { s.synced = false }, "done"},
		"a problem":  {map[string]string{"bad": invalid}, func(*scope) {}, "stopped InvalidTree: projects/shop/apps/bad/app.yaml:"},
		"held":       {map[string]string{"bad": invalid}, func(s *scope) { s.verdict = held }, "stopped DeletionsHeld: main@sha1:2 is held back, because it goes; status.held lists all that would go: Project shop. If that is meant, "},
	} {
		t.Run(name, func(t *testing.T) {
			k := reading(t)
			s := k.scope(k.Tree.Read(inMemory(acmeFiles(c.apps)), tree.Scope{Repository: "acme", Tenant: "acme"}, nil))
			s.synced = true
			c.change(s)
			got := steptest.Outcome(t, k.checkProblems(t.Context(), s))
			if !strings.HasPrefix(got, c.want) || s.valid != (name == "synced") || strings.Contains(got, "more; kubectl") {
				t.Errorf("got %q, valid %t; want %q", got, s.valid, c.want)
			}
		})
	}
	k := reading(t)
	s := k.scope(k.Tree.Read(inMemory(acmeFiles(map[string]string{"bad": invalid, "worse": invalid})), tree.Scope{Repository: "acme", Tenant: "acme"}, nil))
	if got := s.problems(1); len(got) != 1 {
		t.Errorf("at most 1: %v", got)
	}
	if got := steptest.Outcome(t, k.checkProblems(t.Context(), s)); !strings.HasSuffix(got, " (and 1 more; kubectl describe repository acme)") {
		t.Errorf("got %q", got)
	}
}

// TestTheStatusSaysHowFarACommitCame: facts that a pass did not find out stay as they were.
func TestTheStatusSaysHowFarACommitCame(t *testing.T) {
	k := reading(t)
	good := k.Tree.Read(inMemory(acmeFiles(nil)), tree.Scope{Repository: "acme", Tenant: "acme"}, nil)
	bad := k.Tree.Read(inMemory(acmeFiles(map[string]string{"bad": invalid})), tree.Scope{Repository: "acme", Tenant: "acme"}, nil)
	before := v1alpha1.RepositoryStatus{LastAttemptedRevision: "1", Source: "s1", LastAppliedRevision: "1", AppliedSource: "a1", Held: []string{"h1"}, HeldToken: "t1", Problems: []string{"p1"}}
	status := func(change func(*v1alpha1.RepositoryStatus)) v1alpha1.RepositoryStatus {
		s := *before.DeepCopy()
		change(&s)
		return s
	}
	read := func(s *v1alpha1.RepositoryStatus) { s.LastAttemptedRevision, s.Source, s.Problems = "2", "s2", nil }
	for name, c := range map[string]struct {
		change func(*scope)
		want   v1alpha1.RepositoryStatus
	}{
		"no commit":       {func(s *scope) { s.commit.Revision = "" }, before},
		"it was not read": {func(s *scope) { s.found = nil }, status(func(s *v1alpha1.RepositoryStatus) { s.LastAttemptedRevision, s.Source = "2", "s2" })},
		"it is not accepted": {func(s *scope) { s.unaccepted = errAway }, status(func(s *v1alpha1.RepositoryStatus) {
			read(s)
			s.Source = "s1"
		})},
		"it was read": {func(*scope) {}, status(read)},
		"it has a problem": {func(s *scope) { s.found = bad }, status(func(s *v1alpha1.RepositoryStatus) {
			read(s)
			s.Problems = []string{k.problemOf(bad)}
		})},
		"nothing is held": {func(s *scope) { s.weighed = true }, status(func(s *v1alpha1.RepositoryStatus) {
			read(s)
			s.Held, s.HeldToken = nil, ""
		})},
		"deletions are held": {func(s *scope) {
			s.weighed, s.verdict = true, plan.Verdict{Held: []plan.Loss{{}}, Lines: []string{"h2"}, Token: "t2"}
		}, status(func(s *v1alpha1.RepositoryStatus) {
			read(s)
			s.Held, s.HeldToken = []string{"h2"}, "t2"
		})},
		"a token without anything held": {func(s *scope) { s.weighed, s.verdict = true, plan.Verdict{Token: "t2"} }, status(func(s *v1alpha1.RepositoryStatus) {
			read(s)
			s.Held, s.HeldToken = nil, ""
		})},
		"what is beside the steps": {func(s *scope) {
			s.reported, s.plans = []v1alpha1.ReportedStatus{{}}, []v1alpha1.PullRequestPlan{{}}
			s.previews.Status = []v1alpha1.PreviewStatus{{Branch: "x"}}
		}, status(func(s *v1alpha1.RepositoryStatus) {
			read(s)
			s.CommitStatuses, s.Plans, s.Previews = []v1alpha1.ReportedStatus{{}}, []v1alpha1.PullRequestPlan{{}}, []v1alpha1.PreviewStatus{{Branch: "x"}}
		})},
		"it is applied": {func(s *scope) { s.valid = true }, status(func(s *v1alpha1.RepositoryStatus) {
			read(s)
			s.LastAppliedRevision, s.AppliedSource = "2", "https://git.example.com/acme#"
		})},
	} {
		t.Run(name, func(t *testing.T) {
			s := k.scope(good)
			s.repository.Status, s.commit.Revision, s.source = *before.DeepCopy(), "2", "s2"
			c.change(s)
			s.Record()
			if diff := cmp.Diff(c.want, s.repository.Status); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func (c *cluster) problemOf(found *tree.Tree) string { return c.scope(found).problems(1)[0] }

func TestTheSummaryCountsWhatTheRepositoryMayDeclare(t *testing.T) {
	k := newCluster(t)
	s := k.scope(declaring(t, "shop/web", "shop/api"))
	s.commit.Revision = "main@sha1:0123456789abcdef0123456789abcdef01234567"
	for tenant, want := range map[string]string{"acme": "Synced main@sha1:01234567: 1 project, 2 apps", "": "Synced main@sha1:01234567: 0 tenants, 1 project, 2 apps"} {
		s.repository.Spec.Tenant = tenant
		if got := s.Summary(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	s.progress.look(ref("acme/shop"), ref("acme/shop/web"))
	if got, want := s.reached(), "syncing "+s.commit.Revision+": 1 of 2 apps declared"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestAFailedSyncIsRetriedBeforeTheInterval, and the interval bounds each pause.
func TestAFailedSyncIsRetriedBeforeTheInterval(t *testing.T) {
	repository := &v1alpha1.Repository{}
	repository.Spec.Interval.Duration = time.Hour
	s := newScope(repository)
	if got := s.Again(); got < 30*time.Minute || got > 2*time.Hour {
		t.Errorf("the next pass is after %s", got)
	}
	if s.again = retrySync; s.Again() != retrySync {
		t.Errorf("the next pass is after %s", s.Again())
	}
	if s.every = time.Second; s.Again() > 2*time.Second {
		t.Errorf("the next pass is after %s, later than the interval", s.Again())
	}
	s.notes = []step.Note{{Reason: "R"}}
	if notes := s.Notes(); len(notes) != 1 || notes[0].Reason != "R" {
		t.Errorf("the notes are %v", notes)
	}
}

// TestSyncAppliesWhatACommitDeclares runs the whole step for commits of a Git server.
func TestSyncAppliesWhatACommitDeclares(t *testing.T) {
	repo := sources.NewGitRepo(t)
	server := sources.ServeGit(t, repo, httptest.NewServer)
	store := git.NewStore(t.TempDir(), &transport.Network{Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	commit := func(files map[string]string) git.Commit {
		t.Helper()
		repo.Git("rm", "-rq", "--ignore-unmatch", ".")
		for name, text := range files {
			repo.Write(name, text)
		}
		repo.Push("change")
		fetched, err := store.Fetch(t.Context(), git.Source{URL: server.RepoURL()})
		if err != nil {
			t.Fatal(err)
		}
		return fetched
	}
	k := reading(t, acme(), namespace("kubeop-acme"), namespace("kubeop-acme-shop"))
	sync := func(commit git.Commit, change ...func(*scope)) (*scope, string) {
		s := k.scope(nil)
		s.repository.UID = "uid"
		s.commit, s.progress = commit, nil
		for _, c := range change {
			c(s)
		}
		k.patches = nil
		return s, steptest.Outcome(t, withCommit(k.sync)(t.Context(), s))
	}
	if _, end := sync(git.Commit{}); end != "skipped" {
		t.Errorf("without a commit: %s", end)
	}
	first := commit(acmeFiles(map[string]string{"web": nginx, "bad": invalid}))
	s, end := sync(first)
	if end != "done" || !s.synced || s.again != 0 {
		t.Errorf("the first commit: %s, synced %t", end, s.synced)
	}
	k.wantApplied("shop", "web")
	bad := refusal.Unit{Kind: v1alpha1.AppKind, ObjectKey: types.NamespacedName{Namespace: "kubeop-acme-shop", Name: "bad"}}
	if refused, _ := k.Refusals.Of("acme", bad); refused.Revision != first.Revision {
		t.Errorf("the invalid app is reported as %+v", refused)
	}
	if _, end := sync(first, func(s *scope) { s.repository.Spec.Path = "none" }); !strings.HasPrefix(end, "stopped SourceNotFound: spec.path: ") {
		t.Errorf("a path that is not there: %s", end)
	}

	// A commit that is no repository of kubeop changes nothing, not even the refusals.
	s, end = sync(commit(map[string]string{"README.md": "hello"}))
	if refused, _ := k.Refusals.Of("acme", bad); end != "done" || s.synced || s.found.Usable() || refused.Problem == "" {
		t.Errorf("an unusable commit: %s, synced %t, the refused app is %+v", end, s.synced, refused)
	}
	k.wantApplied()

	k.refuses = map[string]error{"api": errAway}
	s, end = sync(commit(acmeFiles(map[string]string{"web": nginx, "api": nginx})))
	if end != "later steps run; failed SyncFailed: App/api: "+errAway.Error() || s.synced || s.again != retrySync {
		t.Errorf("an app that cannot be applied: %s, synced %t, again after %s", end, s.synced, s.again)
	}

	// With another URL, nothing is applied before the foreign objects are gone.
	k.refuses = nil
	foreign := commit(map[string]string{"kubeop.yaml": "layout: v1\n", "projects/new/project.yaml": strings.ReplaceAll(acmeFiles(nil)["projects/shop/project.yaml"], "shop", "new")})
	elsewhere := func(s *scope) {
		s.repository.Status.AppliedSource = "https://git.example.com/former#"
		s.progress = nil
		if err := client.IgnoreAlreadyExists(k.api.Create(t.Context(), s.repository)); err != nil {
			t.Fatal(err)
		}
	}
	label(t, k)
	s, end = sync(foreign, elsewhere)
	if !s.progress.foreign || len(s.verdict.Held) == 0 || end != "done" {
		t.Errorf("another repository: %s, foreign %t, held %v", end, s.progress.foreign, s.verdict.Held)
	}
	k.wantApplied()
}

// label lets the objects in the cluster come from acme's repository: the fake API server deduces no labels from an apply of metadata alone.
func label(t *testing.T, k *cluster) {
	t.Helper()
	for path, o := range map[string]client.Object{"acme/shop": project("kubeop-acme", "shop"), "acme/shop/web": app("kubeop-acme-shop", "web")} {
		if err := k.api.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil || o.GetLabels()[v1alpha1.RepositoryLabel] != "acme" {
			t.Fatalf("%s has the labels %v, %v", path, o.GetLabels(), err)
		}
	}
}

// TestATenantWakesItsRepositoryWhenItsTermsChange: its limits, its policies, its budget, its freeze windows, or whether it is frozen.
func TestATenantWakesItsRepositoryWhenItsTermsChange(t *testing.T) {
	five := int32(5)
	before, limited, frozen, labelled, under, held, budgeted, given := acme(), acme(), acme(), acme(), acme(), acme(), acme(), acme()
	held.Spec.Frozen, budgeted.Spec.Budget, given.Spec.Quota = true, cpus("1"), cpus("1")
	under.Spec.Policies = []string{"large"}
	limited.Spec.Limits.Apps = &five
	frozen.Spec.Freeze = []v1alpha1.FreezeWindow{{Name: "weekend"}}
	labelled.Labels = map[string]string{"a": "b"}
	for name, c := range map[string]struct {
		is   *v1alpha1.Tenant
		want bool
	}{"limits": {limited, true}, "freeze": {frozen, true}, "policies": {under, true}, "frozen": {held, true}, "budget": {budgeted, true}, "quota": {given, true}, "labels": {labelled, false}} {
		if got := termsChanged.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: c.is}); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
	if termsChanged.Create(event.CreateEvent{Object: before}) || termsChanged.Delete(event.DeleteEvent{Object: before}) {
		t.Error("other events are passed")
	}
	if got := own(t.Context(), before); len(got) != 1 || got[0].NamespacedName != (types.NamespacedName{Name: "acme"}) {
		t.Errorf("woken are %v", got)
	}
}

// TestOnlyChangesByOthersWakeARepository: not the objects that it just applied.
func TestOnlyChangesByOthersWakeARepository(t *testing.T) {
	applied := fromAcme(app("kubeop-acme-shop", "web"))
	restored := applied.DeepCopy()
	restored.ManagedFields = nil
	if notOurs.Create(event.CreateEvent{Object: applied}) || !notOurs.Create(event.CreateEvent{Object: restored}) {
		t.Error("only an object that kubeop did not apply is new")
	}
	for name, c := range map[string]struct {
		change func(*v1alpha1.App)
		want   bool
	}{
		"the status":     {func(a *v1alpha1.App) { a.Status.ObservedGeneration = 7 }, false},
		"the spec":       {func(a *v1alpha1.App) { a.Generation = 7 }, true},
		"a label":        {func(a *v1alpha1.App) { a.Labels = map[string]string{"a": "b"} }, true},
		"an annotation":  {func(a *v1alpha1.App) { a.Annotations = map[string]string{"a": "b"} }, true},
		"nothing at all": {func(*v1alpha1.App) {}, false},
	} {
		is := applied.DeepCopy()
		c.change(is)
		if got := notOurs.Update(event.UpdateEvent{ObjectOld: applied, ObjectNew: is}); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}

// indexes records the indexes of a cache, by the type of the objects.
type indexes struct {
	of map[string]client.IndexerFunc
	// fails is the type that cannot be indexed.
	fails string
}

func (i indexes) IndexField(_ context.Context, o client.Object, _ string, of client.IndexerFunc) error {
	name := fmt.Sprintf("%T", o)
	if name == i.fails {
		return errAway
	}
	i.of[name] = of
	return nil
}

func TestObjectsAreFoundByTheRepositoryThatDeclaresThem(t *testing.T) {
	all := map[string]client.IndexerFunc{}
	if err := index(t.Context(), indexes{of: all}); err != nil || len(all) != 8 {
		t.Fatalf("indexed are %d kinds, %v", len(all), err)
	}
	of := all["*v1alpha1.App"]
	if got := of(fromAcme(app("kubeop-acme-shop", "web"))); !slices.Equal(got, []string{"acme"}) {
		t.Errorf("an app of acme is found by %v", got)
	}
	if got := of(app("kubeop-acme-shop", "web")); len(got) != 0 {
		t.Errorf("an app of no repository is found by %v", got)
	}
	if got := all["*v1alpha1.Repository"](withSecrets()); !slices.Equal(got, []string{"git", "hook", "keys"}) {
		t.Errorf("a repository is found by the Secrets %v", got)
	}
	for _, kind := range []string{"*v1alpha1.Repository", "*v1alpha1.App"} {
		if err := index(t.Context(), indexes{all, kind}); !errors.Is(err, errAway) {
			t.Errorf("%s cannot be indexed: %v", kind, err)
		}
	}
}
