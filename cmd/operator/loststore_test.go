package main

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// gitHost is a second address of the tests' Git server. The test can turn it off.
type gitHost struct {
	t       *testing.T
	address string
	server  *http.Server
	proxy   *httputil.ReverseProxy
}

func newGitHost(t *testing.T, repository string) (host *gitHost, at string) {
	t.Helper()
	to, err := url.Parse(repository)
	if err != nil {
		t.Fatal(err)
	}
	g := &gitHost{t: t, address: "127.0.0.1:0", proxy: httputil.NewSingleHostReverseProxy(&url.URL{Scheme: to.Scheme, Host: to.Host})}
	g.up()
	t.Cleanup(g.down)
	return g, "http://" + g.address + to.Path
}

func (g *gitHost) up() {
	g.t.Helper()
	listener, err := net.Listen("tcp", g.address)
	if err != nil {
		g.t.Fatal(err)
	}
	g.address = listener.Addr().String()
	g.server = &http.Server{Handler: g.proxy}
	go func() { _ = g.server.Serve(listener) }()
}

func (g *gitHost) down() { _ = g.server.Close() }

// TestLostStoreWhileTheGitHostIsDown restarts the operator without its DATA_DIR while no Git host answers. Apps with lost folders keep running
// and stay ready, and their SourceReady reports the problem. When the host is back, all conditions recover.
func TestLostStoreWhileTheGitHostIsDown(t *testing.T) {
	k := newKilled(t, "loststore")
	host, at := newGitHost(t, k.repo.URL)
	tenant := &v1alpha1.Tenant{}
	if err := k.Get(t.Context(), client.ObjectKey{Name: "loststore"}, tenant); err != nil {
		t.Fatal(err)
	}
	tenant.Spec.Repository.URL = at
	if err := k.Update(t.Context(), tenant); err != nil {
		t.Fatal(err)
	}
	k.repo.Push(map[string]string{"kubeop.yaml": "layout: v1\n", "projects/shop/project.yaml": projectFile})
	operator := k.start()
	k.push(1, 3)
	namespace := &corev1.Namespace{}
	k.eventually("the project has its namespace", func() error { return k.Get(t.Context(), client.ObjectKey{Name: k.namespace}, namespace) })
	login := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: "login"},
		StringData: map[string]string{"username": k.repo.User, "password": k.repo.Password},
	}
	if err := k.Create(t.Context(), login); err != nil {
		t.Fatal(err)
	}
	k.repo.Push(map[string]string{
		"projects/shop/apps/git/manifests/config.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: git}\n",
		"projects/shop/apps/git/app.yaml":              fmt.Sprintf(app, "git", "{type: Git, interval: 2s, git: {url: '"+at+"', path: projects/shop/apps/git/manifests, secretRef: {name: login}}}"),
	})
	names := []string{"raw", "helm", "git"}
	k.eventually("the apps are ready", func() error { return k.all(names, true, "") })
	k.kill(operator)
	host.down()
	if err := os.RemoveAll(filepath.Join(filepath.Dir(k.kubeconfig), "data")); err != nil {
		t.Fatal(err)
	}
	objects := k.versions()

	operator = k.start()
	defer func() { k.kill(operator) }()
	k.eventually("the apps report that their source cannot be reached", func() error { return k.all(names, true, host.address) })
	for begin := time.Now(); time.Since(begin) < 5*time.Second; time.Sleep(50 * time.Millisecond) {
		if err := k.all(names, true, host.address); err != nil {
			t.Fatalf("%s after the restart: %v", time.Since(begin), err)
		}
	}
	if now := k.versions(); now != objects {
		t.Errorf("objects were %s and are %s", objects, now)
	}
	repository := &v1alpha1.Repository{}
	if err := k.Get(t.Context(), client.ObjectKey{Name: "loststore"}, repository); err != nil {
		t.Fatal(err)
	}
	fetched, ready := conditions.Get(repository, v1alpha1.FetchedCondition), conditions.Get(repository, v1alpha1.ReadyCondition)
	if fetched.Status != metav1.ConditionFalse || !strings.Contains(fetched.Message, host.address) || !conditions.IsTrue(repository, v1alpha1.SyncedCondition) ||
		ready.Status != metav1.ConditionFalse || !strings.Contains(ready.Message, repository.Status.LastAppliedRevision) {
		t.Errorf("the repository's conditions are %+v", repository.Status.Conditions)
	}
	project := &v1alpha1.Project{}
	if err := k.Get(t.Context(), client.ObjectKey{Namespace: v1alpha1.HomeNamespace("loststore"), Name: "shop"}, project); err != nil {
		t.Fatal(err)
	}
	if !conditions.IsReady(project) {
		t.Errorf("the project's conditions are %+v", project.Status.Conditions)
	}

	host.up()
	k.eventually("the apps have their source again", func() error { return k.all(names, true, "") })
}

// all checks that the apps are ready or not, and that SourceReady is true for an empty problem, or false with a message that contains it.
func (k *killed) all(names []string, ready bool, problem string) error {
	for _, name := range names {
		app := &v1alpha1.App{}
		if err := k.Get(k.t.Context(), client.ObjectKey{Namespace: k.namespace, Name: name}, app); err != nil {
			return err
		}
		source, is := conditions.Get(app, v1alpha1.SourceReadyCondition), conditions.Get(app, v1alpha1.ReadyCondition)
		switch {
		case source == nil || is == nil || (is.Status == metav1.ConditionTrue) != ready:
			return fmt.Errorf("%s: %+v", name, app.Status.Conditions)
		case (problem == "") != (source.Status == metav1.ConditionTrue) || !strings.Contains(source.Message, problem):
			return fmt.Errorf("%s: its source is %+v", name, source)
		case problem != "" && !strings.Contains(is.Message, v1alpha1.SourceReadyCondition):
			return fmt.Errorf("%s: the message of Ready is %q", name, is.Message)
		}
	}
	return nil
}

// versions returns the resourceVersions of the apps' objects.
func (k *killed) versions() string {
	k.t.Helper()
	held := &metav1.PartialObjectMetadataList{}
	held.APIVersion, held.Kind = "v1", "ConfigMapList"
	if err := k.List(k.t.Context(), held, client.InNamespace(k.namespace), client.HasLabels{v1alpha1.AppLabel}); err != nil {
		k.t.Fatal(err)
	}
	var all []string
	for _, o := range held.Items {
		all = append(all, o.Name+" "+o.ResourceVersion)
	}
	if len(all) == 0 {
		k.t.Fatal("the apps hold nothing")
	}
	return strings.Join(all, ", ")
}
