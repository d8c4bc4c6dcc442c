package image

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

func TestPauseSleeps(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("a Linux program")
	}
	program, err := pauseProgram(runtime.GOARCH)
	if err != nil {
		t.Skip(err)
	}
	path := filepath.Join(t.TempDir(), "pause")
	if err := os.WriteFile(path, program, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := CheckStatic(path); err != nil {
		t.Error(err)
	}
	command := exec.Command(path)
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	select {
	case err := <-ended:
		t.Fatalf("it ended: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	_ = command.Process.Kill()
	<-ended
}

func TestFromBinaryIsReproducible(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app")
	program, err := pauseProgram("amd64")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, program, 0o700); err != nil {
		t.Fatal(err)
	}
	var digests [2]string
	for i := range digests {
		image, err := FromBinary(path)
		if err != nil {
			t.Fatal(err)
		}
		digest, err := image.Digest()
		if err != nil {
			t.Fatal(err)
		}
		digests[i] = digest.String()
	}
	if digests[0] != digests[1] {
		t.Errorf("the same binary made two images: %v", digests)
	}
}
