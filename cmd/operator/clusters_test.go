package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/internal/testenv"
)

// placedCluster is one of several control planes, whose operators read the same repositories.
type placedCluster struct {
	*testCluster
	name string
}

// newPlacedCluster starts a control plane without an operator. Its Git server has the repositories if git is nil.
func newPlacedCluster(t *testing.T, name string, git *placedCluster) *placedCluster {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	c := &placedCluster{&testCluster{t: t, env: testenv.Start(t), log: &logged{}}, name}
	admin, err := client.New(c.env.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	c.Client = admin
	c.killed = &killed{Client: admin, t: t, namespace: acmeShop, kubeconfig: filepath.Join(t.TempDir(), "kubeconfig")}
	c.install()
	if git == nil {
		c.platform, c.repo = c.env.Repo(t, "platform", "", ""), c.env.Repo(t, acmeTenant, "", "")
	} else {
		c.platform, c.repo = git.platform, git.repo
	}
	for name, repo := range map[string]*testenv.Repo{"platform-git": c.platform, "acme-git": c.repo} {
		c.secret(testenv.Namespace, name, repo)
	}
	return c
}

// run starts the operator with a name.
func (c *placedCluster) run(name string) {
	c.t.Helper()
	c.start("CLUSTER_NAME=" + name)
}

// has waits until the app of a project is applied.
func (c *placedCluster) has(tenant, project string) {
	c.t.Helper()
	c.eventually(c.name+" has "+tenant+"/"+project, func() error {
		return c.Get(c.t.Context(), client.ObjectKey{Namespace: v1alpha1.ProjectNamespace(tenant, project), Name: "web"}, &corev1.ConfigMap{})
	})
}

// lacks fails if a namespace is there.
func (c *placedCluster) lacks(namespace string) error {
	err := c.Get(c.t.Context(), client.ObjectKey{Name: namespace}, &corev1.Namespace{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return errors.Join(fmt.Errorf("%s has namespace %s", c.name, namespace), err)
}

// reports waits until a Repository has read a commit, and reports it so.
func (c *placedCluster) reports(name, commit string, as func(*v1alpha1.Repository) bool) *v1alpha1.Repository {
	c.t.Helper()
	repository := &v1alpha1.Repository{}
	c.eventually(c.name+" reports repository "+name, func() error {
		err := c.Get(c.t.Context(), client.ObjectKey{Name: name}, repository)
		if err == nil && (repository.Status.LastAttemptedRevision != commit || !as(repository)) {
			err = fmt.Errorf("status is %+v", repository.Status)
		}
		return err
	})
	return repository
}

const (
	placedTenant = `apiVersion: paas.kubeop.io/v1alpha1
kind: Tenant
metadata: {name: acme}
spec:
  clusters: [west, east]
  repository: {url: %q, secretRef: {name: acme-git}, interval: 1s}
`
	placedProject = "apiVersion: paas.kubeop.io/v1alpha1\nkind: Project\nmetadata: {name: %s}\nspec: {%s}\n"
	placedFile    = "apiVersion: paas.kubeop.io/v1alpha1\nkind: Cluster\nmetadata: {name: %s}\nspec: {%s}\n"
	placedConfig  = "{type: Raw, raw: {manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: web}}]}}"
)

// TestEachOperatorTakesTheProjectsOfItsCluster has two control planes and one set of repositories. A project that moves is made on the other cluster, and stays where it
// was until a person confirms that it goes.
func TestEachOperatorTakesTheProjectsOfItsCluster(t *testing.T) {
	t.Parallel()
	west := newPlacedCluster(t, "west", nil)
	east := newPlacedCluster(t, "east", west)
	web := fmt.Sprintf(app, "web", placedConfig)
	platform := west.platform.Push(map[string]string{
		"kubeop.yaml": "layout: v1\n", "clusters/west.yaml": fmt.Sprintf(placedFile, "west", "default: true"), "clusters/east.yaml": fmt.Sprintf(placedFile, "east", ""),
		"tenants/acme/tenant.yaml":                     fmt.Sprintf(placedTenant, west.repo.URL),
		"tenants/home/tenant.yaml":                     "apiVersion: paas.kubeop.io/v1alpha1\nkind: Tenant\nmetadata: {name: home}\n",
		"tenants/home/projects/shop/project.yaml":      fmt.Sprintf(placedProject, "shop", ""),
		"tenants/home/projects/shop/apps/web/app.yaml": web,
	})
	commit := west.repo.Push(map[string]string{
		"kubeop.yaml": "layout: v1\n", "projects/shop/project.yaml": fmt.Sprintf(placedProject, "shop", ""), "projects/shop/apps/web/app.yaml": web,
		"projects/far/project.yaml": fmt.Sprintf(placedProject, "far", "cluster: east"), "projects/far/apps/web/app.yaml": web,
	})
	west.run("west")
	east.run("east")
	west.has("home", "shop")
	west.has(acmeTenant, "shop")
	east.has(acmeTenant, "far")
	for _, c := range []*placedCluster{west, east} {
		c.reports(acmeTenant, commit, func(r *v1alpha1.Repository) bool {
			return conditions.IsReady(r) && r.Status.Cluster == c.name && r.Status.ProjectsElsewhere == 1 && strings.HasSuffix(conditions.GetMessage(r, v1alpha1.ReadyCondition), "1 project, 1 app; 1 project on other clusters")
		})
	}
	east.reports("platform", platform, func(r *v1alpha1.Repository) bool {
		return conditions.IsReady(r) && r.Status.ProjectsElsewhere == 1
	})
	if err := errors.Join(west.lacks("kubeop-acme-far"), east.lacks(acmeShop), east.lacks("kubeop-home")); err != nil {
		t.Fatal(err)
	}

	commit = west.repo.Push(map[string]string{"projects/shop/project.yaml": fmt.Sprintf(placedProject, "shop", "cluster: east")})
	east.has(acmeTenant, "shop")
	held := west.reports(acmeTenant, commit, func(r *v1alpha1.Repository) bool { return r.Status.HeldToken != "" })
	if message := conditions.GetMessage(held, v1alpha1.ReadyCondition); !strings.Contains(message, "it places project acme/shop on cluster east, and nothing of what it has here goes along") || len(held.Status.Held) != 1 {
		t.Errorf("held are %v: %s", held.Status.Held, message)
	}
	for begin := time.Now(); time.Since(begin) < 3*time.Second; time.Sleep(200 * time.Millisecond) {
		west.has(acmeTenant, "shop")
	}
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, v1alpha1.ConfirmAnnotation, held.Status.HeldToken)
	if err := west.Patch(t.Context(), held, client.RawPatch("application/merge-patch+json", patch)); err != nil {
		t.Fatal(err)
	}
	west.eventually("the moved project is gone where it was", func() error { return west.lacks(acmeShop) })
	east.has(acmeTenant, "shop")

	commit = west.repo.Push(map[string]string{"projects/shop/project.yaml": fmt.Sprintf(placedProject, "shop", "cluster: north")})
	for _, c := range []*placedCluster{west, east} {
		c.reports(acmeTenant, commit, func(r *v1alpha1.Repository) bool {
			return len(r.Status.Problems) == 1 && strings.HasPrefix(r.Status.Problems[0], `projects/shop/project.yaml:4:8: spec.cluster: "north" is none of the clusters that tenant acme may use (west, east); name one of these`)
		})
	}
	east.has(acmeTenant, "shop")
	if err := west.lacks(acmeShop); err != nil {
		t.Error(err)
	}
	west.losesItsName(platform)
}

// losesItsName starts the operator again without its name: nothing is made or deleted.
func (c *placedCluster) losesItsName(platform string) {
	c.t.Helper()
	c.killed.kill(c.operator)
	c.run("")
	c.reports("platform", platform, func(r *v1alpha1.Repository) bool {
		return len(r.Status.Problems) == 1 && strings.HasPrefix(r.Status.Problems[0], "clusters: the operator of this cluster has no name, so it does not know which projects it has; ask an administrator of the cluster to set clusterName of its chart to one of: east, west")
	})
	c.has("home", "shop")
	if err := errors.Join(c.lacks("kubeop-acme-far"), c.lacks(acmeShop)); err != nil {
		c.t.Error(err)
	}
}
