package plan

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/app/subject"
	"github.com/kubeop/kubeop/delivery/inventory"
	"github.com/kubeop/kubeop/delivery/release"
)

const password = "hunter22hunter22"

// secretive is the delivery of an App that reads a password of a Secret.
func secretive() *delivery {
	of := &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	s := (&subject.Subjects{}).New(of)
	s.Hide(password)
	return &delivery{app: of, made: &Rendered{Subject: s}}
}

// TestAPlanShowsNoSecretValue: it may become a comment on a pull request.
func TestAPlanShowsNoSecretValue(t *testing.T) {
	k, denied := &cluster{Connection: &Connection{}}, errors.New("admission: no access with "+password)
	failed := secretive()
	failed.err = denied
	refused, err := k.refused(secretive(), inventory.ErrorAbout(inventory.ObjectID{Namespace: "shop", Name: "a", Kind: "ConfigMap"}, denied))
	if err != nil {
		t.Fatal(err)
	}
	released := secretive()
	released.at.Client = interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return denied },
	})
	released.made.Release = &release.Preview{
		Before: []*unstructured.Unstructured{settings("old", map[string]any{"a": password})},
		After:  []*unstructured.Unstructured{settings("old", map[string]any{"a": "no " + password}), settings("new", map[string]any{"a": password})},
	}
	itself := &cluster{Connection: &Connection{Itself: true}}
	for name, tc := range map[string]struct {
		shown any
		says  string
	}{
		"an app that fails":             {k.report(t.Context(), failed, &siblings{}), "no access with ***"},
		"an object that is refused":     {refused, "no access with ***"},
		"fields of a release":           {k.released(t.Context(), released), `no ***`},
		"a refused object of a release": {itself.released(t.Context(), released), "no access with ***"},
	} {
		if got := fmt.Sprintf("%+v", tc.shown); strings.Contains(got, password) || !strings.Contains(got, tc.says) {
			t.Errorf("%s: got %s", name, got)
		}
	}
}

// TestTheChangesOfARevisionLeaveOutWhatIsEqualOrKept: objects that the chart keeps stay, hooks run, and what is equal is left out.
func TestTheChangesOfARevisionLeaveOutWhatIsEqualOrKept(t *testing.T) {
	d := secretive()
	kept, same := settings("kept", nil), settings("same", map[string]any{"a": "1"})
	kept.SetAnnotations(map[string]string{"helm.sh/resource-policy": "keep"})
	hook := settings("check", nil)
	hook.SetAnnotations(map[string]string{"helm.sh/hook": "pre-upgrade"})
	elsewhere := settings("far", nil)
	elsewhere.SetNamespace("other")
	d.made.Release = &release.Preview{
		Before: []*unstructured.Unstructured{kept, same, settings("gone", nil), settings("changed", map[string]any{"a": "1"})},
		After:  []*unstructured.Unstructured{same.DeepCopy(), settings("changed", map[string]any{"a": "2"}), settings("new", nil), elsewhere},
		Hooks:  []*unstructured.Unstructured{hook},
	}
	want := []string{
		"+ ConfigMap other/far", "! ConfigMap/changed", `-   /data/a: "1"`, `+   /data/a: "2"`, "! ConfigMap/check runs: hook pre-upgrade", "- ConfigMap/gone",
		"! ConfigMap/kept stays: the chart keeps it", "+ ConfigMap/new",
	}
	var tried []string
	api := func(fails error) {
		tried = nil
		each := func(act string, o client.Object, dryRun []string) error {
			if len(dryRun) != 1 {
				t.Errorf("%s of %s is no dry run", act, o.GetName())
			}
			tried = append(tried, act+" "+o.GetName())
			return fails
		}
		d.at.Client = interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
			Create: func(_ context.Context, _ client.WithWatch, o client.Object, options ...client.CreateOption) error {
				return each("create", o, (&client.CreateOptions{}).ApplyOptions(options).DryRun)
			},
			Patch: func(_ context.Context, _ client.WithWatch, o client.Object, _ client.Patch, options ...client.PatchOption) error {
				return each("patch", o, (&client.PatchOptions{}).ApplyOptions(options).DryRun)
			},
		})
	}
	refused := errors.New("too many")
	for name, tc := range map[string]struct {
		itself, homeless bool
		fails            error
		tried            int
		refused          int
	}{
		"as a person":                      {fails: refused},
		"in a project that is new":         {itself: true, homeless: true, fails: refused},
		"as the deployer":                  {itself: true, tried: 3},
		"as the deployer, who is refused":  {itself: true, fails: refused, tried: 3, refused: 3},
		"as the deployer, in no namespace": {itself: true, fails: apierrors.NewNotFound(schema.GroupResource{}, "a"), tried: 3, refused: 2},
	} {
		api(tc.fails)
		d.homeless = tc.homeless
		changes := (&cluster{Connection: &Connection{Itself: tc.itself}}).report(t.Context(), d, &siblings{}).Changes
		got := diffLines(changes)
		if n := strings.Count(strings.Join(got, " "), " is refused: "); n != tc.refused || len(tried) != tc.tried {
			t.Errorf("%s: %d objects are refused, want %d; tried were %v", name, n, tc.refused, tried)
		}
		if diff := cmp.Diff(want, got); tc.refused == 0 && diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestAPlanKeepsTheSecretsOfAJob, as the operator does: the Job of an Image app stays as it was made before the project had a Registry.
func TestAPlanKeepsTheSecretsOfAJob(t *testing.T) {
	job := func(secrets ...any) *unstructured.Unstructured {
		labels := map[string]any{v1alpha1.TenantLabel: "acme", v1alpha1.ProjectLabel: "shop", v1alpha1.AppLabel: "web"}
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "batch/v1", "kind": "Job", "metadata": map[string]any{"namespace": "shop", "name": "web-1", "labels": labels},
			"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"imagePullSecrets": secrets}}},
		}}
	}
	own, added := map[string]any{"name": "own"}, map[string]any{"name": "kubeop-registry-mine"}
	for name, c := range map[string]struct {
		spec    v1alpha1.AppSpec
		changes int
	}{
		"an Image app": {v1alpha1.AppSpec{Type: v1alpha1.AppImage, Image: &v1alpha1.ImageSource{}}, 0},
		"a Raw app":    {v1alpha1.AppSpec{Type: v1alpha1.AppRaw, Raw: &v1alpha1.RawSource{}}, 1},
	} {
		d := secretive()
		d.app.Spec, d.made.Objects = c.spec, []*unstructured.Unstructured{job(own, added)}
		d.at.Client = interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
			Get: func(_ context.Context, _ client.WithWatch, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
				into.(*unstructured.Unstructured).Object = job(own).Object
				return nil
			},
		})
		changes, err := (&cluster{Connection: &Connection{}}).applied(t.Context(), d, &siblings{})
		if err != nil || len(changes) != c.changes {
			t.Errorf("%s: the changes are %v, %v", name, changes, err)
		}
	}
}
