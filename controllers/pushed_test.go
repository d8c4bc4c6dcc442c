package controllers

import (
	"fmt"
	"net/url"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// TestAPushToASourceIsDeliveredAtOnce pushes to the repository that declares an app and has its manifests, and to
// another one that calls the tenant's push hook. Both apps have an interval of an hour.
func TestAPushToASourceIsDeliveredAtOnce(t *testing.T) {
	n := newTeam(t, "pushed")
	n.push(shopFiles("shop"))
	n.ready(&v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-pushed", Name: "shop"}})
	const name = "pushed-manifests"
	address := env.GitURL + "/" + name + ".git"
	other := env.Repo(t, name, "http://"+n.hookAddr+"/hook/pushed?source="+url.QueryEscape(address), "key-of-pushed")
	manifest := func(name, greeting string) map[string]string {
		return map[string]string{"projects/shop/apps/" + name + "/manifests/all.yaml": fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: %s}, data: {greeting: %s}}\n", name, greeting)}
	}
	other.Push(manifest("other", "one"))
	files := manifest("mono", "one")
	for app, repo := range map[string]*struct{ URL, User, Password string }{
		"mono": {n.repo.URL, n.repo.User, n.repo.Password}, "other": {other.URL, other.User, other.Password},
	} {
		n.create(&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-pushed-shop", Name: app},
			StringData: map[string]string{"username": repo.User, "password": repo.Password},
		})
		files["projects/shop/apps/"+app+"/app.yaml"] = fmt.Sprintf("apiVersion: paas.kubeop.io/v1alpha1\nkind: App\nmetadata: {name: %s}\n"+
			"spec: {type: Git, interval: 1h, git: {url: '%s', path: projects/shop/apps/%s/manifests, secretRef: {name: %s}}}\n", app, repo.URL, app, app)
	}
	n.push(files)
	n.ready(n.app("shop", "mono"), n.app("shop", "other"))

	greets := func(name, greeting string) {
		t.Helper()
		n.eventually(func() error {
			if got := n.configMap("shop", name).Data["greeting"]; got != greeting {
				return fmt.Errorf("the greeting of %s is %q, want %q", name, got, greeting)
			}
			return nil
		})
	}
	began := time.Now()
	n.push(manifest("mono", "two"))
	greets("mono", "two")
	other.Push(manifest("other", "two"))
	greets("other", "two")
	t.Logf("both after %s", time.Since(began).Round(10*time.Millisecond))
}
