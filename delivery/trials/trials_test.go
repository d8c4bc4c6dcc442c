package trials

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

func TestAnInputThatEndedOperatorsIsNotTriedAgain(t *testing.T) {
	app, dir := types.NamespacedName{Namespace: "team", Name: "web"}, t.TempDir()
	for range MaxLost {
		lost := New(dir, "these files") // the operator ended before End
		if err := lost.Begin(app, "input"); err != nil {
			t.Fatal(err)
		}
	}
	tr := New(dir, "these files")
	refused := func(when, why string) {
		t.Helper()
		err := tr.Begin(app, "input")
		if !errors.As(err, new(*Refused)) || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v", when, err)
		}
	}
	refused("after as many operators as may be lost", "the operator ended 3 times while it evaluated these files")
	if err := errors.Join(tr.Begin(app, "another"), tr.End(app, "another", "")); err != nil {
		t.Errorf("another input: %v", err)
	}
	if err := errors.Join(tr.Begin(app, "input"), tr.End(app, "input", "too much\nmemory")); err != nil {
		t.Errorf("after a success: %v", err)
	}
	refused("after a limit", "too much; memory")
	if last, err := New(dir, "").Last(app); last != "input" || err != nil {
		t.Errorf("what is noted is %q, %v", last, err)
	}
	if err := errors.Join(tr.Forget("team"), tr.Begin(app, "input")); err != nil {
		t.Errorf("after the namespace went: %v", err)
	}
	if err := New("/dev/null", "").Begin(app, "input"); err == nil || errors.As(err, new(*Refused)) {
		t.Errorf("where nothing can be written: %v", err)
	}
}

func TestWithoutAFolderNothingIsRemembered(t *testing.T) {
	app, tr := types.NamespacedName{Namespace: "team", Name: "web"}, New("", "these files")
	if err := errors.Join(tr.End(app, "input", "too much memory"), tr.Begin(app, "input"), tr.Forget("team")); err != nil {
		t.Error(err)
	}
	if last, err := tr.Last(app); last != "" || err != nil {
		t.Errorf("what is noted is %q, %v", last, err)
	}
}

// TestNamesThatNoFileCanHave keeps them inside the folder.
func TestNamesThatNoFileCanHave(t *testing.T) {
	tr, long := New(t.TempDir(), ""), strings.Repeat("a", 253)
	for _, name := range []string{"../up", "a/b", long, long[1:] + "b"} {
		app := types.NamespacedName{Namespace: "team", Name: name}
		if err := errors.Join(tr.Begin(app, name), tr.End(app, name, "no")); err != nil {
			t.Errorf("%.20s: %v", name, err)
		}
		if last, err := tr.Last(app); last != name || err != nil {
			t.Errorf("of %.20s is noted %.20q, %v", name, last, err)
		}
	}
}

// TestARecordThatCannotBeReadRefusesNothingAndAllowsNothing: the input may be the one during which the operator ended.
func TestARecordThatCannotBeReadRefusesNothingAndAllowsNothing(t *testing.T) {
	app, dir := types.NamespacedName{Namespace: "team", Name: "web"}, t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "team", "web", "in the way"), 0o700); err != nil {
		t.Fatal(err)
	}
	tr := New(dir, "these files")
	for name, err := range map[string]error{"Check": tr.Check(app, "input"), "Begin": tr.Begin(app, "input"), "End": tr.End(app, "input", "")} {
		if err == nil || errors.As(err, new(*Refused)) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if last, err := tr.Last(app); err == nil {
		t.Errorf("what is noted is %q", last)
	}
	if err := errors.Join(tr.Forget("team"), tr.Check(app, "input"), tr.End(app, "input", "")); err != nil {
		t.Errorf("after it was removed: %v", err)
	}
	if err := New("/dev/null/x", "").Forget("team"); err == nil {
		t.Error("records are forgotten where none can be")
	}
}

// TestForgettingNothingRemovesNothing: an empty name is the folder of all records, and without a folder every path is one of the process's.
func TestForgettingNothingRemovesNothing(t *testing.T) {
	app, dir := types.NamespacedName{Namespace: "team", Name: "web"}, t.TempDir()
	tr := New(dir, "these files")
	if err := errors.Join(tr.Begin(app, "input"), tr.Forget(""), tr.Forget("other")); err != nil {
		t.Fatal(err)
	}
	if last, err := tr.Last(app); last != "input" || err != nil {
		t.Errorf("what is noted is %q, %v", last, err)
	}
	t.Chdir(dir)
	none := New("", "these files")
	if err := errors.Join(none.Forget("team"), none.End(app, "input", ""), none.Begin(app, "another"), none.Check(app, "input")); err != nil {
		t.Error(err)
	}
	if last, err := none.Last(app); last != "" || err != nil {
		t.Errorf("without a folder, what is noted is %q, %v", last, err)
	}
	if last, err := tr.Last(app); last != "input" || err != nil {
		t.Errorf("what is noted is %q, %v", last, err)
	}
}
