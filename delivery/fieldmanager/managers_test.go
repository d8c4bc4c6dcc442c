package fieldmanager

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

func TestOnlyEditsOfPeopleAreByHand(t *testing.T) {
	cases := map[string]struct {
		manager, apiVersion, subresource, fields string
		want                                     bool
	}{
		"an edit":             {"kubectl-edit", "apps/v1", "", `{"f:spec":{"f:replicas":{}}}`, true},
		"scaling":             {"kubectl", "apps/v1", "scale", `{"f:spec":{"f:replicas":{}}}`, false},
		"a restart":           {"kubectl-rollout", "apps/v1", "", `{"f:spec":{"f:template":{}}}`, false},
		"a label":             {"kubectl-label", "apps/v1", "", `{"f:metadata":{"f:labels":{"f:x":{}}}}`, false},
		"suspending an App":   {"kubectl-patch", "paas.kubeop.io/v1alpha1", "", `{"f:spec":{"f:suspend":{}}}`, false},
		"suspending alone":    {"kubectl-patch", "paas.kubeop.io/v1alpha1", "", `{"f:spec":{".":{},"f:suspend":{}}}`, false},
		"suspending and more": {"kubectl-patch", "paas.kubeop.io/v1alpha1", "", `{"f:spec":{"f:suspend":{},"f:host":{}}}`, true},
		"suspending a Job":    {"kubectl-patch", "batch/v1", "", `{"f:spec":{"f:suspend":{}}}`, true},
		"a controller":        {"kube-controller-manager", "apps/v1", "", `{"f:spec":{}}`, false},
		"what was narrowed":   {Narrowing, "networking.k8s.io/v1", "", `{"f:spec":{"f:egress":{}}}`, true},
		"no fields":           {"kubectl-edit", "apps/v1", "", `no JSON`, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			fields := &metav1.FieldsV1{}
			fields.SetRawBytes([]byte(c.fields))
			entry := metav1.ManagedFieldsEntry{Manager: c.manager, APIVersion: c.apiVersion, Subresource: c.subresource, FieldsV1: fields}
			if got := EditedByHand(entry); got != c.want {
				t.Errorf("got %t, want %t", got, c.want)
			}
		})
	}
}

var (
	ours   = metav1.ManagedFieldsEntry{Manager: v1alpha1.FieldManager, Operation: metav1.ManagedFieldsOperationApply, FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:paused":{}}}`)}
	helms  = metav1.ManagedFieldsEntry{Manager: "helm", Operation: metav1.ManagedFieldsOperationUpdate, FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:paused":{}}}`)}
	edited = metav1.ManagedFieldsEntry{Manager: "kubectl-edit", Operation: metav1.ManagedFieldsOperationUpdate, FieldsV1: metav1.NewFieldsV1(`{"f:data":{}}`)}
	scaled = metav1.ManagedFieldsEntry{Manager: "autoscaler", Subresource: "scale", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:replicas":{}}}`)}
	others = metav1.ManagedFieldsEntry{Manager: "controller", Operation: metav1.ManagedFieldsOperationUpdate, FieldsV1: metav1.NewFieldsV1(`{"f:status":{}}`)}
)

// by is the metadata of an object with the fields of managers.
func by(entries ...metav1.ManagedFieldsEntry) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{ManagedFields: entries}}
}

// changed returns an entry with a change.
func changed(f metav1.ManagedFieldsEntry, change func(*metav1.ManagedFieldsEntry)) metav1.ManagedFieldsEntry {
	change(&f)
	return f
}

func TestTheManagersOfAnObjectNameWhoWroteIt(t *testing.T) {
	type facts struct{ Applied, ByHand, Scaled bool }
	for name, c := range map[string]struct {
		entry metav1.ManagedFieldsEntry
		want  facts
	}{
		"kubeop applied":                    {ours, facts{Applied: true}},
		"Helm wrote":                        {helms, facts{Applied: true}},
		"kubeop wrote, but did not apply":   {changed(ours, func(f *metav1.ManagedFieldsEntry) { f.Operation = metav1.ManagedFieldsOperationUpdate }), facts{}},
		"kubeop applied a subresource":      {changed(ours, func(f *metav1.ManagedFieldsEntry) { f.Subresource = "status" }), facts{}},
		"kubeop applied, without fields":    {changed(ours, func(f *metav1.ManagedFieldsEntry) { f.FieldsV1 = nil }), facts{}},
		"a person edited":                   {edited, facts{ByHand: true}},
		"a person edited, without fields":   {changed(edited, func(f *metav1.ManagedFieldsEntry) { f.FieldsV1 = nil }), facts{}},
		"an autoscaler":                     {scaled, facts{Scaled: true}},
		"an autoscaler, without fields":     {changed(scaled, func(f *metav1.ManagedFieldsEntry) { f.FieldsV1 = nil }), facts{}},
		"an autoscaler, of the status only": {changed(scaled, func(f *metav1.ManagedFieldsEntry) { f.FieldsV1 = metav1.NewFieldsV1(`{"f:status":{}}`) }), facts{}},
		"replicas, but not by scaling":      {changed(scaled, func(f *metav1.ManagedFieldsEntry) { f.Subresource = "" }), facts{}},
		"a controller":                      {others, facts{}},
	} {
		t.Run(name, func(t *testing.T) {
			o := by(others, c.entry)
			if diff := cmp.Diff(c.want, facts{Applied(o), ChangedByHand(o), Scaled(o)}); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestChangesOfOwnedFieldsAreSeen, and only these: also a change of a value, which changes nothing but the time.
func TestChangesOfOwnedFieldsAreSeen(t *testing.T) {
	at := func(f metav1.ManagedFieldsEntry, second int) metav1.ManagedFieldsEntry {
		f.Time = &metav1.Time{Time: time.Date(2026, 3, 1, 12, 0, second, 0, time.FixedZone("CET", second*3600))}
		return f
	}
	ports := func(text string) metav1.ManagedFieldsEntry {
		return changed(ours, func(f *metav1.ManagedFieldsEntry) { f.FieldsV1 = metav1.NewFieldsV1(text) })
	}
	large := strings.Repeat("x", maxSharedSize)
	for name, c := range map[string]struct {
		was, is *metav1.PartialObjectMetadata
		want    bool
	}{
		"nothing changed":                  {by(ours, others), by(ours, others), false},
		"others changed":                   {by(ours, others), by(ours), false},
		"the time of others":               {by(ours, others), by(ours, at(others, 1)), false},
		"an autoscaler":                    {by(ours), by(ours, scaled), false},
		"another manager took fields":      {by(ours, others), by(others), true},
		"a person added fields":            {by(ours), by(ours, edited), true},
		"a value changed":                  {by(at(ours, 1)), by(at(ours, 2)), true},
		"the items of a list, sorted":      {by(ports(`{"k:{\"port\":80}":{},"k:{\"port\":443}":{}}`)), by(ports(`{"k:{\"port\":443}":{},"k:{\"port\":80}":{}}`)), false},
		"large fields, sorted":             {by(ports(`{"b":{},"` + large + `":{}}`)), by(ports(`{"` + large + `":{},"b":{}}`)), false},
		"large fields changed":             {by(ports(`{"b":{},"` + large + `":{}}`)), by(ports(`{"c":{},"` + large + `":{}}`)), true},
		"fields that are no JSON, changed": {by(ports(`no JSON`)), by(ports(`none`)), true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := OwnedFieldsChanged.Update(event.UpdateEvent{ObjectOld: c.was, ObjectNew: c.is}); got != c.want {
				t.Errorf("passes: %t, want %t", got, c.want)
			}
		})
	}
	if OwnedFieldsChanged.Create(event.CreateEvent{Object: by(ours)}) || !OwnedFieldsChanged.Delete(event.DeleteEvent{Object: by(ours)}) {
		t.Error("want deletions, and no creations")
	}
	utc := at(ours, 0)
	utc.Time = &metav1.Time{Time: at(ours, 1).Time.UTC()}
	if OwnedFields(by(at(ours, 1))) != OwnedFields(by(utc)) {
		t.Error("the state depends on the time zone")
	}
}

func TestACacheHoldsTheFieldsThatAreReadOnly(t *testing.T) {
	big := changed(ours, func(f *metav1.ManagedFieldsEntry) {
		f.FieldsV1 = metav1.NewFieldsV1(`{"` + strings.Repeat("x", maxSharedSize) + `":{}}`)
	})
	object, copied := by(others, ours, edited, scaled, helms, big), by(*ours.DeepCopy(), changed(big, func(f *metav1.ManagedFieldsEntry) { f.FieldsV1 = f.FieldsV1.DeepCopy() }))
	for _, o := range []*metav1.PartialObjectMetadata{object, copied} {
		if got, err := SlimFields(o); err != nil || got != any(o) {
			t.Fatalf("got %v, %v", got, err)
		}
	}
	if diff := cmp.Diff(by(ours, edited, scaled, helms, big), object, cmp.Comparer(func(a, b metav1.FieldsV1) bool { return string(a.GetRawBytes()) == string(b.GetRawBytes()) })); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if object.ManagedFields[0].FieldsV1 != copied.ManagedFields[0].FieldsV1 || object.ManagedFields[4].FieldsV1 == copied.ManagedFields[1].FieldsV1 {
		t.Error("equal fields are held twice, or large ones are shared")
	}
	if got, err := SlimFields("no object"); err != nil || got != "no object" {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestSharedFieldsAreBounded(t *testing.T) {
	var s shared
	for i := range maxShared + 1 {
		s.one(metav1.NewFieldsV1(strconv.Itoa(i)))
	}
	if got := len(s.seen); got != 1 {
		t.Errorf("%d texts are held, want 1 after the limit of %d", got, maxShared)
	}
}
