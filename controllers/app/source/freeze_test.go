package source

import (
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/app/subject"
	"github.com/kubeop/kubeop/delivery/fetch/pool"
	"github.com/kubeop/kubeop/delivery/freeze"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

// night is open from 02:00 to 08:00 UTC; the clocks of these tests begin at 01:46.
var night = []v1alpha1.FreezeWindow{{Name: "night", Start: "0 2 * * *", Duration: metav1.Duration{Duration: 6 * time.Hour}}}

const untilMorning = "until 2001-09-09 08:00 UTC by freeze night"

func noteOf(found *Found, app *v1alpha1.App) string {
	for _, n := range found.Notes(app) {
		if n.Condition == v1alpha1.FrozenCondition && n.Status == metav1.ConditionTrue && n.Reason == v1alpha1.FrozenReason {
			return n.Message
		}
	}
	return ""
}

// restart forgets all answers of sources.
func (w *world) restart() {
	w.Answers = NewAnswers(pool.New(pool.Options{Reach: pool.ReachOf}, w.clock), w.clock)
	w.Start()
}

// build fetches, and builds the files of a commit.
func (w *world) build(app *v1alpha1.App) (*Found, string) {
	w.t.Helper()
	found, end := w.fetch(app)
	if found.Files.FromCommit() {
		_ = w.read(found.Files.FS, "a.yaml")
		w.Built(w.subjects.New(app), found, "")
		found.Record(app)
	}
	return found, end
}

// wantPinned fetches twice, the second time after a restart, and checks that the App stays at a revision and says so.
func (w *world) wantPinned(app *v1alpha1.App, revision, says string) {
	w.t.Helper()
	for _, what := range []string{"in the window", "after a restart"} {
		found, end := w.build(app)
		if end != "done" || found.Revision != revision || found.Kept {
			w.t.Errorf("%s: %s, kept %t; the revision is %s, want %s", what, end, found.Kept, found.Revision, revision)
		}
		if note := noteOf(found, app); note != "its source stays at "+says+" "+untilMorning {
			w.t.Errorf("%s: the note is %q", what, note)
		}
		w.restart()
		w.clock.Step(20 * time.Minute)
	}
}

// TestOnlyASourceThatCanMoveIsFrozen: the others have another revision only after a change of the app, which a freeze holds back elsewhere.
func TestOnlyASourceThatCanMoveIsFrozen(t *testing.T) {
	branch, commit := &sourcev1.GitRepositoryRef{Branch: "main"}, &sourcev1.GitRepositoryRef{Branch: "main", Commit: "1"}
	helm := func(h v1alpha1.HelmSource) v1alpha1.AppSpec { return v1alpha1.AppSpec{Helm: &h} }
	gitOf := func(g v1alpha1.GitSource) v1alpha1.AppSpec { return v1alpha1.AppSpec{Git: &g} }
	for name, tc := range map[string]struct {
		spec  v1alpha1.AppSpec
		moves bool
	}{
		"an image":                  {v1alpha1.AppSpec{Image: &v1alpha1.ImageSource{Reference: "web:1"}}, false},
		"an image by a policy":      {v1alpha1.AppSpec{Image: &v1alpha1.ImageSource{Policy: &v1alpha1.ImagePolicy{}}}, true},
		"manifests":                 {v1alpha1.AppSpec{Raw: &v1alpha1.RawSource{}}, false},
		"the default branch":        {gitOf(v1alpha1.GitSource{}), true},
		"a branch":                  {gitOf(v1alpha1.GitSource{Ref: branch}), true},
		"a commit":                  {gitOf(v1alpha1.GitSource{Ref: commit}), false},
		"a source of Flux":          {gitOf(v1alpha1.GitSource{SourceRef: &v1alpha1.FluxSourceReference{}}), true},
		"a tag of an artifact":      {gitOf(v1alpha1.GitSource{OCI: &v1alpha1.OCISource{Tag: "1"}}), true},
		"a digest of an artifact":   {gitOf(v1alpha1.GitSource{OCI: &v1alpha1.OCISource{Tag: "1", Digest: "sha256:1"}}), false},
		"a chart in Git":            {helm(v1alpha1.HelmSource{Git: &v1alpha1.ChartGitSource{}}), true},
		"a chart of a branch":       {helm(v1alpha1.HelmSource{Git: &v1alpha1.ChartGitSource{Ref: branch}}), true},
		"a chart of a commit":       {helm(v1alpha1.HelmSource{Git: &v1alpha1.ChartGitSource{Ref: commit}}), false},
		"a chart in the folder":     {helm(v1alpha1.HelmSource{Path: "chart"}), false},
		"a chart's newest version":  {helm(v1alpha1.HelmSource{Repository: "https://a"}), true},
		"a chart's range":           {helm(v1alpha1.HelmSource{Repository: "https://a", Version: "1.x"}), true},
		"a chart's version":         {helm(v1alpha1.HelmSource{Repository: "https://a", Version: "1.2.3"}), false},
		"a chart's version with v":  {helm(v1alpha1.HelmSource{Repository: "https://a", Version: "v1.2.3"}), false},
		"a chart's part of version": {helm(v1alpha1.HelmSource{Repository: "https://a", Version: "1.2"}), true},
		"a chart's digest":          {helm(v1alpha1.HelmSource{Repository: "https://a", Version: "1.x", Digest: "sha256:1"}), false},
	} {
		if got := moves(&tc.spec); got != tc.moves {
			t.Errorf("%s: got %t, want %t", name, got, tc.moves)
		}
	}
}

// TestAFreezeKeepsAGitAppAtItsCommit, whatever is pushed, until the window ends.
func TestAFreezeKeepsAGitAppAtItsCommit(t *testing.T) {
	repo, server, first := pushed(t, map[string]string{"a.yaml": "1", "chart/Chart.yaml": chartYAML})
	for name, spec := range map[string]v1alpha1.AppSpec{
		"git":   {Type: v1alpha1.AppGit, Git: &v1alpha1.GitSource{URL: server.RepoURL()}},
		"chart": {Type: v1alpha1.AppHelm, Helm: &v1alpha1.HelmSource{Git: &v1alpha1.ChartGitSource{URL: server.RepoURL(), Path: "chart"}}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.freeze = night
			app := appOf("web", spec)
			found, end := w.build(app)
			if first = found.Files.Revision; end != "done" || noteOf(found, app) != "" {
				t.Fatalf("before the window: %s, %s", end, noteOf(found, app))
			}
			before := repo.Git("show", "HEAD:a.yaml")
			repo.Write("a.yaml", name+" 2")
			repo.Write("chart/values.yaml", "a: "+name)
			second := "main@sha1:" + repo.Push("second of "+name)
			w.clock.Step(20 * time.Minute)
			short := first[:len("main@sha1:")+8]
			w.wantPinned(app, first, short)
			found, _ = w.build(app)
			if name == "git" {
				if text := w.read(found.Files.FS, "a.yaml"); text != before {
					t.Errorf("the file is %q, want %q", text, before)
				}
			}
			anew := app.DeepCopy() // The accepted commit changed the spec.
			anew.Name, anew.UID, anew.Generation = "anew", "anew", 2
			if found, end := w.build(anew); end != "done" || found.Revision != second || noteOf(found, anew) != "" {
				t.Errorf("with a new spec: %s, %s", end, found.Revision)
			}
			w.clock.Step(6 * time.Hour)
			if found, end := w.build(app); end != "done" || found.Revision != second || noteOf(found, app) != "" {
				t.Errorf("after the window: %s, %s", end, found.Revision)
			}
		})
	}
}

func TestAFreezeKeepsAChartAtItsVersion(t *testing.T) {
	helm := sources.ServeHelm(t)
	helm.Publish(t, "1.0.0")
	w := newWorld(t)
	w.freeze = night
	app := appOf("web", v1alpha1.AppSpec{Type: v1alpha1.AppHelm, Helm: &v1alpha1.HelmSource{Repository: helm.URL + "/stable", Chart: "web", Version: "1.x"}})
	exact := appOf("exact", v1alpha1.AppSpec{Type: v1alpha1.AppHelm, Helm: &v1alpha1.HelmSource{Repository: helm.URL + "/stable", Chart: "web", Version: "1.0.0"}})
	for _, app := range []*v1alpha1.App{app, exact} {
		if found, end := w.build(app); end != "done" || found.Revision != "1.0.0" {
			t.Fatalf("before the window: %s, %s", end, found.Revision)
		}
	}
	helm.Publish(t, "1.0.0", "1.1.0")
	w.clock.Step(20 * time.Minute)
	w.wantPinned(app, "1.0.0", "1.0.0")
	if found, end := w.build(exact); end != "done" || noteOf(found, exact) != "" {
		t.Errorf("an exact version: %s, %s", end, noteOf(found, exact))
	}
	w.clock.Step(6 * time.Hour)
	if found, end := w.build(app); end != "done" || found.Revision != "1.1.0" {
		t.Errorf("after the window: %s, %s", end, found.Revision)
	}
}

func TestAFreezeKeepsAnArtifactAtItsDigest(t *testing.T) {
	server := sources.ServeOCI(t, httptest.NewServer)
	push := func(text string) string {
		return "latest@" + server.PushArtifact(t, "latest", "application/vnd.cncf.flux.content.v1.tar+gzip", sources.TarGz(t, sources.Entry{Name: "a.yaml", Text: text}))
	}
	first := push("1")
	w := newWorld(t)
	w.freeze = night
	app := appOf("web", v1alpha1.AppSpec{Type: v1alpha1.AppGit, Git: &v1alpha1.GitSource{OCI: &v1alpha1.OCISource{URL: server.Repository() + "/web", Tag: "latest", Insecure: true}}})
	if found, end := w.build(app); end != "done" || found.Revision != first {
		t.Fatalf("before the window: %s, %s", end, found.Revision)
	}
	second := push("2")
	w.clock.Step(20 * time.Minute)
	w.wantPinned(app, first, first[:len("latest@sha256:")+8])
	if found, _ := w.build(app); w.read(found.Files.FS, "a.yaml") != "1" || found.Files.Revision != first {
		t.Errorf("the files are those of the second artifact, or of the revision %s", found.Files.Revision)
	}
	w.clock.Step(6 * time.Hour)
	if found, end := w.build(app); end != "done" || found.Revision != second || w.read(found.Files.FS, "a.yaml") != "2" {
		t.Errorf("after the window: %s, %s", end, found.Revision)
	}
}

// TestAFreezeLeavesAnAppAsItIsWhoseSourceHasOnlyItsNewestRevision: a source of Flux. Only the health is checked.
func TestAFreezeLeavesAnAppAsItIsWhoseSourceHasOnlyItsNewestRevision(t *testing.T) {
	for revision, kept := range map[string]bool{"main@sha1:1": false, "main@sha1:2": true} {
		app := appOf("web", v1alpha1.AppSpec{Type: v1alpha1.AppGit, Git: &v1alpha1.GitSource{SourceRef: &v1alpha1.FluxSourceReference{Kind: "GitRepository", Name: "web"}}})
		app.Status.LastAttemptedRevision, app.Status.ObservedGeneration = "main@sha1:1", 1
		p := &pass{Subject: newWorld(t).subjects.New(app), found: &Found{Revision: revision, Files: Files{FS: fstest.MapFS{}, Revision: revision}}, pin: "main@sha1:1"}
		p.keep()
		if p.found.Kept != kept || (p.found.Revision == "") != kept || (p.found.Files.FS == nil) != kept {
			t.Errorf("%s: %+v", revision, p.found)
		}
	}
}

// TestAFreezeKeepsTheImageOfAPolicy, and does not contact the registry.
func TestAFreezeKeepsTheImageOfAPolicy(t *testing.T) {
	b := newFixture(t)
	b.freeze = night
	b.chooses("1.0.0", 2, "Normal web: 1.0.0")
	b.app.Status.LastAttemptedRevision = "main@sha1:1"
	b.server(func() { b.tags = `"1.0.0", "1.1.0"` })
	b.pass(20 * time.Minute)
	b.restart()
	p := b.chooses("1.0.0", 0)
	if note := noteOf(p.found, b.app); !strings.HasPrefix(note, "its source stays at 1.0.0 "+untilMorning) || b.clock.Now().Add(p.Again()).UTC().Format("15:04:05") != "08:00:00" {
		t.Errorf("the note is %q, and it looks again after %s", note, p.Again())
	}
	last := b.app.Status.Image
	b.app.Status.Image = nil
	if p, _, err := b.look(); err != nil || p.pin == "" || p.found.Image == nil || p.found.Image.Tag != "1.1.0" {
		t.Errorf("an app without a choice: %+v, %v", p.found.Image, err)
	}
	b.app.Status.Image = last
	b.pass(6 * time.Hour)
	if p, _, err := b.look(); err != nil || p.found.Image.Tag != "1.1.0" || noteOf(p.found, b.app) != "" {
		t.Errorf("after the window: %+v, %v", p.found.Image, err)
	}
}

// running is a clock on which a second passes after each reading.
type running struct{ *clocktesting.FakePassiveClock }

func (r running) Now() time.Time {
	now := r.FakePassiveClock.Now()
	r.SetTime(now.Add(time.Second))
	return now
}

// TestAFreezeThatEndsDuringThePassIsLookedAtAgain: what is left of it is measured from the time at which it was in force, and so is never negative.
func TestAFreezeThatEndsDuringThePassIsLookedAtAgain(t *testing.T) {
	app := appOf("web", v1alpha1.AppSpec{Type: v1alpha1.AppImage, Image: &v1alpha1.ImageSource{Policy: &v1alpha1.ImagePolicy{}}})
	app.Status.LastAttemptedRevision, app.Status.ObservedGeneration = "main@sha1:1", app.Generation
	subjects := &subject.Subjects{Clock: running{clocktesting.NewFakePassiveClock(time.Date(2001, 9, 9, 7, 59, 59, 5e8, time.UTC))}}
	p := &pass{Subject: subjects.New(app), found: &Found{}}
	p.Freeze = night
	p.LookAgain(time.Minute)
	if p.hold(); p.pin == "" || p.Again() != time.Second/2 {
		t.Errorf("it is kept at %q, and looked at again after %s, want 500ms", p.pin, p.Again())
	}
}

// TestAFreezeThatCannotBeEvaluatedKeepsTheRevision as it keeps commits.
func TestAFreezeThatCannotBeEvaluatedKeepsTheRevision(t *testing.T) {
	b := newFixture(t)
	b.chooses("1.0.0", 2, "Normal web: 1.0.0")
	b.app.Status.LastAttemptedRevision = "main@sha1:1"
	b.freeze = []v1alpha1.FreezeWindow{{Name: "night", Start: "now", Duration: metav1.Duration{Duration: time.Hour}}}
	b.server(func() { b.tags = `"1.0.0", "1.1.0"` })
	b.pass(20 * time.Minute)
	if note := noteOf(b.chooses("1.0.0", 0).found, b.app); note != `its source stays at 1.0.0 because the freeze window night of the tenant cannot be evaluated: start "now" is not five fields of crontab, such as "0 18 * * FRI": expected exactly 5 fields, found 1: [now]: an administrator of the cluster may correct spec.freeze in tenant.yaml` {
		t.Errorf("the note is %q", note)
	}
}

// TestAFrozenTenantKeepsTheRevision, says so of an app whose source cannot move, too, and writes no image to Git.
func TestAFrozenTenantKeepsTheRevision(t *testing.T) {
	hold := freeze.ByAdministrators(&v1alpha1.Tenant{Spec: v1alpha1.TenantSpec{Frozen: true}})
	b := newFixture(t)
	b.chooses("1.0.0", 2, "Normal web: 1.0.0")
	b.app.Status.LastAttemptedRevision = "main@sha1:1"
	b.frozen = hold
	b.server(func() { b.tags = `"1.0.0", "1.1.0"` })
	b.pass(20 * time.Minute)
	b.restart()
	spec := *b.app.Spec.Image
	spec.Policy = spec.Policy.DeepCopy()
	a := b.writes(b.app.Spec.Image.Reference + ":0.9.0")
	p := b.chooses("1.0.0", 0)
	if note := noteOf(p.found, b.app); note != "its source stays at 1.0.0 "+hold.String() || len(a.references) != 0 || p.Again() != 0 {
		t.Errorf("the note is %q, asked for %v, again after %s", note, a.references, p.Again())
	}
	b.frozen, b.Images, b.app.Spec.Image = nil, nil, &spec
	b.pass(20 * time.Minute)
	if p, _, err := b.look(); err != nil || p.found.Image.Tag != "1.1.0" || noteOf(p.found, b.app) != "" {
		t.Errorf("afterwards: %+v, %v", p.found.Image, err)
	}

	b.frozen, b.app.Spec.Image.Policy = hold, nil
	if note := noteOf(b.begin().found, b.app); note != "nobody else changes anything of it "+hold.String() {
		t.Errorf("without a policy, the note is %q", note)
	}

	b = newFixture(t)
	b.frozen = hold
	a = b.writes(b.app.Spec.Image.Reference + ":0.9.0")
	b.asksFirst()
	if p := b.chooses("1.0.0", 0, "Normal web: 1.0.0"); p.pin != "" || len(a.references) != 0 {
		t.Errorf("an app that was not delivered: pinned to %q, asked for %v", p.pin, a.references)
	}
}
