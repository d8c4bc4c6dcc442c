package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"

	"github.com/kubeop/kubeop/cmd/kubeop/call"
)

var update = flag.Bool("update", false, "write docs/cli")

// TestEveryCommandHasAPage compares docs/cli with what the commands say of themselves. `go test ./cmd/kubeop -run Page -update` writes it.
func TestEveryCommandHasAPage(t *testing.T) {
	const folder = "../../docs/cli"
	root := New(call.New(genericiooptions.NewTestIOStreamsDiscard(), clock.RealClock{}))
	root.DisableAutoGenTag = true
	pages := map[string]bool{}
	var check func(*cobra.Command)
	check = func(c *cobra.Command) {
		if c.Hidden || c.Name() == "help" || c.Name() == "completion" {
			return
		}
		var page bytes.Buffer
		if err := doc.GenMarkdown(c, &page); err != nil {
			t.Fatal(err)
		}
		// The commands of kubectl's flags have tabs and trailing spaces.
		lines := strings.Split(page.String(), "\n")
		for i := range lines {
			lines[i] = strings.TrimRight(lines[i], " ")
		}
		text := strings.TrimRight(strings.Join(lines, "\n"), "\n") + "\n"
		name := strings.ReplaceAll(c.CommandPath(), " ", "_") + ".md"
		pages[name] = true
		file := filepath.Join(folder, name)
		if *update {
			if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		written, err := os.ReadFile(file)
		if err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(text, string(written)); diff != "" {
			t.Errorf("%s is not what the command says (-want +got):\n%s", name, diff)
		}
		for _, sub := range c.Commands() {
			check(sub)
		}
	}
	check(root)
	found, err := filepath.Glob(filepath.Join(folder, "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range found {
		if !pages[filepath.Base(file)] {
			t.Errorf("%s is of no command", file)
		}
	}
}

// TestEveryCommandHelps holds what --help of every command has: two examples, and sentences that fit a terminal.
func TestEveryCommandHelps(t *testing.T) {
	root := New(call.New(genericiooptions.NewTestIOStreamsDiscard(), clock.RealClock{}))
	commands := root.Commands()
	if len(commands) < 15 {
		t.Fatalf("there are only %d commands", len(commands))
	}
	for _, c := range commands {
		if examples := strings.Count(c.Example, "  # "); examples < 2 || strings.Count(c.Example, "kubeop ") < 2 {
			t.Errorf("%s has %d examples, want 2", c.Name(), examples)
		}
		if c.Short == "" || c.Long == "" || strings.HasSuffix(c.Short, ".") {
			t.Errorf("%s has no description, or one that ends with a full stop", c.Name())
		}
		if c.GroupID == "" {
			t.Errorf("%s is in no group", c.Name())
		}
		if slices.ContainsFunc(strings.Split(c.Long, "\n"), func(line string) bool { return len(line) > 150 }) {
			t.Errorf("%s has lines that are too long for a terminal", c.Name())
		}
	}
}
