//go:build e2e

// Package e2e tests the user stories of a platform team and its tenants. It uses a cluster with real pods and the operator
// installed by its chart.
package e2e

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/e2e/stage"
)

// stepTimeout limits one step on a busy machine, including pulling images and starting pods.
const stepTimeout = 2 * time.Minute

var (
	platform *stage.Stage
	samples  *stage.Samples
)

func TestMain(m *testing.M) {
	code, err := runAll(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "end-to-end tests:", err)
		code = 1
	}
	os.Exit(code)
}

// runAll starts the platform with the sample tenant, runs the stories and removes the platform.
func runAll(m *testing.M) (code int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	dir, err := os.MkdirTemp("", "e2e-")
	if err != nil {
		return 1, err
	}
	platform, err = stage.Up(ctx, stage.Options{Dir: dir, Node: "real", Out: os.Stdout})
	if platform != nil {
		defer func() {
			if closing := platform.Close(); err == nil {
				err = closing
			}
		}()
	}
	if err != nil {
		return 1, err
	}
	if err := platform.Install(ctx); err != nil {
		return 1, err
	}
	if samples, err = platform.CreateSamples(ctx); err != nil {
		return 1, err
	}
	if err := samples.Push(ctx, "Ship the shop"); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// team is the tenant of one story.
type team struct {
	t    *testing.T
	name string
	*stage.Repository
}

const (
	tenantFile = `apiVersion: paas.kubeop.io/v1alpha1
kind: Tenant
metadata:
  name: %[1]s
spec:
  owners:
  - {kind: User, name: %[1]s-viewer, role: view}
  - {kind: User, name: %[1]s-admin, role: admin}
  repository:
    url: %[2]s
    secretRef: {name: %[1]s-git}
    hookSecretRef: {name: %[1]s-hook}
`
	// The pods of all stories stay, and a node of two processors has room for 40 pods with the default request.
	projectFile = "apiVersion: paas.kubeop.io/v1alpha1\nkind: Project\nmetadata: {name: shop}\nspec: {limits: {defaultRequest: {cpu: 10m}}}\n"
	imageFile   = `apiVersion: paas.kubeop.io/v1alpha1
kind: App
metadata:
  name: %s
spec:
  type: Image
  image:
    reference: %s
    ports: [{name: http, port: 8080, servicePort: 80}]
    env: [{name: MESSAGE, value: %s}]
    probes: {readiness: {path: /healthz, periodSeconds: 1}}
`
)

// newTeam creates a tenant with its own repository and the project shop. The platform repository declares it.
func newTeam(t *testing.T, name string) *team {
	t.Helper()
	ctx := t.Context()
	key := rand.Text()
	repository, err := platform.CreateRepository(ctx, name, key)
	must(t, err)
	must(t, platform.SetSecret(ctx, name+"-git", map[string]string{"username": repository.User, "password": repository.Password}))
	must(t, platform.SetSecret(ctx, name+"-hook", map[string]string{"token": key}))
	n := &team{t: t, name: name, Repository: repository}
	n.write("kubeop.yaml", "layout: v1\n")
	n.write("projects/shop/project.yaml", projectFile)
	n.push("Begin")
	must(t, samples.Platform.Write("tenants/"+name+"/tenant.yaml", fmt.Appendf(nil, tenantFile, name, repository.OperatorURL)))
	must(t, samples.Platform.Push(ctx, "Welcome "+name))
	n.ready(&v1alpha1.Project{}, v1alpha1.HomeNamespace(name), "shop")
	return n
}

func (n *team) namespace() string { return v1alpha1.ProjectNamespace(n.name, "shop") }

// image is the sample image, as pods name it.
func image(tag string) string { return platform.Cluster.Registry.Host + "/hello:" + tag }

func (n *team) write(name, content string) {
	n.t.Helper()
	must(n.t, n.Write(name, []byte(content)))
}

// deliver writes an Image app.
func (n *team) deliver(app, reference, message string) {
	n.t.Helper()
	n.write("projects/shop/apps/"+app+"/app.yaml", fmt.Sprintf(imageFile, app, reference, message))
}

func (n *team) push(message string) {
	n.t.Helper()
	must(n.t, n.Push(n.t.Context(), message))
}

func (n *team) ready(o stage.Conditioned, namespace, name string) {
	n.t.Helper()
	until(n.t, fmt.Sprintf("%T %s/%s is ready", o, namespace, name), func(ctx context.Context) error {
		return platform.Ready(ctx, o, namespace, name)
	})
}

func (n *team) appReady(name string) {
	n.t.Helper()
	n.ready(&v1alpha1.App{}, n.namespace(), name)
}

// answers waits until an app's Service returns an expected answer.
func (n *team) answers(app, want string) {
	n.t.Helper()
	answers(n.t, n.namespace(), app, want)
}

func answers(t *testing.T, namespace, app, want string) {
	t.Helper()
	until(t, fmt.Sprintf("%s answers %q", app, want), func(ctx context.Context) error {
		got, err := platform.GetService(ctx, namespace, app)
		if err == nil && got != want {
			about := &v1alpha1.App{}
			if err := platform.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: app}, about); err != nil {
				return fmt.Errorf("it answers %q; reading the App: %w", got, err)
			}
			err = fmt.Errorf("it answers %q, and the App says %s", got, conditions.GetMessage(about, meta.ReadyCondition))
		}
		return err
	})
}

// until waits for a condition. If it times out, the operator's log is shown.
func until(t *testing.T, what string, look func(context.Context) error) {
	t.Helper()
	if err := stage.Until(t.Context(), stepTimeout, what, look); err != nil {
		t.Fatalf("%v\nthe operator's log ends:\n%s", err, platform.OperatorLog(context.WithoutCancel(t.Context())))
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func kubectl(t *testing.T, args ...string) string {
	t.Helper()
	out, err := platform.Kubectl(t.Context(), args...)
	must(t, err)
	return out
}
