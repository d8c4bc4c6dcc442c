package disk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestCreateInSurvivesTheRemovalOfItsFolder: the last failure takes it away while the next download begins.
func TestCreateInSurvivesTheRemovalOfItsFolder(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "source")
	first, err := CreateIn(folder)
	if err != nil {
		t.Fatal(err)
	}
	second, err := CreateIn(folder)
	if err != nil {
		t.Fatal(err)
	}
	Discard(first)
	if _, err := os.Stat(folder); err != nil {
		t.Errorf("the folder went while something is in it: %v", err)
	}
	Discard(second)
	if _, err := os.Stat(folder); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the empty folder stays: %v", err)
	}
	stop := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
				_ = os.Remove(folder)
				time.Sleep(20 * time.Microsecond) // Who removes it without a pause can win a hundred times.
			}
		}
	}()
	failures := 0
	for range 200 {
		file, err := CreateIn(folder)
		if err != nil {
			failures++
			continue
		}
		Discard(file)
	}
	close(stop)
	<-done
	if failures > 0 {
		t.Errorf("%d of 200 files could not be made beside somebody who removes the folder again and again", failures)
	}
}
