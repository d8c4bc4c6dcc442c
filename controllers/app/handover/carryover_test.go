package handover

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/internal/testenv/steptest"
	"github.com/kubeop/kubeop/internal/testenv/watchtest"
)

// claims is a cluster with claims, at the time 1,000,000.
type claims struct {
	*Volumes
	*project
	// fails is the type of objects that cannot be read, and reads how many were.
	fails string
	reads int
	// empty are the claims that started empty at the last look.
	empty []string
}

func newClaims(t *testing.T, objects ...client.Object) *claims {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	c := &claims{project: newProject(t, has())}
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithRESTMapper(watchtest.Mapper(scheme, "")).Build()
	watch := watchtest.New(t, api, claimKind)
	faulty := interceptor.NewClient(api, interceptor.Funcs{
		Get: func(ctx context.Context, api client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if c.reads++; c.fails != "" && strings.HasSuffix(fmt.Sprintf("%T", o), c.fails) {
				return errors.New("away")
			}
			return api.Get(ctx, key, o, opts...)
		},
		List: func(ctx context.Context, api client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if c.fails != "" && strings.HasSuffix(fmt.Sprintf("%T", list), c.fails) {
				return errors.New("away")
			}
			return api.List(ctx, list, opts...)
		},
	})
	c.Volumes = &Volumes{Client: faulty, Watch: watch, Transfers: c.project.Transfers}
	return c
}

// carry takes over the claims of an App. It returns which volumes start empty, and how the step ends.
func (c *claims) carry(app *v1alpha1.App) (empty, end string, again time.Duration) {
	c.t.Helper()
	s := c.subjects.New(app)
	s.Client, s.Owner.Tenant = c.Client.(client.Client), "acme"
	found, err := c.CarryOver(c.t.Context(), s, app.Status.Inventory.Entries)
	c.empty = found.Claims
	return found.Why, steptest.Outcome(c.t, err), s.Again()
}

// claim is a claim of an App, created that long ago.
func claim(namespace, name, app string, age time.Duration) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, Labels: map[string]string{v1alpha1.TenantLabel: "acme", v1alpha1.AppLabel: app}, CreationTimestamp: metav1.NewTime(time.Unix(1_000_000, 0).Add(-age)),
	}}
}

func there(namespace, name string) *v1alpha1.App {
	return &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

// TestAVolumeThatStartsEmptyIsReported: a deleted App left a claim with older data, and nobody wrote movedFrom.
func TestAVolumeThatStartsEmptyIsReported(t *testing.T) {
	const (
		blog      = "kubeop-acme-blog"
		renamed   = "volume data starts empty, in claim web-data; claim old-data of app old, which is gone, holds older data: to go on with that write below spec: movedFrom: {app: old}"
		elsewhere = "claim web-data starts empty here; the one of this name in namespace kubeop-acme-blog, of an app web that is gone there, holds older data. " +
			"Data does not move between projects: bring the app back there in Git, or ask an administrator of the cluster to hand its volume over as docs/data.md says"
	)
	inBlog := &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-acme", Name: "blog"}}
	inShop := &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-acme", Name: "shop"}}
	for name, c := range map[string]struct {
		objects []client.Object
		change  func(*v1alpha1.App)
		want    string
	}{
		"no claim at all":                       {nil, nil, ""},
		"a deleted App left one":                {[]client.Object{claim(shop, "old-data", "old", time.Hour)}, nil, renamed},
		"its App is there":                      {[]client.Object{claim(shop, "old-data", "old", time.Hour), there(shop, "old")}, nil, ""},
		"beside a new claim":                    {[]client.Object{claim(shop, "old-data", "old", time.Hour), claim(shop, "web-data", "web", time.Minute)}, nil, renamed},
		"beside an old claim":                   {[]client.Object{claim(shop, "old-data", "old", 3*time.Hour), claim(shop, "web-data", "web", 2*time.Hour)}, nil, ""},
		"the left one is newer":                 {[]client.Object{claim(shop, "old-data", "old", time.Second), claim(shop, "web-data", "web", time.Minute)}, nil, ""},
		"a volume without a claim of its own":   {[]client.Object{claim(shop, "old-data", "old", time.Hour), claim(shop, "shared", "other", time.Minute)}, func(a *v1alpha1.App) { a.Spec.Image.Volumes[0].Size, a.Spec.Image.Volumes[0].ClaimName = nil, "shared" }, ""},
		"it left another project":               {[]client.Object{inBlog, inShop, claim(blog, "web-data", "web", time.Hour)}, nil, elsewhere},
		"it is still in the other project":      {[]client.Object{inBlog, claim(blog, "web-data", "web", time.Hour), there(blog, "web")}, nil, ""},
		"there is none in the other project":    {[]client.Object{inBlog}, nil, ""},
		"another App left it there":             {[]client.Object{inBlog, claim(blog, "web-data", "other", time.Hour)}, nil, ""},
		"its claim there is newer":              {[]client.Object{inBlog, claim(blog, "web-data", "web", time.Second), claim(shop, "web-data", "web", time.Minute)}, nil, ""},
		"its claim here is its own":             {[]client.Object{inShop, claim(shop, "web-data", "web", time.Minute)}, nil, ""},
		"an App without volumes":                {[]client.Object{claim(shop, "old-data", "old", time.Hour)}, func(a *v1alpha1.App) { a.Spec.Image.Volumes = nil }, ""},
		"an App of another type":                {[]client.Object{claim(shop, "old-data", "old", time.Hour)}, func(a *v1alpha1.App) { a.Spec.Image = nil }, ""},
		"in both this and the other project":    {[]client.Object{inBlog, claim(shop, "old-data", "old", time.Hour), claim(blog, "web-data", "web", time.Hour)}, nil, renamed + "\n" + elsewhere},
		"another tenant's project of that name": {[]client.Object{&v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-beta", Name: "blog"}}, claim("kubeop-beta-blog", "web-data", "web", time.Hour)}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			app := imageApp("")
			if c.change != nil {
				c.change(app)
			}
			got, end, _ := newClaims(t, c.objects...).carry(app)
			if got != c.want || end != "done" {
				t.Errorf("%s\ngot  %q\nwant %q", end, got, c.want)
			}
		})
	}
	for kind, want := range map[string]string{".App": "failed Failed: reading app old: away", ".ProjectList": "failed Failed: listing the projects of acme: away"} {
		c := newClaims(t, claim(shop, "old-data", "old", time.Hour))
		c.fails = kind
		if empty, end, _ := c.carry(imageApp("")); end != want || empty != "" {
			t.Errorf("%s cannot be read: %q, %q", kind, empty, end)
		}
	}
	c := newClaims(t, inBlog, claim(blog, "web-data", "web", time.Hour))
	c.fails = ".App"
	if empty, end, _ := c.carry(imageApp("")); end != "failed Failed: reading app web: away" || empty != "" {
		t.Errorf("the App in the other project cannot be read: %q, %q", empty, end)
	}
}

// TestAVolumeThatStartedEmptyIsReportedAsLongAsTheOlderClaimIsThere, however old its own claim is by then. Other volumes of the App are not compared with what is
// left behind later.
func TestAVolumeThatStartedEmptyIsReportedAsLongAsTheOlderClaimIsThere(t *testing.T) {
	app := imageApp("")
	second := app.Spec.Image.Volumes[0]
	second.Name = "cache"
	app.Spec.Image.Volumes = append(app.Spec.Image.Volumes, second)
	data, cache := claim(shop, "old-data", "old", 3*time.Hour), claim(shop, "old-cache", "old", 3*time.Hour)
	own := []client.Object{claim(shop, "web-data", "web", 2*time.Hour), claim(shop, "web-cache", "web", 2*time.Hour)}
	reported := metav1.Condition{Type: v1alpha1.StartedEmptyCondition, Status: metav1.ConditionTrue}
	for name, c := range map[string]struct {
		status v1alpha1.AppStatus
		left   []client.Object
		want   []string
	}{
		"nothing was reported":            {v1alpha1.AppStatus{}, []client.Object{data, cache}, nil},
		"one was reported":                {v1alpha1.AppStatus{StartedEmpty: []string{"web-data"}}, []client.Object{data, cache}, []string{"web-data"}},
		"the older claim is gone":         {v1alpha1.AppStatus{StartedEmpty: []string{"web-data"}}, []client.Object{cache}, nil},
		"only the condition said so":      {v1alpha1.AppStatus{ReconcileStatus: v1alpha1.ReconcileStatus{Conditions: []metav1.Condition{reported}}}, []client.Object{data}, []string{"web-data"}},
		"another one, beside a condition": {v1alpha1.AppStatus{StartedEmpty: []string{"web-old"}, ReconcileStatus: v1alpha1.ReconcileStatus{Conditions: []metav1.Condition{reported}}}, []client.Object{data}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			is := app.DeepCopy()
			is.Status = c.status
			k := newClaims(t, slices.Concat(own, c.left)...)
			why, end, _ := k.carry(is)
			if diff := cmp.Diff(c.want, k.empty); diff != "" || (why != "") != (len(c.want) > 0) || end != "done" {
				t.Errorf("%s: %q (-want +claims):\n%s", end, why, diff)
			}
		})
	}
	k := newClaims(t, claim(shop, "old-data", "old", time.Hour), claim(shop, "web-data", "web", time.Minute))
	if _, end, _ := k.carry(imageApp("")); !slices.Equal(k.empty, []string{"web-data"}) || end != "done" {
		t.Errorf("%s: of a new claim beside an older one, recorded are %v", end, k.empty)
	}
}

// TestAnAppThatWasNeverAppliedLooksAgain: the App that it was renamed from may still be in deletion.
func TestAnAppThatWasNeverAppliedLooksAgain(t *testing.T) {
	for applied, want := range map[string]time.Duration{"": firstLook, "main@sha1:1": 0} {
		app := imageApp("")
		app.Status.LastAppliedRevision = applied
		if _, _, again := newClaims(t).carry(app); again != want {
			t.Errorf("applied is %q, and it looks again after %s, want %s", applied, again, want)
		}
		app.Spec.Image.Volumes = nil
		if _, _, again := newClaims(t).carry(app); again != 0 {
			t.Errorf("without volumes it looks again after %s", again)
		}
	}
}

// notServed is the mapper of an API server that does not answer.
type notServed struct{ apimeta.RESTMapper }

func (notServed) RESTMapping(schema.GroupKind, ...string) (*apimeta.RESTMapping, error) {
	return nil, errors.New("away")
}

// TestNothingIsSaidOfClaimsThatCannotBeWatched: no volume is said to start empty, and none to be there.
func TestNothingIsSaidOfClaimsThatCannotBeWatched(t *testing.T) {
	mounting := imageApp("api")
	mounting.Spec.Image.Volumes[0].Size, mounting.Spec.Image.Volumes[0].ClaimName = nil, "shared"
	for name, app := range map[string]*v1alpha1.App{"with a volume": imageApp(""), "renamed": imageApp("api"), "that mounts a claim": mounting} {
		k := newClaims(t)
		k.Watch = watchtest.New(t, fake.NewClientBuilder().WithRESTMapper(notServed{}).Build())
		if empty, end, _ := k.carry(app); end != "failed Failed: watching PersistentVolumeClaim: away" || empty != "" {
			t.Errorf("an app %s: %q, %q", name, empty, end)
		}
	}
}

// TestAMountedClaimMustExist: it is read once for each generation of the App, unless the watch shows it.
func TestAMountedClaimMustExist(t *testing.T) {
	app := imageApp("")
	app.Spec.Image.Volumes[0].Size, app.Spec.Image.Volumes[0].ClaimName = nil, "shared"
	unlabelled := claim(shop, "shared", "", time.Hour)
	unlabelled.Labels = nil
	for name, c := range map[string]struct {
		objects []client.Object
		fails   string
		want    string
		reads   int
	}{
		"the watch shows it": {[]client.Object{claim(shop, "shared", "other", time.Hour)}, "", "done", 0},
		"it has no labels":   {[]client.Object{unlabelled}, "", "done", 1},
		"there is none": {nil, "", "failed ClaimMissing: spec.image.volumes[data].claimName: there is no PersistentVolumeClaim shared in namespace kubeop-acme-shop: " +
			"name one of those that kubectl get pvc -n kubeop-acme-shop lists, or set size instead to have one made, after 15s", 2},
		"it cannot be read": {[]client.Object{unlabelled}, ".PartialObjectMetadata", "failed Failed: looking for claim shared: away", 2},
	} {
		t.Run(name, func(t *testing.T) {
			k := newClaims(t, c.objects...)
			k.fails = c.fails
			for range 2 {
				if _, end, _ := k.carry(app); end != c.want {
					t.Errorf("got  %q\nwant %q", end, c.want)
				}
			}
			if k.reads != c.reads {
				t.Errorf("the claim was read %d times, want %d", k.reads, c.reads)
			}
			if name != "it has no labels" {
				return
			}
			changed := app.DeepCopy()
			changed.Generation++
			if k.carry(changed); k.reads != 2 {
				t.Errorf("after a change of the spec it was read %d times, want 2", k.reads)
			}
			k.Forget(changed)
			if k.carry(changed); k.reads != 3 {
				t.Errorf("for a forgotten App it was read %d times, want 3", k.reads)
			}
		})
	}
	app.Spec.Image.Volumes = append(app.Spec.Image.Volumes, v1alpha1.ImageVolume{Name: "more", ClaimName: "none"})
	if _, end, _ := newClaims(t, claim(shop, "shared", "other", time.Hour)).carry(app); !strings.HasPrefix(end, "failed ClaimMissing: spec.image.volumes[more].claimName: ") {
		t.Errorf("the second of two claims is missing: %q", end)
	}
}

// TestARenamedAppNeedsTheClaimsOfItsFormerName.
func TestARenamedAppNeedsTheClaimsOfItsFormerName(t *testing.T) {
	for name, c := range map[string]struct {
		objects    []client.Object
		taken      bool
		empty, end string
	}{
		"the former App left it":           {[]client.Object{claim(shop, "api-data", "api", time.Hour)}, false, "", "done"},
		"it left none":                     {nil, false, "movedFrom: app api left no claim api-data; a new, empty one is made", "done"},
		"it was moved itself":              {[]client.Object{claim(shop, "first-data", "api", time.Hour)}, false, "", "stopped RenderFailed: spec.movedFrom: the claims of app api are named after app first, from which it was moved itself: write movedFrom: {app: first}"},
		"another App has one of that name": {[]client.Object{claim(shop, "first-data", "first", time.Hour)}, false, "movedFrom: app api left no claim api-data; a new, empty one is made", "done"},
		"another volume of the former App": {[]client.Object{claim(shop, "first-cache", "api", time.Hour)}, false, "movedFrom: app api left no claim api-data; a new, empty one is made", "done"},
		"it was taken over before":         {nil, true, "", "done"},
	} {
		t.Run(name, func(t *testing.T) {
			app := imageApp("api")
			if c.taken {
				app.Status.Inventory.Entries = []v1alpha1.InventoryEntry{{ID: shop + "_api-data__PersistentVolumeClaim", Version: "v1", Digest: "1"}}
			}
			if empty, end, _ := newClaims(t, c.objects...).carry(app); empty != c.empty || end != c.end {
				t.Errorf("got  %q, %q\nwant %q, %q", empty, end, c.empty, c.end)
			}
		})
	}
	mounting := imageApp("api")
	mounting.Spec.Image.Volumes = append(mounting.Spec.Image.Volumes, v1alpha1.ImageVolume{Name: "more", ClaimName: "shared"})
	unlabelled := claim(shop, "shared", "", time.Hour)
	unlabelled.Labels = nil
	if empty, end, _ := newClaims(t, claim(shop, "api-data", "api", time.Hour), unlabelled).carry(mounting); empty != "" || end != "done" {
		t.Errorf("beside a claim that it mounts: %q, %q", empty, end)
	}
	k := newClaims(t)
	k.fails = ".App"
	if _, end, _ := k.carry(imageApp("api")); end != "failed Failed: reading app api: away" {
		t.Errorf("the former App cannot be read: %q", end)
	}
}
