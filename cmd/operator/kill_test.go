package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/internal/sandbox"
	"github.com/kubeop/kubeop/internal/testenv"
)

var env *testenv.Env

// asOperator is the environment variable that makes the test binary run as the operator, so that a test can kill it.
const asOperator = "KUBEOP_TEST_AS_OPERATOR"

func TestMain(m *testing.M) {
	if os.Getenv(asOperator) != "" || len(os.Args) > 1 && os.Args[1] == sandbox.Command {
		main()
		return
	}
	ctrl.SetLogger(logr.Discard()) // The clients of the tests would log too.
	testenv.Main(m, &env)
}

const (
	// objects is how many objects a commit declares, and fewer how many the next one declares.
	objects, fewer = 12, 5
	chart          = "apiVersion: v2\nname: many\nversion: 0.1.0\n"
	many           = `{{- range $i := until %d }}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ $.Release.Name }}-{{ $i }}}
data: {round: "%d"}
{{- end }}
`
	one = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s-%d}\ndata: {round: \"%d\"}\n---\n"
	app = "apiVersion: paas.kubeop.io/v1alpha1\nkind: App\nmetadata: {name: %s}\nspec: %s\n"
)

// TestAKilledOperatorLeavesExactlyTheObjectsOfTheLastCommit kills the operator at random times while it delivers a Helm app and a Raw app
// of many objects each, and pushes another commit before it restarts. Then exactly the objects of that commit exist, and nothing was
// installed twice.
func TestAKilledOperatorLeavesExactlyTheObjectsOfTheLastCommit(t *testing.T) {
	k := newKilled(t, "killed")
	k.repo.Push(map[string]string{"kubeop.yaml": "layout: v1\n", "projects/shop/project.yaml": projectFile})
	operator := k.start()
	for round := range 8 {
		k.push(round, objects)
		after := time.Duration(rand.IntN(1500)) * time.Millisecond
		time.Sleep(after)
		k.kill(operator)
		// The operator may have created objects that it could not record. The next commit does not declare them.
		k.push(round, fewer)
		operator = k.start()
		t.Logf("round %d: killed %s after the push", round, after)
		k.converges(round)
	}
	k.repo.Push(map[string]string{"projects/shop/apps/raw": "-"})
	time.Sleep(time.Duration(rand.IntN(800)) * time.Millisecond)
	k.kill(operator)
	operator = k.start()
	defer k.kill(operator)
	k.eventually("the removed app is gone with its objects", func() error { return k.holds("raw", -1, 0) })
}

const projectFile = "apiVersion: paas.kubeop.io/v1alpha1\nkind: Project\nmetadata: {name: shop}\n"

// killed is an operator that a test kills, and its tenant.
type killed struct {
	client.Client
	t          *testing.T
	repo       *testenv.Repo
	namespace  string
	kubeconfig string
	// commit is the last pushed commit.
	commit string
}

// operatorConfig installs the chart once, and returns a configuration for its service account.
var operatorConfig = sync.OnceValues(func() (*rest.Config, error) { return env.InstallChart(context.Background()) })

// newKilled creates a tenant with a repository.
func newKilled(t *testing.T, tenant string) *killed {
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
	config, err := operatorConfig()
	if err != nil {
		t.Fatal(err)
	}
	k := &killed{
		Client: admin, t: t, repo: env.Repo(t, tenant, "", ""), namespace: v1alpha1.ProjectNamespace(tenant, "shop"),
		kubeconfig: filepath.Join(t.TempDir(), "kubeconfig"),
	}
	if err := testenv.Kubeconfig(k.kubeconfig, config); err != nil {
		t.Fatal(err)
	}
	for _, o := range []client.Object{
		&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: testenv.Namespace, Name: tenant + "-git"},
			StringData: map[string]string{"username": k.repo.User, "password": k.repo.Password},
		},
		&v1alpha1.Tenant{
			ObjectMeta: metav1.ObjectMeta{Name: tenant},
			Spec: v1alpha1.TenantSpec{Repository: &v1alpha1.TenantRepository{
				URL: k.repo.URL, SecretRef: &v1alpha1.LocalSecretReference{Name: tenant + "-git"}, Interval: metav1.Duration{Duration: time.Second},
			}},
		},
	} {
		if err := k.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	return k
}

// push pushes both apps with this many objects, each of which contains the round.
func (k *killed) push(round, objects int) {
	k.t.Helper()
	var raw strings.Builder
	for i := range objects {
		fmt.Fprintf(&raw, one, "raw", i, round)
	}
	k.commit = k.repo.Push(map[string]string{
		"projects/shop/apps/raw/app.yaml":                  fmt.Sprintf(app, "raw", "{type: Raw, raw: {path: manifests}}"),
		"projects/shop/apps/raw/manifests/all.yaml":        raw.String(),
		"projects/shop/apps/helm/app.yaml":                 fmt.Sprintf(app, "helm", "{type: Helm, helm: {path: chart}}"),
		"projects/shop/apps/helm/chart/Chart.yaml":         chart,
		"projects/shop/apps/helm/chart/templates/all.yaml": fmt.Sprintf(many, objects, round),
	})
}

// start runs this test binary as the operator, with additional settings.
func (k *killed) start(settings ...string) *exec.Cmd {
	k.t.Helper()
	operator := k.command(settings...)
	operator.Stderr = os.Stderr
	if err := operator.Start(); err != nil {
		k.t.Fatal(err)
	}
	return operator
}

// command returns the command that runs the operator, with additional settings.
func (k *killed) command(settings ...string) *exec.Cmd {
	operator := exec.Command(os.Args[0])
	operator.Env = append(os.Environ(), asOperator+"=1", "ALLOWED_ADDRESSES=127.0.0.0/8", "KUBECONFIG="+k.kubeconfig, "DATA_DIR="+filepath.Join(filepath.Dir(k.kubeconfig), "data"),
		"METRICS_ADDR=0", "HEALTH_ADDR=0", "HOOK_ADDR=0", "LEADER_ELECT=false", "LOG_LEVEL=error")
	operator.Env = append(operator.Env, settings...)
	return operator
}

// adminKubeconfig writes a kubeconfig of the administrator.
func adminKubeconfig(t *testing.T) string {
	t.Helper()
	config, err := operatorConfig()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := testenv.Kubeconfig(path, config); err != nil {
		t.Fatal(err)
	}
	return path
}

func (k *killed) kill(operator *exec.Cmd) {
	k.t.Helper()
	if err := operator.Process.Kill(); err != nil {
		k.t.Fatal(err)
	}
	// Its error is that it was killed.
	_ = operator.Wait()
}

// converges waits until both apps have delivered the last commit. Ready alone is not enough, because an app stays ready when the delivery of
// the next commit begins. All objects alone are not enough, because they may exist before the release is recorded as deployed.
func (k *killed) converges(round int) {
	k.t.Helper()
	for _, name := range []string{"raw", "helm"} {
		k.eventually("the app "+name+" is as the commit says", func() error { return k.holds(name, round, fewer) })
		k.eventually("the app "+name+" is ready at the commit", func() error {
			a := &v1alpha1.App{}
			if err := k.Get(k.t.Context(), client.ObjectKey{Namespace: k.namespace, Name: name}, a); err != nil {
				return err
			}
			if !conditions.IsReady(a) || a.Status.ObservedGeneration != a.Generation || a.Status.LastAppliedRevision != k.commit {
				return fmt.Errorf("it is at %s, not %s; conditions are %+v", a.Status.LastAppliedRevision, k.commit, a.Status.Conditions)
			}
			return nil
		})
	}
	k.deployedOnce()
}

// holds checks that an app has count ConfigMaps, all of the round.
func (k *killed) holds(name string, round, count int) error {
	list := &corev1.ConfigMapList{}
	err := k.List(k.t.Context(), list, client.InNamespace(k.namespace), client.MatchingLabels{v1alpha1.AppLabel: name})
	if err != nil {
		return err
	}
	if len(list.Items) != count {
		return fmt.Errorf("%s has %d ConfigMaps, want %d", name, len(list.Items), count)
	}
	for _, c := range list.Items {
		if c.Data["round"] != fmt.Sprint(round) {
			return fmt.Errorf("%s is of round %s, want %d", c.Name, c.Data["round"], round)
		}
	}
	return nil
}

// deployedOnce checks that one revision of the release is deployed and none is pending.
func (k *killed) deployedOnce() {
	k.t.Helper()
	list := &corev1.SecretList{}
	if err := k.List(k.t.Context(), list, client.InNamespace(k.namespace), client.MatchingLabels{"owner": "helm", "name": "helm"}); err != nil {
		k.t.Fatal(err)
	}
	statuses := map[string]int{}
	for _, s := range list.Items {
		statuses[s.Labels["status"]]++
	}
	delete(statuses, "superseded")
	delete(statuses, "failed")
	if len(statuses) != 1 || statuses["deployed"] != 1 {
		found, _ := json.Marshal(statuses)
		k.t.Errorf("revisions by status are %s", found)
	}
}

func (k *killed) eventually(what string, look func() error) {
	k.t.Helper()
	ctx, cancel := context.WithTimeout(k.t.Context(), time.Minute)
	defer cancel()
	for {
		err := look()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			k.t.Fatalf("%s: not within a minute: %v", what, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}
