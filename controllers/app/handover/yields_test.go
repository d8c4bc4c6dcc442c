package handover

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/inventory"
	"github.com/kubeop/kubeop/delivery/journal"
)

var left = inventory.ObjectID{Namespace: shop, Name: "left", Kind: "ConfigMap"}

// TestAnAppYieldsAnObjectThatItsCurrentSourceDoesNotDeclare: app web asks whether app api has given up the ConfigMap "left".
func TestAnAppYieldsAnObjectThatItsCurrentSourceDoesNotDeclare(t *testing.T) {
	declared := func(change func(*v1alpha1.App), names ...string) func(*project) {
		return func(p *project) {
			app := p.api.DeepCopy()
			change(app)
			p.declarations.note(declaring(app, "one", names...))
		}
	}
	same := func(*v1alpha1.App) {}
	cases := map[string]struct {
		api      func(*v1alpha1.App)
		declared func(*project)
		want     bool
	}{
		"it reconciled, and no longer declares it": {same, declared(same, "own"), true},
		"it reconciled, and declares nothing":      {same, declared(same), true},
		"it reconciled, and still declares it":     {same, declared(same, "own", "left"), false},
		"it has not reconciled since the start":    {same, func(*project) {}, false},
		"it reconciled an older spec":              {same, declared(func(a *v1alpha1.App) { a.Generation = 0 }, "own"), false},
		"it reconciled an older commit":            {same, declared(func(a *v1alpha1.App) { annotate(a, v1alpha1.RevisionAnnotation, "before") }, "own"), false},
		"it reconciled another folder":             {same, declared(func(a *v1alpha1.App) { annotate(a, v1alpha1.TreeAnnotation, "before") }, "own"), false},
		"a former app of its name reconciled":      {same, declared(func(a *v1alpha1.App) { a.UID = "former" }, "own"), false},
		"it became a Helm app": {func(a *v1alpha1.App) { a.Spec.Helm = &v1alpha1.HelmSource{} },
			declared(func(a *v1alpha1.App) { a.Spec.Helm = nil }, "own"), false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := newProject(t, c.api)
			c.declared(p)
			// The takeover of an object without an owner is tested elsewhere.
			p.web.App.Spec.TakeOwnership = true
			if got := p.Yields(t.Context(), p.web)(left, "api"); got != c.want {
				t.Errorf("the app yields the object: %t, want %t", got, c.want)
			}
		})
	}
}

func annotate(app *v1alpha1.App, name, value string) {
	app.SetAnnotations(map[string]string{name: value})
}

func TestNothingIsYieldedWhileTheOwnerCannotBeRead(t *testing.T) {
	p := newProject(t, has())
	p.web.App.Spec.TakeOwnership = true
	p.Client = interceptor.NewClient(p.writer.(client.WithWatch), interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return errors.New("down")
		},
	})
	for range 2 {
		if p.Yields(t.Context(), p.web)(left, "api") {
			t.Error("the object is yielded")
		}
		p.declarations.note(declaring(p.api, "one"))
	}
}

func TestADeclarationOfAnotherNamespaceYieldsNothing(t *testing.T) {
	p := newProject(t, has())
	elsewhere := p.api.DeepCopy()
	elsewhere.Namespace = "kubeop-beta-shop"
	p.declarations.note(declaring(elsewhere, "one"))
	if p.Yields(t.Context(), p.web)(left, "api") {
		t.Error("the object is yielded")
	}
}

// imageApp mounts the volume data, and is called web.
func imageApp(movedFrom string) *v1alpha1.App {
	size := resource.MustParse("1Gi")
	app := &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "web", UID: "2", Generation: 1}}
	app.Spec.Image = &v1alpha1.ImageSource{Volumes: []v1alpha1.ImageVolume{{Name: "data", Size: &size}}}
	if movedFrom != "" {
		app.Spec.MovedFrom = &v1alpha1.MovedFrom{App: movedFrom}
	}
	return app
}

// TestObjectsOfADeletedAppAreTakenOverIfAsked: with takeOwnership, and without it only if they are claims of a renamed app.
func TestObjectsOfADeletedAppAreTakenOverIfAsked(t *testing.T) {
	claim := func(name string) inventory.ObjectID {
		return inventory.ObjectID{Namespace: shop, Name: name, Kind: "PersistentVolumeClaim"}
	}
	raw := &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "web"}}
	taking := raw.DeepCopy()
	taking.Spec.TakeOwnership = true
	sizeless := imageApp("")
	sizeless.Spec.Image.Volumes[0].Size, sizeless.Spec.Image.Volumes[0].ClaimName = nil, "web-data"
	similar := imageApp("")
	similar.Name = "old-web"
	cases := map[string]struct {
		app  *v1alpha1.App
		id   inventory.ObjectID
		gone string
		want bool
	}{
		"any object":                                    {raw, left, "old", false},
		"any object, with takeOwnership":                {taking, left, "old", true},
		"a claim that movedFrom names":                  {imageApp("old"), claim("old-data"), "old", true},
		"a claim, for an App without an image":          {raw, claim("web-data"), "old", false},
		"a claim after a revert of the rename":          {imageApp(""), claim("web-data"), "old", true},
		"a claim of another volume":                     {imageApp(""), claim("web-cache"), "old", false},
		"a claim of an app of which the name begins so": {similar, claim("old-web-data"), "old", false},
		"a claim that is mounted and not made":          {sizeless, claim("web-data"), "old", false},
		"another kind of the claim's name":              {imageApp(""), inventory.ObjectID{Namespace: shop, Name: "web-data", Kind: "ConfigMap"}, "old", false},
		"a kind of another group":                       {imageApp(""), inventory.ObjectID{Namespace: shop, Name: "web-data", Group: "x.example", Kind: "PersistentVolumeClaim"}, "old", false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := newProject(t, has())
			if got := p.Yields(t.Context(), p.subjects.New(c.app))(c.id, c.gone); got != c.want {
				t.Errorf("the app may take the object over: %t, want %t", got, c.want)
			}
		})
	}
}

func TestTheNextCheckIsAfterHalfOfTheTimeWaited(t *testing.T) {
	for name, c := range map[string]struct{ waited, left, want time.Duration }{
		"at first":                   {0, 0, time.Second},
		"after a while":              {40 * time.Second, 0, 20 * time.Second},
		"after long":                 {time.Hour, 0, 5 * time.Minute},
		"when the time is up before": {40 * time.Second, 3 * time.Second, 3 * time.Second},
		"when the time is up later":  {40 * time.Second, time.Minute, 20 * time.Second},
		"when the time has been up":  {40 * time.Second, -time.Second, 20 * time.Second},
	} {
		if got := nextLook(c.waited, c.left); got != c.want {
			t.Errorf("%s: the next check is after %s, want %s", name, got, c.want)
		}
	}
}

func TestObjectsKeptForSiblingsAreReportedAfterAWhile(t *testing.T) {
	p := newProject(t, has())
	p.wantedBy()
	p.after(step.Quiet - time.Second)
	if got := p.Cede(p.web, []string{"a", "b"}, p.search); got.Count != 2 || got.Overdue != nil {
		t.Errorf("at first the notes are %+v", got)
	}
	p.after(time.Second)
	if got := p.Cede(p.web, []string{"a", "b"}, p.search); got.Count != 2 || len(got.Overdue) != 2 {
		t.Errorf("after a while the notes are %+v", got)
	}
	if got := p.Cede(p.web, nil, p.search); got.Count != 0 || got.Overdue != nil {
		t.Errorf("without objects the notes are %+v", got)
	}
}

func TestARemovalWaitsForSiblingsUntilTheTimeLimit(t *testing.T) {
	p := newProject(t, has("own"))
	leaving := metav1.NewTime(p.clock.Now())
	p.web.App.DeletionTimestamp = &leaving
	p.web.App.Spec.Timeout.Duration = 2 * siblingTime
	p.wantedBy()
	p.after(2 * siblingTime)
	if got := p.wantedBy(); got != silentAPI {
		t.Errorf("within the time limit the object is kept for %q, want %q", got, silentAPI)
	}
	p.after(time.Second)
	if got := p.wantedBy(); got != "" {
		t.Errorf("after the time limit the object is kept for %q, want none", got)
	}
	p.declarations.note(declaring(p.api, "one", "left"))
	if got := p.wantedBy(); got != "app api" {
		t.Errorf("when a sibling declares it, the object is kept for %q, want %q", got, "app api")
	}
}

func TestNoObjectIsKeptForSiblingsThatCannotTakeIt(t *testing.T) {
	now := metav1.NewTime(time.Unix(1_000_000, 0))
	for name, change := range map[string]func(*v1alpha1.App){
		"a Helm app":                   func(a *v1alpha1.App) { has("left")(a); a.Spec.Helm = &v1alpha1.HelmSource{} },
		"an app that is being deleted": func(a *v1alpha1.App) { has("left")(a); a.DeletionTimestamp, a.Finalizers = &now, []string{"a/b"} },
		"an app of another project":    func(a *v1alpha1.App) { has("left")(a); a.Namespace = "kubeop-acme-other" },
	} {
		t.Run(name, func(t *testing.T) {
			if got := newProject(t, change).wantedBy(); got != "" {
				t.Errorf("the object is kept for %q, want none", got)
			}
		})
	}
}

func TestSiblingsThatCannotBeReadAreAnError(t *testing.T) {
	for name, faults := range map[string]interceptor.Funcs{
		"they cannot be listed": {List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return errors.New("down")
		}},
		"one cannot be read": {Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return errors.New("down")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProject(t, has())
			faulty := interceptor.NewClient(p.writer.(client.WithWatch), faults)
			p.Client, p.Direct = faulty, faulty
			search := p.Search(p.web, "one")
			for range 2 { // The second call makes no request, and has the same result.
				if _, err := search.Wanted(t.Context(), left); err == nil || err.Error() != "looking for apps that take objects over: down" {
					t.Errorf("error %v", err)
				}
			}
		})
	}
	p := newProject(t, has())
	p.Inventory.Journal = journal.New(interceptor.NewClient(p.writer.(client.WithWatch), interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return errors.New("down")
		},
	}), "kubeop-system", time.Now)
	if _, err := p.Search(p.web, "one").Wanted(t.Context(), left); err == nil || !strings.HasSuffix(err.Error(), "down") {
		t.Errorf("the journal of a sibling cannot be read: error %v", err)
	}
}

func TestASearchCostsOneListForAllObjects(t *testing.T) {
	p, lists := newProject(t, has("left")), 0
	p.Direct = interceptor.NewClient(p.writer.(client.WithWatch), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			lists++
			return c.List(ctx, list, opts...)
		},
	})
	search := p.Search(p.web, "one")
	for range 3 {
		if _, err := search.Wanted(t.Context(), left); err != nil {
			t.Fatal(err)
		}
	}
	if lists != 1 {
		t.Errorf("the search made %d lists, want 1", lists)
	}
}

func TestACommitIsBeingSyncedUntilItsRepositoryReportsIt(t *testing.T) {
	cases := map[string]struct {
		label, attempted string
		after            time.Duration
		leaving          bool
		want             bool
	}{
		"its commit was declared":             {"acme", "main@sha1:2", 0, false, false},
		"the repository is at another commit": {"acme", "main@sha1:1", 0, false, true},
		"at the end of the time for it":       {"acme", "main@sha1:1", syncTime, false, true},
		"after the time for it":               {"acme", "main@sha1:1", syncTime + time.Second, false, false},
		"the app is being deleted":            {"acme", "main@sha1:1", 0, true, false},
		"the app was not declared in Git":     {"", "main@sha1:1", 0, false, false},
		"the repository is gone":              {"other", "main@sha1:1", 0, false, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := newProject(t, has())
			repository := &v1alpha1.Repository{ObjectMeta: metav1.ObjectMeta{Name: "acme"}}
			repository.Status.LastAttemptedRevision = c.attempted
			if err := p.writer.Create(t.Context(), repository); err != nil {
				t.Fatal(err)
			}
			app := p.web.App
			app.Labels, app.Annotations = map[string]string{v1alpha1.RepositoryLabel: c.label}, map[string]string{v1alpha1.RevisionAnnotation: "main@sha1:2"}
			p.Begin(p.web, "two")
			if c.leaving {
				app.DeletionTimestamp = &metav1.Time{Time: p.clock.Now()}
			}
			p.after(c.after)
			p.declarations.note(declaring(p.api, "one"))
			got := p.Syncing(t.Context(), p.web)
			if by := p.wantedBy(); by != got {
				t.Errorf("the object is kept for %q, want %q", by, got)
			}
			if (got != "") != c.want || (c.want && !strings.HasSuffix(got, "repository acme is being synced")) {
				t.Errorf("the repository that is being synced is %q", got)
			}
		})
	}
}

func TestTheNumberOfRememberedSiblingsIsLimited(t *testing.T) {
	w, now := &waiting{}, time.Unix(1000, 0)
	name := func(i int) string { return strings.Repeat("a", i+1) }
	for i := range maxUndeclared {
		w.undeclaredFor(name(i), input{uid: "1"}, now)
	}
	if waited := w.undeclaredFor(name(0), input{uid: "1"}, now.Add(time.Minute)); waited != time.Minute || len(w.undeclared) != maxUndeclared {
		t.Errorf("%d siblings are remembered, the first for %s", len(w.undeclared), waited)
	}
	w.undeclaredFor("another", input{uid: "1"}, now)
	if len(w.undeclared) != 1 {
		t.Errorf("%d siblings are remembered, want 1", len(w.undeclared))
	}
}
