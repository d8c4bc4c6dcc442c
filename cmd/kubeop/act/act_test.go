package act

import (
	"bytes"
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/cmd/kubeop/call"
	"github.com/kubeop/kubeop/internal/testenv/memory"
)

const (
	shop       = "kubeop-acme-shop"
	commitHash = "0123456789abcdef0123456789abcdef01234567"
	later      = "89abcdef0123456789abcdef0123456789abcdef"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// calling is a call of the command line with its output.
type calling struct {
	*call.Call
	out, complaint *bytes.Buffer
}

func newCall(s *memory.Server, of clock.Clock, input string) calling {
	streams, in, out, complaint := genericiooptions.NewTestIOStreams()
	in.WriteString(input)
	c := call.New(streams, of)
	c.Flags.KubeConfig = &s.Kubeconfig
	return calling{c, out, complaint}
}

// run runs one command with its arguments.
func (c calling) run(t *testing.T, command func(*call.Call) *cobra.Command, args ...string) (out string, err error) {
	t.Helper()
	made := command(c.Call)
	made.SilenceUsage, made.SilenceErrors = true, true
	made.SetArgs(args)
	err = made.ExecuteContext(t.Context())
	return c.out.String(), err
}

// wantEnd compares the output of a command, and the error by a part of its text.
func wantEnd(t *testing.T, out string, err error, want, fails string) {
	t.Helper()
	if diff := cmp.Diff(want, out); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
	if (err != nil) != (fails != "") || err != nil && !strings.Contains(err.Error(), fails) {
		t.Errorf("the error is %v, want %q", err, fails)
	}
}

func newApp() *v1alpha1.App {
	return &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "web", Generation: 2, Annotations: map[string]string{
		v1alpha1.FolderAnnotation: "projects/shop/apps/web", v1alpha1.RevisionAnnotation: "main@sha1:" + commitHash,
	}}}
}

func newRepository() *v1alpha1.Repository {
	return &v1alpha1.Repository{ObjectMeta: metav1.ObjectMeta{Name: "acme", Generation: 1}}
}

// annotation reads an annotation of an object in the cluster.
func annotation(t *testing.T, s *memory.Server, of client.Object, name string) string {
	t.Helper()
	if err := s.Get(t.Context(), client.ObjectKeyFromObject(of), of); err != nil {
		t.Fatal(err)
	}
	return of.GetAnnotations()[name]
}

// operate changes the status of an app when a request of it is seen, as the operator does.
func operate(t *testing.T, s *memory.Server, request string, change func(app *v1alpha1.App, value string)) {
	t.Helper()
	done := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("handling %s: %v", request, err)
		}
	})
	go func() {
		for ctx.Err() == nil {
			app := &v1alpha1.App{}
			if err := s.Get(ctx, client.ObjectKey{Namespace: shop, Name: "web"}, app); err != nil {
				done <- err
				return
			}
			if value := app.Annotations[request]; value != "" {
				change(app, value)
				done <- s.Update(ctx, app)
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
		done <- context.Cause(ctx)
	}()
}

func ready(app *v1alpha1.App, status metav1.ConditionStatus, also ...metav1.Condition) {
	app.Status.Conditions = append([]metav1.Condition{{
		Type: v1alpha1.ReadyCondition, Status: status, Reason: "Because", Message: "of this", ObservedGeneration: app.Generation,
	}}, also...)
}

func TestRequestsAreAnnotationsWithTheTime(t *testing.T) {
	for name, tc := range map[string]struct {
		command    func(*call.Call) *cobra.Command
		args       []string
		annotation string
		want       string
	}{
		"reconcile": {Reconcile, []string{"acme/shop/web"}, meta.ReconcileRequestAnnotation, "The app acme/shop/web will be reconciled.\n"},
		"force":     {Force, []string{"acme/shop/web"}, meta.ForceRequestAnnotation, "The app acme/shop/web will be tried again.\n"},
		"reset":     {Reset, []string{"app", "acme/shop/web"}, v1alpha1.ResetAnnotation, "The app acme/shop/web will be reset.\n"},
	} {
		t.Run(name, func(t *testing.T) {
			s := memory.Serve(t, newApp())
			out, err := newCall(s, clocktesting.NewFakeClock(noon.Add(time.Nanosecond)), "").run(t, tc.command, append(tc.args, "--wait=false")...)
			wantEnd(t, out, err, tc.want, "")
			if got := annotation(t, s, newApp(), tc.annotation); got != "2026-01-01T12:00:00.000000001Z" {
				t.Errorf("the annotation is %q", got)
			}
		})
	}
}

func TestRequestsThatKubeopWouldNotHandleAreRefused(t *testing.T) {
	suspended := newApp()
	ready(suspended, metav1.ConditionTrue, metav1.Condition{Type: v1alpha1.SuspendedCondition, Status: metav1.ConditionTrue})
	s := memory.Serve(t, suspended, newRepository(), &v1alpha1.Policy{ObjectMeta: metav1.ObjectMeta{Name: "baseline"}})
	for name, tc := range map[string]struct {
		command func(*call.Call) *cobra.Command
		args    []string
		fails   string
	}{
		"force of a repository": {Force, []string{"repository", "acme"}, "force is for apps, not for a repository"},
		"reset of a repository": {Reset, []string{"repository", "acme"}, "reset is for apps, not for a repository"},
		"a suspended app":       {Reconcile, []string{"acme/shop/web"}, "the app acme/shop/web is suspended, so kubeop handles no request of it: `kubeop resume acme/shop/web` ends that"},
		"no such app":           {Reconcile, []string{"acme/shop/none"}, "reading the app acme/shop/none: "},
		"a policy":              {Reconcile, []string{"policy", "baseline"}, "nothing is to be done for a policy: it holds from when it is written"},
		"no such kind":          {Reconcile, []string{"pod", "web"}, "kubeop has no kind \"pod\""},
		"an incomplete name":    {Reconcile, []string{"web"}, "\"web\" does not say which tenant the app is in"},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := newCall(s, clock.RealClock{}, "").run(t, tc.command, tc.args...)
			wantEnd(t, out, err, "", tc.fails)
		})
	}
	if got := annotation(t, s, newApp(), meta.ReconcileRequestAnnotation); got != "" {
		t.Errorf("the suspended app has the request %q", got)
	}
}

func TestARequestIsDoneWhenItsOwnValueWasHandledAndTheAppIsReady(t *testing.T) {
	stalled := metav1.Condition{Type: v1alpha1.StalledCondition, Status: metav1.ConditionTrue}
	for name, tc := range map[string]struct {
		command     func(*call.Call) *cobra.Command
		annotation  string
		handle      func(app *v1alpha1.App, value string)
		want, fails string
	}{
		"reconciled": {Reconcile, meta.ReconcileRequestAnnotation, func(app *v1alpha1.App, value string) {
			app.Status.LastHandledReconcileAt = value
			ready(app, metav1.ConditionTrue)
		}, "The app acme/shop/web was reconciled and is ready.\n", ""},
		"forced": {Force, meta.ForceRequestAnnotation, func(app *v1alpha1.App, value string) {
			app.Status.LastHandledForceAt = value
			ready(app, metav1.ConditionTrue)
		}, "The app acme/shop/web was tried again and is ready.\n", ""},
		"reset": {Reset, v1alpha1.ResetAnnotation, func(app *v1alpha1.App, value string) {
			app.Status.LastHandledResetAt = value
			ready(app, metav1.ConditionTrue)
		}, "The app acme/shop/web was reset and is ready.\n", ""},
		"failed again": {Force, meta.ForceRequestAnnotation, func(app *v1alpha1.App, value string) {
			app.Status.LastHandledForceAt = value
			ready(app, metav1.ConditionFalse, stalled)
		}, "", "Because: of this"},
		"replaced by a later request": {Reconcile, meta.ReconcileRequestAnnotation, func(app *v1alpha1.App, _ string) {
			app.Annotations[meta.ReconcileRequestAnnotation], app.Status.LastHandledReconcileAt = "that of a push", "that of a push"
			ready(app, metav1.ConditionTrue)
		}, "The app acme/shop/web was reconciled and is ready.\n", ""},
		"another request": {Force, meta.ForceRequestAnnotation, func(app *v1alpha1.App, value string) {
			app.Status.LastHandledForceAt = "an earlier one"
			app.Status.LastHandledResetAt = value
			ready(app, metav1.ConditionTrue)
		}, "", "waiting for the app acme/shop/web ended after 500ms: Because: of this"},
	} {
		t.Run(name, func(t *testing.T) {
			app := newApp()
			// It was ready before, or failed before; neither is the answer to this request.
			ready(app, metav1.ConditionTrue)
			s := memory.Serve(t, app)
			operate(t, s, tc.annotation, tc.handle)
			timeout := "--timeout=30s"
			if name == "another request" {
				timeout = "--timeout=500ms"
			}
			out, err := newCall(s, clock.RealClock{}, "").run(t, tc.command, "acme/shop/web", timeout)
			wantEnd(t, out, err, tc.want, tc.fails)
		})
	}
}

func TestConfirmAnnotatesWithTheTokenOfTheHeldDeletions(t *testing.T) {
	held, repository := newApp(), newRepository()
	held.Status.Held, held.Status.HeldToken = []string{"PersistentVolumeClaim/data", "Service/web"}, "1a2b"
	repository.Status.Held, repository.Status.HeldToken = []string{"app acme/shop/web"}, "3c4d"
	const question = "Deletions of the app acme/shop/web that wait for a confirmation:\n  PersistentVolumeClaim/data\n  Service/web\nTo confirm, type 1a2b: "
	for name, tc := range map[string]struct {
		args            []string
		input           string
		out, err, fails string
		confirmed       string // the annotation of the app
	}{
		"by its token":    {[]string{"acme/shop/web", "--token", "1a2b"}, "", "Confirmed: kubeop deletes what the app acme/shop/web holds.\n", "", "", "1a2b"},
		"by an answer":    {[]string{"acme/shop/web"}, " 1a2b \n", "Confirmed: kubeop deletes what the app acme/shop/web holds.\n", question, "", "1a2b"},
		"without newline": {[]string{"acme/shop/web"}, "1a2b", "Confirmed: kubeop deletes what the app acme/shop/web holds.\n", question, "", "1a2b"},
		"another token":   {[]string{"acme/shop/web", "--token", "3c4d"}, "", "", "", "nothing is deleted: the token of what the app acme/shop/web holds now is 1a2b, not 3c4d", ""},
		"another answer":  {[]string{"acme/shop/web"}, "yes\n", "", question, "nothing is deleted: the token of what the app acme/shop/web holds now is 1a2b, not yes", ""},
		"no answer":       {[]string{"acme/shop/web"}, "\n", "", question, "nothing is deleted: no token was given", ""},
		"no input":        {[]string{"acme/shop/web"}, "", "", question, "nothing is deleted: no token was given", ""},
		"nothing held":    {[]string{"acme/shop/idle", "--token", "1a2b"}, "", "The app acme/shop/idle holds nothing that waits for a confirmation.\n", "", "", ""},
		"a repository":    {[]string{"repository", "acme", "--token", "3c4d"}, "", "Confirmed: kubeop deletes what the repository acme holds.\n", "", "", ""},
		"no such app":     {[]string{"acme/shop/none"}, "", "", "", "reading the app acme/shop/none", ""},
	} {
		t.Run(name, func(t *testing.T) {
			idle := newApp()
			idle.Name = "idle"
			s := memory.Serve(t, held.DeepCopy(), idle, repository.DeepCopy())
			c := newCall(s, clock.RealClock{}, tc.input)
			out, err := c.run(t, Confirm, tc.args...)
			wantEnd(t, out, err, tc.out, tc.fails)
			if diff := cmp.Diff(tc.err, c.complaint.String()); diff != "" {
				t.Errorf("standard error (-want +got):\n%s", diff)
			}
			if got := annotation(t, s, newApp(), v1alpha1.ConfirmAnnotation); got != tc.confirmed {
				t.Errorf("the app is confirmed by %q, want %q", got, tc.confirmed)
			}
			if name == "a repository" {
				if got := annotation(t, s, newRepository(), v1alpha1.ConfirmAnnotation); got != "3c4d" {
					t.Errorf("the repository is confirmed by %q", got)
				}
			}
		})
	}
}

// TestConfirmACommitThatWaitsForTheEndOfAFreeze; deletions that are held too come first.
func TestConfirmACommitThatWaitsForTheEndOfAFreeze(t *testing.T) {
	hash := "0123456789abcdef0123456789abcdef01234567"
	const question = "Commits of the repository acme that wait for a confirmation:\n  0123456789abcdef0123456789abcdef01234567 waits until 2026-01-01T12:00:00Z, the end of a freeze\nTo confirm, type 01234567: "
	confirmed := "Confirmed: kubeop applies commit " + hash + " of the repository acme.\n"
	for name, tc := range map[string]struct {
		args            []string
		input           string
		deletions       bool
		out, err, fails string
		want            string // the annotation
	}{
		"by an answer":      {nil, "01234567\n", false, confirmed, question, "", hash},
		"by its hash":       {[]string{"--token", hash}, "", false, confirmed, "", "", hash},
		"too few digits":    {[]string{"--token", "0123"}, "", false, "", "", "the commit waits on: the token of what the repository acme holds now is 01234567, not 0123", ""},
		"another commit":    {nil, "11111111\n", false, "", question, "the commit waits on: the token of what the repository acme holds now is 01234567, not 11111111", ""},
		"no answer":         {nil, "", false, "", question, "the commit waits on: no token was given", ""},
		"beside deletions":  {[]string{"--token", "01234567"}, "", true, confirmed, "", "", hash},
		"deletions instead": {[]string{"--token", "3c4d"}, "", true, "Confirmed: kubeop deletes what the repository acme holds.\n", "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			repository := newRepository()
			repository.Status.HeldRevision, repository.Status.HeldUntil = "main@sha1:"+hash, &metav1.Time{Time: noon}
			if tc.deletions {
				repository.Status.Held, repository.Status.HeldToken = []string{"app acme/shop/web"}, "3c4d"
			}
			s := memory.Serve(t, repository)
			c := newCall(s, clock.RealClock{}, tc.input)
			out, err := c.run(t, Confirm, append([]string{"repository", "acme"}, tc.args...)...)
			wantEnd(t, out, err, tc.out, tc.fails)
			if diff := cmp.Diff(tc.err, c.complaint.String()); diff != "" {
				t.Errorf("standard error (-want +got):\n%s", diff)
			}
			if got := annotation(t, s, newRepository(), v1alpha1.ConfirmFreezeAnnotation); got != tc.want {
				t.Errorf("the commit is confirmed by %q, want %q", got, tc.want)
			}
		})
	}
}

func TestSuspendAnnotatesAnAppOrRepositoryUntilATime(t *testing.T) {
	for name, tc := range map[string]struct {
		args       []string
		out, fails string
		until      string // the annotation of the app
	}{
		"an hour":      {[]string{"acme/shop/web"}, "The app acme/shop/web is suspended until 2026-01-01T13:00:00Z. `kubeop resume acme/shop/web` ends it.\n", "", "2026-01-01T13:00:00Z"},
		"for a day":    {[]string{"acme/shop/web", "--for", "24h"}, "The app acme/shop/web is suspended until 2026-01-02T12:00:00Z. `kubeop resume acme/shop/web` ends it.\n", "", "2026-01-02T12:00:00Z"},
		"a repository": {[]string{"repository", "acme"}, "The repository acme is suspended until 2026-01-01T13:00:00Z. `kubeop resume repository acme` ends it.\n", "", ""},
		"for no time":  {[]string{"acme/shop/web", "--for", "0s"}, "", "--for must be more than zero", ""},
		"a project":    {[]string{"project", "acme/shop"}, "", "a project cannot be suspended, only an app or a repository", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := memory.Serve(t, newApp(), newRepository())
			out, err := newCall(s, clocktesting.NewFakeClock(noon), "").run(t, Suspend, tc.args...)
			wantEnd(t, out, err, tc.out, tc.fails)
			if got := annotation(t, s, newApp(), v1alpha1.SuspendAnnotation); got != tc.until {
				t.Errorf("the app is suspended until %q, want %q", got, tc.until)
			}
		})
	}
}

func TestResumeRemovesTheAnnotationOfSuspend(t *testing.T) {
	for name, tc := range map[string]struct {
		args       []string
		annotated  bool
		inGit      bool
		out, fails string
		left       string // the annotation of the app
	}{
		"suspended":            {[]string{"acme/shop/web"}, true, false, "The app acme/shop/web continues.\n", "", ""},
		"not suspended":        {[]string{"acme/shop/web"}, false, false, "The app acme/shop/web is not suspended.\n", "", ""},
		"suspended in Git":     {[]string{"acme/shop/web"}, true, true, "", "spec.suspend of the app acme/shop/web is true: remove it from Git", "later"},
		"a repository":         {[]string{"repository", "acme"}, true, false, "The repository acme continues.\n", "", "later"},
		"a repository, in Git": {[]string{"repository", "acme"}, true, true, "", "spec.suspend of the repository acme is true: remove it from Git", "later"},
		"a tenant":             {[]string{"tenant", "acme"}, true, false, "", "a tenant cannot be suspended, only an app or a repository", "later"},
	} {
		t.Run(name, func(t *testing.T) {
			app, repository := newApp(), newRepository()
			app.Spec.Suspend, repository.Spec.Suspend = tc.inGit, tc.inGit
			if tc.annotated {
				app.Annotations[v1alpha1.SuspendAnnotation] = "later"
				repository.Annotations = map[string]string{v1alpha1.SuspendAnnotation: "later"}
			}
			s := memory.Serve(t, app, repository)
			out, err := newCall(s, clock.RealClock{}, "").run(t, Resume, tc.args...)
			wantEnd(t, out, err, tc.out, tc.fails)
			if got := annotation(t, s, newApp(), v1alpha1.SuspendAnnotation); got != tc.left {
				t.Errorf("the annotation is %q, want %q", got, tc.left)
			}
			if name == "a repository" {
				if got := annotation(t, s, newRepository(), v1alpha1.SuspendAnnotation); got != "" {
					t.Errorf("the annotation of the repository is %q", got)
				}
			}
		})
	}
}

func TestConfirmACommitOfARewrittenHistory(t *testing.T) {
	repository := newRepository()
	repository.Status.HeldRevision, repository.Status.LastAttemptedRevision = "main@sha1:0123456789", "main@sha1:ba5eba11"
	s := memory.Serve(t, repository)
	confirm := func() (string, string, error) {
		c := newCall(s, clock.RealClock{}, "01234567\n")
		out, err := c.run(t, Confirm, "repository", "acme")
		return out, c.complaint.String(), err
	}
	// One without a valid signature cannot be confirmed.
	if out, _, err := confirm(); err != nil || out != "The repository acme holds nothing that waits for a confirmation.\n" {
		t.Errorf("%s, %v", out, err)
	}
	repository.Status.Conditions = []metav1.Condition{{Type: v1alpha1.AcceptedCondition, Status: metav1.ConditionFalse, Reason: v1alpha1.HistoryRewrittenReason}}
	s = memory.Serve(t, repository)
	out, question, err := confirm()
	if err != nil || out != "Confirmed: kubeop applies commit 0123456789 of the repository acme.\n" ||
		!strings.Contains(question, "\n  0123456789 does not descend from the last accepted one: main@sha1:ba5eba11\n") {
		t.Errorf("%s%s, %v", question, out, err)
	}
	if got := annotation(t, s, newRepository(), v1alpha1.ConfirmHistoryAnnotation); got != "0123456789" {
		t.Errorf("the commit is confirmed by %q", got)
	}
}

// TestConfirmAddsTokensOfPromotionsToThoseConfirmedBefore: all or some of them; what was confirmed before stays so.
func TestConfirmAddsTokensOfPromotionsToThoseConfirmedBefore(t *testing.T) {
	const question = "Promotions of the project acme/shop that wait for a confirmation:\n  11aa22bb web: image.reference: web:1.0 → web:1.1\n" +
		"  33cc44dd api: helm.version: 1.0.0 → 1.1.0\nTo confirm, type the tokens at the beginning of the lines, or some of them, separated by commas: "
	const confirmed = "Confirmed: kubeop promotes them to the project acme/shop.\n"
	for name, tc := range map[string]struct {
		args            []string
		input, before   string
		out, err, fails string
		want            string // the annotation
	}{
		"all":           {nil, "33cc44dd, 11aa22bb\n", "", confirmed, question, "", "33cc44dd,11aa22bb"},
		"one":           {[]string{"--token", "33cc44dd"}, "", "", confirmed, "", "", "33cc44dd"},
		"one more":      {[]string{"--token", "33cc44dd"}, "", "55ee66ff,33cc44dd", confirmed, "", "", "33cc44dd,55ee66ff"},
		"another":       {[]string{"--token", "33cc44dd,77ee88ff"}, "", "55ee66ff", "", "", "nothing is promoted: the token of what the project acme/shop holds now is 11aa22bb or 33cc44dd, not 33cc44dd,77ee88ff", "55ee66ff"},
		"only a comma":  {[]string{"--token", ","}, "", "", "", "", "nothing is promoted: the token of", ""},
		"nothing typed": {nil, "\n", "", "", question, "nothing is promoted: no token was given", ""},
	} {
		t.Run(name, func(t *testing.T) {
			project := &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.HomeNamespace("acme"), Name: "shop"}}
			project.Annotations = map[string]string{v1alpha1.ConfirmPromotionAnnotation: tc.before}
			project.Status.HeldPromotions = []v1alpha1.HeldPromotion{
				{App: "web", Token: "11aa22bb", Changes: "image.reference: web:1.0 → web:1.1"}, {App: "api", Token: "33cc44dd", Changes: "helm.version: 1.0.0 → 1.1.0"},
			}
			s := memory.Serve(t, project)
			c := newCall(s, clock.RealClock{}, tc.input)
			out, err := c.run(t, Confirm, append([]string{"project", "acme/shop"}, tc.args...)...)
			wantEnd(t, out, err, tc.out, tc.fails)
			if diff := cmp.Diff(tc.err, c.complaint.String()); diff != "" {
				t.Errorf("standard error (-want +got):\n%s", diff)
			}
			if got := annotation(t, s, project, v1alpha1.ConfirmPromotionAnnotation); got != tc.want {
				t.Errorf("confirmed is %q, want %q", got, tc.want)
			}
		})
	}
}

// TestAWriteThatTheClusterRefusesIsAnError of each command that writes.
func TestAWriteThatTheClusterRefusesIsAnError(t *testing.T) {
	held := newApp()
	held.Status.Held, held.Status.HeldToken = []string{"Service/web"}, "1a2b"
	held.Annotations[v1alpha1.SuspendAnnotation] = "later"
	s := memory.Serve(t, held)
	s.Intercept = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPatch {
			http.Error(w, "no", http.StatusForbidden)
			return true
		}
		return false
	}
	for name, tc := range map[string]struct {
		command func(*call.Call) *cobra.Command
		args    []string
	}{
		"reconcile": {Reconcile, nil}, "confirm": {Confirm, []string{"--token", "1a2b"}}, "suspend": {Suspend, nil}, "resume": {Resume, nil},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := newCall(s, clock.RealClock{}, "").run(t, tc.command, append([]string{"acme/shop/web"}, tc.args...)...)
			wantEnd(t, out, err, "", "annotating the app acme/shop/web: ")
		})
	}
}

// TestEachCommandReturnsTheErrorOfEachRequest: a request that was not sent must not be said to be.
func TestEachCommandReturnsTheErrorOfEachRequest(t *testing.T) {
	for name, c := range map[string]struct {
		command func(*call.Call) *cobra.Command
		args    []string
		change  func(*v1alpha1.App)
		least   int
	}{
		"reconcile": {Reconcile, []string{"acme/shop/web", "--wait=false"}, nil, 2},
		"suspend":   {Suspend, []string{"acme/shop/web"}, nil, 1},
		"resume": {Resume, []string{"acme/shop/web"}, func(a *v1alpha1.App) {
			a.Annotations[v1alpha1.SuspendAnnotation] = "2026-01-01T13:00:00Z"
		}, 2},
		"confirm":  {Confirm, []string{"acme/shop/web", "--token", "1a2b"}, func(a *v1alpha1.App) { a.Status.Held, a.Status.HeldToken = []string{"x"}, "1a2b" }, 2},
		"wait":     {Wait, []string{"acme/shop/web"}, func(a *v1alpha1.App) { ready(a, metav1.ConditionTrue) }, 1},
		"rollback": {Rollback, []string{"acme/shop/web"}, func(a *v1alpha1.App) { a.Spec.Git = &v1alpha1.GitSource{} }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			var s *memory.Server
			requests := 0
			for n := range 10 {
				app := newApp()
				if c.change != nil {
					c.change(app)
				}
				s = memory.Serve(t, app)
				failed, err := s.FailNth(n+1, func() error {
					_, err := newCall(s, clock.RealClock{}, "").run(t, c.command, c.args...)
					return err
				})
				if failed == "" {
					break
				}
				requests++
				if err == nil || !strings.Contains(err.Error(), memory.OutOfOrder) {
					t.Errorf("the error of %s is not returned: %v", failed, err)
				}
			}
			if requests < c.least {
				t.Errorf("%d requests, want %d at least", requests, c.least)
			}
		})
	}
}

// TestInvalidNamesAreRefused before anything is asked of the cluster.
func TestInvalidNamesAreRefused(t *testing.T) {
	s := memory.Serve(t)
	s.Intercept = func(_ http.ResponseWriter, r *http.Request) bool {
		t.Errorf("asked for %s", r.URL.Path)
		return false
	}
	for name, command := range map[string]func(*call.Call) *cobra.Command{"reconcile": Reconcile, "suspend": Suspend, "resume": Resume, "confirm": Confirm, "wait": Wait, "rollback": Rollback} {
		if out, err := newCall(s, clock.RealClock{}, "").run(t, command, "a/b/c/d"); err == nil || out != "" {
			t.Errorf("%s: %q, %v", name, out, err)
		}
	}
}
