package main

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/cmd/kubeop/exit"
	"github.com/kubeop/kubeop/internal/manager/live"
	"github.com/kubeop/kubeop/internal/testenv/managed"
)

// age is the last column of a row, and the time before a message of wait.
var age = regexp.MustCompile(`(?m) +\d+[a-z0-9]*$|^ *\d+s  `)

// testManager reads the same through a manager that follows the cluster, without a kubeconfig.
func testManager(t *testing.T, w *world) {
	cluster, err := live.NewCluster(t.Context(), env.Config)
	if err != nil {
		t.Fatal(err)
	}
	running, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- cluster.Start(running) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	for cluster.Synced(t.Context()) != nil {
		time.Sleep(20 * time.Millisecond)
	}
	m := managed.Of(t, cluster.Index, 10_000)
	token, _ := m.Token("admin")
	through := func(args ...string) (string, string, int) {
		t.Helper()
		t.Setenv("KUBEOP_SERVER", m.URL)
		t.Setenv("KUBEOP_TOKEN", token)
		defer t.Setenv("KUBEOP_SERVER", "")
		return run(t, append([]string{"--kubeconfig", os.DevNull}, args...)...)
	}
	for _, args := range []string{
		"get apps -t acme", "get apps -n kubeop-acme-shop", "get app acme/shop/web", "get app web -t acme -p shop", "get apps -o wide", "get apps", "get apps -A", "get projects -t acme", "get projects",
		"get project acme/shop -o wide", "get tenants -o wide", "get tenants -t acme", "get tenant acme", "wait acme/shop/web --timeout 1s", "wait project acme/shop --timeout 1s", "__complete describe -t acme shop",
		"__complete get projects ",
	} {
		out, complaint, code := run(t, strings.Split(args, " ")...)
		want := fmt.Sprintf("%d %s%s", code, age.ReplaceAllString(out, ""), age.ReplaceAllString(complaint, ""))
		out, complaint, code = through(strings.Split(args, " ")...)
		if got := fmt.Sprintf("%d %s%s", code, age.ReplaceAllString(out, ""), age.ReplaceAllString(complaint, "")); got != want {
			t.Errorf("%s says\n%s\nand of the cluster\n%s", args, got, want)
		}
	}
	for args, want := range map[string]string{
		"get repositories": "does not serve repositories", "get apps -o json": "needs the cluster itself", "describe acme/shop/web": "needs the cluster itself", "tree acme/shop/web": "needs the cluster itself",
		"events acme/shop/web": "needs the cluster itself", "trace pod/web-0": "needs the cluster itself", "reconcile acme/shop/web": "needs the cluster itself", "get apps -w": "name the tenant with --tenant",
		"wait acme/shop/web --commit 0123456789": "needs the cluster itself", "get app acme/shop/nope": "There is no such resource", "wait repository acme": "does not serve repositories",
	} {
		_, complaint, code := through(strings.Split(args, " ")...)
		if code != exit.Failure || !strings.HasPrefix(complaint, "Error: ") || !strings.Contains(complaint, want) || strings.Count(complaint, "\n") != 1 {
			t.Errorf("%s: exit code %d: %q, want %q on one line", args, code, complaint, want)
		}
	}
	testManagerFollows(t, w, m.URL, token)
}

// testManagerFollows has the app change while it is followed through the manager.
func testManagerFollows(t *testing.T, w *world, url, token string) {
	t.Setenv("KUBEOP_TOKEN", token)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ended := make(chan string, 1)
	go func() {
		out, complaint, code := runWith(ctx, "", "get", "apps", "-t", "acme", "--watch", "--server", url)
		ended <- fmt.Sprintf("%d %s %s", code, complaint, out)
	}()
	app := &v1alpha1.App{}
	change := func(status metav1.ConditionStatus, message string) {
		t.Helper()
		if err := w.Get(t.Context(), client.ObjectKey{Namespace: "kubeop-acme-shop", Name: "web"}, app); err != nil {
			t.Fatal(err)
		}
		ready(app, status, message)
		w.status(app)
	}
	if err := w.Get(ctx, client.ObjectKey{Namespace: "kubeop-acme-shop", Name: "web"}, app); err != nil {
		t.Fatal(err)
	}
	before := app.Status.DeepCopy()
	for i := range 20 { // The command may not have begun to follow.
		change(metav1.ConditionFalse, fmt.Sprintf("report number %d", i))
		time.Sleep(100 * time.Millisecond)
	}
	time.Sleep(time.Second)
	cancel()
	if said := <-ended; !strings.HasPrefix(said, "0 ") || strings.Count(said, "report number") < 5 || strings.Count(said, "NAME") != 1 || !strings.Contains(said, "report number 19") {
		t.Errorf("it prints %s", said)
	}
	if out, complaint, code := runWith(t.Context(), "", "wait", "acme/shop/web", "--server", url, "--timeout", "1s"); code != exit.NotReady || !strings.Contains(complaint, "report number 19") {
		t.Errorf("waiting: %d %s%s", code, out, complaint)
	}
	waited := make(chan string, 1)
	go func() {
		out, complaint, code := runWith(t.Context(), "", "wait", "acme/shop/web", "--server", url, "--timeout", "1m")
		waited <- fmt.Sprintf("%d %s %s", code, out, complaint)
	}()
	time.Sleep(time.Second)
	change(metav1.ConditionTrue, "well")
	if said := <-waited; !strings.HasPrefix(said, "0 The app acme/shop/web is ready.") {
		t.Errorf("waiting until it is ready: %s", said)
	}
	before.DeepCopyInto(&app.Status)
	w.status(app)
}
