package disk

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
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

func TestAFolderThatCannotBeMadeIsAFailureAtOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := CreateIn(filepath.Join(file, "folder"))
	if err == nil || !strings.HasPrefix(err.Error(), "writing below "+file) {
		t.Errorf("got %v", err)
	}
}

func TestDiscardKeepsARenamedFile(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "source")
	file, err := CreateIn(folder)
	if err != nil {
		t.Fatal(err)
	}
	whole := filepath.Join(folder, "whole")
	if err := os.Rename(file.Name(), whole); err != nil {
		t.Fatal(err)
	}
	Discard(file)
	if !isThere(t, whole) {
		t.Error("the file went")
	}
	if err := file.Close(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("it is not closed: %v", err)
	}
}

func TestAFailedWriteReportsAFullDisk(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		says string
	}{
		"full":  {&fs.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}, "no space left below /data: ask an administrator of the cluster to free some, or to give the operator more with dataSizeLimit of the values of kubeop's chart: "},
		"quota": {syscall.EDQUOT, "no space left below /data"},
		"other": {syscall.EIO, "writing below /data: input/output error"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := Writing("/data", tc.err); !strings.HasPrefix(err.Error(), tc.says) || !errors.Is(err, tc.err) || errors.Is(err, Err) {
				t.Errorf("got %v", err)
			}
			if err := Failed("/data", tc.err); !errors.Is(err, Err) || !errors.Is(err, tc.err) || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestAFailedDownloadIsOfTheDiskOrOfTheServer(t *testing.T) {
	ours := failure.New(failure.ErrTooLarge, "too large")
	if err := DownloadFailed("a chart", "/data", ours); err != ours { //nolint:errorlint // not wrapped
		t.Errorf("an error that is explained: %v", err)
	}
	local := &os.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}
	if err := DownloadFailed("a chart", "/data", local); errors.Is(err, failure.ErrUnavailable) || !strings.HasPrefix(err.Error(), "no space left below /data") {
		t.Errorf("a full disk: %v", err)
	}
	if err := DownloadFailed("a chart", "/data", io.ErrUnexpectedEOF); !errors.Is(err, failure.ErrUnavailable) || err.Error() != "unavailable: downloading a chart: unexpected EOF" {
		t.Errorf("a connection that broke: %v", err)
	}
}
