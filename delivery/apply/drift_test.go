package apply

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/differ"
	"github.com/kubeop/kubeop/delivery/inventory"
)

// pass applies objects with what the set says beside them.
func (b *fixture) pass(set Set, objects ...*unstructured.Unstructured) (Result, int64) {
	b.t.Helper()
	before := b.writes.Load()
	set.Client, set.Objects, set.Recorded = b.Client, objects, b.recorded
	result, err := b.Apply(b.t.Context(), set)
	if err != nil {
		b.t.Fatal(err)
	}
	b.recorded = result.Entries
	return result, b.writes.Load() - before
}

// by changes an object in somebody's name.
func (b *fixture) by(manager, patch string, o *unstructured.Unstructured) {
	b.t.Helper()
	if err := b.Patch(b.t.Context(), o.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner(manager)); err != nil {
		b.t.Fatal(err)
	}
}

// get reads an object's field.
func (b *fixture) get(o *unstructured.Unstructured, path ...string) any {
	b.t.Helper()
	live := emptyLike(o)
	if err := b.Get(b.t.Context(), client.ObjectKeyFromObject(o), live); err != nil {
		b.t.Fatal(err)
	}
	value, _, _ := unstructured.NestedFieldNoCopy(live.Object, path...)
	return value
}

func TestFieldsOfOthersAreNotCorrected(t *testing.T) {
	b := newFixture(t)
	config, gone := b.config("one", "a"), b.config("gone", "a")
	b.pass(Set{Leave: true}, config, gone)
	b.by("somebody", `{"data":{"key":"theirs"}}`, config)
	if err := b.Delete(t.Context(), gone.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	result, writes := b.pass(Set{Leave: true}, config, gone)
	if writes != 0 || len(result.Moved) != 2 || result.Moved[0].Entry.Digest != "" || result.Moved[1].Entry.Digest == "" {
		t.Fatalf("%d writes, moved %+v", writes, result.Moved)
	}
	if live, _, err := b.Preview(t.Context(), b.Client, result.Moved[0]); live != nil || err != nil {
		t.Errorf("what is gone is shown as %v, %v", live, err)
	}
	live, corrected, err := b.Preview(t.Context(), b.Client, result.Moved[1])
	if err != nil {
		t.Fatal(err)
	}
	fields := differ.Compare(corrected, live, func(text string) string { return text })
	if diff := cmp.Diff([]differ.Change{{Path: "/data/key", Want: `"a"`, Have: `"theirs"`}}, fields); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := b.get(config, "data", "key"); got != "theirs" {
		t.Errorf("the value is %v, want %q", got, "theirs")
	}
	// A new manifest is applied.
	if _, writes := b.pass(Set{Leave: true}, b.config("one", "b")); writes != 1 || b.get(config, "data", "key") != "b" {
		t.Errorf("%d writes, the value is %v", writes, b.get(config, "data", "key"))
	}
}

func TestOnlyCorrectedFieldsAreReported(t *testing.T) {
	b := newFixture(t)
	secret := func(name string) *unstructured.Unstructured {
		return b.object("v1", "Secret", name, map[string]any{"stringData": map[string]any{"key": "a"}})
	}
	objects := []*unstructured.Unstructured{b.config("one", "a"), b.config("two", "a"), secret("noted"), secret("changed")}
	if result, _ := b.pass(Set{}, objects...); len(result.Corrected) != 0 {
		t.Errorf("new objects are reported as corrected: %+v", result.Corrected)
	}
	b.by("somebody", `{"data":{"key":"theirs"}}`, objects[0])
	b.by("somebody", `{"metadata":{"annotations":{"a":"b"}}}`, objects[2])
	b.by("somebody", `{"data":{"key":"eA=="}}`, objects[3])
	objects[1] = b.config("two", "b")
	result, writes := b.pass(Set{}, objects...)
	if got := inventory.Names(result.Corrected); writes != 4 || got != "Secret/changed, ConfigMap/one" {
		t.Errorf("%d writes, put back is %s", writes, got)
	}
}

func TestSparedFieldsStay(t *testing.T) {
	const image = "/spec/template/spec/containers/1/image"
	deployment := func(b *fixture, web, log string) *unstructured.Unstructured { return b.workload(web, log) }
	theirs := `{"spec":{"template":{"spec":{"containers":[{"name":"web","image":"web:1"},{"name":"log","image":"log:theirs"}]}}}}`
	cases := map[string]struct {
		patch   string
		changed func(*fixture) *unstructured.Unstructured
		want    string
		writes  int64
	}{
		"nobody changed it, and the source does": {"", func(b *fixture) *unstructured.Unstructured { return deployment(b, "web:1", "log:2") }, "log:1", 0},
		"somebody changed it":                    {theirs, func(b *fixture) *unstructured.Unstructured { return deployment(b, "web:1", "log:1") }, "log:theirs", 0},
		"somebody did, and the source another":   {theirs, func(b *fixture) *unstructured.Unstructured { return deployment(b, "web:2", "log:2") }, "log:theirs", 1},
		"nobody did, and the source another":     {"", func(b *fixture) *unstructured.Unstructured { return deployment(b, "web:2", "log:2") }, "log:1", 1},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t)
			rules, err := differ.ReadRules([]v1alpha1.IgnoreRule{{Paths: []string{image}}})
			if err != nil {
				t.Fatal(err)
			}
			set := Set{Ignore: rules}
			first := deployment(b, "web:1", "log:1")
			b.pass(set, first)
			if c.patch != "" {
				b.by("somebody", c.patch, first)
			}
			second := c.changed(b)
			result, writes := b.pass(set, second)
			if writes != c.writes || len(result.Corrected) != 0 {
				t.Errorf("%d writes, want %d; put back is %s", writes, c.writes, inventory.Names(result.Corrected))
			}
			if _, writes := b.pass(set, second); writes != 0 {
				t.Errorf("%d more writes, want 0", writes)
			}
			containers := b.get(first, "spec", "template", "spec", "containers").([]any)
			if got := containers[1].(map[string]any)["image"]; got != c.want {
				t.Errorf("the image is %v, want %s", got, c.want)
			}
		})
	}
}

func TestASparedObjectIsLeft(t *testing.T) {
	b := newFixture(t)
	rules, err := differ.ReadRules([]v1alpha1.IgnoreRule{{Paths: []string{"/"}}})
	if err != nil {
		t.Fatal(err)
	}
	set := Set{Ignore: rules}
	config := b.config("one", "a")
	b.pass(set, config)
	b.by("somebody", `{"data":{"key":"theirs"}}`, config)
	if _, writes := b.pass(set, b.config("one", "b")); writes != 0 || b.get(config, "data", "key") != "theirs" {
		t.Errorf("%d writes, the value is %v", writes, b.get(config, "data", "key"))
	}
	if err := b.Delete(t.Context(), config.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	if _, writes := b.pass(set, b.config("one", "b")); writes != 1 || b.get(config, "data", "key") != "b" {
		t.Errorf("%d writes, the value is %v", writes, b.get(config, "data", "key"))
	}
}

// deviates returns how an object that was left differs from its manifest.
func (b *fixture) deviates(set Set, objects ...*unstructured.Unstructured) []differ.Change {
	b.t.Helper()
	set.Leave = true
	result, writes := b.pass(set, objects...)
	if writes != 0 || len(result.Moved) != 1 {
		b.t.Fatalf("%d writes, moved %+v", writes, result.Moved)
	}
	live, corrected, err := b.Preview(b.t.Context(), b.Client, result.Moved[0])
	if err != nil {
		b.t.Fatal(err)
	}
	return differ.Compare(corrected, live, func(text string) string { return text })
}

// workload is a Deployment without pods, with a container for each image.
func (b *fixture) workload(images ...string) *unstructured.Unstructured {
	labels, containers := map[string]any{"a": "b"}, []any{}
	for i, image := range images {
		containers = append(containers, map[string]any{"name": []string{"web", "log"}[i], "image": image})
	}
	return b.object("apps/v1", "Deployment", "web", map[string]any{"spec": map[string]any{
		"replicas": int64(0), "selector": map[string]any{"matchLabels": labels},
		"template": map[string]any{"metadata": map[string]any{"labels": labels}, "spec": map[string]any{"containers": containers}},
	}})
}

// TestFieldsAddedByHandAreReported compares objects to which people added fields, which applying the manifest alone leaves.
func TestFieldsAddedByHandAreReported(t *testing.T) {
	deployment := func(b *fixture) *unstructured.Unstructured { return b.workload("web:1") }
	config := func(b *fixture) *unstructured.Unstructured { return b.config("one", "a") }
	secret := func(b *fixture) *unstructured.Unstructured {
		return b.object("v1", "Secret", "one", map[string]any{"stringData": map[string]any{"key": "a"}})
	}
	cases := map[string]struct {
		object        func(*fixture) *unstructured.Unstructured
		ignore        string
		theirs, patch string
		want          []differ.Change
	}{
		"a value": {object: config, patch: `{"data":{"more":"x"}}`, want: []differ.Change{{Path: "/data/more", Have: `"x"`}}},
		"a value beside a changed one": {object: config, patch: `{"data":{"key":"y","more":"x"}}`, want: []differ.Change{
			{Path: "/data/key", Want: `"a"`, Have: `"y"`}, {Path: "/data/more", Have: `"x"`},
		}},
		"a secret value":                                {object: secret, patch: `{"data":{"more":"eA=="}}`, want: []differ.Change{{Path: "/data/more", Have: "***"}}},
		"a value and a label":                           {object: config, patch: `{"metadata":{"labels":{"x":"y"}},"data":{"more":"x"}}`, want: []differ.Change{{Path: "/data/more", Have: `"x"`}}},
		"what is ignored, beside others":                {object: config, ignore: "/data/more", patch: `{"data":{"more":"x","else":"z"}}`, want: []differ.Change{{Path: "/data/else", Have: `"z"`}}},
		"a changed value, while one of ours is ignored": {object: config, ignore: "/data/key", patch: `{"data":{"more":"x"}}`, want: []differ.Change{{Path: "/data/more", Have: `"x"`}}},
		"what another controller has, too":              {object: config, theirs: `{"data":{"else":"z"}}`, patch: `{"data":{"more":"x"}}`, want: []differ.Change{{Path: "/data/more", Have: `"x"`}}},
		"a field and a map": {object: deployment, patch: `{"spec":{"paused":true,"template":{"spec":{"nodeSelector":{"disk":"ssd"}}}}}`, want: []differ.Change{
			{Path: "/spec/paused", Have: "true"}, {Path: "/spec/template/spec/nodeSelector", Have: `{"disk":"ssd"}`},
		}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t)
			set, object := Set{}, c.object(b)
			if c.ignore != "" {
				var err error
				if set.Ignore, err = differ.ReadRules([]v1alpha1.IgnoreRule{{Paths: []string{c.ignore}}}); err != nil {
					t.Fatal(err)
				}
			}
			b.pass(set, object)
			if c.theirs != "" {
				b.by("somebody", c.theirs, object)
			}
			b.by("kubectl-edit", c.patch, object)
			if diff := cmp.Diff(c.want, b.deviates(set, c.object(b))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestReplicasOfAnAutoscalerAreNoDrift compares an object of which the app spares something, too.
func TestReplicasOfAnAutoscalerAreNoDrift(t *testing.T) {
	b := newFixture(t)
	rules, err := differ.ReadRules([]v1alpha1.IgnoreRule{{Paths: []string{"/spec/minReadySeconds"}}})
	if err != nil {
		t.Fatal(err)
	}
	outside := b.autoscaler()
	outside.SetLabels(nil)
	if err := b.Create(t.Context(), outside); err != nil {
		t.Fatal(err)
	}
	b.pass(Set{Ignore: rules}, b.deployment(3, "web:1"))
	b.scale("kube-controller-manager", 7)
	b.pass(Set{Ignore: rules}, b.deployment(3, "web:1")) // It gives the replicas up.
	b.by("somebody", `{"spec":{"template":{"spec":{"containers":[{"name":"web","image":"web:theirs"}]}}}}`, b.deployment(3, "web:1"))
	want := []differ.Change{{Path: "/spec/template/spec/containers/0/image", Want: `"web:1"`, Have: `"web:theirs"`}}
	if diff := cmp.Diff(want, b.deviates(Set{Ignore: rules}, b.deployment(3, "web:1"))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestAContainerAddedByHandIsReported(t *testing.T) {
	b := newFixture(t)
	b.pass(Set{}, b.workload("web:1"))
	b.by("kubectl-patch", `{"spec":{"template":{"spec":{"containers":[{"name":"web","image":"web:1"},{"name":"log","image":"log:theirs"}]}}}}`, b.workload("web:1"))
	result, _ := b.pass(Set{Leave: true}, b.workload("web:1"))
	_, corrected, err := b.Preview(t.Context(), b.Client, result.Moved[0])
	if err != nil {
		t.Fatal(err)
	}
	containers, _, _ := unstructured.NestedSlice(corrected.Object, "spec", "template", "spec", "containers")
	if len(containers) != 1 || containers[0].(map[string]any)["image"] != "web:1" {
		t.Errorf("putting it back would leave %v", containers)
	}
}

// TestASparedObjectIsLeftWithoutItsLabels has somebody take away the labels by which the watch finds an object.
func TestASparedObjectIsLeftWithoutItsLabels(t *testing.T) {
	b := newFixture(t)
	rules, err := differ.ReadRules([]v1alpha1.IgnoreRule{{Paths: []string{"/"}}})
	if err != nil {
		t.Fatal(err)
	}
	config := b.config("one", "a")
	b.pass(Set{Ignore: rules}, config)
	b.by("somebody", `{"metadata":{"labels":null},"data":{"key":"theirs"}}`, config)
	if _, writes := b.pass(Set{Ignore: rules}, b.config("one", "b")); writes != 0 || b.get(config, "data", "key") != "theirs" {
		t.Errorf("%d writes, the value is %v", writes, b.get(config, "data", "key"))
	}
}

// TestSparedMetadataIsLeft spares paths that also have the object's identity and owner labels.
func TestSparedMetadataIsLeft(t *testing.T) {
	for _, path := range []string{"/metadata", "/metadata/labels", "/metadata/labels/theirs"} {
		t.Run(path, func(t *testing.T) {
			b := newFixture(t)
			rules, err := differ.ReadRules([]v1alpha1.IgnoreRule{{Paths: []string{path}}})
			if err != nil {
				t.Fatal(err)
			}
			labelled := func(value string) *unstructured.Unstructured {
				o := b.config("one", value)
				labels := o.GetLabels()
				labels["theirs"] = "first"
				o.SetLabels(labels)
				return o
			}
			set := Set{Ignore: rules}
			b.pass(set, labelled("a"))
			b.by("somebody", `{"metadata":{"labels":{"theirs":"changed"}}}`, labelled("a"))
			if _, writes := b.pass(set, labelled("a")); writes != 0 {
				t.Errorf("%d writes, want 0", writes)
			}
			if _, writes := b.pass(set, labelled("b")); writes != 1 || b.get(labelled("b"), "data", "key") != "b" {
				t.Errorf("%d writes, the value is %v", writes, b.get(labelled("b"), "data", "key"))
			}
			if got := b.get(labelled("b"), "metadata", "labels", "theirs"); got != "changed" {
				t.Errorf("the label is %v, want %q", got, "changed")
			}
		})
	}
}
