package apply

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/fingerprint"
	"github.com/kubeop/kubeop/delivery/inventory"
	"github.com/kubeop/kubeop/delivery/metadata"
)

// The tests of this file need no API server: its answers are given.

// answering is a client whose requests these functions answer.
func answering(funcs interceptor.Funcs) client.Client {
	return interceptor.NewClient(fake.NewClientBuilder().Build(), funcs)
}

func refusal(code int32, reason metav1.StatusReason, causes ...metav1.StatusCause) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Code: code, Reason: reason, Message: "refused", Details: &metav1.StatusDetails{Name: "x", Causes: causes}}}
}

// config is a ConfigMap of the app web in the namespace team.
func config(name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"key": "a"}}}
	o.SetNamespace("team")
	o.SetName(name)
	o.SetLabels(map[string]string{v1alpha1.TenantLabel: "acme", v1alpha1.AppLabel: "web"})
	return o
}

func TestNothingIsAppliedThatCannotBeRecorded(t *testing.T) {
	broken := errors.New("the API server is away")
	var announced []string
	before := func(_ context.Context, entries []v1alpha1.InventoryEntry) error {
		for _, e := range entries {
			announced = append(announced, e.ID+" "+e.Version+" "+e.Digest)
		}
		return broken
	}
	set := Set{
		Client: answering(interceptor.Funcs{}), Before: before, Objects: []*unstructured.Unstructured{config("new"), config("two"), config("one")},
		Recorded: []v1alpha1.InventoryEntry{configEntry("two", "2"), configEntry("one", "1"), configEntry("left", "3")},
	}
	result, err := showing().Apply(t.Context(), set)
	if !errors.Is(err, broken) || !strings.HasPrefix(err.Error(), "recording what will be applied: ") {
		t.Errorf("got %v", err)
	}
	if diff := cmp.Diff([]v1alpha1.InventoryEntry{configEntry("one", "1"), configEntry("two", "2")}, result.Entries); diff != "" {
		t.Errorf("recorded (-want +got):\n%s", diff)
	}
	id := func(name string) string { return configID(name).String() + " v1 " }
	if diff := cmp.Diff([]string{id("left") + "3", id("new"), id("one") + "1", id("two") + "2"}, announced); diff != "" {
		t.Errorf("announced (-want +got):\n%s", diff)
	}
	// What is recorded already is not announced.
	announced, set.Objects = nil, set.Objects[1:]
	if _, err := showing().Apply(t.Context(), set); errors.Is(err, broken) || announced != nil {
		t.Errorf("announced are %v, %v", announced, err)
	}
}

// TestAnObjectThatMayExistStaysRecorded without a digest, so that the next pass applies it.
func TestAnObjectThatMayExistStaysRecorded(t *testing.T) {
	away := errors.New("connection reset")
	bare := v1alpha1.InventoryEntry{ID: configID("one").String(), Version: "v1"}
	for name, tc := range map[string]struct {
		recorded []v1alpha1.InventoryEntry
		patch    error
		watch    error
		want     []v1alpha1.InventoryEntry
	}{
		"refused, new":             {nil, refusal(403, metav1.StatusReasonForbidden), nil, nil},
		"refused at the lower end": {nil, refusal(400, metav1.StatusReasonBadRequest), nil, nil},
		"refused at the upper end": {nil, refusal(499, metav1.StatusReasonUnknown), nil, nil},
		"a server's error":         {nil, refusal(500, metav1.StatusReasonInternalError), nil, []v1alpha1.InventoryEntry{bare}},
		"no answer":                {nil, away, nil, []v1alpha1.InventoryEntry{bare}},
		"refused, known":           {[]v1alpha1.InventoryEntry{configEntry("one", "1")}, refusal(403, metav1.StatusReasonForbidden), nil, []v1alpha1.InventoryEntry{bare}},
		"refused, not applied yet": {[]v1alpha1.InventoryEntry{bare}, refusal(403, metav1.StatusReasonForbidden), nil, nil},
		"a watch that fails":       {[]v1alpha1.InventoryEntry{configEntry("one", "1")}, nil, away, []v1alpha1.InventoryEntry{bare}},
	} {
		t.Run(name, func(t *testing.T) {
			patched := 0
			c := answering(interceptor.Funcs{Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
				patched++
				return tc.patch
			}})
			a := &Applier{Live: func(context.Context, schema.GroupVersionKind, types.NamespacedName) (metav1.Object, bool, error) {
				return nil, true, tc.watch
			}}
			result, err := a.Apply(t.Context(), Set{Client: c, Objects: []*unstructured.Unstructured{config("one")}, Recorded: tc.recorded})
			if err == nil || !strings.Contains(err.Error(), "ConfigMap/one: ") || (patched == 1) != (tc.watch == nil) {
				t.Errorf("got %v after %d writes", err, patched)
			}
			if diff := cmp.Diff(tc.want, result.Entries); diff != "" || len(result.Written) != 0 {
				t.Errorf("recorded (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAnObjectThatWaitsKeepsItsEntry, and is not written.
func TestAnObjectThatWaitsKeepsItsEntry(t *testing.T) {
	space := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
	space.SetName("team")
	var patched []string
	c := answering(interceptor.Funcs{Patch: func(_ context.Context, _ client.WithWatch, o client.Object, _ client.Patch, _ ...client.PatchOption) error {
		patched = append(patched, o.GetName())
		return refusal(403, metav1.StatusReasonForbidden)
	}})
	set := Set{Client: c, Objects: []*unstructured.Unstructured{config("known"), config("new"), space}, Recorded: []v1alpha1.InventoryEntry{configEntry("known", "1")}}
	result, err := showing().Apply(t.Context(), set)
	if err == nil || !apierrors.IsForbidden(inventory.Split(err)[0]) || !strings.Contains(err.Error(), "ConfigMap/known: waits for Namespace/team") || !strings.Contains(err.Error(), "ConfigMap/new: waits for Namespace/team") {
		t.Errorf("got %v", err)
	}
	if diff := cmp.Diff([]v1alpha1.InventoryEntry{configEntry("known", "1")}, result.Entries); diff != "" {
		t.Errorf("recorded (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"team"}, patched); diff != "" {
		t.Errorf("written (-want +got):\n%s", diff)
	}
}

// TestAnObjectWhoseFieldsCannotBeTakenBackIsNotWritten: a write would leave what somebody changed by hand, and record the object as applied.
func TestAnObjectWhoseFieldsCannotBeTakenBackIsNotWritten(t *testing.T) {
	live := &metav1.ObjectMeta{Namespace: "team", Name: "one", Labels: config("one").GetLabels(), ManagedFields: []metav1.ManagedFieldsEntry{{
		Manager: "kubectl-edit", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:data":{"f:key":{}}}`),
	}}}
	c := answering(interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return errors.New("away")
		},
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			t.Error("it is written")
			return nil
		},
	})
	result, err := showing(live).Apply(t.Context(), Set{Client: c, Objects: []*unstructured.Unstructured{config("one")}, Recorded: []v1alpha1.InventoryEntry{configEntry("one", "1")}})
	if err == nil || !strings.Contains(err.Error(), "ConfigMap/one: changing the owners of its fields: away") {
		t.Errorf("got %v", err)
	}
	if diff := cmp.Diff([]v1alpha1.InventoryEntry{configEntry("one", "")}, result.Entries); diff != "" {
		t.Errorf("recorded (-want +got):\n%s", diff)
	}
}

// TestAnObjectIsWrittenWithWhatItKeepsOfTheLiveOne: what can be set only when it is made would be refused, or made anew.
func TestAnObjectIsWrittenWithWhatItKeepsOfTheLiveOne(t *testing.T) {
	var written []string
	c := answering(interceptor.Funcs{Patch: func(_ context.Context, _ client.WithWatch, _ client.Object, p client.Patch, _ ...client.PatchOption) error {
		o := &unstructured.Unstructured{}
		data, err := p.Data(nil)
		if err == nil {
			err = o.UnmarshalJSON(data)
		}
		written = append(written, o.GetName()+" "+o.GetAnnotations()["kept"])
		return err
	}})
	keep := func(o *unstructured.Unstructured, live metav1.Object) *unstructured.Unstructured {
		o = o.DeepCopy()
		o.SetAnnotations(map[string]string{"kept": string(live.GetUID())})
		return o
	}
	live := &metav1.ObjectMeta{Namespace: "team", Name: "one", UID: "7", Labels: config("one").GetLabels()}
	if _, err := showing(live).Apply(t.Context(), Set{Client: c, Objects: []*unstructured.Unstructured{config("one")}, Recorded: []v1alpha1.InventoryEntry{configEntry("one", "1")}, Keep: keep}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"one 7"}, written); diff != "" {
		t.Errorf("written (-want +got):\n%s", diff)
	}
}

func TestARefusalIsKnownByItsStatus(t *testing.T) {
	uid := metav1.StatusCause{Field: "metadata.uid"}
	contended := &apierrors.StatusError{ErrStatus: metav1.Status{Code: 409, Reason: metav1.StatusReasonConflict, Details: &metav1.StatusDetails{Kind: "resourcequotas"}}}
	full := &apierrors.StatusError{ErrStatus: metav1.Status{Code: 403, Reason: metav1.StatusReasonForbidden, Message: "exceeded quota: small"}}
	for name, tc := range map[string]struct {
		err                      error
		replaced, refused, quota bool
	}{
		"no answer":               {errors.New("connection reset"), false, false, false},
		"a conflict":              {refusal(409, metav1.StatusReasonConflict), true, true, false},
		"a contended quota":       {contended, false, true, false},
		"a conflict of nothing":   {&apierrors.StatusError{ErrStatus: metav1.Status{Code: 409, Reason: metav1.StatusReasonConflict}}, false, true, false},
		"another UID":             {refusal(422, metav1.StatusReasonInvalid, metav1.StatusCause{Field: "spec"}, uid), true, true, false},
		"another field":           {refusal(422, metav1.StatusReasonInvalid, metav1.StatusCause{Field: "spec"}), false, true, false},
		"a UID that is forbidden": {refusal(403, metav1.StatusReasonForbidden, uid), false, true, false},
		"a full quota":            {full, false, true, true},
		"a full quota, explained": {&quotaError{full}, false, true, true},
		"a server's error":        {refusal(500, metav1.StatusReasonInternalError), false, false, false},
	} {
		err := fmt.Errorf("applying: %w", tc.err)
		if got := [3]bool{replaced(err), refused(err), OverQuota(err)}; got != [3]bool{tc.replaced, tc.refused, tc.quota} {
			t.Errorf("%s: replaced, refused and over the quota are %v", name, got)
		}
	}
	if err := (&quotaError{full}).Error(); !strings.HasSuffix(err, "; raise the quota in project.yaml, or ask for less") {
		t.Errorf("a full quota says %s", err)
	}
}

func TestOnlyErrorsOfTheGivenReasonsCount(t *testing.T) {
	one, two := configID("one"), configID("two")
	pending, other := fmt.Errorf("x: %w", ErrPending), errors.New("other")
	for name, tc := range map[string]struct {
		err     error
		reasons []error
		want    bool
	}{
		"no error":       {nil, []error{ErrPending}, false},
		"one":            {inventory.JoinErrors(map[inventory.ObjectID]error{one: pending}), []error{ErrPending}, true},
		"of two reasons": {inventory.JoinErrors(map[inventory.ObjectID]error{one: pending, two: ErrQuota}), []error{ErrQuota, ErrPending}, true},
		"one of another": {inventory.JoinErrors(map[inventory.ObjectID]error{one: pending, two: other}), []error{ErrPending, ErrQuota}, false},
		"no reasons":     {inventory.JoinErrors(map[inventory.ObjectID]error{one: pending}), nil, false},
	} {
		if got := Only(tc.err, tc.reasons...); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestComplaintsShowNoValues: the API server repeats what it refuses.
func TestComplaintsShowNoValues(t *testing.T) {
	cause := func(field, message string) metav1.StatusCause {
		return metav1.StatusCause{Field: field, Message: message}
	}
	for want, causes := range map[string][]metav1.StatusCause{
		"spec cannot be changed (field is immutable)":            {cause("spec", `Invalid value: {"password":"hunter2: x"}: field is immutable`)},
		"spec, data cannot be changed (updates are not allowed)": {cause("spec", "a"), cause("data", "b"), cause("spec", "Forbidden: updates are not allowed\nhunter2")},
		" cannot be changed (no field)":                          {cause("", "no field")},
		" cannot be changed ()":                                  nil,
	} {
		if got := complaint(refusal(422, metav1.StatusReasonInvalid, causes...)); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if got, want := (&immutable{"set force", refusal(422, metav1.StatusReasonInvalid, cause("spec", "x"))}).Error(), "spec cannot be changed (x): set force"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAPatchSendsNothingThatTheServerSets(t *testing.T) {
	object := map[string]any{"kind": "ConfigMap", "metadata": map[string]any{
		"name": "one", "labels": map[string]any{"a": "b"}, "resourceVersion": "7", "uid": "u", "creationTimestamp": "x", "generation": int64(1), "managedFields": []any{}, "selfLink": "/x",
	}}
	for name, tc := range map[string]struct {
		from precondition
		want map[string]any
	}{
		"any":        {precondition{}, map[string]any{"name": "one", "labels": map[string]any{"a": "b"}}},
		"a new one":  {mustNotExist, map[string]any{"name": "one", "labels": map[string]any{"a": "b"}, "resourceVersion": "1"}},
		"one object": {precondition{uid: "v"}, map[string]any{"name": "one", "labels": map[string]any{"a": "b"}, "uid": "v"}},
	} {
		if diff := cmp.Diff(map[string]any{"kind": "ConfigMap", "metadata": tc.want}, conditioned(object, tc.from)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if object["metadata"].(map[string]any)["uid"] != "u" {
		t.Error("the manifest itself was changed")
	}
}

func TestTheMessageSaysHowAForeignObjectIsTakenOver(t *testing.T) {
	labels := map[string]string{v1alpha1.TenantLabel: "acme", v1alpha1.ProjectLabel: "shop", v1alpha1.AppLabel: "web"}
	made := func(names ...string) *metav1.ObjectMeta {
		live := &metav1.ObjectMeta{}
		for _, name := range names {
			live.ManagedFields = append(live.ManagedFields, metav1.ManagedFieldsEntry{Manager: name})
		}
		return live
	}
	object := func(kind, namespace string, labels map[string]string) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": kind}}
		o.SetNamespace(namespace)
		o.SetName("one")
		o.SetLabels(labels)
		return o
	}
	platform := map[string]string{v1alpha1.TenantLabel: v1alpha1.PlatformTenant, v1alpha1.ProjectLabel: "p", v1alpha1.AppLabel: "web"}
	for name, tc := range map[string]struct {
		object *unstructured.Unstructured
		live   *metav1.ObjectMeta
		take   bool
		want   string
	}{
		"on request":                        {object("ConfigMap", "team", labels), made("kubectl"), true, ""},
		"without a request":                 {object("ConfigMap", "team", labels), made("z", "a", "", "z"), false, "exists already, made by a, z; set spec.takeOwnership: true in app.yaml to take it over, or give this one another name in Git"},
		"by nobody":                         {object("ConfigMap", "team", labels), made(), false, "exists already; set spec.takeOwnership: true"},
		"by many":                           {object("ConfigMap", "team", labels), made("a", "b", "c", "d", "e", "f"), false, "exists already, made by a, b, c, d, e"},
		"kubeop's own":                      {object("ConfigMap", "team", nil), made(), false, "exists already; if nobody needs it, an administrator of the cluster may run: kubectl delete"},
		"cluster-scoped, on request":        {object("PersistentVolume", "", labels), made(), true, "it is cluster-scoped and so the administrators'"},
		"cluster-scoped, of the platform":   {object("PersistentVolume", "", platform), made(), true, ""},
		"cluster-scoped, without a request": {object("PersistentVolume", "", platform), made(), false, "set spec.takeOwnership: true"},
	} {
		t.Run(name, func(t *testing.T) {
			err := (&target{run: &run{set: Set{TakeOwnership: tc.take}}, object: tc.object, live: tc.live}).takeOver()
			if tc.want == "" {
				if err != nil {
					t.Errorf("got %v", err)
				}
				return
			}
			if !errors.Is(err, ErrForeign) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %s", err, tc.want)
			}
			if handed := strings.Contains(err.Error(), v1alpha1.ProjectLabel+"=shop"); handed != (name == "cluster-scoped, on request") {
				t.Errorf("the advice is %v", err)
			}
		})
	}
}

// TestAutoscalersAreListedOnceForANamespace, and a cluster without such a kind has none.
func TestAutoscalersAreListedOnceForANamespace(t *testing.T) {
	autoscaler := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"scaleTargetRef": map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}}}}
	autoscaler.SetNamespace("team")
	web := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment"}}
	web.SetNamespace("team")
	web.SetName("web")
	for name, tc := range map[string]struct {
		err   error
		items int
		want  bool
		lists int
	}{
		"one that does": {nil, 1, true, 1}, "none": {nil, 0, false, 1}, "no such kind": {&meta.NoKindMatchError{}, 0, false, 1}, "no answer": {errors.New("away"), 0, false, 2},
	} {
		t.Run(name, func(t *testing.T) {
			lists := 0
			c := answering(interceptor.Funcs{List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
				lists++
				if tc.items > 0 {
					list.(*unstructured.UnstructuredList).Items = []unstructured.Unstructured{*autoscaler}
				}
				return tc.err
			}})
			s := scalersOf(nil)
			for range 2 {
				got, err := s.live(t.Context(), c, web)
				if failed := name == "no answer"; got != tc.want || (err != nil) != failed || failed && !strings.HasPrefix(err.Error(), "looking for what scales it: ") {
					t.Errorf("got %v, %v", got, err)
				}
			}
			if lists != tc.lists {
				t.Errorf("listed %d times, want %d", lists, tc.lists)
			}
		})
	}
}

func TestAFailedPreviewNamesTheRequestThatFailed(t *testing.T) {
	away, gone := errors.New("away"), apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, "one")
	for name, tc := range map[string]struct {
		get, patch error
		moves      bool
		is         error
		says       string
		gets       int
	}{
		"the object is gone":        {gone, nil, false, nil, "", 1},
		"it cannot be read":         {away, nil, false, away, "ConfigMap/one: asking what would change: away", 1},
		"the dry run fails":         {nil, away, false, away, "ConfigMap/one: asking what would change: away", 1},
		"it changes all the time":   {nil, nil, true, metadata.ErrChanging, "so it could not be compared", maxPreviews},
		"it is as it was when read": {nil, nil, false, nil, "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			gets := 0
			c := answering(interceptor.Funcs{
				Get: func(_ context.Context, _ client.WithWatch, _ client.ObjectKey, o client.Object, _ ...client.GetOption) error {
					gets++
					o.SetResourceVersion("1")
					return tc.get
				},
				Patch: func(_ context.Context, _ client.WithWatch, o client.Object, _ client.Patch, opts ...client.PatchOption) error {
					options := (&client.PatchOptions{}).ApplyOptions(opts)
					if len(options.DryRun) == 0 || options.FieldManager != v1alpha1.FieldManager || options.Force == nil || !*options.Force {
						t.Errorf("it is patched with %+v", options)
					}
					if o.SetResourceVersion("1"); tc.moves {
						o.SetResourceVersion("2")
					}
					return tc.patch
				},
			})
			live, corrected, err := (&Applier{}).Preview(t.Context(), c, Deviation{Manifest: config("one")})
			if !errors.Is(err, tc.is) || !strings.Contains(fmt.Sprint(err), tc.says) || gets != tc.gets {
				t.Errorf("got %v after %d requests", err, gets)
			}
			if found := name == "it is as it was when read"; (live != nil) != found || (corrected != nil) != found || found && (live.GetName() != "one" || corrected.GetNamespace() != "team") {
				t.Errorf("got %v and %v", live, corrected)
			}
		})
	}
}

// TestAnObjectOfALedgerIsSettled while it is as it was recorded, and the owner's.
func TestAnObjectOfALedgerIsSettled(t *testing.T) {
	o, away := config("one"), errors.New("away")
	live := func(change func(*metav1.ObjectMeta)) *metav1.ObjectMeta {
		m := withField("one", "key", "1")
		m.Labels = o.GetLabels()
		change(m)
		return m
	}
	same := live(func(*metav1.ObjectMeta) {})
	recorded := configEntry("one", fingerprint.Of(o, same, nil))
	for name, tc := range map[string]struct {
		recorded v1alpha1.InventoryEntry
		live     *metav1.ObjectMeta
		err      error
		settled  bool
	}{
		"as it was":        {recorded, same, nil, true},
		"not recorded":     {configEntry("two", recorded.Digest), same, nil, false},
		"without a digest": {configEntry("one", ""), same, nil, false},
		"changed":          {recorded, live(func(m *metav1.ObjectMeta) { m.ManagedFields = nil }), nil, false},
		"being deleted":    {recorded, live(func(m *metav1.ObjectMeta) { m.DeletionTimestamp = &metav1.Time{} }), nil, false},
		"of another app":   {recorded, live(func(m *metav1.ObjectMeta) { m.Labels = map[string]string{v1alpha1.AppLabel: "api"} }), nil, false},
		"gone":             {recorded, nil, nil, false},
		"not known":        {recorded, nil, away, false},
	} {
		t.Run(name, func(t *testing.T) {
			a := &Applier{Live: func(context.Context, schema.GroupVersionKind, types.NamespacedName) (metav1.Object, bool, error) {
				if tc.live == nil {
					return nil, true, tc.err
				}
				return tc.live, true, tc.err
			}}
			got, err := NewLedger(a, nil, v1alpha1.Inventory{Entries: []v1alpha1.InventoryEntry{tc.recorded}}).Settled(t.Context(), o)
			if !errors.Is(err, tc.err) || (got != nil) != tc.settled {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
}

func TestALedgerTakesOnlyObjects(t *testing.T) {
	l := NewLedger(showing(), answering(interceptor.Funcs{}), v1alpha1.Inventory{Entries: []v1alpha1.InventoryEntry{configEntry("one", "1")}})
	_, settled := l.Settled(t.Context(), 7)
	for name, err := range map[string]error{"apply": l.Apply(t.Context(), config("one"), 7), "settled": settled, "withdraw": l.Withdraw(t.Context(), nil, 7)} {
		if err == nil || !strings.HasPrefix(err.Error(), "reading int: ") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if err := l.Withdraw(t.Context(), nil, config("broken")); !errors.Is(err, errWatch) {
		t.Errorf("withdraw, while the watch fails: %v", err)
	}
	if diff := cmp.Diff([]v1alpha1.InventoryEntry{configEntry("one", "1")}, l.Inventory().Entries); diff != "" {
		t.Errorf("recorded (-want +got):\n%s", diff)
	}
}

// TestAnObjectNeedsWhatItCannotExistWithout, and nothing that it could wait for by itself.
func TestAnObjectNeedsWhatItCannotExistWithout(t *testing.T) {
	object := func(apiVersion, kind, namespace string, content map[string]any) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: content}
		o.SetAPIVersion(apiVersion)
		o.SetKind(kind)
		o.SetNamespace(namespace)
		return o
	}
	role := func(kind string) map[string]any {
		return map[string]any{"roleRef": map[string]any{"kind": kind, "name": "r"}}
	}
	hook := map[string]any{"webhooks": []any{
		map[string]any{"clientConfig": map[string]any{"service": map[string]any{"namespace": "a", "name": "s"}}},
		map[string]any{"clientConfig": map[string]any{"service": map[string]any{"namespace": "b", "name": "t"}}},
	}}
	const rbac, admission = "rbac.authorization.k8s.io", "admissionregistration.k8s.io/v1"
	space := inventory.ObjectID{Name: "team", Kind: "Namespace"}
	widgets := inventory.ObjectID{Name: "widgets.example.com", Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
	r := &run{definitions: definitions{{Group: "example.com", Kind: "Widget"}: {id: widgets}}}
	for name, tc := range map[string]struct {
		object *unstructured.Unstructured
		want   []inventory.ObjectID
	}{
		"in a namespace":           {object("v1", "ConfigMap", "team", map[string]any{}), []inventory.ObjectID{space}},
		"cluster-scoped":           {object("v1", "PersistentVolume", "", map[string]any{}), nil},
		"of a defined kind":        {object("example.com/v1", "Widget", "team", map[string]any{}), []inventory.ObjectID{space, widgets}},
		"a binding of a role":      {object(rbac+"/v1", "RoleBinding", "team", role("Role")), []inventory.ObjectID{space, {Namespace: "team", Name: "r", Group: rbac, Kind: "Role"}}},
		"a binding of another":     {object(rbac+"/v1", "RoleBinding", "team", role("ClusterRole")), []inventory.ObjectID{space, {Name: "r", Group: rbac, Kind: "ClusterRole"}}},
		"a binding in the cluster": {object(rbac+"/v1", "ClusterRoleBinding", "", role("ClusterRole")), []inventory.ObjectID{{Name: "r", Group: rbac, Kind: "ClusterRole"}}},
		"a webhook":                {object(admission, "MutatingWebhookConfiguration", "", hook), []inventory.ObjectID{{Namespace: "a", Name: "s", Kind: "Service"}, {Namespace: "b", Name: "t", Kind: "Service"}}},
		"another webhook":          {object(admission, "ValidatingWebhookConfiguration", "", hook), []inventory.ObjectID{{Namespace: "a", Name: "s", Kind: "Service"}, {Namespace: "b", Name: "t", Kind: "Service"}}},
	} {
		if diff := cmp.Diff(tc.want, r.needs(tc.object)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// TestADeletionBeforeAnObjectIsMadeAnew deletes only the object that was read, and only the owner's.
func TestADeletionBeforeAnObjectIsMadeAnew(t *testing.T) {
	away := errors.New("away")
	ours := config("one").GetLabels()
	for name, tc := range map[string]struct {
		read, remove error
		labels       map[string]string
		uids         []string
		is           error
		deleted      bool
	}{
		"gone at once":             {nil, nil, ours, []string{"a", ""}, nil, true},
		"replaced by another":      {nil, nil, ours, []string{"a", "b"}, nil, true},
		"gone before":              {nil, nil, ours, []string{""}, nil, false},
		"deleted by somebody":      {nil, apierrors.NewNotFound(schema.GroupResource{}, "one"), ours, []string{"a", ""}, nil, true},
		"it cannot be read":        {away, nil, ours, []string{"a"}, away, false},
		"it cannot be deleted":     {nil, away, ours, []string{"a"}, away, true},
		"of another app":           {nil, nil, map[string]string{v1alpha1.TenantLabel: "acme", v1alpha1.AppLabel: "api"}, []string{"a"}, ErrContested, false},
		"there for longer than 2s": {nil, nil, ours, []string{"a"}, ErrPending, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reads, deleted := 0, false
			c := answering(interceptor.Funcs{
				Get: func(_ context.Context, _ client.WithWatch, _ client.ObjectKey, o client.Object, _ ...client.GetOption) error {
					uid := tc.uids[min(reads, len(tc.uids)-1)]
					if reads++; tc.read != nil {
						return tc.read
					}
					if uid == "" {
						return apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, "one")
					}
					o.SetUID(types.UID(uid))
					o.SetLabels(tc.labels)
					return nil
				},
				Delete: func(_ context.Context, _ client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
					options := (&client.DeleteOptions{}).ApplyOptions(opts)
					deleted = true
					if o.GetName() != "one" || o.GetNamespace() != "team" || options.Preconditions == nil || *options.Preconditions.UID != "a" || *options.PropagationPolicy != metav1.DeletePropagationBackground {
						t.Errorf("%s is deleted with %+v", o.GetName(), options)
					}
					return tc.remove
				},
			})
			tg := &target{run: &run{Applier: &Applier{}, set: Set{Client: c}}, object: config("one"), ours: true}
			if err := tg.delete(t.Context()); !errors.Is(err, tc.is) || deleted != tc.deleted {
				t.Errorf("got %v, deleted: %v", err, deleted)
			}
		})
	}
}

// TestPodsEndBeforeTheirWorkloadIsMadeAnew: a workload is deleted with all that it made, and anything else at once.
func TestPodsEndBeforeTheirWorkloadIsMadeAnew(t *testing.T) {
	for _, tc := range []struct {
		apiVersion, kind string
		want             metav1.DeletionPropagation
	}{
		{"apps/v1", "Deployment", metav1.DeletePropagationForeground}, {"apps/v1", "StatefulSet", metav1.DeletePropagationForeground},
		{"apps/v1", "DaemonSet", metav1.DeletePropagationForeground}, {"apps/v1", "ReplicaSet", metav1.DeletePropagationForeground},
		{"batch/v1", "Job", metav1.DeletePropagationForeground}, {"batch/v1", "CronJob", metav1.DeletePropagationForeground},
		{"v1", "Service", metav1.DeletePropagationBackground}, {"example.com/v1", "Deployment", metav1.DeletePropagationBackground},
	} {
		var got metav1.DeletionPropagation
		gone := false
		c := answering(interceptor.Funcs{
			Get: func(_ context.Context, _ client.WithWatch, _ client.ObjectKey, o client.Object, _ ...client.GetOption) error {
				if gone {
					return apierrors.NewNotFound(schema.GroupResource{}, "one")
				}
				o.SetUID("a")
				o.SetLabels(config("one").GetLabels())
				return nil
			},
			Delete: func(_ context.Context, _ client.WithWatch, _ client.Object, opts ...client.DeleteOption) error {
				got, gone = *(&client.DeleteOptions{}).ApplyOptions(opts).PropagationPolicy, true
				return nil
			},
		})
		o := config("one")
		o.SetAPIVersion(tc.apiVersion)
		o.SetKind(tc.kind)
		if err := (&target{run: &run{Applier: &Applier{}, set: Set{Client: c}}, object: o, ours: true}).delete(t.Context()); err != nil || got != tc.want {
			t.Errorf("%s %s is deleted with %s, want %s; %v", tc.apiVersion, tc.kind, got, tc.want, err)
		}
	}
}
