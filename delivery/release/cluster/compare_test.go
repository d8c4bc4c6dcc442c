package cluster

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/apis/kustomize"
	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/differ"
	"github.com/kubeop/kubeop/delivery/metadata"
)

// ignoring returns rules about an object with a label, or about all objects.
func ignoring(t *testing.T, label string, paths ...string) differ.Rules {
	t.Helper()
	rule := v1alpha1.IgnoreRule{Paths: paths}
	if label != "" {
		rule.Target = &kustomize.Selector{LabelSelector: label}
	}
	rules, err := differ.ReadRules([]v1alpha1.IgnoreRule{rule})
	if err != nil {
		t.Fatal(err)
	}
	return rules
}

const (
	deploymentKind = "apiVersion: apps/v1\nkind: Deployment\n"
	ofTeam         = `labels: {app.kubernetes.io/managed-by: Helm, team: ops}, annotations: {meta.helm.sh/release-name: web, meta.helm.sh/release-namespace: kubeop-acme-shop}`
	scaledByHPA    = `, managedFields: [{manager: hpa, operation: Update, subresource: scale, fieldsType: FieldsV1, fieldsV1: {'f:spec': {'f:replicas': {}}}}]`
)

// TestDriftIsWhatDiffersFromTheManifest: all objects are as the table says but for one ConfigMap or Deployment.
func TestDriftIsWhatDiffersFromTheManifest(t *testing.T) {
	const wanted = configMapKind + nameA + "data: {a: '1'}\n"
	const sharedWanted = namespaceKind + "metadata: {name: a, labels: {a: '1'}}\n"
	const looked, corrected = "GET,PATCH dry-run", "GET,PATCH dry-run,PATCH"
	tests := map[string]struct {
		// kind is a ConfigMap, and the manifest the one above, unless they are set. Without metadata there is no object.
		kind, manifest, metadata, rest string
		ignore                         differ.Rules
		fails                          map[string]*apierrors.StatusError
		correct                        bool
		// fields are the paths that differ; "missing" for an object that is missing.
		fields   string
		requests string
		// data is that of the live object afterwards.
		data  string
		error string
	}{
		"as it should be":                        {metadata: ofRelease, rest: "data: {a: '1', b: '2'}", requests: "GET", data: "a=1 b=2"},
		"a field differs":                        {metadata: ofRelease, rest: "data: {a: '9', b: '2'}", fields: "/data/a", requests: looked, data: "a=9 b=2"},
		"a field is corrected":                   {metadata: ofRelease, rest: "data: {a: '9', b: '2'}", correct: true, fields: "/data/a", requests: corrected, data: "a=1 b=2"},
		"a correction is refused":                {metadata: ofRelease, rest: "data: {a: '9'}", correct: true, fails: map[string]*apierrors.StatusError{"PATCH": errForbidden}, fields: "/data/a", requests: corrected, data: "a=9", error: "no role allows it"},
		"the dry-run is refused":                 {metadata: ofRelease, rest: "data: {a: '9'}", correct: true, fails: map[string]*apierrors.StatusError{"PATCH dry-run": errForbidden}, requests: looked, data: "a=9", error: "asking what would change: "},
		"it cannot be read":                      {metadata: ofRelease, rest: "data: {a: '9'}", correct: true, fails: map[string]*apierrors.StatusError{"GET": errForbidden}, requests: "GET", data: "a=9", error: "no role allows it"},
		"the field is ignored":                   {metadata: ofRelease, rest: "data: {a: '9'}", ignore: ignoring(t, "", "/data/a"), requests: "GET", data: "a=9"},
		"another field is ignored":               {metadata: ofRelease, rest: "data: {a: '9'}", ignore: ignoring(t, "", "/data/b"), fields: "/data/a", requests: looked, data: "a=9"},
		"an ignored field stays beside another":  {metadata: ofRelease, manifest: configMapKind + nameA + "data: {a: '1', b: '2'}\n", rest: "data: {a: '9', b: '9'}", ignore: ignoring(t, "", "/data/b"), correct: true, fields: "/data/a", requests: corrected, data: "a=1 b=9"},
		"the whole object is ignored":            {metadata: ofRelease, rest: "data: {a: '9'}", ignore: ignoring(t, "", ""), requests: "GET", data: "a=9"},
		"ignored by a label in the cluster":      {metadata: ofTeam, rest: "data: {a: '9'}", ignore: ignoring(t, "team=ops", "/data/a"), requests: "GET", data: "a=9"},
		"all ignored by a label in the cluster":  {metadata: ofTeam, rest: "data: {a: '9'}", ignore: ignoring(t, "team=ops", ""), requests: "GET", data: "a=9"},
		"the label is in the manifest only":      {metadata: ofRelease, manifest: configMapKind + "metadata: {name: a, labels: {team: ops}}\ndata: {a: '1'}\n", rest: "data: {a: '9'}", ignore: ignoring(t, "team=ops", ""), fields: "/data/a,/metadata/labels/team", requests: looked, data: "a=9"},
		"it is missing":                          {fields: "missing", requests: "GET", data: "-"},
		"it is missing and created":              {correct: true, fields: "missing", requests: "GET,POST", data: "a=1"},
		"it is missing and cannot be created":    {correct: true, fails: map[string]*apierrors.StatusError{"POST": errForbidden}, fields: "missing", requests: "GET,POST", data: "-", error: "no role allows it"},
		"it is missing, and a field is ignored":  {ignore: ignoring(t, "", "/data/a"), fields: "missing", requests: "GET", data: "-"},
		"it is missing, and all of it ignored":   {ignore: ignoring(t, "", "/"), correct: true, requests: "GET", data: "-"},
		"it is another app's":                    {metadata: ofOtherApp, rest: "data: {a: '9'}", correct: true, requests: "GET", data: "a=9", error: "ConfigMap/a exists and belongs to app api"},
		"it is being deleted":                    {metadata: ofRelease + ", deletionTimestamp: '2026-01-01T00:00:00Z'", rest: "data: {a: '9'}", correct: true, requests: "GET", data: "a=9"},
		"an autoscaler set its replicas":         {kind: deploymentKind, manifest: deploymentKind + nameA + "spec: {replicas: 1}\n", metadata: ofRelease + scaledByHPA, rest: "spec: {replicas: 7}", correct: true, requests: "GET"},
		"somebody set its replicas":              {kind: deploymentKind, manifest: deploymentKind + nameA + "spec: {replicas: 1}\n", metadata: ofRelease, rest: "spec: {replicas: 7}", fields: "/spec/replicas", requests: looked},
		"shared, and it differs":                 {kind: namespaceKind, manifest: sharedWanted, metadata: ofReleaseAndApp, fields: "/metadata/labels/a", requests: looked},
		"shared, and administrators replaced it": {kind: namespaceKind, manifest: sharedWanted, metadata: "labels: {a: '2'}", correct: true, requests: "GET"},
		"a kind that the cluster does not serve": {manifest: "apiVersion: example.com/v1\nkind: Thing\n" + nameA, data: "-", error: "Thing/a: "},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			api := &fakeAPI{fails: tc.fails}
			if tc.kind == "" {
				tc.kind = configMapKind
			}
			if tc.manifest == "" {
				tc.manifest = wanted
			}
			if tc.metadata != "" {
				api.live = liveObject(t, tc.kind, tc.metadata, tc.rest+"\n")
			}
			if tc.kind == namespaceKind {
				api.live.SetNamespace("")
			}
			manifest := object(t, tc.manifest)
			found, err := api.client(t).Differences(t.Context(), []*unstructured.Unstructured{manifest}, Comparison{Ignore: tc.ignore, Correct: tc.correct})
			if tc.error == "" && err != nil || tc.error != "" && (err == nil || !strings.Contains(err.Error(), tc.error)) {
				t.Errorf("got error %v, want %q", err, tc.error)
			}
			if diff := cmp.Diff(tc.fields, fieldsOf(t, found, manifest)); diff != "" {
				t.Errorf("what differs (-want +got):\n%s", diff)
			}
			if got := strings.Join(api.requests, ","); got != tc.requests {
				t.Errorf("the requests are %s, want %s", got, tc.requests)
			}
			if got := dataOf(api.live); got != tc.data {
				t.Errorf("the object has %q, want %q", got, tc.data)
			}
			checkApplied(t, api, found, tc.correct && err == nil)
			if diff := cmp.Diff(object(t, tc.manifest).Object, manifest.Object); diff != "" {
				t.Errorf("the manifest was changed:\n%s", diff)
			}
		})
	}
}

// fieldsOf returns the paths of at most one difference.
func fieldsOf(t *testing.T, found []Difference, of *unstructured.Unstructured) string {
	t.Helper()
	if len(found) == 0 {
		return ""
	}
	if len(found) != 1 || found[0].Object != of.GetKind()+"/"+of.GetName() {
		t.Fatalf("the differences are %+v", found)
	}
	if found[0].Missing {
		return "missing"
	}
	var paths []string
	for _, f := range found[0].Fields {
		paths = append(paths, f.Path)
	}
	return strings.Join(paths, ",")
}

// checkApplied: what was corrected is recorded as the API server answered, so that the next comparison knows it.
func checkApplied(t *testing.T, api *fakeAPI, found []Difference, want bool) {
	t.Helper()
	for _, d := range found {
		switch {
		case (d.Applied != nil) != want:
			t.Errorf("it is recorded as %+v, want a record: %t", d.Applied, want)
		case want && (d.Applied.Name != "a" || d.Applied.Kind != "ConfigMap" || d.Applied.Namespace != "kubeop-acme-shop" || d.Applied.Live.GetResourceVersion() != api.live.GetResourceVersion() || d.Applied.Live.GetUID() != api.live.GetUID()):
			t.Errorf("it is recorded as %+v", d.Applied)
		}
	}
}

// TestAnObjectThatOthersWriteMeanwhileIsComparedAgain, a few times: their write would be taken for drift.
func TestAnObjectThatOthersWriteMeanwhileIsComparedAgain(t *testing.T) {
	for name, tc := range map[string]struct {
		writes, dryRuns int
		changing        bool
		data            string
	}{
		"once":     {1, 2, false, "a=1"},
		"always":   {100, maxMoves, true, "a=9"},
		"not once": {0, 1, false, "a=1"},
	} {
		t.Run(name, func(t *testing.T) {
			writes := 0
			api := &fakeAPI{live: liveObject(t, configMapKind, ofRelease, "data: {a: '9'}\n")}
			api.written = func(request string, o *unstructured.Unstructured) {
				if strings.HasSuffix(request, "dry-run") && writes < tc.writes {
					writes++
					o.SetResourceVersion("another")
				}
			}
			manifest := object(t, configMapKind+nameA+"data: {a: '1'}\n")
			found, err := api.client(t).Differences(t.Context(), []*unstructured.Unstructured{manifest}, Comparison{Correct: true})
			if errors.Is(err, metadata.ErrChanging) != tc.changing || !tc.changing && err != nil || tc.changing == (len(found) == 1) {
				t.Errorf("got %+v and %v", found, err)
			}
			if tc.changing && !strings.Contains(err.Error(), "ConfigMap/a") {
				t.Errorf("the error does not name the object: %v", err)
			}
			dryRuns := len(slices.DeleteFunc(api.requests, func(name string) bool { return name != "PATCH dry-run" }))
			if got := dataOf(api.live); got != tc.data || dryRuns != tc.dryRuns {
				t.Errorf("the object has %q after %d dry-runs, want %q after %d", got, dryRuns, tc.data, tc.dryRuns)
			}
		})
	}
}

// TestDriftThatTheAPIServerUndoesIsNotReported: a webhook sets the field again, whatever is sent.
func TestDriftThatTheAPIServerUndoesIsNotReported(t *testing.T) {
	api := &fakeAPI{live: liveObject(t, configMapKind, ofRelease, "data: {a: '9'}\n")}
	api.written = func(_ string, o *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(o.Object, "9", "data", "a")
	}
	found, err := api.client(t).Differences(t.Context(), []*unstructured.Unstructured{object(t, configMapKind+nameA+"data: {a: '1'}\n")}, Comparison{Correct: true})
	if len(found) != 0 || err != nil || slices.Contains(api.requests, "PATCH") {
		t.Errorf("got %+v and %v after %v", found, err, api.requests)
	}
}

func TestDriftShowsNoSecrets(t *testing.T) {
	api := &fakeAPI{live: liveObject(t, configMapKind, ofRelease, "data: {a: 'the word hunter2'}\n")}
	found, err := api.client(t).Differences(t.Context(), []*unstructured.Unstructured{object(t, configMapKind+nameA+"data: {a: '1'}\n")}, Comparison{Sensitive: []string{"hunter2"}})
	if err != nil || len(found) != 1 || len(found[0].Fields) != 1 {
		t.Fatalf("got %+v and %v", found, err)
	}
	if have := found[0].Fields[0].Have; !strings.Contains(have, "the word") || strings.Contains(have, "hunter2") {
		t.Errorf("it shows %s", have)
	}
}

// TestAComparisonNamesWhatItFoundAndWhatFailed: an error about one object does not hide the others' drift.
func TestAComparisonNamesWhatItFoundAndWhatFailed(t *testing.T) {
	api := &fakeAPI{}
	all := []*unstructured.Unstructured{
		object(t, configMapKind+"metadata: {name: first}\n"), object(t, "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: odd}\n"), object(t, configMapKind+"metadata: {name: last}\n"),
	}
	found, err := api.client(t).Differences(t.Context(), all, Comparison{})
	if len(found) != 2 || found[0].Object != "ConfigMap/first" || found[1].Object != "ConfigMap/last" {
		t.Errorf("the differences are %+v", found)
	}
	if err == nil || !strings.Contains(err.Error(), "Thing/odd") {
		t.Errorf("got %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	api.requests = nil
	if found, err := api.client(t).Differences(ended, all, Comparison{Correct: true}); len(found) != 0 || !errors.Is(err, context.Canceled) || len(api.requests) != 0 {
		t.Errorf("after the end: %+v and %v with %v", found, err, api.requests)
	}
}
