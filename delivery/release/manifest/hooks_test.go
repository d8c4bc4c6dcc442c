package manifest

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	helm "helm.sh/helm/v3/pkg/release"
	helmtime "helm.sh/helm/v3/pkg/time"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubeop/kubeop/delivery/budget"
)

const (
	firstHook  = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: migrate, labels: {paas.kubeop.io/app: web, team: shop}}\n"
	secondHook = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: b}\n"
)

func ranAt(text string, started time.Time) *helm.Hook {
	return &helm.Hook{Path: "hook.yaml", Manifest: text, LastRun: helm.HookExecution{StartedAt: helmtime.Time{Time: started}}}
}

func TestHookObjectsAreReadInOrder(t *testing.T) {
	objects, err := HookObjects([]*helm.Hook{{Manifest: firstHook}, {Manifest: secondHook}})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, o := range objects {
		names = append(names, o.GetKind()+"/"+o.GetName())
	}
	if diff := cmp.Diff([]string{"Job/migrate", "Pod/a", "Pod/b"}, names); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got, err := HookObjects([]*helm.Hook{{Manifest: "- 1\n"}}); err == nil {
		t.Errorf("got %v of a hook that is no object", got)
	}
}

func TestOnlyHooksThatRanCount(t *testing.T) {
	identify := func(u *unstructured.Unstructured) Identity { return Identify(u, "team") }
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	got, err := Ran([]*helm.Release{
		{Version: 1, Hooks: []*helm.Hook{ranAt(firstHook, time.Time{}), ranAt(secondHook, now)}},
		{Version: 2, Hooks: []*helm.Hook{ranAt("apiVersion: v1\nkind: Pod\nmetadata: {name: c, namespace: other}\n", now)}},
	}, identify)
	if err != nil {
		t.Fatal(err)
	}
	pod := schema.GroupKind{Kind: "Pod"}
	want := map[Identity]bool{IdentityOf(pod, "team", "a"): true, IdentityOf(pod, "team", "b"): true, IdentityOf(pod, "other", "c"): true}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(Identity{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	_, err = Ran([]*helm.Release{{Version: 7, Hooks: []*helm.Hook{ranAt("- 1\n", now)}}}, identify)
	if err == nil || !strings.HasPrefix(err.Error(), "reading the hooks of revision 7: ") {
		t.Errorf("got %v", err)
	}
}

func TestUnstampedHooksHaveNotRun(t *testing.T) {
	hook := ranAt(firstHook, time.Now())
	hook.Weight = 5
	got, err := UnstampedHooks([]*helm.Hook{hook})
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 1 || got[0] == hook || !got[0].LastRun.StartedAt.IsZero() || got[0].Weight != 5 || strings.Contains(got[0].Manifest, "paas.kubeop.io") || !strings.Contains(got[0].Manifest, "team: shop") {
		t.Errorf("got %+v", got[0])
	}
	if hook.LastRun.StartedAt.IsZero() || hook.Manifest != firstHook {
		t.Error("the hook itself was changed")
	}
	if _, err := UnstampedHooks([]*helm.Hook{{Manifest: "- 1\n"}}); err == nil {
		t.Error("a hook that is no object is unstamped")
	}
}

func TestTheSizeOfAManifestCountsItsPods(t *testing.T) {
	pods := "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: a}\nspec: {replicas: 3, template: {metadata: {annotations: {a: %s}}}}\n"
	small := strings.Replace(pods, "%s", "x", 1)
	if got, err := Size(small); err != nil || got != int64(len(small)) {
		t.Errorf("got %d, %v of %d bytes", got, err, len(small))
	}
	large := strings.Replace(pods, "%s", strings.Repeat("x", budget.PlainTemplate), 1)
	docs, err := Parse(large)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := Size(large); err != nil || got != budget.Size(Objects(docs)) || got == int64(len(large)) {
		t.Errorf("got %d, %v of %d bytes", got, err, len(large))
	}
	if got, err := Size("- " + strings.Repeat("x", budget.PlainTemplate)); err == nil || !strings.HasPrefix(err.Error(), "reading what was rendered: ") {
		t.Errorf("got %d, %v", got, err)
	}
}
