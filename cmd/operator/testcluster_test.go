package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/internal/testenv"
)

// convergeTimeout is long because a busy machine is slow, and a watch may have to restart.
const convergeTimeout = 4 * time.Minute

const (
	acmeTenant = "acme"
	acmeHome   = "kubeop-acme"
	acmeShop   = "kubeop-acme-shop"
	tenantFile = `apiVersion: paas.kubeop.io/v1alpha1
kind: Tenant
metadata: {name: acme}
spec:
  owners: [{kind: User, name: lead, role: admin}]
  repository: {url: %q, secretRef: {name: acme-git}, interval: 1s}
`
	imageSpec = `{type: Image, image: {reference: registry.example/web:v1, ports: [{name: http, port: 80}], volumes: [{name: data, mountPath: /data, size: 1Gi}]}}`
	webChart  = `apiVersion: apps/v1
kind: Deployment
metadata: {name: {{ .Release.Name }}}
spec:
  replicas: 0
  selector: {matchLabels: {app: {{ .Release.Name }}}}
  template:
    metadata: {labels: {app: {{ .Release.Name }}}}
    spec: {containers: [{name: web, image: registry.example/web:v1}]}
`
)

// testCluster is a control plane of its own that a test may break, with a tenant that the platform repository declares and an app of each type.
type testCluster struct {
	client.Client
	t        *testing.T
	env      *testenv.Env
	killed   *killed
	platform *testenv.Repo
	repo     *testenv.Repo
	commit   string
	operator *exec.Cmd
	log      *logged
}

// logged is the operator's log.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// newTestCluster starts a test cluster with its operator, and waits until all apps are delivered.
func newTestCluster(t *testing.T) *testCluster {
	t.Helper()
	t.Parallel()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	i := &testCluster{t: t, env: testenv.Start(t), log: &logged{}}
	admin, err := client.New(i.env.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	i.Client = admin
	i.killed = &killed{Client: admin, t: t, namespace: acmeShop, kubeconfig: filepath.Join(t.TempDir(), "kubeconfig")}
	i.install()
	i.platform, i.repo = i.env.Repo(t, "platform", "", ""), i.env.Repo(t, acmeTenant, "", "")
	source := i.env.Repo(t, "source", "", "")
	for name, repo := range map[string]*testenv.Repo{"platform-git": i.platform, "acme-git": i.repo} {
		i.secret(testenv.Namespace, name, repo)
	}
	source.Push(map[string]string{"config.yaml": "{apiVersion: v1, kind: ConfigMap, metadata: {name: from-git}}"})
	i.platform.Push(map[string]string{"kubeop.yaml": "layout: v1\n", "tenants/acme/tenant.yaml": fmt.Sprintf(tenantFile, i.repo.URL)})
	i.commit = i.repo.Push(map[string]string{
		"kubeop.yaml": "layout: v1\n", "projects/shop/project.yaml": projectFile,
		"projects/shop/apps/raw/app.yaml":                  fmt.Sprintf(app, "raw", "{type: Raw, raw: {path: manifests}}"),
		"projects/shop/apps/raw/manifests/all.yaml":        fmt.Sprintf(one, "raw", 0, 0),
		"projects/shop/apps/git/app.yaml":                  fmt.Sprintf(app, "git", "{type: Git, git: {url: '"+source.URL+"', secretRef: {name: source}}}"),
		"projects/shop/apps/image/app.yaml":                fmt.Sprintf(app, "image", imageSpec),
		"projects/shop/apps/helm/app.yaml":                 fmt.Sprintf(app, "helm", "{type: Helm, helm: {path: chart}}"),
		"projects/shop/apps/helm/chart/Chart.yaml":         chart,
		"projects/shop/apps/helm/chart/templates/web.yaml": webChart,
	})
	i.start()
	i.eventually("the project is there", func() error {
		return i.Get(t.Context(), client.ObjectKey{Name: acmeShop}, &corev1.Namespace{})
	})
	i.secret(acmeShop, "source", source)
	i.converges()
	return i
}

// install installs the chart, for the first time or again.
func (i *testCluster) install() {
	i.t.Helper()
	config, err := i.env.InstallChart(i.t.Context())
	if err != nil {
		i.t.Fatal(err)
	}
	if err := testenv.Kubeconfig(i.killed.kubeconfig, config); err != nil {
		i.t.Fatal(err)
	}
}

func (i *testCluster) secret(namespace, name string, repo *testenv.Repo) {
	i.t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	secret.StringData = map[string]string{"username": repo.User, "password": repo.Password}
	if err := i.Create(i.t.Context(), secret); err != nil {
		i.t.Fatal(err)
	}
}

func (i *testCluster) settings() []string {
	return []string{"LOG_LEVEL=info", "OPERATOR_DEPLOYMENT=kubeop", "PLATFORM_URL=" + i.platform.URL, "PLATFORM_SECRET=platform-git", "PLATFORM_INTERVAL=1s"}
}

// start starts the operator, with additional settings.
func (i *testCluster) start(more ...string) {
	i.t.Helper()
	i.operator = i.killed.command(append(i.settings(), more...)...)
	i.operator.Stderr, i.operator.Stdout = i.log, i.log
	if err := i.operator.Start(); err != nil {
		i.t.Fatal(err)
	}
	operator := i.operator
	i.t.Cleanup(func() {
		_ = operator.Process.Kill() // It may have ended.
		_, _ = operator.Process.Wait()
		if i.t.Failed() {
			repositories := &v1alpha1.RepositoryList{}
			err := i.List(context.Background(), repositories)
			for _, r := range repositories.Items {
				i.t.Logf("repository %s: %+v", r.Name, r.Status.Conditions)
			}
			text := i.log.String()
			i.t.Logf("listing repositories: %v", err)
			i.t.Logf("the operator's log ends:\n%s", text[max(0, len(text)-20000):])
		}
	})
}

// converges waits until the tenant is ready, and every app's status reports the last commit as delivered.
func (i *testCluster) converges() {
	i.t.Helper()
	i.eventually("the tenant is ready", func() error {
		tenant := &v1alpha1.Tenant{}
		err := i.Get(i.t.Context(), client.ObjectKey{Name: acmeTenant}, tenant)
		if err == nil && (!conditions.IsReady(tenant) || tenant.DeletionTimestamp != nil) {
			err = fmt.Errorf("deleted %v, conditions %+v", tenant.DeletionTimestamp, tenant.Status.Conditions)
		}
		return err
	})
	for name, condition := range map[string]string{"raw": v1alpha1.ReadyCondition, "git": v1alpha1.ReadyCondition, "helm": v1alpha1.ReadyCondition, "image": v1alpha1.AppliedCondition} {
		i.eventually("app "+name+" is delivered", func() error {
			a := &v1alpha1.App{}
			if err := i.Get(i.t.Context(), client.ObjectKey{Namespace: acmeShop, Name: name}, a); err != nil {
				return err
			}
			if !conditions.IsTrue(a, condition) || a.DeletionTimestamp != nil || !strings.HasSuffix(a.Status.LastAttemptedRevision, revisionOf(name, i.commit)) {
				return fmt.Errorf("deleted %v, attempted %s, conditions %+v", a.DeletionTimestamp, a.Status.LastAttemptedRevision, a.Status.Conditions)
			}
			return nil
		})
	}
}

// revisionOf returns the end of an app's revision. The Git app has the revision of its own source.
func revisionOf(name, commit string) string {
	if name == "git" {
		return ""
	}
	return commit
}

// eventually calls look until it returns no error.
func (i *testCluster) eventually(what string, look func() error) {
	i.t.Helper()
	ctx, cancel := context.WithTimeout(i.t.Context(), convergeTimeout)
	defer cancel()
	for {
		err := look()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			i.t.Fatalf("%s: not within %s: %v", what, convergeTimeout, err)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// runs are the kinds of workloads, and of the objects that they need.
var runs = []schema.GroupVersionKind{
	{Version: "v1", Kind: "Namespace"}, {Version: "v1", Kind: "Pod"}, {Version: "v1", Kind: "Service"}, {Version: "v1", Kind: "ConfigMap"},
	{Version: "v1", Kind: "Secret"}, {Version: "v1", Kind: "ServiceAccount"}, {Version: "v1", Kind: "PersistentVolumeClaim"},
	{Version: "v1", Kind: "ResourceQuota"}, {Version: "v1", Kind: "LimitRange"},
	{Group: "apps", Version: "v1", Kind: "Deployment"}, {Group: "apps", Version: "v1", Kind: "ReplicaSet"},
	{Group: "networking.k8s.io", Version: "v1", Kind: "NetworkPolicy"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "RoleBinding"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"}, {Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRoleBinding"},
}

// running returns the UID and, for kinds that have one, the generation of each of the tenant's objects.
func (i *testCluster) running() map[string]string {
	i.t.Helper()
	found := map[string]string{}
	for _, kind := range runs {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err := i.List(i.t.Context(), list); err != nil {
			i.t.Fatal(err)
		}
		for _, o := range list.Items {
			ours := strings.HasPrefix(o.Namespace, acmeHome) || (o.Namespace == "" && o.Labels[v1alpha1.TenantLabel] == acmeTenant)
			if ours && o.DeletionTimestamp == nil {
				found[fmt.Sprintf("%s %s/%s", kind.Kind, o.Namespace, o.Name)] = fmt.Sprintf("%s, generation %d", o.UID, o.Generation)
			}
		}
	}
	return found
}

// unchanged checks that the tenant's objects are the same as before.
func (i *testCluster) unchanged(when string, before map[string]string) {
	i.t.Helper()
	now := i.running()
	for name := range maps.Keys(now) {
		if _, was := before[name]; !was && strings.HasPrefix(name, "Secret ") && strings.Contains(name, "helm.release") {
			i.t.Errorf("%s: there is a further revision %s", when, name)
		}
	}
	if diff := cmp.Diff(before, now); diff != "" {
		i.t.Fatalf("%s: what runs has changed (-before +now):\n%s", when, diff)
	}
}

func definitionOf(resource string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	u.SetName(resource + "." + v1alpha1.GroupVersion.Group)
	return u
}

// undefine deletes CustomResourceDefinitions and waits until they are gone.
func (i *testCluster) undefine(resources ...string) {
	i.t.Helper()
	for _, r := range resources {
		if err := testenv.DeleteOnPurpose(i.t.Context(), i, definitionOf(r), false); err != nil {
			i.t.Fatal(err)
		}
	}
	for _, r := range resources {
		i.eventually("the definition of "+r+" is gone", func() error {
			u := definitionOf(r)
			err := i.Get(i.t.Context(), client.ObjectKeyFromObject(u), u)
			if apierrors.IsNotFound(err) {
				return nil
			}
			return errors.Join(fmt.Errorf("it is there: %v", u.Object["status"]), err)
		})
	}
}

// define applies CustomResourceDefinitions of the chart, and waits until the API server lists them.
func (i *testCluster) define(resources ...string) {
	i.t.Helper()
	for _, r := range resources {
		text, err := os.ReadFile(filepath.Join(i.env.Chart(), "crds", v1alpha1.GroupVersion.Group+"_"+r+".yaml"))
		if err != nil {
			i.t.Fatal(err)
		}
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(text, &u.Object); err != nil {
			i.t.Fatal(err)
		}
		if err := i.Create(i.t.Context(), u); err != nil {
			i.t.Fatal(err)
		}
	}
	discovered := discovery.NewDiscoveryClientForConfigOrDie(i.env.Config)
	i.eventually("the API server lists the kinds, without which an operator ends", func() error {
		_, lists, err := discovered.ServerGroupsAndResources()
		if err != nil {
			return err
		}
		for _, r := range resources {
			if !slices.ContainsFunc(lists, func(l *metav1.APIResourceList) bool {
				return l.GroupVersion == v1alpha1.GroupVersion.String() && slices.ContainsFunc(l.APIResources, func(a metav1.APIResource) bool { return a.Name == r })
			}) {
				return fmt.Errorf("it does not list %s", r)
			}
		}
		return nil
	})
}
