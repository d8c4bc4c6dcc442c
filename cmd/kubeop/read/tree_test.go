package read

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/cmd/kubeop/call"
	"github.com/kubeop/kubeop/cmd/kubeop/objects"
	"github.com/kubeop/kubeop/cmd/kubeop/output"
	"github.com/kubeop/kubeop/cmd/kubeop/target"
	"github.com/kubeop/kubeop/internal/testenv/memory"
	"github.com/kubeop/kubeop/internal/testenv/terminal"
)

// delivered is a ready app that has delivered a ConfigMap.
func delivered() *v1alpha1.App {
	app := &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "web", UID: types.UID("web"), CreationTimestamp: before(60)}}
	app.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ReadyCondition, Status: metav1.ConditionTrue, Message: "all is well", LastTransitionTime: before(5)}}
	app.Status.Inventory.Entries = []v1alpha1.InventoryEntry{{ID: shop + "_settings__ConfigMap", Version: "v1"}}
	return app
}

func TestTheTreeShowsTheObjectsOfAReadyApp(t *testing.T) {
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "settings", CreationTimestamp: before(60)}}
	s := memory.Serve(t, delivered(), settings)
	out, _, err := show(t, s, Tree, "acme/shop/web")
	wantShown(t, out, err, "app acme/shop/web Ready", "└─ ConfigMap settings Healthy 60m")
	out, _, err = show(t, s, Tree, "acme/shop/web", "-o", "json")
	var nodes []objects.Node
	if jsonErr := json.Unmarshal([]byte(out), &nodes); err != nil || jsonErr != nil || len(nodes) != 1 || nodes[0].Name != "settings" || nodes[0].State != objects.Healthy {
		t.Errorf("as JSON: %v, %v\n%s", err, jsonErr, out)
	}
	empty := delivered()
	empty.Status.Inventory.Entries = nil
	out, complaint, err := show(t, memory.Serve(t, empty), Tree, "acme/shop/web")
	if err != nil || out != "app acme/shop/web Ready" || complaint != "It has delivered nothing.\n" {
		t.Errorf("without objects: %v: %q, %q", err, out, complaint)
	}
}

// TestChildrenAreBelowTheirOwner, and the lines of a tree lead to each.
func TestChildrenAreBelowTheirOwner(t *testing.T) {
	columns := &output.Columns{Gap: " "}
	leaf := func(name string) *objects.Node { return &objects.Node{Kind: "Pod", Name: name} }
	(&tree{Call: &call.Call{}}).branches(columns, []*objects.Node{
		{Kind: "Set", Name: "a", Children: []*objects.Node{leaf("b"), leaf("c")}}, {Kind: "Set", Name: "d", Children: []*objects.Node{leaf("e")}},
	}, "")
	var out strings.Builder
	if err := columns.Write(&out, ""); err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(out.String()) {
		got = append(got, strings.TrimRight(line, " \n"))
	}
	if want := "├─ Set a\n│  ├─ Pod b\n│  └─ Pod c\n└─ Set d\n   └─ Pod e"; strings.Join(got, "\n") != want {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
}

func TestDescribeShowsTheImageThatAPolicyChose(t *testing.T) {
	for name, tc := range map[string]struct {
		written *v1alpha1.ImageWritten
		want    string
	}{
		"not written":       {nil, ""},
		"by a commit":       {&v1alpha1.ImageWritten{Reference: "a.example/web:2", Commit: "0123456789abcdef"}, "Written a.example/web:2, by commit 01234567"},
		"by a pull request": {&v1alpha1.ImageWritten{Reference: "a.example/web:2", PullRequest: "https://git.example.com/9"}, "Written https://git.example.com/9"},
	} {
		app := delivered()
		app.Status.Image = &v1alpha1.ImageStatus{Reference: "a.example/web:2", Written: tc.written}
		out, _, err := show(t, memory.Serve(t, app), Describe, "acme/shop/web")
		if err != nil || !strings.Contains(out, "\nImage a.example/web:2\n") || !strings.Contains(out, tc.want) || strings.Contains(out, "Written") != (tc.want != "") {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}

func TestEventsOfASeriesCountEach(t *testing.T) {
	tenant := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "acme", UID: "acme"}}
	event := &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "e", CreationTimestamp: before(9)}, Type: corev1.EventTypeNormal, Reason: "Made", Message: "made\nit",
		Series: &corev1.EventSeries{Count: 7, LastObservedTime: metav1.NewMicroTime(before(3).Time)}, InvolvedObject: corev1.ObjectReference{Kind: "Tenant", Name: "acme", UID: "acme"},
	}
	s := memory.Serve(t, tenant, event)
	out, _, err := show(t, s, Events, "tenant", "acme")
	wantShown(t, out, err, "AGE TYPE REASON OBJECT MESSAGE", "3m Normal Made Tenant/acme made it (7 times)")
	out, _, err = show(t, s, Events, "tenant", "acme", "-o", "json")
	var found []corev1.Event
	if jsonErr := json.Unmarshal([]byte(out), &found); err != nil || jsonErr != nil || len(found) != 1 || found[0].Series.Count != 7 {
		t.Errorf("as JSON: %v, %v\n%s", err, jsonErr, out)
	}
}

// TestTraceReadsAnObjectWithoutANamespace although a namespace is chosen.
func TestTraceReadsAnObjectWithoutANamespace(t *testing.T) {
	s := memory.Serve(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "zone"}})
	out, _, err := show(t, s, Trace, "namespace/zone")
	wantShown(t, out, err, "Namespace/zone", "App none: no app delivered it, or an owner of it")
}

// TestATerminalShowsInColoursWhatDeservesALook: what works is green, what is wrong red, and everything between yellow.
func TestATerminalShowsInColoursWhatDeservesALook(t *testing.T) {
	pending := brokenApp()
	pending.Name, pending.UID = "new", "new"
	pending.Status = v1alpha1.AppStatus{}
	pending.Status.Conditions = []metav1.Condition{
		{Type: v1alpha1.ReadyCondition, Status: metav1.ConditionUnknown, Reason: "Progressing", Message: "soon"},
		{Type: v1alpha1.SuspendedCondition, Status: metav1.ConditionTrue},
	}
	pending.Status.Deliveries = []v1alpha1.DeliveryRecord{{Revision: revision("a"), Result: v1alpha1.DeliveryProgressing, StartedAt: before(1)}}
	s := broken(t, pending)
	device := terminal.Open(t)
	for name, tc := range map[string]struct {
		command func(*call.Call) *cobra.Command
		args    []string
		want    []string
	}{
		"describe": {Describe, []string{"acme/shop/web"}, []string{
			"bold App acme/shop/web", "red False", "bold Steps", "green True", "red False", "bold Also", "yellow True", "bold A newer version is refused",
			"bold Deletions that wait for a confirmation", "bold Objects", "red Missing", "red Unhealthy", "bold Last deliveries", "red Failed (UpgradeFailed)", "green Succeeded",
			"bold Last events", "red Warning", "red Warning", "bold What to do",
		}},
		"describe, in progress": {Describe, []string{"acme/shop/new"}, []string{
			"bold App acme/shop/new", "yellow Unknown", "bold Steps", "bold Also", "yellow True", "bold Objects", "bold Last deliveries", "yellow Progressing", "bold What to do",
		}},
		"tree":              {Tree, []string{"acme/shop/web"}, []string{"bold app acme/shop/web", "red Not ready", "faint ├─ ", "red Missing", "faint └─ ", "red Unhealthy"}},
		"tree, in progress": {Tree, []string{"acme/shop/new"}, []string{"bold app acme/shop/new"}},
		"history":           {History, []string{"acme/shop/web"}, []string{"red Failed (UpgradeFailed)", "green Succeeded"}},
		"events":            {Events, []string{"acme/shop/web"}, []string{"red Warning", "red Warning"}},
	} {
		t.Run(name, func(t *testing.T) {
			streams, _, stdout, _ := genericiooptions.NewTestIOStreams()
			c := call.New(streams, clocktesting.NewFakeClock(noon))
			c.Flags.KubeConfig, c.Paint = &s.Kubeconfig, output.PaintFor(device)
			made := tc.command(c)
			made.SetArgs(tc.args)
			if err := made.ExecuteContext(t.Context()); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, terminal.Coloured(stdout.String())); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	rows := newRows(target.App, false, false, output.PaintFor(device))
	rows.add(&metav1.Table{ColumnDefinitions: []metav1.TableColumnDefinition{{Name: "Name"}, {Name: "Ready"}}, Rows: []metav1.TableRow{row(shop, "a", "True"), row(shop, "b", "False"), row(shop, "c", "Unknown")}})
	var out bytes.Buffer
	if err := rows.write(&out); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"green True", "red False", "yellow Unknown"}, terminal.Coloured(out.String())); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	marks := &tree{Call: &call.Call{Paint: output.PaintFor(device)}}
	if got := terminal.Coloured(marks.mark(objects.Healthy) + marks.mark(objects.Unknown) + marks.mark(objects.Missing)); !slices.Equal(got, []string{"green Healthy", "yellow Unknown", "red Missing"}) {
		t.Errorf("marks are %q", got)
	}
}
