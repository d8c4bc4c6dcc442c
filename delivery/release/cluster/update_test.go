package cluster

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/kube"
	helm "helm.sh/helm/v3/pkg/release"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubeop/kubeop/delivery/release/manifest"
)

// listOf returns what the client builds of a manifest.
func listOf(t *testing.T, c *Client, text string) kube.ResourceList {
	t.Helper()
	list, err := c.Build(strings.NewReader(text), true)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestAnActionKnowsTheObjectsThatItCreated: of a manifest's objects it knows the answers, of hooks the UIDs.
func TestAnActionKnowsTheObjectsThatItCreated(t *testing.T) {
	for name, c := range map[string]struct {
		text, live string
		fails      map[string]*apierrors.StatusError
		sent, hook bool
		// count is how many objects are created, 1 by default.
		count int
		says  string
	}{
		"an object of the manifest": {text: configMapKind + "metadata: {name: a, " + ofRelease + "}\n", sent: true},
		"a hook":                    {text: configMapKind + nameA, hook: true},
		"hooks without names":       {text: strings.Repeat("---\n"+configMapKind+"metadata: {generateName: a-}\n", 2), hook: true, count: 2},
		"twice":                     {text: configMapKind + nameA + "---\n" + configMapKind + "metadata: {name: a, namespace: kubeop-acme-shop}\n", says: "ConfigMap/a is in the manifest twice"},
		"it is refused":             {text: configMapKind + nameA, fails: map[string]*apierrors.StatusError{"POST": errForbidden}, says: "no role allows it"},
		"it is another app's":       {text: configMapKind + "metadata: {name: a, " + ofRelease + "}\n", live: ofOtherApp, says: "ConfigMap/a exists and belongs to app api"},
		"a hook that is there":      {text: configMapKind + nameA, live: ofApp, says: "ConfigMap/a exists: an earlier run left this hook"},
	} {
		t.Run(name, func(t *testing.T) {
			api := &fakeAPI{fails: c.fails, fresh: c.count > 1}
			if c.live != "" {
				api.live = liveObject(t, configMapKind, c.live, "")
			}
			client := api.client(t)
			list := listOf(t, client, c.text)
			result, err := client.Create(list)
			if (err != nil) != (c.says != "") || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Fatalf("got %v, want %q", err, c.says)
			}
			if err == nil && len(result.Created) != max(c.count, 1) {
				t.Errorf("created are %v", result.Created)
			}
			id := client.Release.Identify(object(t, configMapKind+nameA))
			if sent := client.Sent[id].Live != nil; sent != c.sent || client.hooked["new"] != c.hook {
				t.Errorf("known by its answer: %t, as a hook: %t; want %t, %t", sent, client.hooked["new"], c.sent, c.hook)
			}
			if twice := strings.HasSuffix(c.says, "twice"); twice && len(api.requests) > 0 {
				t.Errorf("objects that are in the manifest twice were sent: %v", api.requests)
			}
		})
	}
}

func TestAnUpgradeDeletesWhatLeftTheChartIfNothingFailed(t *testing.T) {
	const other = configMapKind + "metadata: {name: b, " + ofRelease + "}\n"
	a := func(value string) string {
		return configMapKind + "metadata: {name: a, " + ofRelease + "}\n" + "data: {a: " + value + "}\n"
	}
	type outcome struct{ created, updated, deleted, requests string }
	for name, c := range map[string]struct {
		live, before, after string
		fails               map[string]*apierrors.StatusError
		want                outcome
		says                string
	}{
		"a new object":            {after: a("x"), want: outcome{created: "a", requests: "POST"}},
		"a changed object":        {live: "x", before: a("x"), after: a("y"), want: outcome{updated: "a", requests: "GET,PATCH"}},
		"an object that left":     {live: "x", before: a("x"), want: outcome{deleted: "a", requests: "GET,DELETE"}},
		"it may not be deleted":   {live: "x", before: a("x"), fails: map[string]*apierrors.StatusError{"DELETE": errForbidden}, want: outcome{deleted: "a", requests: "GET,DELETE"}, says: "deleting what left the chart: "},
		"another one was refused": {before: other, after: a("x"), fails: map[string]*apierrors.StatusError{"POST": errForbidden}, want: outcome{requests: "POST"}, says: "no role allows it"},
	} {
		t.Run(name, func(t *testing.T) {
			api := &fakeAPI{fails: c.fails}
			if c.live != "" {
				api.live = liveObject(t, configMapKind, ofRelease, "data: {a: "+c.live+"}\n")
			}
			client := api.client(t)
			result, err := client.Update(listOf(t, client, c.before), listOf(t, client, c.after), false)
			if (err != nil) != (c.says != "") || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want %q", err, c.says)
			}
			names := func(list kube.ResourceList) (all string) {
				for _, info := range list {
					all += info.Name
				}
				return all
			}
			got := outcome{names(result.Created), names(result.Updated), names(result.Deleted), strings.Join(api.requests, ",")}
			if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(outcome{})); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestObjectsOfARevisionAreItsNamespacesOrShared: an App of a tenant has none in another namespace, whatever its record says.
func TestObjectsOfARevisionAreItsNamespacesOrShared(t *testing.T) {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, meta.RESTScopeNamespace)
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, meta.RESTScopeRoot)
	text := strings.Join([]string{
		configMapKind + nameA, configMapKind + "metadata: {name: b, namespace: team}\n", configMapKind + "metadata: {name: c, namespace: other}\n",
		namespaceKind + "metadata: {name: d, namespace: team}\n", "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: e}\n",
	}, "---\n")
	names := func(all []*unstructured.Unstructured) (out []string) {
		for _, u := range all {
			out = append(out, u.GetNamespace()+"/"+u.GetName())
		}
		return out
	}
	rel := &helm.Release{Namespace: "team", Version: 3, Manifest: text}
	for platform, want := range map[bool][]string{false: {"/d"}, true: {"other/c", "/d"}} {
		own, shared, err := OfRevision(mapper, rel, platform)
		if diff := cmp.Diff([]string{"team/a", "team/b", "team/e"}, names(own)); diff != "" || err != nil {
			t.Errorf("%v, of the namespace (-want +got):\n%s", err, diff)
		}
		if diff := cmp.Diff(want, names(shared)); diff != "" {
			t.Errorf("of the platform: %t, shared (-want +got):\n%s", platform, diff)
		}
	}
	if _, _, err := OfRevision(failingMapper{err: errConflict}, rel, false); !errors.Is(err, errConflict) || !strings.HasPrefix(err.Error(), "finding the scope of ConfigMap/a: ") {
		t.Errorf("a scope that cannot be found: %v", err)
	}
	if _, _, err := OfRevision(mapper, &helm.Release{Version: 3, Manifest: "a: ["}, false); err == nil || !strings.HasPrefix(err.Error(), "reading revision 3: ") {
		t.Errorf("a manifest that cannot be read: %v", err)
	}
}

func TestAppliedObjectsHaveTheAnswersOfTheActionThatWroteThem(t *testing.T) {
	written, kept := object(t, configMapKind+nameA), object(t, namespaceKind+"metadata: {name: b, annotations: {helm.sh/resource-policy: keep}}\n")
	c := (&fakeAPI{}).client(t)
	live := liveObject(t, configMapKind, "", "")
	c.Sent[c.Release.Identify(written)] = AppliedAs(written, live)
	all := []*unstructured.Unstructured{written, kept}
	for name, by := range map[string]*Client{"this action": c, "another action": nil} {
		applied, outside := AsApplied(all, all, by)
		if len(applied) != 2 || len(outside) != 2 || outside[0].Kept || !outside[1].Kept || applied[1].Live != nil {
			t.Fatalf("%s: got %+v and %+v", name, applied, outside)
		}
		if got := applied[0]; got.Ref != (Ref{written.GroupVersionKind(), "", "a"}) || (got.Live != nil) != (by != nil) || by != nil && got.Live.GetUID() != live.GetUID() {
			t.Errorf("%s: got %+v", name, got)
		}
	}
	if id := c.Release.Identify(written); id != (manifest.IdentityOf(schema.GroupKind{Kind: "ConfigMap"}, "kubeop-acme-shop", "a")) {
		t.Errorf("the identity is %v", id)
	}
}
