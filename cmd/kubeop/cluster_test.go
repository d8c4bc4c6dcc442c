package main

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/cmd/kubeop/exit"
	"github.com/kubeop/kubeop/delivery/inventory"
	"github.com/kubeop/kubeop/internal/testenv"
)

// env is a control plane with kubeop's kinds and without the operator: the tests write the statuses themselves.
var env *testenv.Env

func TestMain(m *testing.M) { testenv.Main(m, &env) }

// run runs the command line with the administrator's rights.
func run(t *testing.T, args ...string) (out, complaint string, code int) {
	t.Helper()
	return runWith(t.Context(), "", args...)
}

func runWith(ctx context.Context, input string, args ...string) (out, complaint string, code int) {
	streams, in, stdout, stderr := genericiooptions.NewTestIOStreams()
	in.WriteString(input)
	code = Run(ctx, append([]string{"kubeop", "--kubeconfig", env.AdminKubeconfig()}, args...), streams, clock.RealClock{})
	return stdout.String(), stderr.String(), code
}

// world is what the tests look at: the app acme/shop/web with a Deployment, a pod that crashes and a missing Service.
type world struct {
	client.Client
	t *testing.T
}

// newWorld installs the chart and creates the objects, once.
func newWorld(t *testing.T) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	admin, err := client.New(env.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{Client: admin, t: t}
	if _, err := env.InstallChart(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, o := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kubeop-acme"}}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kubeop-acme-shop"}},
		&v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "acme"}},
		&v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: "kubeop-acme"}},
		&v1alpha1.Repository{ObjectMeta: metav1.ObjectMeta{Name: "acme"}, Spec: v1alpha1.RepositorySpec{URL: "https://git.example.com/acme.git", Tenant: "acme"}},
	} {
		w.create(o)
	}
	w.makeApp()
	return w
}

func (w *world) create(o client.Object) {
	w.t.Helper()
	if err := w.Create(w.t.Context(), o); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) status(o client.Object) {
	w.t.Helper()
	if err := w.Status().Update(w.t.Context(), o); err != nil {
		w.t.Fatal(err)
	}
}

const commit = "0123456789abcdef0123456789abcdef01234567"

func (w *world) makeApp() {
	app := &v1alpha1.App{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "kubeop-acme-shop", Annotations: map[string]string{
			v1alpha1.FolderAnnotation: "projects/shop/apps/web", v1alpha1.RevisionAnnotation: "main@sha1:" + commit, v1alpha1.AuthorAnnotation: "ann",
		}},
		Spec: v1alpha1.AppSpec{Type: v1alpha1.AppRaw, Raw: &v1alpha1.RawSource{Path: "manifests"}},
	}
	w.create(app)
	labels := map[string]string{v1alpha1.TenantLabel: "acme", v1alpha1.ProjectLabel: "shop", v1alpha1.AppLabel: "web"}
	pod := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "registry.example.com/web:1"}}}}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: app.Namespace, Labels: labels},
		Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: pod.Labels}, Template: pod}}
	deployment.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("Deployment"))
	w.create(deployment)
	w.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "other", Namespace: app.Namespace, Labels: labels}})
	app.Status = v1alpha1.AppStatus{
		LastAppliedRevision: "main@sha1:" + commit, LastAttemptedRevision: "main@sha1:" + commit, ShortRevision: "main@sha1:01234567",
		Deliveries: []v1alpha1.DeliveryRecord{
			{Revision: "main@sha1:" + commit, Author: "ann", StartedAt: metav1.Now(), Result: v1alpha1.DeliveryFailed, Reason: v1alpha1.UnhealthyReason},
			{Revision: "main@sha1:fedcba9876543210fedcba9876543210fedcba98", Author: "ben", StartedAt: metav1.Now(), Result: v1alpha1.DeliverySucceeded},
		},
		Inventory: v1alpha1.Inventory{Entries: []v1alpha1.InventoryEntry{
			{ID: inventory.ObjectID{Namespace: app.Namespace, Name: "web", Kind: "Service"}.String(), Version: "v1"},
			{ID: inventory.ObjectID{Namespace: app.Namespace, Name: "web", Group: "apps", Kind: "Deployment"}.String(), Version: "v1"},
		}},
	}
	app.Status.Conditions = []metav1.Condition{
		{Type: v1alpha1.HealthyCondition, Status: metav1.ConditionFalse, Reason: v1alpha1.UnhealthyReason, Message: "Deployment/web: crashes \x1b]0;evil\x07", LastTransitionTime: metav1.Now()},
		{Type: v1alpha1.AppliedCondition, Status: metav1.ConditionTrue, Reason: v1alpha1.SucceededReason, LastTransitionTime: metav1.Now()},
		{Type: v1alpha1.ReadyCondition, Status: metav1.ConditionFalse, Reason: v1alpha1.UnhealthyReason, Message: "Deployment/web: crashes", LastTransitionTime: metav1.Now()},
	}
	w.status(app)
	w.create(&corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: "web.1", Namespace: app.Namespace}, Type: corev1.EventTypeWarning, Reason: "Unhealthy",
		Message: "it is\nnot well", Count: 3, LastTimestamp: metav1.Now(), InvolvedObject: corev1.ObjectReference{Kind: "App", Name: "web", Namespace: app.Namespace, UID: app.UID}})
	w.create(&corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: "elsewhere.1", Namespace: app.Namespace}, Type: corev1.EventTypeWarning, Reason: "Other",
		Message: "about something else", LastTimestamp: metav1.Now(), InvolvedObject: corev1.ObjectReference{Kind: "App", Name: "elsewhere", Namespace: app.Namespace, UID: "x"}})
	w.waitForPod(app.Namespace)
}

// waitForPod waits until Kubernetes has made the Deployment's pod, which no node runs.
func (w *world) waitForPod(namespace string) {
	w.t.Helper()
	pods := &corev1.PodList{}
	err := wait.PollUntilContextTimeout(w.t.Context(), 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		err := w.List(ctx, pods, client.InNamespace(namespace))
		return len(pods.Items) > 0, err
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// TestEveryCommandWorksAgainstACluster runs the commands against an API server, one after the other.
func TestEveryCommandWorksAgainstACluster(t *testing.T) {
	w := newWorld(t)
	t.Run("objects are read", func(t *testing.T) { testReading(t) })
	t.Run("a manager answers as the cluster does", func(t *testing.T) { testManager(t, w) })
	t.Run("errors are explained", func(t *testing.T) { testErrors(t) })
	t.Run("requests are carried out", func(t *testing.T) { testRequests(t, w) })
	t.Run("changes are followed", func(t *testing.T) { testWatching(t, w) })
	t.Run("a rollback is pushed", func(t *testing.T) { testRollback(t, w) })
}

func testReading(t *testing.T) {
	for name, tc := range map[string]struct {
		args string
		// want are regular expressions that the output matches; not are texts that it does not have.
		want, not []string
	}{
		"apps":          {args: "get apps", want: []string{`(?m)^NAME +TYPE +READY .*\nacme/shop/web +Raw +False +main@sha1:01234567 `}},
		"a namespace":   {args: "get apps -n kubeop-acme-shop", want: []string{`(?m)^web +Raw +False`}},
		"a tenant":      {args: "get apps -t acme", want: []string{`(?m)^web +Raw `}},
		"by name":       {args: "get app acme/shop/web", want: []string{`(?m)^web +Raw +False`}},
		"projects":      {args: "get projects -t acme", want: []string{`(?m)^shop `}},
		"all projects":  {args: "get projects", want: []string{`(?m)^acme/shop `}},
		"tenants":       {args: "get tenants", want: []string{`(?m)^acme `}},
		"repositories":  {args: "get repo", want: []string{`(?m)^acme +https://git.example.com/acme.git`}},
		"wide":          {args: "get apps -o wide", want: []string{"SUSPENDED"}},
		"JSON":          {args: "get app acme/shop/web -o json", want: []string{`"kind": "App"`}, not: []string{"managedFields", `"items"`}},
		"a YAML list":   {args: "get apps -o yaml", want: []string{`(?m)^kind: List`, `(?m)^- apiVersion: paas`}, not: []string{"managedFields"}},
		"nothing":       {args: "get apps -t beta", not: []string{"NAME"}},
		"tree":          {args: "tree acme/shop/web", want: []string{`app acme/shop/web +Not ready +Deployment/web: crashes`, `(?m)^├─ Deployment web +Unhealthy +\d+m?s .*\n│  └─ ReplicaSet web-\w+ .*\n│     └─ Pod web-\S+ +Unhealthy`, `(?m)^└─ Service web +Missing +it does not exist$`}},
		"tree as JSON":  {args: "tree acme/shop/web -o json", want: []string{`"kind": "Pod"`, `"state": "Missing"`}},
		"trace":         {args: "trace deploy/web -n kubeop-acme-shop", want: []string{`App +acme/shop/web`, `Declared in +projects/shop/apps/web/app.yaml`, `Commit +main@sha1:01234567\n`, `Author +ann`}},
		"forged labels": {args: "trace configmap/other -p shop -t acme", want: []string{`App +none`}, not: []string{"ann"}},
		"history":       {args: "history acme/shop/web", want: []string{`(?m)^main@sha1:01234567 +ann +.* ago +Failed \(Unhealthy\)$`, `(?m)^main@sha1:fedcba98 +ben `}},
		"full history":  {args: "history acme/shop/web -o yaml", want: []string{`revision: main@sha1:` + commit}},
		"blame":         {args: "blame acme/shop/web", want: []string{`Commit +main@sha1:01234567`, `Author +ann`, `Before +main@sha1:fedcba98 worked`, `Now +Unhealthy: Deployment/web: crashes`}},
		"events":        {args: "events acme/shop/web", want: []string{`Warning +Unhealthy +App/web +it is not well \(3 times\)`, `ScalingReplicaSet +Deployment/web`}, not: []string{"something else"}},
		"describe": {args: "describe acme/shop/web", want: []string{`(?m)^App acme/shop/web$`, `Declared in +projects/shop/apps/web/app.yaml`, `(?s)Steps\n +Applied +True.*Healthy +False`,
			`Service/web +Missing`, `Pod/web-\S+ +Unhealthy`, `kubeop logs acme/shop/web`, `kubeop blame acme/shop/web`}, not: []string{"\x1b", "\x07"}},
		"a project":    {args: "describe project acme/shop", want: []string{`(?m)^Project acme/shop$`}},
		"a repository": {args: "describe repository acme", want: []string{`URL +https://git.example.com/acme.git`}},
		"completion":   {args: "__complete describe -t acme shop", want: []string{`(?m)^shop/web$`, `(?m)^project$`}},
		"of a kind":    {args: "__complete get projects ", want: []string{`(?m)^acme/shop$`}},
	} {
		t.Run(name, func(t *testing.T) {
			out, complaint, code := run(t, strings.Split(tc.args, " ")...)
			if code != exit.OK {
				t.Fatalf("exit code %d: %s", code, complaint)
			}
			for _, want := range tc.want {
				if !regexp.MustCompile(want).MatchString(out) {
					t.Errorf("%s does not match\n%s", want, out)
				}
			}
			for _, not := range tc.not {
				if strings.Contains(out, not) {
					t.Errorf("%q is in\n%s", not, out)
				}
			}
		})
	}
}

func testErrors(t *testing.T) {
	for name, tc := range map[string]struct{ args, want string }{
		"an unknown app":         {"describe acme/shop/nope", "reading the app acme/shop/nope: apps.paas.kubeop.io \"nope\" not found; `kubeop get apps` shows what there is"},
		"an unknown app, listed": {"get app acme/shop/nope", "apps.paas.kubeop.io \"nope\" not found"},
		"no rights":              {"get apps --as stranger", "Only administrators can list the objects of all tenants: name yours with --tenant"},
		"no rights in it":        {"get apps -t acme -p shop --as stranger", "spec.owners in tenants/acme/tenant.yaml of the platform repository gives people their roles"},
		"no rights to change":    {"suspend acme/shop/web --as stranger", "annotating the app acme/shop/web: apps.paas.kubeop.io \"web\" is forbidden"},
		"a manager, no token":    {"get apps --server https://127.0.0.1:1", "set KUBEOP_TOKEN"},
		"a wrong certificate":    {"get apps --certificate-authority /dev/null", "the cluster"},
		"no such context":        {"get apps --context nope", `context "nope" does not exist`},
		"an unknown flag":        {"get apps --nope", "unknown flag: --nope"},
		"an unknown command":     {"nope", `unknown command "nope"`},
		"watching as JSON":       {"get apps -w -o json", "--watch prints rows, so it is not for -o json"},
		"forcing a project":      {"force project acme/shop", "force is for apps, not for a project"},
		"suspending a tenant":    {"suspend tenant acme", "a tenant cannot be suspended, only an app or a repository"},
		"tracing nothing":        {"trace web", `"web" names no object: write KIND/NAME, such as pod/web-0`},
		"an unknown kind":        {"trace nope/web", `the cluster has no kind "nope"`},
		"a short hash":           {"wait acme/shop/web --commit 01", "too short"},
		"names and all":          {"get app acme/shop/web -A", "--all-tenants lists everything, so it takes no names"},
	} {
		t.Run(name, func(t *testing.T) {
			_, complaint, code := run(t, strings.Split(tc.args, " ")...)
			if code != exit.Failure || !strings.HasPrefix(complaint, "Error: ") || !strings.Contains(complaint, tc.want) || strings.Count(complaint, "\n") != 1 {
				t.Errorf("exit code %d: %q, want %q on one line", code, complaint, tc.want)
			}
		})
	}
}

// answer does the operator's part: it changes the app as soon as it has the wanted annotation.
func (w *world) answer(ctx context.Context, annotation string, change func(*v1alpha1.App, string)) <-chan error {
	answered := make(chan error, 1)
	go func() {
		answered <- wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
			app := &v1alpha1.App{}
			if err := w.Get(ctx, client.ObjectKey{Namespace: "kubeop-acme-shop", Name: "web"}, app); err != nil {
				return false, err
			}
			value := app.Annotations[annotation]
			if value == "" {
				return false, nil
			}
			change(app, value)
			return true, w.Status().Update(ctx, app)
		})
	}()
	return answered
}

// ready makes Ready of an app what the operator would.
func ready(app *v1alpha1.App, status metav1.ConditionStatus, message string) {
	for i := range app.Status.Conditions {
		if c := &app.Status.Conditions[i]; c.Type == v1alpha1.ReadyCondition {
			c.Status, c.Message, c.ObservedGeneration, c.Reason = status, message, app.Generation, v1alpha1.UnhealthyReason
		}
	}
}

func testRequests(t *testing.T, w *world) {
	w.t = t
	answered := w.answer(t.Context(), meta.ReconcileRequestAnnotation, func(app *v1alpha1.App, value string) {
		app.Status.LastHandledReconcileAt = value
		ready(app, metav1.ConditionTrue, "well")
	})
	if out, complaint, code := run(t, "reconcile", "acme/shop/web", "--timeout", "30s"); code != exit.OK || out != "The app acme/shop/web was reconciled and is ready.\n" {
		t.Fatalf("%d: %s%s", code, out, complaint)
	}
	if err := <-answered; err != nil {
		t.Fatal(err)
	}
	if out, _, code := run(t, "wait", "acme/shop/web"); code != exit.OK || out != "The app acme/shop/web is ready.\n" {
		t.Errorf("%d: %s", code, out)
	}

	answered = w.answer(t.Context(), meta.ForceRequestAnnotation, func(app *v1alpha1.App, value string) {
		app.Status.LastHandledForceAt = value
		ready(app, metav1.ConditionFalse, "still broken")
		app.Status.Conditions = append(app.Status.Conditions, metav1.Condition{Type: v1alpha1.StalledCondition, Status: metav1.ConditionTrue, Reason: v1alpha1.UnhealthyReason, LastTransitionTime: metav1.Now()})
	})
	if _, complaint, code := run(t, "force", "acme/shop/web", "--timeout", "30s"); code != exit.Failure || !strings.Contains(complaint, "still broken") {
		t.Errorf("%d: %s", code, complaint)
	}
	if err := <-answered; err != nil {
		t.Fatal(err)
	}
	if out, complaint, code := run(t, "reset", "acme/shop/web", "--timeout", "1s"); code != exit.NotReady || !strings.Contains(complaint, "ended after 1s") {
		t.Errorf("%d: %s%s", code, out, complaint)
	}
	if out, _, code := run(t, "force", "acme/shop/web", "--wait=false"); code != exit.OK || out != "The app acme/shop/web will be tried again.\n" {
		t.Errorf("%d: %s", code, out)
	}
	testWait(t, w)
	testSuspend(t, w)
	testConfirm(t, w)
}

// testWait has the repository apply a commit, and the app follow it.
func testWait(t *testing.T, w *world) {
	const wanted = "89abcdef0123456789abcdef0123456789abcdef"
	repository, app := &v1alpha1.Repository{}, &v1alpha1.App{}
	get := func() {
		t.Helper()
		for key, object := range map[client.ObjectKey]client.Object{{Name: "acme"}: repository, {Namespace: "kubeop-acme-shop", Name: "web"}: app} {
			if err := w.Get(t.Context(), key, object); err != nil {
				t.Fatal(err)
			}
		}
	}
	waits := func(want string, code int, args ...string) {
		t.Helper()
		out, complaint, got := run(t, append([]string{"wait", "acme/shop/web", "--timeout", "1s"}, args...)...)
		if got != code || !strings.Contains(out+complaint, want) {
			t.Errorf("%v: exit code %d: %s%s, want %s", args, got, out, complaint, want)
		}
	}
	attempt := func(commit string, synced metav1.ConditionStatus) {
		t.Helper()
		get()
		repository.Status.LastAttemptedRevision = "main@sha1:" + commit
		repository.Status.Conditions = []metav1.Condition{{Type: v1alpha1.SyncedCondition, Status: synced, Reason: v1alpha1.SucceededReason, LastTransitionTime: metav1.Now()}}
		w.status(repository)
	}
	attempt(commit, metav1.ConditionTrue)
	waits("waiting for the repository acme ended after 1s", exit.NotReady, "--commit", wanted)
	attempt(wanted, metav1.ConditionUnknown)
	waits("waiting for the repository acme ended after 1s", exit.NotReady, "--commit", wanted)
	attempt(wanted, metav1.ConditionTrue)

	// Only a file beside app.yaml changed: the generation is the same, and Ready is still about the folder of before.
	get()
	app.Annotations[v1alpha1.TreeAnnotation], app.Annotations[v1alpha1.RevisionAnnotation] = "new", "main@sha1:"+wanted
	if err := w.Update(t.Context(), app); err != nil {
		t.Fatal(err)
	}
	app.Status.ObservedTree, app.Status.Conditions = "old", app.Status.Conditions[:3]
	ready(app, metav1.ConditionTrue, "well")
	w.status(app)
	waits("waiting for the app acme/shop/web ended after 1s", exit.NotReady, "--commit", wanted)
	get()
	app.Status.ObservedTree = "new"
	w.status(app)
	waits("The app acme/shop/web is ready.", exit.OK, "--commit", wanted)
	waits("The app acme/shop/web is ready.", exit.OK)

	// The old failure is not that of the new revision.
	get()
	app.Annotations[v1alpha1.TreeAnnotation], app.Annotations[v1alpha1.RevisionAnnotation] = "newer", "main@sha1:fedcba98"
	if err := w.Update(t.Context(), app); err != nil {
		t.Fatal(err)
	}
	ready(app, metav1.ConditionFalse, "broken")
	app.Status.Conditions = append(app.Status.Conditions, metav1.Condition{Type: v1alpha1.StalledCondition, Status: metav1.ConditionTrue, Reason: v1alpha1.UnhealthyReason, LastTransitionTime: metav1.Now()})
	w.status(app)
	waits("ended after 1s", exit.NotReady)
	get()
	app.Status.LastAttemptedRevision = "main@sha1:fedcba98"
	w.status(app)
	waits("broken", exit.Failure)

	get()
	app.Status.Refused = &v1alpha1.Refused{Revision: "main@sha1:" + wanted, Place: "projects/shop/apps/web/app.yaml:5", Problem: "unknown field"}
	w.status(app)
	waits("the newest version is refused: projects/shop/apps/web/app.yaml:5: unknown field", exit.Failure, "--commit", wanted)

	// Another commit is pushed meanwhile.
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, complaint, code := run(t, "wait", "acme/shop/web", "--timeout", "30s", "--commit", "0011223344")
		if code != exit.Failure || !strings.Contains(complaint, "the repository went on to main@sha1:5566778899") {
			t.Errorf("%d: %s", code, complaint)
		}
	}()
	time.Sleep(300 * time.Millisecond)
	attempt("5566778899", metav1.ConditionTrue)
	<-done

	get()
	app.Status.Refused = nil
	app.Status.Conditions = append(app.Status.Conditions, metav1.Condition{Type: v1alpha1.SuspendedCondition, Status: metav1.ConditionTrue, Reason: v1alpha1.SuspendedReason, Message: "Suspended", LastTransitionTime: metav1.Now()})
	w.status(app)
	for _, request := range []string{"reconcile", "force", "reset"} {
		if _, complaint, code := run(t, request, "acme/shop/web"); code != exit.Failure || !strings.Contains(complaint, "is suspended, so kubeop handles no request of it: `kubeop resume acme/shop/web` ends that") {
			t.Errorf("%s: %d: %s", request, code, complaint)
		}
	}
	get()
	app.Status.Conditions = app.Status.Conditions[:3]
	w.status(app)
}

func testSuspend(t *testing.T, w *world) {
	if out, complaint, code := run(t, "suspend", "acme/shop/web", "--for", "10m"); code != exit.OK || !strings.Contains(out, "`kubeop resume acme/shop/web` ends it") {
		t.Fatalf("%d: %s%s", code, out, complaint)
	}
	app := &v1alpha1.App{}
	get := func() {
		t.Helper()
		if err := w.Get(t.Context(), client.ObjectKey{Namespace: "kubeop-acme-shop", Name: "web"}, app); err != nil {
			t.Fatal(err)
		}
	}
	get()
	until, err := time.Parse(time.RFC3339, app.Annotations[v1alpha1.SuspendAnnotation])
	if left := time.Until(until); err != nil || left < 9*time.Minute || left > 10*time.Minute {
		t.Errorf("it is suspended for %s, %v", left, err)
	}
	for _, want := range []string{"The app acme/shop/web continues.\n", "The app acme/shop/web is not suspended.\n"} {
		if out, _, code := run(t, "resume", "acme/shop/web"); code != exit.OK || out != want {
			t.Errorf("%d: %s, want %s", code, out, want)
		}
	}
	if get(); app.Annotations[v1alpha1.SuspendAnnotation] != "" {
		t.Error("it is still suspended")
	}
}

func testConfirm(t *testing.T, w *world) {
	if out, _, code := run(t, "confirm", "repository", "acme"); code != exit.OK || out != "The repository acme holds nothing that waits for a confirmation.\n" {
		t.Errorf("%d: %s", code, out)
	}
	repository := &v1alpha1.Repository{}
	key := client.ObjectKey{Name: "acme"}
	if err := w.Get(t.Context(), key, repository); err != nil {
		t.Fatal(err)
	}
	repository.Status.Held, repository.Status.HeldToken = []string{"Project kubeop-acme/shop: 1 app, 2 claims"}, "1a2b"
	w.status(repository)
	for name, tc := range map[string]struct {
		input, token string
		code         int
		want         string
	}{
		"no answer":     {code: exit.Failure, want: "nothing is deleted: no token was given"},
		"a wrong token": {input: "yes\n", code: exit.Failure, want: "nothing is deleted: the token of what the repository acme holds now is 1a2b, not yes"},
		"an old token":  {token: "0000", code: exit.Failure, want: "nothing is deleted"},
	} {
		args := []string{"confirm", "repository", "acme"}
		if tc.token != "" {
			args = append(args, "--token", tc.token)
		}
		_, complaint, code := runWith(t.Context(), tc.input, args...)
		if code != tc.code || !strings.Contains(complaint, tc.want) || tc.token == "" && !strings.Contains(complaint, "Project kubeop-acme/shop: 1 app, 2 claims") {
			t.Errorf("%s: %d: %s", name, code, complaint)
		}
		if err := w.Get(t.Context(), key, repository); err != nil || repository.Annotations[v1alpha1.ConfirmAnnotation] != "" {
			t.Errorf("%s: it was confirmed, %v", name, err)
		}
	}
	out, complaint, code := runWith(t.Context(), "1a2b\n", "confirm", "repository", "acme")
	if err := w.Get(t.Context(), key, repository); err != nil || code != exit.OK || repository.Annotations[v1alpha1.ConfirmAnnotation] != "1a2b" {
		t.Errorf("%d: %s%s, %v", code, out, complaint, err)
	}
}

func testWatching(t *testing.T, w *world) {
	w.t = t
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	ended := make(chan string, 1)
	go func() {
		out, complaint, code := runWith(ctx, "", "get", "apps", "-n", "kubeop-acme-shop", "--watch")
		ended <- fmt.Sprintf("%d %s %s", code, complaint, out)
	}()
	app := &v1alpha1.App{}
	for i := range 20 { // The command may not have begun to watch.
		if err := w.Get(ctx, client.ObjectKey{Namespace: "kubeop-acme-shop", Name: "web"}, app); err != nil {
			t.Fatal(err)
		}
		ready(app, metav1.ConditionTrue, fmt.Sprintf("well for the time %d", i))
		w.status(app)
		time.Sleep(100 * time.Millisecond)
	}
	cancel()
	said := <-ended
	if rows := strings.Count(said, "well for the time"); !strings.HasPrefix(said, "0 ") || rows < 5 || strings.Count(said, "NAME") != 1 || !strings.Contains(said, "well for the time 19") {
		t.Errorf("%d rows: %s", rows, said)
	}
}
