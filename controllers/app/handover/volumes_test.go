package handover

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
)

func TestARenamedAppHasTakenOverEachClaimThatItApplied(t *testing.T) {
	claim := func(digest string) []v1alpha1.InventoryEntry {
		return []v1alpha1.InventoryEntry{{ID: shop + "_old-data__PersistentVolumeClaim", Version: "v1", Digest: digest}}
	}
	two := imageApp("old")
	second := two.Spec.Image.Volumes[0]
	second.Name = "cache"
	two.Spec.Image.Volumes = append(two.Spec.Image.Volumes, second)
	shared := imageApp("old")
	shared.Spec.Image.Volumes[0].Size, shared.Spec.Image.Volumes[0].ClaimName = nil, "shared"
	for name, c := range map[string]struct {
		app      *v1alpha1.App
		recorded []v1alpha1.InventoryEntry
		want     bool
	}{
		"nothing is recorded":     {imageApp("old"), nil, false},
		"its claim was begun":     {imageApp("old"), claim(""), false},
		"its claim was applied":   {imageApp("old"), claim("1234"), true},
		"one of two was applied":  {two, claim("1234"), false},
		"an existing claim":       {shared, nil, true},
		"a claim of its own name": {imageApp(""), claim("1234"), false},
	} {
		if got := hasTakenOver(c.app, c.recorded); got != c.want {
			t.Errorf("%s: taken over is %t, want %t", name, got, c.want)
		}
	}
}

func made(at time.Time) metav1.Object {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(at)}}
}

func TestClaimsAreComparedByCreationTime(t *testing.T) {
	early, late := made(time.Unix(1000, 0)), made(time.Unix(2000, 0))
	if !newer(late, early) || newer(early, late) || newer(early, early) || newer(late, nil) {
		t.Error("claims are not compared by their creation time")
	}
}

func TestOnlyANewClaimCanComeFromARename(t *testing.T) {
	p := newProject(t, has())
	s := p.subjects.New(imageApp(""))
	now := p.clock.Now()
	if !mayHaveMoved(s, nil, "web-data") || !mayHaveMoved(s, made(now.Add(-justMade+time.Second)), "web-data") || mayHaveMoved(s, made(now.Add(-justMade)), "web-data") {
		t.Error("the age of the claim is ignored")
	}
}

func TestARenamedAppWaitsUntilTheFormerAppIsGone(t *testing.T) {
	now := metav1.NewTime(time.Unix(1_000_000, 0))
	cases := map[string]struct {
		former  func(*v1alpha1.App)
		after   time.Duration
		waits   bool
		message string
		syncs   bool
	}{
		"it is being deleted": {func(a *v1alpha1.App) { a.DeletionTimestamp, a.Finalizers = &now, []string{"a/b"} }, time.Hour, true,
			"waits until app api is gone, because this app takes over its claims", false},
		"the commit may remove it": {func(*v1alpha1.App) {}, declaredLag - time.Second, true, "waits until the commit is declared, which may remove app api", false},
		"its repository is synced": {func(*v1alpha1.App) {}, declaredLag, true, "waits until the commit is declared, which may remove app api", true},
		"it is declared beside it": {func(*v1alpha1.App) {}, declaredLag, false, "spec.movedFrom: app api is still declared, and has its claims: remove its folder, or movedFrom here", false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := newProject(t, c.former)
			s := p.subjects.New(imageApp("api"))
			if c.syncs {
				s.App.Labels, s.App.Annotations = map[string]string{v1alpha1.RepositoryLabel: "acme"}, map[string]string{v1alpha1.RevisionAnnotation: "main@sha1:2"}
				if err := p.writer.Create(t.Context(), &v1alpha1.Repository{ObjectMeta: metav1.ObjectMeta{Name: "acme"}}); err != nil {
					t.Fatal(err)
				}
			}
			p.Begin(s, "one")
			p.after(c.after)
			_, err := (&Volumes{Client: p.Client, Transfers: p.Transfers}).movedFrom(t.Context(), s)
			if err == nil || err.Error() != c.message || step.Waits(err) != c.waits {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestAnAppIsGoneWhenItIsDeletedOrAbsent(t *testing.T) {
	now := metav1.NewTime(time.Unix(1_000_000, 0))
	leaving := newProject(t, func(a *v1alpha1.App) { a.DeletionTimestamp, a.Finalizers = &now, []string{"a/b"} })
	there := newProject(t, has())
	for name, c := range map[string]struct {
		p    *project
		app  string
		want bool
	}{
		"it is there":         {there, "api", false},
		"there is none":       {there, "none", true},
		"it is being deleted": {leaving, "api", true},
	} {
		got, err := (&Volumes{Client: c.p.Client}).appIsGone(t.Context(), shop, c.app)
		if err != nil || got != c.want {
			t.Errorf("%s: gone is %t, error %v", name, got, err)
		}
	}
	faulty := interceptor.NewClient(there.writer.(client.WithWatch), interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return errors.New("down")
		},
	})
	if gone, err := (&Volumes{Client: faulty}).appIsGone(t.Context(), shop, "api"); gone || err == nil || !strings.HasSuffix(err.Error(), "down") {
		t.Errorf("an app that cannot be read: gone is %t, error %v", gone, err)
	}
}

// TestAClaimOfADeletedAppIsLeftBehind tests claims whose name ends with the name of the volume.
func TestAClaimOfADeletedAppIsLeftBehind(t *testing.T) {
	p := newProject(t, has())
	s := p.subjects.New(imageApp(""))
	volume := s.App.Spec.Image.Volumes[0]
	for name, c := range map[string]struct {
		claim, owner string
		want         bool
	}{
		"of an app that is gone":          {"old-data", "old", true},
		"of an app that is there":         {"api-data", "api", false},
		"of another volume":               {"old-cache", "old", false},
		"without an app":                  {"old-data", "", false},
		"of this app under a former name": {"old-data", "web", true},
		"that this app mounts":            {"web-data", "web", false},
	} {
		claim := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: c.claim, Labels: map[string]string{v1alpha1.AppLabel: c.owner}}}
		got, err := (&Volumes{Client: p.Client}).isLeft(t.Context(), s, claim, volume)
		if err != nil || got != c.want {
			t.Errorf("a claim %s: left behind is %t, error %v", name, got, err)
		}
	}
}
