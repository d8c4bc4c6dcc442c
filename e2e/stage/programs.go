package stage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// programs are the binaries a stage runs.
type programs struct{ cluster, helm, operator, manager, decrypt, hello, kubeop string }

// findPrograms returns the cluster binary that $KUBEOP_CLUSTER_BIN names, by default .build/bin/cluster below root, and the programs beside it.
func findPrograms(root string) (programs, error) {
	cluster := os.Getenv("KUBEOP_CLUSTER_BIN")
	if cluster == "" {
		cluster = filepath.Join(root, ".build", "bin", "cluster")
	}
	beside := func(name string) string { return filepath.Join(filepath.Dir(cluster), name) }
	bin := programs{cluster: cluster, helm: beside("helm"), operator: beside("operator"), manager: beside("manager"), decrypt: beside("decrypt"), hello: beside("hello"), kubeop: beside("kubeop")}
	for _, program := range []string{bin.cluster, bin.helm, bin.operator, bin.manager, bin.decrypt, bin.hello, bin.kubeop} {
		if _, err := os.Stat(program); err != nil {
			return programs{}, fmt.Errorf("finding a program that make builds: %w", err)
		}
	}
	return bin, nil
}

// findRoot returns the root of the checkout, from the working directory of a command or a test.
func findRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding the checkout: %w", err)
	}
	for dir != filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "charts", "kubeop", "Chart.yaml")); err == nil {
			return dir, nil
		}
		dir = filepath.Dir(dir)
	}
	return "", errors.New("finding the checkout: no folder above has charts/kubeop")
}

// run runs a program and returns its output without surrounding space. The error contains what the program wrote to stderr, but never its
// arguments, which may contain a password.
func run(ctx context.Context, env []string, program string, args ...string) (string, error) {
	var out, complaint bytes.Buffer
	command := exec.CommandContext(ctx, program, args...)
	command.Env, command.Stdout, command.Stderr = append(os.Environ(), env...), &out, &complaint
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("running %s %s: %w: %s", filepath.Base(program), firstWord(args), err, strings.TrimSpace(complaint.String()))
	}
	return strings.TrimSpace(out.String()), nil
}

func firstWord(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}
