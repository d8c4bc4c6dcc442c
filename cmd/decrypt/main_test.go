package main

import (
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
	"github.com/kubeop/kubeop/delivery/build"
	"github.com/kubeop/kubeop/delivery/trials"
	"github.com/kubeop/kubeop/internal/sandbox"
	"github.com/kubeop/kubeop/internal/testkeys"
)

// TestMain runs the program itself if the test binary is started as an evaluation process.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == sandbox.Command {
		main()
	}
	os.Exit(m.Run())
}

// request returns a build of an app with an encrypted file and a Secret with that key.
func request(t testing.TB, keys string) build.Request {
	t.Helper()
	data, err := os.ReadFile("../../delivery/decrypt/sops/testdata/secret.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return build.Request{App: types.NamespacedName{Namespace: "team", Name: "web"}, Tenant: "acme", Input: keys, Identity: "commit", Source: build.Source{
		Files: fstest.MapFS{"app/a.yaml": {Data: data}}, Git: &v1alpha1.GitSource{Path: "app"}, Limits: budget.App{Objects: 10, Bytes: 1 << 20, Values: 1000},
		Keys: &build.Keys{Secret: "keys", Data: map[string][]byte{"a.agekey": []byte(testkeys.Age(keys))}},
	}}
}

func builder(t testing.TB) *build.Builder {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	pool := sandbox.New(sandbox.Options{Processes: 1, Log: logr.Discard()})
	t.Cleanup(pool.Close)
	run := func(ctx context.Context, c apart.Call) ([]byte, error) {
		return pool.Call(ctx, sandbox.Call{Function: c.Name, Program: self, Input: c.Input, NewHandler: c.NewHandler, Limits: sandbox.Limits{Questions: c.Questions}})
	}
	return &build.Builder{Apart: apart.Runner{Run: run}, Now: time.Now, Trials: trials.New(t.TempDir(), "these files")}
}

func TestTheProgramDecrypts(t *testing.T) {
	b := builder(t)
	made, err := b.Build(t.Context(), request(t, testkeys.First))
	if err != nil || len(made.Objects) != 2 || !strings.Contains(strings.Join(made.Secrets, "\n"), "correct horse battery") {
		t.Errorf("got %v, %v", made, err)
	}
	if _, err := b.Build(t.Context(), request(t, testkeys.Second)); err == nil || !strings.Contains(err.Error(), "no key in Secret keys decrypts it") {
		t.Errorf("with another key: %v", err)
	}
}

// BenchmarkBuild builds one encrypted file in a running process.
func BenchmarkBuild(b *testing.B) {
	is, of := builder(b), request(b, testkeys.First)
	for b.Loop() {
		if _, err := is.Build(b.Context(), of); err != nil {
			b.Fatal(err)
		}
	}
}
