package apply

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/fingerprint"
	"github.com/kubeop/kubeop/delivery/inventory"
	"github.com/kubeop/kubeop/delivery/own"
)

// The tests of this file need no API server: its answers are given.

// TestAnObjectThatTakesDataAlongIsNotMadeAnew: what it takes along is found out first.
func TestAnObjectThatTakesDataAlongIsNotMadeAnew(t *testing.T) {
	away := errors.New("away")
	policy := func(when any) map[string]any {
		return map[string]any{"persistentVolumeClaimRetentionPolicy": map[string]any{"whenDeleted": when}}
	}
	for name, c := range map[string]struct {
		spec      map[string]any
		get, list error
		says      string
	}{
		"it keeps its claims":         {policy("Retain"), nil, nil, "set force: true"},
		"it says nothing of them":     {map[string]any{}, nil, nil, "set force: true"},
		"it is gone":                  {nil, apierrors.NewNotFound(schema.GroupResource{Group: "apps", Resource: "statefulsets"}, "one"), nil, "set force: true"},
		"it deletes its claims":       {policy("Delete"), nil, nil, "force does not delete a StatefulSet, because its persistentVolumeClaimRetentionPolicy deletes its claims with it"},
		"its policy is odd":           {policy(int64(7)), nil, nil, "whenDeleted accessor error"},
		"it cannot be read":           {nil, away, nil, "looking for claims that would go with it: away"},
		"its claims cannot be listed": {policy("Retain"), nil, away, "away"},
	} {
		t.Run(name, func(t *testing.T) {
			o, live := config("one"), answering(interceptor.Funcs{
				Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
					return apierrors.NewAlreadyExists(schema.GroupResource{}, "one")
				},
				Get: func(_ context.Context, _ client.WithWatch, _ client.ObjectKey, o client.Object, _ ...client.GetOption) error {
					o.(*unstructured.Unstructured).Object["spec"] = c.spec
					return c.get
				},
				List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return c.list },
			})
			o.SetAPIVersion("apps/v1")
			o.SetKind("StatefulSet")
			refused := refusal(422, metav1.StatusReasonInvalid, metav1.StatusCause{Field: "spec.serviceName", Message: "is immutable"})
			_, err := (&target{run: &run{Applier: &Applier{}, set: Set{Client: live}}, object: o, ours: true}).recreate(t.Context(), refused)
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want %s", err, c.says)
			}
		})
	}
}

// TestADeletionThatFailsSaysWhyItWasDeleted.
func TestADeletionThatFailsSaysWhyItWasDeleted(t *testing.T) {
	away := errors.New("away")
	c := answering(interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
			return apierrors.NewAlreadyExists(schema.GroupResource{}, "one")
		},
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return away
		},
	})
	refused := refusal(422, metav1.StatusReasonInvalid, metav1.StatusCause{Field: "data", Message: "field is immutable"})
	written, err := (&target{run: &run{Applier: &Applier{}, set: Set{Client: c, Force: true}}, object: config("one"), ours: true}).recreate(t.Context(), refused)
	if want := "data cannot be changed (field is immutable), so it is made anew: away"; written != nil || !errors.Is(err, away) || err.Error() != want {
		t.Errorf("got %v, %v, want %s", written, err, want)
	}
}

// TestAnObjectThatIsInvalidOrGoneIsNotMadeAnew, and one that holds data never.
func TestAnObjectThatIsInvalidOrGoneIsNotMadeAnew(t *testing.T) {
	refused := refusal(422, metav1.StatusReasonInvalid, metav1.StatusCause{Field: "spec", Message: "field is immutable"})
	for name, tc := range map[string]struct {
		kind   string
		dryRun error
		says   string
	}{
		"it could be created": {"ConfigMap", nil, refused.Error()},
		"it is invalid":       {"ConfigMap", refusal(422, metav1.StatusReasonInvalid), refused.Error()},
		"it holds data":       {"PersistentVolumeClaim", apierrors.NewAlreadyExists(schema.GroupResource{}, "one"), "spec cannot be changed (field is immutable): force does not delete a PersistentVolumeClaim, because "},
	} {
		t.Run(name, func(t *testing.T) {
			c := answering(interceptor.Funcs{Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return tc.dryRun }})
			o := config("one")
			o.SetKind(tc.kind)
			_, err := (&target{run: &run{Applier: &Applier{}, set: Set{Client: c, Force: true}}, object: o, ours: true}).recreate(t.Context(), refused)
			if err == nil || !strings.HasPrefix(err.Error(), tc.says) {
				t.Errorf("got %v, want %s", err, tc.says)
			}
		})
	}
}

// TestPodsKeepTheirLabelsOnlyIfThatSavesARestart.
func TestPodsKeepTheirLabelsOnlyIfThatSavesARestart(t *testing.T) {
	away := errors.New("away")
	for name, tc := range map[string]struct {
		get, dryRun error
		generation  int64
		kept        bool
		is          error
	}{
		"nothing else changes":   {generation: 3, kept: true},
		"something else changes": {generation: 4},
		"the dry run is refused": {generation: 3, dryRun: away},
		"it is gone meanwhile":   {get: apierrors.NewNotFound(schema.GroupResource{Group: "apps", Resource: "deployments"}, "one")},
		"it cannot be read":      {get: away, is: away},
	} {
		t.Run(name, func(t *testing.T) {
			c := answering(interceptor.Funcs{
				Get: func(_ context.Context, _ client.WithWatch, _ client.ObjectKey, o client.Object, _ ...client.GetOption) error {
					o.SetGeneration(3)
					return tc.get
				},
				Patch: func(_ context.Context, _ client.WithWatch, o client.Object, _ client.Patch, opts ...client.PatchOption) error {
					if len((&client.PatchOptions{}).ApplyOptions(opts).DryRun) == 0 {
						t.Error("it is written")
					}
					o.SetGeneration(tc.generation)
					return tc.dryRun
				},
			})
			o := config("one")
			o.SetAPIVersion("apps/v1")
			o.SetKind("Deployment")
			o.Object["spec"] = map[string]any{"template": map[string]any{"metadata": map[string]any{"labels": map[string]any{v1alpha1.AppLabel: "web"}}}}
			got, err := (&target{run: &run{Applier: &Applier{}, set: Set{Client: c}}, object: o, live: &metav1.ObjectMeta{}}).keepPods(t.Context(), precondition{})
			if !errors.Is(err, tc.is) || (got == nil) != (tc.is != nil) {
				t.Fatalf("got %v, %v", got, err)
			}
			if got != nil && own.PodsLabelled(got) == tc.kept {
				t.Errorf("the pods have the labels: %t", !tc.kept)
			}
		})
	}
}

// TestAConflictIsLookedInto: the object may have another owner, or be gone.
func TestAConflictIsLookedInto(t *testing.T) {
	away, gone := errors.New("away"), apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, "one")
	conflict := refusal(409, metav1.StatusReasonConflict)
	known := withField("one", "key", "1")
	known.UID, known.Labels = "a", config("one").GetLabels()
	for name, tc := range map[string]struct {
		live    *metav1.ObjectMeta
		get     error
		labels  map[string]string
		is      error
		patches []string
	}{
		"a new one that is there, another's": {get: nil, labels: map[string]string{v1alpha1.TenantLabel: "acme", v1alpha1.AppLabel: "api"}, is: ErrContested, patches: []string{"new"}},
		"a new one that is there, ours":      {labels: known.Labels, patches: []string{"new", "b"}},
		"a new one that cannot be read":      {get: away, is: away, patches: []string{"new"}},
		"a new one that is gone again":       {get: gone, is: conflict, patches: []string{"new"}},
		"one that was replaced by another's": {live: known, labels: map[string]string{v1alpha1.TenantLabel: "acme", v1alpha1.AppLabel: "api"}, is: ErrContested, patches: []string{"a"}},
		"one that was replaced by ours":      {live: known, labels: known.Labels, patches: []string{"a", "b"}},
		"one that cannot be read":            {live: known, get: away, is: away, patches: []string{"a"}},
		"one that is gone":                   {live: known, get: gone, patches: []string{"a", "new"}},
	} {
		t.Run(name, func(t *testing.T) {
			var patches []string
			c := answering(interceptor.Funcs{
				Get: func(_ context.Context, _ client.WithWatch, _ client.ObjectKey, o client.Object, _ ...client.GetOption) error {
					o.SetUID("b")
					o.SetLabels(tc.labels)
					return tc.get
				},
				Patch: func(_ context.Context, _ client.WithWatch, o client.Object, p client.Patch, _ ...client.PatchOption) error {
					data, err := p.Data(o)
					sent := &metav1.PartialObjectMetadata{}
					if err == nil {
						err = json.Unmarshal(data, sent)
					}
					if err != nil {
						return err
					}
					which := string(sent.UID)
					if sent.ResourceVersion != "" {
						which = "new"
					}
					if patches = append(patches, which); len(patches) == 1 {
						return conflict
					}
					o.SetResourceVersion("2")
					return nil
				},
			})
			a, set := showing(), Set{Client: c, Objects: []*unstructured.Unstructured{config("one")}}
			if tc.live != nil {
				a, set.Recorded = showing(tc.live), []v1alpha1.InventoryEntry{configEntry("one", "an older digest")}
			}
			result, err := a.Apply(t.Context(), set)
			if (err != nil) != (tc.is != nil) || !errors.Is(err, tc.is) {
				t.Errorf("got %v, want %v", err, tc.is)
			}
			if (len(result.Written) == 1) != (tc.is == nil) {
				t.Errorf("written are %v", result.Written)
			}
			if diff := cmp.Diff(tc.patches, patches); diff != "" {
				t.Errorf("patched (-want +got):\n%s", diff)
			}
		})
	}
}

// TestALedgerKeepsWhatCannotBeDeleted.
func TestALedgerKeepsWhatCannotBeDeleted(t *testing.T) {
	kept := []v1alpha1.InventoryEntry{configEntry("broken", "1")}
	l := NewLedger(showing(), answering(interceptor.Funcs{}), v1alpha1.Inventory{Entries: kept})
	if err := l.Prune(t.Context(), config("broken").GetLabels()); !errors.Is(err, errWatch) {
		t.Errorf("got %v", err)
	}
	if diff := cmp.Diff(kept, l.Inventory().Entries); diff != "" {
		t.Errorf("recorded (-want +got):\n%s", diff)
	}
}

// TestOnlyAnAppOfTheSameProjectGivesAnObjectUp, and only if the set says so.
func TestOnlyAnAppOfTheSameProjectGivesAnObjectUp(t *testing.T) {
	labels := func(tenant, project, app string) map[string]string {
		return map[string]string{v1alpha1.TenantLabel: tenant, v1alpha1.ProjectLabel: project, v1alpha1.AppLabel: app}
	}
	for name, c := range map[string]struct {
		theirs map[string]string
		ours   bool
		is     error
	}{
		"one of the project that does":        {labels("acme", "shop", "api"), false, nil},
		"it does, after we applied it":        {labels("acme", "shop", "api"), true, nil},
		"one of the project that does not":    {labels("acme", "shop", "db"), false, ErrContested},
		"one of that name of another project": {labels("acme", "blog", "api"), false, ErrContested},
		"one of that name of no project":      {labels("acme", "", "api"), false, ErrContested},
		"one of that name of another tenant":  {labels("evil", "shop", "api"), false, ErrContested},
		"the project itself, which is no app": {labels("acme", "shop", ""), false, ErrContested},
	} {
		t.Run(name, func(t *testing.T) {
			o := config("one")
			o.SetLabels(labels("acme", "shop", "web"))
			var asked []string
			yields := func(id inventory.ObjectID, app string) bool {
				asked = append(asked, id.Name+" of "+app)
				return app == "api"
			}
			tg := &target{run: &run{set: Set{Yields: yields}}, object: o, live: &metav1.ObjectMeta{Labels: c.theirs}, ours: c.ours}
			if err := tg.claim(); !errors.Is(err, c.is) {
				t.Errorf("got %v", err)
			}
			for _, each := range asked {
				if want := "one of " + c.theirs[v1alpha1.AppLabel]; each != want {
					t.Errorf("asked for %s, want %s", each, want)
				}
			}
			tg.set.Yields = nil
			if err := tg.claim(); !errors.Is(err, ErrContested) {
				t.Errorf("nobody gives anything up: got %v", err)
			}
		})
	}
}

// TestAWriteThatTheWatchDoesNotShowIsNotRepeated: the result says to look again.
func TestAWriteThatTheWatchDoesNotShowIsNotRepeated(t *testing.T) {
	written := 0
	c := answering(interceptor.Funcs{
		Patch: func(_ context.Context, _ client.WithWatch, o client.Object, _ client.Patch, _ ...client.PatchOption) error {
			written++
			o.SetResourceVersion("7")
			return nil
		},
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, "one")
		},
	})
	set := Set{Client: c, Objects: []*unstructured.Unstructured{config("one")}}
	first, err := showing().Apply(t.Context(), set)
	if err != nil || written != 1 || first.Unseen {
		t.Fatalf("%d writes, %v", written, err)
	}
	set.Recorded, set.Floors = first.Entries, first.Written
	for fresh, writes := range map[bool]int{true: 0, false: 1} {
		written, set.Fresh = 0, fresh
		result, err := showing().Apply(t.Context(), set)
		if err != nil || written != writes || result.Unseen != fresh {
			t.Errorf("fresh %t: %d writes, unseen %t, %v", fresh, written, result.Unseen, err)
		}
		if diff := cmp.Diff(first.Entries, result.Entries); diff != "" {
			t.Errorf("fresh %t: recorded (-want +got):\n%s", fresh, diff)
		}
	}
}

// TestObjectsAreRecordedBeforeTheyAreWritten, and only those that are not recorded yet make that necessary.
func TestObjectsAreRecordedBeforeTheyAreWritten(t *testing.T) {
	var order []string
	c := answering(interceptor.Funcs{Patch: func(_ context.Context, _ client.WithWatch, o client.Object, _ client.Patch, _ ...client.PatchOption) error {
		order = append(order, "write "+o.GetName())
		o.SetResourceVersion("7")
		return nil
	}})
	set := Set{Client: c, Objects: []*unstructured.Unstructured{config("one")}, Before: func(_ context.Context, entries []v1alpha1.InventoryEntry) error {
		for _, e := range entries {
			order = append(order, "record "+e.ID)
		}
		return nil
	}}
	result, err := showing().Apply(t.Context(), set)
	if diff := cmp.Diff([]string{"record " + configID("one").String(), "write one"}, order); diff != "" || err != nil || len(result.Written) != 1 {
		t.Errorf("%v, written %v (-want +got):\n%s", err, result.Written, diff)
	}
}

// TestAContendedQuotaSaysNothingOfTheObject: it is not read, because the conflict is about the quota.
func TestAContendedQuotaSaysNothingOfTheObject(t *testing.T) {
	contended := &apierrors.StatusError{ErrStatus: metav1.Status{Code: 409, Reason: metav1.StatusReasonConflict, Details: &metav1.StatusDetails{Kind: "resourcequotas"}}}
	synctest.Test(t, func(t *testing.T) {
		c := answering(interceptor.Funcs{
			Get: func(_ context.Context, _ client.WithWatch, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
				t.Errorf("%s is read", key)
				return contended
			},
			Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
				return contended
			},
		})
		tg := &target{run: newRun(showing(), Set{Client: c}), object: config("one")}
		if written, err := tg.apply(t.Context()); written != nil || !errors.Is(err, contended) {
			t.Errorf("got %v, %v", written, err)
		}
	})
}

// TestAnObjectMovedIfOnlyItsStateIsAnother.
func TestAnObjectMovedIfOnlyItsStateIsAnother(t *testing.T) {
	same := fingerprint.OfManifest(config("one"), nil) + "another state"
	live := func(uid types.UID, app string) *metav1.ObjectMeta {
		return &metav1.ObjectMeta{UID: uid, Labels: map[string]string{v1alpha1.AppLabel: app}}
	}
	for name, tc := range map[string]struct {
		digest string
		live   *metav1.ObjectMeta
		want   bool
	}{
		"it is the app's":                {same, live("a", "web"), true},
		"it is gone":                     {same, nil, true},
		"another app took it over":       {same, live("a", "api"), false},
		"the watch does not show labels": {same, live("", ""), true},
		"its manifest is another":        {"another manifest", live("a", "web"), false},
		"it was not applied":             {"", live("a", "web"), false},
	} {
		tg := &target{run: &run{Applier: &Applier{}}, object: config("one"), manifest: config("one"), entry: v1alpha1.InventoryEntry{Digest: tc.digest}}
		if tc.live != nil {
			tg.live = tc.live
		}
		if got := tg.moved(); got != tc.want {
			t.Errorf("%s: moved is %t", name, got)
		}
	}
}

func TestResultsAreSorted(t *testing.T) {
	one, two := configEntry("one", ""), configEntry("two", "")
	r := Result{Entries: []v1alpha1.InventoryEntry{two, one}, Corrected: []v1alpha1.InventoryEntry{two, one}, Moved: []Deviation{{Entry: two}, {Entry: one}}}
	r.sort()
	if want := []v1alpha1.InventoryEntry{one, two}; !cmp.Equal(r.Entries, want) || !cmp.Equal(r.Corrected, want) || r.Moved[0].Entry != one || r.Moved[1].Entry != two {
		t.Errorf("got %+v", r)
	}
}

// TestAPreviewLeavesThePodsTheirLabels, as the write does: labels alone are no drift.
func TestAPreviewLeavesThePodsTheirLabels(t *testing.T) {
	deployment := func(mark, app string) *unstructured.Unstructured {
		o := config("one")
		o.SetAPIVersion("apps/v1")
		o.SetKind("Deployment")
		labels := map[string]any{"name": "one"}
		if app != "" {
			labels[v1alpha1.AppLabel] = app
		}
		if mark != "" {
			o.SetLabels(map[string]string{v1alpha1.PodsOfLabel: mark})
		}
		o.Object["spec"] = map[string]any{"template": map[string]any{"metadata": map[string]any{"labels": labels}}}
		return o
	}
	for name, tc := range map[string]struct{ mark, app, want, wantMark string }{
		"its own":                      {"", "web", "web", ""},
		"of nobody, it was taken over": {"", "", "", ""},
		"of another app, marked":       {"api", "api", "api", "api"},
		"of another app, not marked":   {"", "api", "web", ""},
	} {
		t.Run(name, func(t *testing.T) {
			sent := &unstructured.Unstructured{}
			c := answering(interceptor.Funcs{
				Get: func(_ context.Context, _ client.WithWatch, _ client.ObjectKey, o client.Object, _ ...client.GetOption) error {
					o.(*unstructured.Unstructured).Object = deployment(tc.mark, tc.app).Object
					return nil
				},
				Patch: func(_ context.Context, _ client.WithWatch, o client.Object, p client.Patch, _ ...client.PatchOption) error {
					data, err := p.Data(o)
					if err == nil {
						err = json.Unmarshal(data, &sent.Object)
					}
					return err
				},
			})
			if _, _, err := (&Applier{}).Preview(t.Context(), c, Deviation{Manifest: deployment("", "web")}); err != nil {
				t.Fatal(err)
			}
			labels, _, _ := unstructured.NestedStringMap(sent.Object, "spec", "template", "metadata", "labels")
			if labels["name"] != "one" || labels[v1alpha1.AppLabel] != tc.want || sent.GetLabels()[v1alpha1.PodsOfLabel] != tc.wantMark {
				t.Errorf("the pods get %v, the mark is %q", labels, sent.GetLabels()[v1alpha1.PodsOfLabel])
			}
		})
	}
}
