package cluster

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/kube"
	helm "helm.sh/helm/v3/pkg/release"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/kubeop/kubeop/delivery/release/fault"
)

const (
	namespaceKind  = "apiVersion: v1\nkind: Namespace\n"
	definitionKind = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n"
	bound          = "spec: {volumeName: disk}\n"
	// ofReleaseKept marks an object of the release that the chart has kept; the other one belongs to another app by its label.
	ofReleaseKept   = `annotations: {meta.helm.sh/release-name: web, meta.helm.sh/release-namespace: kubeop-acme-shop, helm.sh/resource-policy: keep}`
	ofReleaseAndApp = `labels: {app.kubernetes.io/managed-by: Helm, paas.kubeop.io/tenant: acme, paas.kubeop.io/project: shop, paas.kubeop.io/app: web}, annotations: {meta.helm.sh/release-name: web, meta.helm.sh/release-namespace: kubeop-acme-shop}`
	ofReleaseOfAPI  = ofOtherApp + `, annotations: {meta.helm.sh/release-name: web, meta.helm.sh/release-namespace: kubeop-acme-shop}`
)

// uninstall, deleteHook, leaveChart and removeLeftover are the deletions of an action.
func uninstall(c *Client, info *resource.Info) error {
	_, errs := c.DeleteWithPropagationPolicy(kube.ResourceList{info}, metav1.DeletePropagationBackground)
	return errors.Join(errs...)
}

func deleteHook(c *Client, info *resource.Info) error {
	_, errs := c.Delete(kube.ResourceList{info})
	return errors.Join(errs...)
}

func leaveChart(c *Client, info *resource.Info) error { return c.removeOld(info) }

func removeLeftover(c *Client, info *resource.Info) error {
	return c.Release.Remove(info.Object.(*unstructured.Unstructured))
}

// TestOnlyObjectsOfTheReleaseAreDeleted: the manifest alone does not prove that an object is the release's.
func TestOnlyObjectsOfTheReleaseAreDeleted(t *testing.T) {
	forbidden := func(request string) map[string]*apierrors.StatusError {
		return map[string]*apierrors.StatusError{request: errForbidden}
	}
	unmoved := func(c *Client) { c.Terms.Unmoved = func(*unstructured.Unstructured) bool { return true } }
	type remove = func(*Client, *resource.Info) error
	for name, c := range map[string]struct {
		remove remove
		kind   string
		// live is the metadata of the live object, and rest its fields; wanted is the manifest's metadata, without its own name if nameless.
		live, rest, wanted string
		change             func(*Client)
		fails              map[string]*apierrors.StatusError
		requests, says     string
	}{
		"uninstalled: the release's":                 {remove: uninstall, live: ofRelease, requests: "GET,DELETE"},
		"uninstalled: nobody's":                      {remove: uninstall, requests: "GET"},
		"uninstalled: another app's":                 {remove: uninstall, live: ofReleaseOfAPI, requests: "GET"},
		"uninstalled: a hook of this action":         {remove: uninstall, change: func(c *Client) { c.hooked["old"] = true }, requests: "GET,DELETE"},
		"uninstalled: a hook of this and of another": {remove: uninstall, live: ofOtherApp, change: func(c *Client) { c.hooked["old"] = true }, requests: "GET"},
		"uninstalled: of another namespace":          {remove: uninstall, live: ofRelease, wanted: "metadata: {name: a, namespace: other}\n"},
		"uninstalled: unchanged since it was written": {
			remove: uninstall, change: unmoved, requests: "DELETE",
		},
		"uninstalled: changed since it was written": {
			remove: uninstall, change: func(c *Client) { c.Terms.Unmoved = func(*unstructured.Unstructured) bool { return false } }, requests: "GET",
		},
		"uninstalled: a claim with data":          {remove: uninstall, kind: claimKind, live: ofRelease, rest: bound, requests: "GET"},
		"uninstalled: a claim without data":       {remove: uninstall, kind: claimKind, live: ofRelease, requests: "GET,DELETE"},
		"uninstalled: it cannot be read":          {remove: uninstall, live: ofRelease, fails: forbidden("GET"), requests: "GET", says: "deleting: reading: "},
		"uninstalled: it may not be deleted":      {remove: uninstall, live: ofRelease, fails: forbidden("DELETE"), requests: "GET,DELETE", says: "no role allows it"},
		"uninstalled: it owns claims with data":   {remove: uninstall, kind: statefulSetKind, live: ofRelease, change: func(c *Client) { c.owned = ownedBy("old", []string{"data"}) }, requests: "GET", says: "StatefulSet/a owns claims"},
		"a hook: nobody's":                        {remove: deleteHook, requests: "GET,DELETE"},
		"a hook: another app's":                   {remove: deleteHook, live: ofOtherApp, requests: "GET", says: "ConfigMap/a exists and belongs to app api"},
		"a hook: it cannot be read":               {remove: deleteHook, fails: forbidden("GET"), requests: "GET", says: "reading: "},
		"a hook: it has no name":                  {remove: deleteHook, wanted: "metadata: {generateName: a-}\n", says: "a hook with generateName has no name"},
		"a shared hook: nobody's":                 {remove: deleteHook, kind: namespaceKind, requests: "GET", says: "Namespace/a exists and does not belong to this release"},
		"a shared hook: the app's":                {remove: deleteHook, kind: namespaceKind, live: ofApp, requests: "GET,DELETE"},
		"a shared hook: of this action":           {remove: deleteHook, kind: namespaceKind, change: func(c *Client) { c.hooked["old"] = true }, requests: "GET,DELETE"},
		"a shared hook: the release's":            {remove: deleteHook, kind: namespaceKind, live: ofRelease, requests: "GET,DELETE"},
		"left the chart: the release's":           {remove: leaveChart, live: ofRelease, requests: "GET,DELETE"},
		"left the chart: kept by the manifest":    {remove: leaveChart, live: ofRelease, wanted: "metadata: {name: a, annotations: {helm.sh/resource-policy: Keep}}\n"},
		"left the chart: kept by the live object": {remove: leaveChart, live: ofReleaseKept, requests: "GET"},
		"left the chart: it may not be deleted":   {remove: leaveChart, live: ofRelease, fails: forbidden("DELETE"), requests: "GET,DELETE", says: "deleting what left the chart: "},
		"left the chart: shared, and may not be":  {remove: leaveChart, kind: namespaceKind, live: ofReleaseAndApp, fails: forbidden("DELETE"), requests: "GET,DELETE"},
		"a leftover: the release's":               {remove: removeLeftover, live: ofRelease, requests: "GET,DELETE"},
		"a leftover: nobody's":                    {remove: removeLeftover, requests: "GET"},
		"a leftover: kept":                        {remove: removeLeftover, live: ofReleaseKept, requests: "GET"},
		"a leftover: of another namespace":        {remove: removeLeftover, live: ofRelease, wanted: "metadata: {name: a, namespace: other}\n"},
		"a leftover: it cannot be read":           {remove: removeLeftover, live: ofRelease, fails: forbidden("GET"), requests: "GET", says: "no role allows it"},
		"a leftover: shared":                      {remove: removeLeftover, kind: namespaceKind, live: ofRelease, requests: "GET"},
		"a leftover: shared, the app's":           {remove: removeLeftover, kind: namespaceKind, live: ofReleaseAndApp, requests: "GET,GET,DELETE"},
		"a leftover: shared, cannot be read":      {remove: removeLeftover, kind: namespaceKind, live: ofReleaseAndApp, fails: forbidden("GET"), requests: "GET", says: "no role allows it"},
		"a leftover: shared, kept":                {remove: removeLeftover, kind: namespaceKind, live: ofReleaseAndApp[:len(ofReleaseAndApp)-1] + ", helm.sh/resource-policy: keep}", requests: "GET"},
		"a leftover: a definition":                {remove: removeLeftover, kind: definitionKind, live: ofReleaseAndApp},
		"uninstalled: a definition":               {remove: uninstall, kind: definitionKind, live: ofReleaseAndApp},
		"uninstalled: shared":                     {remove: uninstall, kind: namespaceKind, live: ofReleaseAndApp, requests: "GET,DELETE"},
		"uninstalled: shared, cannot be read":     {remove: uninstall, kind: namespaceKind, live: ofReleaseAndApp, fails: forbidden("GET"), requests: "GET", says: "reading: "},
		"uninstalled: shared, and it is refused":  {remove: uninstall, kind: namespaceKind, live: ofReleaseAndApp, fails: map[string]*apierrors.StatusError{"DELETE": errImmutable}, requests: "GET,DELETE", says: "is invalid"},
		"uninstalled: an unchanged claim":         {remove: uninstall, kind: claimKind, live: ofRelease, change: unmoved, requests: "GET,DELETE"},
		"uninstalled: an unchanged claim's data":  {remove: uninstall, kind: claimKind, live: ofRelease, rest: bound, change: unmoved, requests: "GET"},
		"uninstalled: an unchanged claim, unread": {remove: uninstall, kind: claimKind, live: ofRelease, fails: forbidden("GET"), change: unmoved, requests: "GET", says: "reading: "},
	} {
		t.Run(name, func(t *testing.T) {
			if c.kind == "" {
				c.kind = configMapKind
			}
			if c.wanted == "" {
				c.wanted = nameA
			}
			api := &fakeAPI{live: liveObject(t, c.kind, c.live, c.rest), fails: c.fails}
			if c.kind == namespaceKind || c.kind == definitionKind {
				api.live.SetNamespace("")
			}
			client := api.client(t)
			if c.change != nil {
				c.change(client)
			}
			err := c.remove(client, target(t, client, object(t, c.kind+c.wanted)))
			if (err != nil) != (c.says != "") || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want %q", err, c.says)
			}
			if got := strings.Join(api.requests, ","); got != c.requests {
				t.Errorf("the requests are %s, want %s", got, c.requests)
			}
			if stays := !strings.HasSuffix(c.requests, "DELETE") || c.fails["DELETE"] != nil; (api.live != nil) != stays {
				t.Errorf("it stays: %t, want %t", api.live != nil, stays)
			}
			if noted := client.DeletionFailed(); name[:2] == "un" && (noted != nil) != (c.says != "") {
				t.Errorf("the failed deletions are %v", noted)
			}
		})
		if c.says == "a hook with generateName has no name" || c.fails != nil {
			continue // No object is looked for.
		}
		t.Run(name+", but it is gone", func(t *testing.T) {
			client := (&fakeAPI{}).client(t)
			if c.change != nil {
				c.change(client)
			}
			if err := c.remove(client, target(t, client, object(t, c.kind+c.wanted))); err != nil {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestRemainingObjectsOfAReleaseHaveTheirReason. Objects that no action deletes are left out.
func TestRemainingObjectsOfAReleaseHaveTheirReason(t *testing.T) {
	const deleted = "deletionTimestamp: '2026-03-01T12:00:00Z'"
	for name, c := range map[string]struct {
		kind, live, rest, wanted string
		gone                     bool
		fails                    map[string]*apierrors.StatusError
		want, says               string
	}{
		"it exists":                              {live: ofRelease, want: "ConfigMap/a"},
		"a finalizer holds it":                   {live: ofRelease + ", finalizers: [example.com/x], " + deleted, want: "ConfigMap/a, which the finalizer example.com/x holds"},
		"it is gone":                             {gone: true},
		"it is nobody's":                         {},
		"it is kept":                             {live: ofReleaseKept},
		"its manifest has any policy":            {live: ofRelease, wanted: "metadata: {name: a, annotations: {helm.sh/resource-policy: unknown}}\n"},
		"a claim with data":                      {kind: claimKind, live: ofRelease, rest: bound},
		"a claim with data, deleted":             {kind: claimKind, live: ofRelease + ", " + deleted, rest: bound, want: "PersistentVolumeClaim/a"},
		"it cannot be read":                      {live: ofRelease, fails: map[string]*apierrors.StatusError{"GET": errForbidden}, says: "looking for ConfigMap/a: "},
		"it cannot be read, nor by the operator": {kind: namespaceKind, live: ofReleaseAndApp, fails: map[string]*apierrors.StatusError{"GET": errForbidden}, says: "looking for Namespace/a: "},
		"it is of a kind that is served":         {kind: "apiVersion: example.com/v1\nkind: Thing\n", live: ofRelease},
	} {
		t.Run(name, func(t *testing.T) {
			if c.kind == "" {
				c.kind = configMapKind
			}
			if c.wanted == "" {
				c.wanted = nameA
			}
			api := &fakeAPI{live: liveObject(t, c.kind, c.live, c.rest), fails: c.fails}
			if c.gone {
				api.live = nil
			}
			wanted := object(t, c.kind+c.wanted)
			left, holds, err := api.client(t).Release.Remaining([]*unstructured.Unstructured{wanted})
			if (err != nil) != (c.says != "") || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Fatalf("got %v, want %q", err, c.says)
			}
			if c.want == "" {
				if len(left)+len(holds) > 0 {
					t.Errorf("left are %v", holds)
				}
				return
			}
			if len(left) != 1 || left[0] != wanted || len(holds) != 1 || holds[0].String() != c.want {
				t.Errorf("left are %v: %v, want %s", left, holds, c.want)
			}
		})
	}
}

// TestAnUpgradeThatWouldDeleteDataIsRefusedBeforeItBegins: it drops an object from the manifest that owns claims.
func TestAnUpgradeThatWouldDeleteDataIsRefusedBeforeItBegins(t *testing.T) {
	claims, away := map[types.UID][]string{"old": {"data-0"}}, errors.New("the API server is away")
	for name, c := range map[string]struct {
		kind, metadata, live, text string
		owned                      map[types.UID][]string
		err                        error
		gone                       bool
		asked                      bool
		requests, says             string
	}{
		"it owns claims":                {live: ofRelease, owned: claims, asked: true, requests: "GET", says: "StatefulSet/a owns claims that hold data and would go with it: data-0"},
		"others own claims":             {live: ofRelease, owned: map[types.UID][]string{"other": {"data-0"}}, asked: true, requests: "GET"},
		"nothing owns claims":           {live: ofRelease, asked: true},
		"claims cannot be listed":       {live: ofRelease, err: away, asked: true, says: "looking for claims that would go with objects of the release: the API server is away"},
		"it is gone":                    {gone: true, owned: claims, asked: true, requests: "GET"},
		"it is kept":                    {live: ofReleaseKept, owned: claims, asked: true, requests: "GET"},
		"it is kept by its manifest":    {metadata: "metadata: {name: a, annotations: {helm.sh/resource-policy: keep}}\n", live: ofRelease, owned: claims},
		"its kind owns none":            {kind: configMapKind, live: ofRelease, owned: claims},
		"it stays in the manifest":      {live: ofRelease, text: statefulSetKind + nameA, owned: claims},
		"the manifest cannot be read":   {live: ofRelease, text: "a: [", owned: claims, says: "reading what the release keeps: "},
		"the revision cannot be parsed": {metadata: "a: [", live: ofRelease, owned: claims, says: "reading revision 3: "},
	} {
		t.Run(name, func(t *testing.T) {
			if c.kind == "" {
				c.kind = statefulSetKind
			}
			if c.metadata == "" {
				c.metadata = nameA
			}
			api := &fakeAPI{live: liveObject(t, c.kind, c.live, "")}
			if c.gone {
				api.live = nil
			}
			asked := false
			err := api.client(t).Release.GuardData([]*helm.Release{{Version: 3, Manifest: c.kind + c.metadata}}, c.text, func() (map[types.UID][]string, error) {
				asked = true
				return c.owned, c.err
			})
			if (err != nil) != (c.says != "") || err != nil && !strings.HasPrefix(err.Error(), c.says) {
				t.Errorf("got %v, want %q", err, c.says)
			}
			if got := strings.Join(api.requests, ","); got != c.requests || asked != c.asked {
				t.Errorf("the requests are %s, claims were listed: %t; want %s, %t", got, asked, c.requests, c.asked)
			}
		})
	}
}

func TestLeftoversAreTheObjectsOfNoKeptManifest(t *testing.T) {
	revisions := []*helm.Release{
		{Version: 1, Manifest: configMapKind + nameA + "data: {a: old}\n---\n" + configMapKind + "metadata: {name: b}\n"},
		{Version: 2, Manifest: configMapKind + nameA + "data: {a: new}\n---\n" + configMapKind + "metadata: {name: c}\n"},
	}
	o := (&fakeAPI{}).client(t).Release
	got, err := o.without(revisions, []string{configMapKind + "metadata: {name: b, namespace: kubeop-acme-shop}\n"})
	var names []string
	for _, u := range got {
		names = append(names, u.GetName()+" "+dataOf(u))
	}
	if diff := cmp.Diff([]string{"a a=new", "c "}, names); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	api := &fakeAPI{live: liveObject(t, configMapKind, ofRelease, ""), fails: map[string]*apierrors.StatusError{"DELETE": errForbidden}}
	if err := api.client(t).Release.RemoveLeftovers(revisions[:1], nil); err == nil || !strings.HasPrefix(err.Error(), "removing ConfigMap/a, which a failed attempt left: ") {
		t.Errorf("got %v", err)
	}
	api.fails, api.requests = nil, nil
	if err := api.client(t).Release.RemoveLeftovers(revisions[:1], []string{configMapKind + nameA + "---\n" + configMapKind + "metadata: {name: b}\n"}); err != nil || len(api.requests) > 0 {
		t.Errorf("what is kept: %v after %v", err, api.requests)
	}
	if err := api.client(t).Release.RemoveLeftovers(revisions[:1], []string{"a: ["}); err == nil || len(api.requests) > 0 {
		t.Errorf("a manifest that cannot be read: %v after %v", err, api.requests)
	}
}

func TestADeletionIsWaitedForExceptOfClaimsThatAreKept(t *testing.T) {
	for name, c := range map[string]struct {
		kind, rest string
		// goes is the read with which the object is gone; 0 for never.
		goes  int
		fails map[string]*apierrors.StatusError
		says  string
	}{
		"it is gone":         {goes: 1},
		"it goes later":      {goes: 3},
		"it does not go":     {says: "waiting up to 1h0m0s for ConfigMap/a to be gone: "},
		"a claim with data":  {kind: claimKind, rest: bound},
		"a claim without":    {kind: claimKind, says: "waiting up to 1h0m0s for PersistentVolumeClaim/a to be gone: "},
		"it cannot be read":  {fails: map[string]*apierrors.StatusError{"GET": errForbidden}, says: "no role allows it"},
		"an invalid request": {fails: map[string]*apierrors.StatusError{"GET": errImmutable}, says: "is invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.kind == "" {
				c.kind = configMapKind
			}
			api := &fakeAPI{live: liveObject(t, c.kind, ofRelease, c.rest), fails: c.fails}
			client := api.client(t)
			client.clock = &pauses{late: c.goes == 0}
			api.read = func(n int) {
				if n == c.goes {
					api.live = nil
				}
			}
			err := client.WaitForDelete(kube.ResourceList{target(t, client, object(t, c.kind+nameA))}, time.Hour)
			if (err != nil) != (c.says != "") || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want %q", err, c.says)
			}
		})
	}
}

// TestWebhooksAreDeletedBeforeOthers, which keep their order: without its Service, a webhook refuses everything.
func TestWebhooksAreDeletedBeforeOthers(t *testing.T) {
	of := func(group, kind, name string) *resource.Info {
		return &resource.Info{Name: name, Mapping: &meta.RESTMapping{GroupVersionKind: schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind}}}
	}
	given := kube.ResourceList{of("", "Service", "b"), of("apps", "Deployment", "a"), of("admissionregistration.k8s.io", "ValidatingWebhookConfiguration", "d"), of("", "Secret", "c"), of("admissionregistration.k8s.io", "MutatingWebhookConfiguration", "a")}
	var names []string
	for _, info := range webhooksFirst(given) {
		names = append(names, nameOf(info))
	}
	want := []string{"ValidatingWebhookConfiguration/d", "MutatingWebhookConfiguration/a", "Service/b", "Deployment/a", "Secret/c"}
	if diff := cmp.Diff(want, names); diff != "" || given[0].Name != "b" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestClaimsThatCannotBeListedStopADeletion: nobody knows what would go with the object.
func TestClaimsThatCannotBeListedStopADeletion(t *testing.T) {
	api := &fakeAPI{live: liveObject(t, statefulSetKind, ofRelease, "")}
	c := api.client(t)
	c.owned = func(context.Context) (map[types.UID][]string, error) { return nil, errConflict }
	err := uninstall(c, target(t, c, object(t, statefulSetKind+nameA)))
	if !errors.Is(err, errConflict) || errors.As(err, new(*fault.ClaimsInTheWay)) || api.live == nil {
		t.Errorf("got %v", err)
	}
}

// TestAnUninstallDeletesWithItsPropagation: spec.helm.uninstall.deletionPropagation holds for what is the release's own and what it shares.
func TestAnUninstallDeletesWithItsPropagation(t *testing.T) {
	for _, kind := range []string{configMapKind, namespaceKind} {
		for _, policy := range []metav1.DeletionPropagation{metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan} {
			api := &fakeAPI{live: liveObject(t, kind, ofReleaseAndApp, "")}
			if kind == namespaceKind {
				api.live.SetNamespace("")
			}
			c := api.client(t)
			if _, errs := c.DeleteWithPropagationPolicy(kube.ResourceList{target(t, c, object(t, kind+nameA))}, policy); len(errs) > 0 || api.propagation != policy {
				t.Errorf("%s: deleted with %q, want %q: %v", kind, api.propagation, policy, errs)
			}
		}
	}
}
