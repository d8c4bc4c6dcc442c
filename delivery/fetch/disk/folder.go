package disk

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/kubeop/kubeop/delivery/fetch/keymutex"
)

// Usage records what was used since the last sweep. It is in memory, because a write for each use would cost too much; a crash loses at
// most an hour of it.
type Usage struct {
	mu   sync.Mutex
	used map[string]struct{}
}

// Mark records a use of a file or folder.
func (u *Usage) Mark(path string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.used == nil {
		u.used = map[string]struct{}{}
	}
	u.used[path] = struct{}{}
}

// Len returns for how many files and folders a use is recorded.
func (u *Usage) Len() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.used)
}

// take reports whether the file was used since the last call.
func (u *Usage) take(path string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	_, was := u.used[path]
	delete(u.used, path)
	return was
}

// Tidy drops the uses of files that do not exist, because their fetch failed.
func (u *Usage) Tidy() {
	u.mu.Lock()
	paths := slices.Collect(maps.Keys(u.used))
	u.mu.Unlock()
	for _, path := range paths {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			u.take(path)
		}
	}
}

// Stale reports whether a file or folder was not used for that long. It also stores the time of a use since the last call. A missing file
// is not stale.
func (u *Usage) Stale(path string, now time.Time, unused time.Duration) (bool, error) {
	if u.take(path) {
		return false, Present(os.Chtimes(path, now, now))
	}
	about, err := os.Stat(path)
	return err == nil && now.Sub(about.ModTime()) >= unused, Present(err)
}

// Folder has fetched files, <dir>/<source>/<file>; each is complete or missing. Files that were not used for 7 days are swept.
type Folder struct {
	Dir string
	// Disk counts the usage. Nil: it is not counted.
	Disk *Disk
	// Locks are held while a file is made or removed.
	Locks keymutex.Mutexes
	Used  Usage
	// Emptied is called with the folder of a source when it is empty; it may be nil.
	Emptied func(folder string)

	tidied sync.Once
}

// Begin removes unfinished files of an earlier process, once, before anything else.
func (s *Folder) Begin() {
	s.tidied.Do(func() {
		unfinished, _ := filepath.Glob(filepath.Join(s.Dir, "*", Temporary))
		for _, path := range unfinished {
			_ = os.Remove(path)
		}
	})
}

// Kept returns all files.
func (s *Folder) Kept() ([]string, error) {
	s.Begin()
	files, err := filepath.Glob(filepath.Join(s.Dir, "*", "*"))
	if err != nil {
		return nil, fmt.Errorf("sweeping %s: %w", s.Dir, err)
	}
	return slices.DeleteFunc(files, func(path string) bool {
		unfinished, _ := filepath.Match(Temporary, filepath.Base(path))
		return unfinished
	}), nil
}

// Clear removes a file that was not used for that long.
func (s *Folder) Clear(ctx context.Context, path string, now time.Time, unused time.Duration) error {
	if filepath.Dir(filepath.Dir(path)) != s.Dir {
		return nil
	}
	unlock, err := s.Locks.Lock(ctx, path)
	if err != nil {
		return err
	}
	defer unlock()
	if old, err := s.Used.Stale(path, now, unused); err != nil || !old {
		return err
	}
	if err := Present(os.Remove(path)); err != nil {
		return err
	}
	if os.Remove(filepath.Dir(path)) == nil && s.Emptied != nil {
		s.Emptied(filepath.Dir(path))
	}
	return nil
}

// Tidy drops the uses of files that do not exist.
func (s *Folder) Tidy() { s.Used.Tidy() }

// Present ignores an error about a file that was already deleted.
func Present(err error) error {
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return fmt.Errorf("sweeping: %w", err)
}
