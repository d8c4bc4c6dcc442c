package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"

	"github.com/kubeop/kubeop/cmd/kubeop/exit"
)

func TestOnlyARequestNeedsAKubeconfig(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	t.Setenv("HOME", t.TempDir())
	t.Chdir(t.TempDir())
	if err := os.WriteFile("kubeop.yaml", []byte("layout: v0\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]struct {
		code int
		text string
	}{
		"get apps":               {exit.Failure, "no cluster is configured"},
		"describe acme/shop/web": {exit.Failure, "no cluster is configured"},
		"get banana":             {exit.Failure, `kubeop has no kind "banana"`},
		"nope":                   {exit.Failure, `unknown command "nope"`},
		"describe web":           {exit.Failure, "does not say which tenant"},
		"validate":               {exit.Differences, "1 problem in "},
	} {
		streams, _, _, stderr := genericiooptions.NewTestIOStreams()
		code := Run(t.Context(), append([]string{"kubeop"}, strings.Fields(args)...), streams, clock.RealClock{})
		if code != want.code || !strings.Contains(stderr.String(), want.text) {
			t.Errorf("%s: exit code %d: %s, want %s", args, code, stderr.String(), want.text)
		}
	}
}

// TestHelpCallsThePluginByItsNameInKubectl if the program has the name of a plugin of kubectl.
func TestHelpCallsThePluginByItsNameInKubectl(t *testing.T) {
	for program, want := range map[string]string{"/usr/bin/kubectl-kubeop": "\n  kubectl kubeop [command]\n", "/opt/kubectl-plugins/kubeop": "\n  kubeop [command]\n"} {
		streams, _, stdout, _ := genericiooptions.NewTestIOStreams()
		if code := Run(t.Context(), []string{program, "--help"}, streams, clock.RealClock{}); code != exit.OK || !strings.Contains(stdout.String(), want) {
			t.Errorf("%s: %d\n%s", program, code, stdout)
		}
	}
}

// TestAnInterruptedCommandPrintsNoError: the person knows why it ended.
func TestAnInterruptedCommandPrintsNoError(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	streams, _, _, stderr := genericiooptions.NewTestIOStreams()
	if code := Run(ctx, []string{"kubeop", "validate", filepath.Join(t.TempDir(), "none")}, streams, clock.RealClock{}); code != exit.Interrupted || stderr.Len() > 0 {
		t.Errorf("%d: %s", code, stderr)
	}
}
