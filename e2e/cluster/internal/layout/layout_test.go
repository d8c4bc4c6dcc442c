package layout

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

func TestClaimRefusesForeignContent(t *testing.T) {
	dir := Dir(t.TempDir())
	if err := os.WriteFile(dir.Path("thesis.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := dir.Claim(); err == nil {
		t.Error("claimed a directory with a file in it, which \"down\" would remove")
	}
	if err := Dir(filepath.Join(t.TempDir(), "new")).Claim(); err != nil {
		t.Error(err)
	}
}

func TestProcessIsNotAnotherWithItsNumber(t *testing.T) {
	self := ProcessOf(os.Getpid())
	if !self.Alive() {
		t.Error("this process is not alive")
	}
	if self.Start != 0 {
		self.Start++
		if self.Alive() {
			t.Error("a process with another start time is taken for this one")
		}
	}
}

func TestEndedProcessIsNotAlive(t *testing.T) {
	command := exec.Command("sleep", "60")
	if err := command.Start(); err != nil {
		t.Skip(err)
	}
	process := ProcessOf(command.Process.Pid)
	if !process.Alive() {
		t.Error("a running process is not alive")
	}
	_ = command.Process.Kill()
	_, _ = command.Process.Wait()
	if process.Alive() {
		t.Error("an ended process is alive")
	}
}
