package build

import (
	"cmp"
	"context"
	"os"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/apart"
	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/delivery/decrypt"
	"github.com/kubeop/kubeop/delivery/decrypt/sops"
	"github.com/kubeop/kubeop/delivery/trials"
	"github.com/kubeop/kubeop/internal/sandbox"
)

// stuck is a function that reads a source and never ends.
const stuck = "stuck"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == sandbox.Command {
		os.Exit(sandbox.Serve(os.Args[2:], map[string]sandbox.Function{Function: Evaluate, Decrypts: Decrypting(sops.New), stuck: neverEnds}))
	}
	os.Exit(m.Run())
}

func neverEnds([]byte, func([]byte) ([]byte, error), func(string)) ([]byte, error) {
	time.Sleep(time.Hour)
	return nil, nil
}

// fixture is a Builder with processes of this test binary.
type fixture struct {
	*Builder
	t    testing.TB
	pool *sandbox.Pool
	// function, unless "", replaces the function that the processes are called with. calls counts the calls.
	function string
	calls    int
	dir      string
}

func newFixture(t testing.TB, limits sandbox.Limits) *fixture {
	t.Helper()
	if testing.Short() {
		t.Skip("it evaluates in confined processes, in which the race detector cannot run")
	}
	pool := sandbox.New(sandbox.Options{Processes: 1, Limits: limits, Log: logr.Discard()})
	t.Cleanup(pool.Close)
	b := &fixture{t: t, pool: pool, dir: t.TempDir()}
	b.restart()
	return b
}

// restart has another operator go on.
func (b *fixture) restart() {
	b.Builder = &Builder{Trials: trials.New(b.dir, "these files"), Apart: apart.Runner{Run: b.evaluateApart}, Now: time.Now}
}

func (b *fixture) evaluateApart(ctx context.Context, c apart.Call) ([]byte, error) {
	b.calls++
	return b.pool.Call(ctx, sandbox.Call{Function: cmp.Or(b.function, c.Name), Input: c.Input, NewHandler: c.NewHandler, Limits: sandbox.Limits{Questions: c.Questions}})
}

// opened is what a process that decrypts makes of keys, but for services.
func opened(k *Keys) (decrypt.Decrypter, error) { return sops.New(k.Secret, k.Data, nil) }

var web = types.NamespacedName{Namespace: "team", Name: "web"}

// boundless are limits that nothing here is over, so that those of processes are.
var boundless = budget.App{Objects: 5000, Bytes: 1 << 40, Values: 1 << 40}

func requestOf(s Source, input string) Request {
	if s.Limits == (budget.App{}) {
		s.Limits = boundless
	}
	return Request{App: web, Tenant: "acme", Source: s, Input: input, Identity: "commit"}
}

func git(files map[string]string, with v1alpha1.Build) Source {
	return Source{Files: repository(files), Git: &v1alpha1.GitSource{Path: "app", Build: with}}
}

func repository(files map[string]string) fstest.MapFS {
	made := fstest.MapFS{}
	for name, content := range files {
		made[name] = &fstest.MapFile{Data: []byte(content)}
	}
	return made
}

func manifest(name string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: " + name + "\n"
}

// padded is a manifest that is not small.
func padded(name string) string {
	return manifest(name) + "data: {pad: '" + strings.Repeat("x", smallBytes) + "'}\n"
}
