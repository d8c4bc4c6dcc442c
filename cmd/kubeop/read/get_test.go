package read

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/cmd/kubeop/call"
	"github.com/kubeop/kubeop/internal/testenv/memory"
)

// within returns a command that is called with --tenant and --project.
func within(tenant, project string, command func(*call.Call) *cobra.Command) func(*call.Call) *cobra.Command {
	return func(c *call.Call) *cobra.Command {
		c.Tenant, c.Project = tenant, project
		return command(c)
	}
}

func tableOf(names map[string]string) metav1.Table {
	table := metav1.Table{ColumnDefinitions: []metav1.TableColumnDefinition{{Name: "Name"}, {Name: "Ready"}, {Name: "Age"}}}
	for _, path := range slices.Sorted(func(yield func(string) bool) {
		for path := range names {
			if !yield(path) {
				return
			}
		}
	}) {
		namespace, name, _ := strings.Cut(path, "/")
		table.Rows = append(table.Rows, row(namespace, name, names[path], "1m"))
	}
	return table
}

// tabled serves tables of apps, by their namespaces and names, and projects of the tenant acme; asked are the paths of the requested tables.
func tabled(t *testing.T, apps map[string]string, objects ...client.Object) (s *memory.Server, asked *[]string) {
	t.Helper()
	s, asked = memory.Serve(t, objects...), &[]string{}
	s.Intercept = func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.Header.Get("Accept"), "as=Table") {
			return false
		}
		*asked = append(*asked, strings.TrimPrefix(r.URL.Path, "/apis/paas.kubeop.io/v1alpha1/"))
		found := map[string]string{}
		for path, ready := range apps {
			namespace, _, _ := strings.Cut(path, "/")
			if !strings.Contains(r.URL.Path, "/namespaces/") || strings.Contains(r.URL.Path, "/namespaces/"+namespace+"/") {
				found[path] = ready
			}
		}
		w.Header().Set("Content-Type", "application/json")
		return json.NewEncoder(w).Encode(tableOf(found)) == nil
	}
	return s, asked
}

func projectOf(tenant, name string) *v1alpha1.Project {
	return &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.HomeNamespace(tenant), Name: name}}
}

func TestGetListsWhatTheFlagsAndNamesSelect(t *testing.T) {
	apps := map[string]string{shop + "/web": "True", "kubeop-acme-lab/api": "False", "kubeop-rival-shop/web": "True"}
	for name, c := range map[string]struct {
		tenant, project string
		args            []string
		asked           []string
		want            string
	}{
		"a project": {"acme", "shop", []string{"apps"}, []string{"namespaces/" + shop + "/apps"}, "NAME READY AGE\nweb True 1m"},
		"a tenant": {
			"acme", "", []string{"apps"}, []string{"namespaces/kubeop-acme-lab/apps", "namespaces/" + shop + "/apps"}, "NAME READY AGE\nacme/lab/api False 1m\nacme/shop/web True 1m",
		},
		"a tenant with one project":       {"rival", "", []string{"apps"}, []string{"namespaces/kubeop-rival-shop/apps"}, "NAME READY AGE\nweb True 1m"},
		"everything":                      {"", "", []string{"apps"}, []string{"apps"}, "NAME READY AGE\nacme/lab/api False 1m\nacme/shop/web True 1m\nrival/shop/web True 1m"},
		"all tenants":                     {"acme", "shop", []string{"apps", "-A"}, []string{"apps"}, "NAME READY AGE\nacme/lab/api False 1m\nacme/shop/web True 1m\nrival/shop/web True 1m"},
		"the projects of a tenant":        {"acme", "", []string{"projects"}, []string{"namespaces/kubeop-acme/projects"}, ""},
		"all projects":                    {"", "", []string{"projects"}, []string{"projects"}, "NAME READY AGE\nlab/api False 1m\nshop/web True 1m\nshop/web True 1m"},
		"the tenant itself":               {"acme", "", []string{"tenants"}, []string{"tenants/acme"}, "NAME READY AGE\nlab/api False 1m\nshop/web True 1m\nshop/web True 1m"},
		"policies":                        {"acme", "", []string{"pol"}, []string{"policies"}, ""},
		"a policy":                        {"acme", "shop", []string{"policy", "baseline"}, []string{"policies/baseline"}, ""},
		"a name":                          {"acme", "shop", []string{"apps", "web"}, []string{"namespaces/" + shop + "/apps/web"}, "NAME READY AGE\nweb True 1m"},
		"two names, of different tenants": {"", "", []string{"apps", "acme/shop/web", "rival/shop/web"}, []string{"namespaces/" + shop + "/apps/web", "namespaces/kubeop-rival-shop/apps/web"}, "NAME READY AGE\nacme/shop/web True 1m\nrival/shop/web True 1m"},
	} {
		t.Run(name, func(t *testing.T) {
			s, asked := tabled(t, apps, projectOf("acme", "shop"), projectOf("acme", "lab"), projectOf("rival", "shop"))
			out, _, err := show(t, s, within(c.tenant, c.project, Get), c.args...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.asked, *asked); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
			if c.args[0] == "apps" && out != c.want {
				t.Errorf("got\n%s\nwant\n%s", out, c.want)
			}
		})
	}
}

func TestGetSaysWhereNothingIs(t *testing.T) {
	for name, c := range map[string]struct {
		tenant, project string
		args            []string
		want            string
	}{
		"a project":           {"acme", "shop", []string{"apps"}, "There are no apps in the project shop of the tenant acme.\n"},
		"a tenant":            {"acme", "", []string{"projects"}, "There are no projects of the tenant acme.\n"},
		"no project at all":   {"beta", "", []string{"apps"}, "There are no apps of the tenant beta.\n"},
		"the whole cluster":   {"", "", []string{"apps"}, "There are no apps.\n"},
		"all tenants":         {"acme", "shop", []string{"apps", "-A"}, "There are no apps.\n"},
		"policies":            {"acme", "", []string{"policies"}, "There are no policies.\n"},
		"projects, from one":  {"acme", "shop", []string{"projects"}, "There are no projects of the tenant acme.\n"},
		"an empty, to follow": {"beta", "", []string{"apps", "-w"}, "There are no apps of the tenant beta.\n"},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := tabled(t, nil, projectOf("acme", "shop"))
			out, complaint, err := show(t, s, within(c.tenant, c.project, Get), c.args...)
			if err != nil || out != "" || complaint != c.want {
				t.Errorf("%v: %q, %q, want %q", err, out, complaint, c.want)
			}
		})
	}
}

func TestGetRefusesFlagsThatDoNotGoTogether(t *testing.T) {
	s, _ := tabled(t, nil)
	for args, want := range map[string]string{
		"apps web -A":      "--all-tenants lists everything, so it takes no names",
		"apps -w -o json":  "--watch prints rows, so it is not for -o json",
		"apps -o nonsense": "nonsense",
		"pods":             `"pods"`,
	} {
		if _, _, err := show(t, s, Get, strings.Fields(args)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
}

func TestGetForProgramsPrintsTheOnlyObjectWithoutAList(t *testing.T) {
	s := memory.Serve(t, brokenApp(), &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "api"}})
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"one":  {[]string{"apps", "acme/shop/web"}, "web"},
		"two":  {[]string{"apps", "acme/shop/web", "acme/shop/api"}, "List of web api"},
		"all":  {[]string{"apps"}, "List of api web"},
		"none": {[]string{"projects"}, "List of"},
	} {
		out, _, err := show(t, s, Get, append(c.args, "-o", "json")...)
		if err != nil {
			t.Fatal(err)
		}
		var got struct {
			Kind     string
			Metadata metav1.ObjectMeta
			Items    []struct{ Metadata metav1.ObjectMeta }
		}
		if err := json.Unmarshal([]byte(out), &got); err != nil {
			t.Fatalf("%v:\n%s", err, out)
		}
		text := got.Metadata.Name
		if got.Kind == "List" {
			text = "List of"
			for _, item := range got.Items {
				text += " " + item.Metadata.Name
			}
		}
		if text != c.want {
			t.Errorf("%s: got %q, want %q", name, text, c.want)
		}
	}
	if _, _, err := show(t, s, Get, "apps", "acme/shop/none", "-o", "json"); err == nil || !strings.Contains(err.Error(), "reading the app none") {
		t.Errorf("one that is not there: %v", err)
	}
}

// TestGetFollowsChanges: a row is printed when it changes and when its object is deleted, and the selection is read again when the API server ends
// the watch. An error ends the command.
func TestGetFollowsChanges(t *testing.T) {
	s := memory.Serve(t)
	watches := 0
	s.Intercept = func(w http.ResponseWriter, r *http.Request) bool {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Query().Get("watch") == "" {
			state := map[int]string{0: "False", 1: "Later"}[watches]
			table := tableOf(map[string]string{shop + "/web": state})
			table.ResourceVersion = fmt.Sprint(10 * (watches + 1))
			return json.NewEncoder(w).Encode(table) == nil
		}
		if got, want := r.URL.Query().Get("resourceVersion"), fmt.Sprint(10*(watches+1)); got != want {
			t.Errorf("watch %d begins at %s, want %s", watches+1, got, want)
		}
		watches++
		if watches == 2 {
			http.Error(w, "no more", http.StatusForbidden)
			return true
		}
		for kind, state := range map[string]string{"MODIFIED": "True"} {
			_ = json.NewEncoder(w).Encode(map[string]any{"type": kind, "object": tableOf(map[string]string{shop + "/web": state})})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"type": "DELETED", "object": tableOf(map[string]string{shop + "/api": "True"})})
		return true
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	lines, write := io.Pipe()
	clock := clocktesting.NewFakeClock(noon)
	streams, _, _, _ := genericiooptions.NewTestIOStreams()
	streams.Out = write
	c := call.New(streams, clock)
	c.Flags.KubeConfig = &s.Kubeconfig
	command := within("acme", "shop", Get)(c)
	command.SilenceUsage, command.SilenceErrors = true, true
	command.SetArgs([]string{"apps", "--watch"})
	ended := make(chan error, 1)
	go func() {
		ended <- command.ExecuteContext(ctx)
		write.CloseWithError(io.EOF)
	}()
	go func() { // The command pauses before it reads the selection again.
		for ctx.Err() == nil {
			if clock.HasWaiters() {
				clock.Step(time.Second)
			}
			time.Sleep(time.Millisecond)
		}
	}()
	scanner, got := bufio.NewScanner(lines), []string{}
	for scanner.Scan() {
		got = append(got, strings.Join(strings.Fields(scanner.Text()), " "))
	}
	if diff := cmp.Diff([]string{"NAME READY AGE", "web False 1m", "web True 1m", "api (deleted) True 1m", "web Later 1m"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "watching apps") {
		t.Errorf("the error of the second watch is %v", err)
	}
}

func TestEachCommandReturnsTheErrorOfEachRequest(t *testing.T) {
	tenant := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "acme"}}
	s, _ := tabled(t, map[string]string{shop + "/web": "True"}, projectOf("acme", "shop"), tenant, brokenApp())
	for _, c := range []struct {
		command func(*call.Call) *cobra.Command
		args    []string
		least   int
	}{
		{within("acme", "", Get), []string{"apps"}, 2},
		{Get, []string{"apps", "-o", "json"}, 1},
		{Get, []string{"apps", "acme/shop/web", "-o", "json"}, 1},
		{Describe, []string{"project", "acme/shop"}, 2},
		{Describe, []string{"acme/shop/web"}, 4},
		{Events, []string{"tenant", "acme"}, 2},
		{Events, []string{"acme/shop/web"}, 4},
		{History, []string{"acme/shop/web"}, 1},
		{Blame, []string{"acme/shop/web"}, 1},
		{Tree, []string{"acme/shop/web"}, 3},
	} {
		requests := s.EachRequest(t, func() error {
			_, _, err := show(t, s, c.command, c.args...)
			return err
		})
		if requests < c.least {
			t.Errorf("%v: %d requests, want %d at least", c.args, requests, c.least)
		}
	}
}

func TestEventsOfAnObjectAreListed(t *testing.T) {
	tenant := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "acme", UID: "acme", CreationTimestamp: before(60)}}
	tenant.Status.Namespace, tenant.Status.Projects, tenant.Status.AppsReady = "kubeop-acme", 2, "3/4"
	event := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "e"}, Type: corev1.EventTypeNormal, Reason: "Made", Message: "made it", LastTimestamp: before(3), Count: 2, InvolvedObject: corev1.ObjectReference{Kind: "Tenant", Name: "acme", UID: "acme"}}
	s := memory.Serve(t, tenant, event)
	out, _, err := show(t, s, Events, "tenant", "acme")
	wantShown(t, out, err, "AGE TYPE REASON OBJECT MESSAGE", "3m Normal Made Tenant/acme made it (2 times)")
	page := []string{"Tenant acme", "Created 60m ago", "Namespace kubeop-acme", "Projects 2", "Apps ready 3/4", "Steps", "Last events"}
	out, _, err = show(t, s, Describe, "tenant", "acme")
	wantShown(t, out, err, append(page, "AGE TYPE REASON OBJECT MESSAGE", "3m Normal Made Tenant/acme made it (2 times)")...)
	s.Intercept = func(w http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "/events") {
			http.Error(w, "no", http.StatusForbidden)
			return true
		}
		return false
	}
	out, _, err = show(t, s, Describe, "tenant", "acme")
	wantShown(t, out, err, append(page, "Your role does not show them: events of a cluster-scoped object are in the namespace default.")...)
	want := "your role does not show events of a tenant, which are in the namespace default; `kubeop describe tenant acme` shows its conditions"
	if _, _, err = show(t, s, Events, "tenant", "acme"); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestDescribeShowsAProjectOfWhichANewerVersionIsRefused(t *testing.T) {
	project := projectOf("acme", "shop")
	project.CreationTimestamp, project.DeletionTimestamp, project.Finalizers = before(60), new(metav1.Time), []string{v1alpha1.Finalizer}
	*project.DeletionTimestamp = before(7)
	project.Status.Namespace, project.Status.AppsReady = shop, "1/2"
	project.Status.Refused = &v1alpha1.Refused{Revision: revision("c"), Place: "project.yaml:5", Problem: "unknown field"}
	out, _, err := show(t, memory.Serve(t, project), Describe, "project", "acme/shop")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"Project acme/shop", "Deleted 7m ago; it waits for what it created", "Namespace " + shop, "Apps ready 1/2", "A newer version is refused",
		"Commit main@sha1:cccccccc", "Place project.yaml:5", "Problem unknown field",
	} {
		if !slices.Contains(strings.Split(out, "\n"), want) {
			t.Errorf("the page has no line %q:\n%s", want, out)
		}
	}
}

func TestBlameSaysThatNoDeliveryBrokeAnApp(t *testing.T) {
	app := brokenApp()
	app.Status.Refused, app.Status.Deliveries = nil, app.Status.Deliveries[1:]
	out, _, err := show(t, memory.Serve(t, app), Blame, "acme/shop/web")
	wantShown(t, out, err, "The app acme/shop/web is not ready", "Commit no delivery failed: the newest succeeded or is in progress", "Now UpgradeFailed: Deployment/web: crashes")
	app.Status.Conditions[1].Status = metav1.ConditionTrue
	out, _, err = show(t, memory.Serve(t, app), Blame, "acme/shop/web")
	wantShown(t, out, err, "The app acme/shop/web is ready")
}

// TestDescribeShowsTheDeepestCauseOnly: a Deployment is not healthy because of its pod.
func TestDescribeShowsTheDeepestCauseOnly(t *testing.T) {
	controlled := true
	owner := []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: "deployment", Controller: &controlled}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "web-1-x", UID: "pod", OwnerReferences: owner}, Status: corev1.PodStatus{Phase: corev1.PodPending}}
	out, _, err := show(t, broken(t, pod), Describe, "acme/shop/web")
	if err != nil {
		t.Fatal(err)
	}
	_, out, _ = strings.Cut(out, "\nObjects\n")
	out, _, _ = strings.Cut(out, "\nLast deliveries")
	if !strings.Contains(out, "Pod/web-1-x Unhealthy") || strings.Contains(out, "Deployment/web") || strings.Contains(out, "none unhealthy") {
		t.Errorf("the objects are\n%s", out)
	}
}

func TestDescribeCountsTheObjectsOfAHealthyApp(t *testing.T) {
	app := &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "web", CreationTimestamp: before(60)}}
	app.Status.Inventory.Entries = []v1alpha1.InventoryEntry{{ID: shop + "_settings__ConfigMap", Version: "v1"}}
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "settings"}}
	out, _, err := show(t, memory.Serve(t, app, settings), Describe, "acme/shop/web")
	if err != nil || !strings.Contains(out, "Objects\n1, none unhealthy") {
		t.Errorf("%v:\n%s", err, out)
	}
}
