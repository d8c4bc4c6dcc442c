package apply

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/garbage"
	"github.com/kubeop/kubeop/delivery/inventory"
)

var (
	seed      = flag.Uint64("seed", 0, "of the random sequences; 0 for another one each time")
	sequences = flag.Int("sequences", 1000, "how many random sequences to try")
)

const (
	// lanes is how many sequences run at once, each in a namespace of its own.
	lanes = 8
	// steps is how many changes of the two apps a sequence makes.
	steps = 4
	// names is how many names the apps choose from; foreigners is how many of them are somebody else's.
	names, foreigners = 8, 2
	invalid           = "invalid"
)

// TestAnySequenceOfAppliesLeavesOnlyWhatTheAppsWant has two apps of one project go through random changes of what they want. After each step the
// inventories list exactly what exists, after each that nothing is wrong with the cluster holds what the apps want, and
// what is somebody else's is as it was.
func TestAnySequenceOfAppliesLeavesOnlyWhatTheAppsWant(t *testing.T) {
	if *seed == 0 {
		*seed = rand.Uint64()
	}
	count := *sequences
	if testing.Short() {
		count /= 20
	}
	t.Logf("-seed=%d", *seed)
	config := rest.CopyConfig(env.Config)
	config.QPS = -1
	c, err := client.NewWithWatch(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	numbers := make(chan int)
	var all sync.WaitGroup
	for range lanes {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "random-"}}
		if err := c.Create(t.Context(), ns); err != nil {
			t.Fatal(err)
		}
		lane := newWorld(t, c, ns.Name)
		all.Go(func() {
			for n := range numbers {
				lane.run(n)
			}
		})
	}
	for n := range count {
		if t.Failed() {
			break
		}
		numbers <- n
	}
	close(numbers)
	all.Wait()
}

// world is a namespace with two apps in it.
type world struct {
	client.Client
	*rand.Rand
	t         *testing.T
	namespace string
	number    int
	apps      []*randomApp
	foreign   map[string]string // By ID, the resourceVersion.
	// seen is what stands for the watch: what was there when an app's turn began. It is nil when something happened since.
	seen map[string]*unstructured.Unstructured
	log  []string
}

// randomApp is one app: what it wants, by ID, and what is recorded of it.
type randomApp struct {
	name     string
	wants    map[inventory.ObjectID]string
	recorded []v1alpha1.InventoryEntry
}

func newWorld(t *testing.T, c client.Client, namespace string) *world {
	w := &world{
		Client: c, t: t, namespace: namespace, foreign: map[string]string{},
		apps: []*randomApp{{name: "web", wants: map[inventory.ObjectID]string{}}, {name: "api", wants: map[inventory.ObjectID]string{}}},
	}
	for i := range foreigners {
		o := w.object(&randomApp{}, w.id(i), "theirs")
		o.SetLabels(nil)
		w.check(w.Create(t.Context(), o))
		w.foreign[inventory.IDOf(o).String()] = o.GetResourceVersion()
	}
	return w
}

// moves are what can happen between two deliveries.
var moves = map[string]func(w *world, a, b *randomApp){
	"add":    func(w *world, a, b *randomApp) { w.add(a, b) },
	"change": func(w *world, a, _ *randomApp) { w.any(a, func(id inventory.ObjectID) { a.wants[id] = w.value() }) },
	"rename": func(w *world, a, b *randomApp) {
		w.any(a, func(id inventory.ObjectID) { delete(a.wants, id); w.add(a, b) })
	},
	"move": func(w *world, a, b *randomApp) {
		w.any(a, func(id inventory.ObjectID) { b.wants[id] = a.wants[id]; delete(a.wants, id) })
	},
	"delete": func(w *world, a, _ *randomApp) { w.any(a, func(id inventory.ObjectID) { delete(a.wants, id) }) },
	"empty":  func(_ *world, a, _ *randomApp) { clear(a.wants) },
	"break": func(w *world, a, b *randomApp) {
		w.add(a, b)
		w.any(a, func(id inventory.ObjectID) { a.wants[id] = invalid })
	},
	"fix":     func(w *world, a, b *randomApp) { w.fix(a, b) },
	"claim":   func(w *world, a, _ *randomApp) { a.wants[w.id(w.IntN(foreigners))] = w.value() },
	"contest": func(w *world, a, b *randomApp) { w.any(b, func(id inventory.ObjectID) { a.wants[id] = w.value() }) },
	"hand": func(w *world, a, _ *randomApp) {
		w.any(a, func(id inventory.ObjectID) { w.hand(id) })
	},
}

func (w *world) id(number int) inventory.ObjectID {
	id := inventory.ObjectID{Namespace: w.namespace, Name: fmt.Sprintf("n%d", number), Kind: "ConfigMap"}
	if number%4 == 3 {
		id.Kind = "Service"
	}
	return id
}

func (w *world) value() string { return fmt.Sprint("v", w.IntN(4)) }

// add has an app want an object that nobody has yet.
func (w *world) add(a, b *randomApp) {
	for range 2 {
		id := w.id(foreigners + w.IntN(names-foreigners))
		if _, taken := b.wants[id]; !taken {
			a.wants[id] = w.value()
		}
	}
}

// any calls f with one of the objects that an app wants, if there are any.
func (w *world) any(a *randomApp, f func(inventory.ObjectID)) {
	ids := slices.SortedFunc(maps.Keys(a.wants), func(x, y inventory.ObjectID) int { return strings.Compare(x.String(), y.String()) })
	if len(ids) > 0 {
		f(ids[w.IntN(len(ids))])
	}
}

// fix makes an app good again: nothing of it is invalid, foreign or the other app's.
func (w *world) fix(a, b *randomApp) {
	for id, value := range a.wants {
		_, contested := b.wants[id]
		if _, foreign := w.foreign[id.String()]; foreign || contested || value == invalid {
			delete(a.wants, id)
		}
	}
}

// hand has a person delete or change an object.
func (w *world) hand(id inventory.ObjectID) {
	if _, foreign := w.foreign[id.String()]; foreign {
		return
	}
	o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: id.Namespace, Name: id.Name}}
	o.SetGroupVersionKind(id.Versioned("v1"))
	err := error(nil)
	if w.IntN(2) == 0 {
		err = w.Delete(w.t.Context(), o)
	} else {
		patch := []byte(`{"data":{"key":"by hand"}}`)
		if id.Kind == "Service" {
			patch = []byte(`{"spec":{"selector":{"key":"by-hand"}}}`)
		}
		err = w.Patch(w.t.Context(), o, client.RawPatch(types.MergePatchType, patch), client.FieldOwner("kubectl-edit"))
	}
	w.check(client.IgnoreNotFound(err))
	w.moved(true)
}

// object is what an app wants of an ID.
func (w *world) object(a *randomApp, id inventory.ObjectID, value string) *unstructured.Unstructured {
	content := map[string]any{"data": map[string]any{"key": value}}
	if id.Kind == "Service" {
		content = map[string]any{"spec": map[string]any{"clusterIP": "None", "selector": map[string]any{"key": value}}}
	}
	if value == invalid {
		content = map[string]any{"data": map[string]any{"no/key": value}, "spec": map[string]any{"clusterIP": "no address"}}
		delete(content, map[string]string{"ConfigMap": "spec", "Service": "data"}[id.Kind])
	}
	o := &unstructured.Unstructured{Object: content}
	o.SetGroupVersionKind(id.Versioned("v1"))
	o.SetNamespace(id.Namespace)
	o.SetName(id.Name)
	o.SetLabels(w.labels(a))
	return o
}

func (w *world) labels(a *randomApp) map[string]string {
	return map[string]string{v1alpha1.TenantLabel: "acme", v1alpha1.ProjectLabel: "shop", v1alpha1.AppLabel: a.name}
}

// run tries one sequence, which begins and ends with two apps that want nothing.
func (w *world) run(number int) {
	w.number, w.log, w.Rand = number, nil, rand.New(rand.NewPCG(*seed, uint64(number)))
	for range steps {
		for i := range w.apps {
			w.step(w.apps[i], w.apps[1-i])
		}
		if w.t.Failed() {
			return
		}
		_ = w.deliverAll() // What is broken is said, and fixed in the end.
	}
	for i := range w.apps {
		w.fix(w.apps[i], w.apps[1-i])
	}
	w.good()
	for _, a := range w.apps {
		clear(a.wants)
	}
	w.good()
}

func (w *world) step(a, b *randomApp) {
	kinds := slices.Sorted(maps.Keys(moves))
	for range 1 + w.IntN(2) {
		kind := kinds[w.IntN(len(kinds))]
		w.log = append(w.log, a.name+": "+kind)
		moves[kind](w, a, b)
	}
}

// good delivers both apps until nothing is wrong, and compares.
func (w *world) good() {
	w.log = append(w.log, "good")
	for round := 0; w.deliverAll() != nil; round++ {
		if round == 5 {
			w.fail("the apps do not come to rest: %v", w.deliverAll())
			return
		}
	}
	want, got := map[string]string{}, map[string]string{}
	for _, a := range w.apps {
		for id, value := range a.wants {
			want[id.String()] = a.name + " " + value
		}
	}
	for id, o := range w.look() {
		if _, foreign := w.foreign[id]; !foreign {
			got[id] = o.GetLabels()[v1alpha1.AppLabel] + " " + valueOf(o)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		w.fail("objects (-want +got):\n%s", diff)
	}
}

func valueOf(o *unstructured.Unstructured) string {
	path := []string{"data", "key"}
	if o.GetKind() == "Service" {
		path = []string{"spec", "selector", "key"}
	}
	value, _, _ := unstructured.NestedString(o.Object, path...)
	return value
}

// deliverAll delivers both apps, in any order, and checks what is true whether they are good or not.
func (w *world) deliverAll() error {
	first := w.IntN(2)
	err := errors.Join(w.deliver(w.apps[first]), w.deliver(w.apps[1-first]))
	there := w.look()
	for id, version := range w.foreign {
		if there[id] == nil || there[id].GetResourceVersion() != version {
			w.fail("the foreign object %s was touched: %v", id, there[id])
		}
	}
	for _, a := range w.apps {
		w.recordedAsThere(a, there, err == nil)
	}
	return err
}

// recordedAsThere checks that nothing that an app owns is forgotten, and once nothing is wrong, that nothing else is recorded.
// Until then what was never made may be recorded, because the process ended before it returned.
func (w *world) recordedAsThere(a *randomApp, there map[string]*unstructured.Unstructured, exact bool) {
	var recorded, owned []string
	for _, e := range a.recorded {
		if o := there[e.ID]; exact || (o != nil && o.GetLabels()[v1alpha1.AppLabel] == a.name) {
			recorded = append(recorded, e.ID)
		}
	}
	for id, o := range there {
		if o.GetLabels()[v1alpha1.AppLabel] == a.name {
			owned = append(owned, id)
		}
	}
	slices.Sort(owned)
	if diff := cmp.Diff(owned, recorded); diff != "" {
		w.fail("app %s (-there +recorded):\n%s", a.name, diff)
	}
}

// deliver is what the controller does with an app. Now and then the process ends before it returns what it did.
func (w *world) deliver(a *randomApp) error {
	killed := w.IntN(10) == 0
	w.look()
	set := Set{Client: w, Recorded: a.recorded, Before: func(_ context.Context, entries []v1alpha1.InventoryEntry) error {
		a.recorded = entries
		return nil
	}}
	for id, value := range a.wants {
		set.Objects = append(set.Objects, w.object(a, id, value))
	}
	before := a.recorded
	applier := &Applier{Live: w.live}
	result, err := applier.Apply(w.t.Context(), set)
	defer w.moved(len(result.Written) > 0)
	if killed {
		w.log = append(w.log, a.name+" was killed")
		w.moved(true)
		return w.deliver(a)
	}
	stale := inventory.Without(before, result.Entries)
	a.recorded = inventory.Join(result.Entries, stale).Entries
	if err != nil && !Only(err, ErrContested) {
		return err
	}
	defer w.moved(len(stale) > 0)
	left, failed := garbage.Delete(w.t.Context(), w, applier.Live, stale, w.labels(a))
	a.recorded = inventory.Join(result.Entries, left).Entries
	return errors.Join(err, failed)
}

// live stands for the watch: it knows what carries a tenant's label.
func (w *world) live(_ context.Context, kind schema.GroupVersionKind, key types.NamespacedName) (metav1.Object, bool, error) {
	o := w.seen[inventory.ObjectID{Namespace: key.Namespace, Name: key.Name, Group: kind.Group, Kind: kind.Kind}.String()]
	if o == nil || o.GetLabels()[v1alpha1.TenantLabel] == "" {
		return nil, true, nil
	}
	return o, true, nil
}

// moved forgets what was seen, if something happened since.
func (w *world) moved(something bool) {
	if something {
		w.seen = nil
	}
}

func (w *world) look() map[string]*unstructured.Unstructured {
	if w.seen == nil {
		w.seen = w.there()
	}
	return w.seen
}

// there is what exists, by ID, but for what Kubernetes itself puts into every namespace.
func (w *world) there() map[string]*unstructured.Unstructured {
	found := map[string]*unstructured.Unstructured{}
	for _, kind := range []string{"ConfigMap", "Service"} {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion("v1")
		list.SetKind(kind + "List")
		w.check(w.List(w.t.Context(), list, client.InNamespace(w.namespace)))
		for i := range list.Items {
			if list.Items[i].GetName() != "kube-root-ca.crt" {
				found[inventory.IDOf(&list.Items[i]).String()] = &list.Items[i]
			}
		}
	}
	return found
}

func (w *world) check(err error) {
	if err != nil {
		w.fail("%v", err)
	}
}

func (w *world) fail(format string, args ...any) {
	w.t.Errorf("sequence %d of -seed=%d: %s\nafter %s", w.number, *seed, fmt.Sprintf(format, args...), strings.Join(w.log, ", "))
}
