//go:build e2e

// Package store lets one tenant fill the API server's store with everything that its accounts may write. They are an app's account
// with all permissions of the deployer, and an owner. Quotas and the admission policy ObjectSize must limit the size of the store.
package store

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/yaml"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/e2e/stage"
)

const (
	// most is the maximum size of the store, including the platform's own objects, without the tenant's Events.
	most = 200e6
	// eventBytes is what the store needs for one Event, which may have 3072 bytes. No quota counts Events: a tenant may create them until the
	// operator counts them, every 10 seconds, and how many these are depends on the machine.
	eventBytes = 4096
	// projects is the number of the tenant's projects. limits.storeBytes limits all of them together.
	projects    = 3
	stepTimeout = 90 * time.Second
)

const appYAML = `apiVersion: paas.kubeop.io/v1alpha1
kind: App
metadata: {name: bot}
spec:
  type: Raw
  raw:
    manifests:
    - {apiVersion: v1, kind: ServiceAccount, metadata: {name: bot}}
    - {apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: bot}, spec: {rules: [{host: %[1]s.example}]}}
    - apiVersion: rbac.authorization.k8s.io/v1
      kind: RoleBinding
      metadata: {name: bot}
      roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: bot}
      subjects: [{kind: ServiceAccount, name: bot, namespace: %[1]s}]
    - apiVersion: rbac.authorization.k8s.io/v1
      kind: Role
      metadata: {name: bot}
`

// TestOneTenantCannotFillTheStore writes until everything is rejected.
func TestOneTenantCannotFillTheStore(t *testing.T) {
	ctrllog.SetLogger(logr.Discard())
	dir, err := os.MkdirTemp("", "store-")
	must(t, err)
	s, err := stage.Up(t.Context(), stage.Options{Dir: dir, Node: "none", Out: os.Stdout})
	if s != nil {
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	must(t, err)
	_, err = s.StartOperator(t.Context())
	must(t, err)
	f := &filler{t: t, stage: s}
	kinds := f.begin()
	before := f.size()
	var namespaces []string
	for n := range projects {
		namespaces = append(namespaces, v1alpha1.ProjectNamespace("filler", fmt.Sprint("p", n)))
	}
	owner := f.as("filler-admin")
	f.fill(owner, v1alpha1.HomeNamespace("filler"), "secrets")
	for n, namespace := range namespaces {
		bot := f.as("system:serviceaccount:" + namespace + ":bot")
		for _, kind := range kinds {
			f.fill(bot, namespace, kind)
		}
		f.fill(owner, namespace, "secrets")
		after, allowed := f.size(), most+float64(f.events*eventBytes)
		t.Logf("the home and %d projects are full: the store had %.0f MB and has %.0f MB, with %d Events", n+1, before/1e6, after/1e6, f.events)
		if after > allowed {
			t.Errorf("a tenant of %d projects made the store %.0f MB large; %.0f MB are allowed", n+1, after/1e6, allowed/1e6)
		}
	}
}

type filler struct {
	t     *testing.T
	stage *stage.Stage
	made  int
	// events is how many Events were made.
	events int
}

// begin creates the tenant, with an account in each project that has the deployer's whole role. It returns the kinds that the
// account may create.
func (f *filler) begin() []string {
	t, ctx := f.t, f.t.Context()
	var role rbacv1.ClusterRole
	must(t, stage.Until(ctx, stepTimeout, "the role of deployers", func(ctx context.Context) error {
		err := f.stage.Client.Get(ctx, client.ObjectKey{Name: "kubeop-deployer"}, &role)
		if err == nil && len(role.Rules) == 0 {
			err = errors.New("it has no rules yet")
		}
		return err
	}))
	rules, err := yaml.Marshal(map[string]any{"rules": role.Rules})
	must(t, err)
	root, own := f.repository(v1alpha1.PlatformRepository), f.repository("filler")
	must(t, own.Write("kubeop.yaml", []byte("layout: v1\n")))
	for n := range projects {
		project := fmt.Sprint("p", n)
		must(t, own.Write("projects/"+project+"/project.yaml", []byte("apiVersion: paas.kubeop.io/v1alpha1\nkind: Project\nmetadata: {name: "+project+"}\n")))
		app := fmt.Sprintf(appYAML, v1alpha1.ProjectNamespace("filler", project)) +
			"      " + strings.ReplaceAll(strings.TrimSpace(string(rules)), "\n", "\n      ") + "\n"
		must(t, own.Write("projects/"+project+"/apps/bot/app.yaml", []byte(app)))
	}
	must(t, own.Push(ctx, "Begin"))
	must(t, root.Write("kubeop.yaml", []byte("layout: v1\n")))
	must(t, root.Write("tenants/filler/tenant.yaml", fmt.Appendf(nil, `apiVersion: paas.kubeop.io/v1alpha1
kind: Tenant
metadata: {name: filler}
spec:
  owners: [{kind: User, name: filler-admin, role: admin}]
  repository: {url: %q, secretRef: {name: filler-git}, hookSecretRef: {name: filler-hook}}
`, own.OperatorURL)))
	must(t, root.Push(ctx, "Welcome"))
	for n := range projects {
		must(t, stage.Until(ctx, stepTimeout, "the bot", func(ctx context.Context) error {
			return f.stage.Ready(ctx, &v1alpha1.App{}, v1alpha1.ProjectNamespace("filler", fmt.Sprint("p", n)), "bot")
		}))
	}
	return creatable(role.Rules)
}

// creatable returns the resources that the rules allow to create, without subresources.
func creatable(rules []rbacv1.PolicyRule) []string {
	var all []string
	for _, rule := range rules {
		for _, r := range rule.Resources {
			if slices.Contains(rule.Verbs, "create") && !strings.Contains(r, "/") && !slices.Contains(all, r) {
				all = append(all, r)
			}
		}
	}
	return all
}

func (f *filler) repository(name string) *stage.Repository {
	ctx, key := f.t.Context(), rand.Text()
	r, err := f.stage.CreateRepository(ctx, name, key)
	must(f.t, err)
	must(f.t, f.stage.SetSecret(ctx, name+"-git", map[string]string{"username": r.User, "password": r.Password}))
	must(f.t, f.stage.SetSecret(ctx, name+"-hook", map[string]string{"token": key}))
	return r
}

// as returns a client that impersonates a user.
func (f *filler) as(user string) client.Client {
	config, err := clientcmd.BuildConfigFromFlags("", f.stage.Cluster.Kubeconfig)
	must(f.t, err)
	config.QPS, config.Burst, config.Impersonate = -1, -1, rest.ImpersonationConfig{UserName: user}
	c, err := client.New(config, client.Options{})
	must(f.t, err)
	return c
}

// fill creates objects of a kind with the maximum size until they are rejected.
func (f *filler) fill(by client.Client, namespace, kind string) {
	f.t.Helper()
	text, known := kinds[kind]
	if !known {
		f.t.Errorf("nothing is known of the kind %s, which a tenant can create: it has to be tried too", kind)
		return
	}
	if text == "" {
		return
	}
	size := f.largest(by, namespace, text)
	made, refused := 0, error(nil)
	for refused == nil && made < 100_000 {
		if refused = by.Create(f.t.Context(), f.object(namespace, text, size)); refused == nil {
			made++
		}
	}
	if kind == "events" {
		f.events += made
	}
	f.t.Logf("%-24s %-24s %5d of %6d bytes, then: %.140v", namespace, kind, made, size, refused)
	if refused == nil {
		f.t.Errorf("%s: %d objects of %s were made and none was refused", namespace, made, kind)
	}
}

// largest finds the maximum padding of an object with dry runs.
func (f *filler) largest(by client.Client, namespace, text string) int {
	low, high := 0, 256_000
	for high-low > 256 {
		middle := (low + high) / 2
		if err := by.Create(f.t.Context(), f.object(namespace, text, middle), client.DryRunAll); err == nil {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}

// object returns another object of a kind with the given padding in bytes.
func (f *filler) object(namespace, text string, size int) *unstructured.Unstructured {
	f.made++
	o := &unstructured.Unstructured{}
	must(f.t, yaml.Unmarshal([]byte(strings.ReplaceAll(text, "NAMESPACE", namespace)), &o.Object))
	o.SetNamespace(namespace)
	o.SetName(fmt.Sprint("x", f.made))
	// Random: the store does not compress, but a disk might.
	o.SetAnnotations(map[string]string{"padding": strings.Repeat(rand.Text(), size/26+1)[:size]})
	return o
}

// size is the size of the store's database and write-ahead log in bytes. The store keeps a fixed number of log files.
func (f *filler) size() float64 {
	total := 0.0
	err := filepath.WalkDir(f.stage.Path("cluster", "etcd", "member", "snap"), func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			total += float64(info.Size())
		}
		return err
	})
	must(f.t, err)
	return total
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
