package fetch

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

	"github.com/kubeop/kubeop/delivery/fetch/singleflight"
)

// usage is what was used since the last sweep. In memory, because a write for each use would cost more than it tells; a
// crash loses an hour of it at most.
type usage struct {
	mu   sync.Mutex
	used map[string]struct{}
}

func (u *usage) mark(path string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.used == nil {
		u.used = map[string]struct{}{}
	}
	u.used[path] = struct{}{}
}

// take says whether the file was used since it was last asked.
func (u *usage) take(path string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	_, was := u.used[path]
	delete(u.used, path)
	return was
}

// tidy forgets the uses of what is not there: of fetches that failed.
func (u *usage) tidy() {
	u.mu.Lock()
	paths := slices.Collect(maps.Keys(u.used))
	u.mu.Unlock()
	for _, path := range paths {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			u.take(path)
		}
	}
}

// stale says whether a file or folder was not used for that long, and writes down when one was that was used since it was last
// asked. What is not there is not stale.
func (u *usage) stale(path string, now time.Time, unused time.Duration) (bool, error) {
	if u.take(path) {
		return false, present(os.Chtimes(path, now, now))
	}
	about, err := os.Stat(path)
	return err == nil && now.Sub(about.ModTime()) >= unused, present(err)
}

// shelved is a folder of files that were fetched, <dir>/<source>/<file>, each whole or not there. What is not used for 7 days
// is swept.
type shelved struct {
	dir    string
	disk   *disk
	locks  singleflight.Mutexes
	used   usage
	tidied sync.Once
	// emptied is told of a source of which nothing is left; it may be nil.
	emptied func(folder string)
}

// triesToCreate is how often a folder may go between its making and the first file in it.
const triesToCreate = 100

// createIn creates a temporary file in a folder that comes into being with it. It may be gone again at any moment while nothing is in
// it, see discard.
func createIn(folder string) (*os.File, error) {
	for tries := 1; ; tries++ {
		err := os.MkdirAll(folder, 0o700)
		if err == nil {
			var file *os.File
			if file, err = os.CreateTemp(folder, temporary); err == nil {
				return file, nil
			}
		}
		// MkdirAll says that it exists where it went between the try to make it and the look at what is there.
		if gone := errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrExist); tries == triesToCreate || !gone {
			return nil, writing(folder, err)
		}
	}
}

// discard closes a temporary file and removes it, unless it was renamed, and its folder where nothing else is in it: who names
// sources that give nothing must not fill the disk with folders.
func discard(file *os.File) {
	_ = file.Close()
	_ = os.Remove(file.Name())
	_ = os.Remove(filepath.Dir(file.Name()))
}

// begin removes what a crash left unfinished, once, before anything is begun.
func (s *shelved) begin() {
	s.tidied.Do(func() {
		unfinished, _ := filepath.Glob(filepath.Join(s.dir, "*", temporary))
		for _, path := range unfinished {
			_ = os.Remove(path)
		}
	})
}

// Has says whether an archive that Fetch returned earlier is still on disk, and counts as a use of it.
func (s *ChartStore) Has(archive ChartArchive) bool {
	if _, err := os.Stat(archive.Path); err != nil {
		return false
	}
	s.used.mark(archive.Path)
	return true
}

// hasAll is Has for the archives among dependencies. Where it is false, ask for the dependencies anew.
func (s *ChartStore) hasAll(needs []Dependency) bool {
	all := true
	for _, d := range needs {
		// All are asked for, because all are used.
		all = s.hasAll(d.Needs) && all
		all = (d.Path != "" || s.Has(d.Archive)) && all
	}
	return all
}

// kept are all files.
func (s *shelved) kept() ([]string, error) {
	s.begin()
	files, err := filepath.Glob(filepath.Join(s.dir, "*", "*"))
	if err != nil {
		return nil, fmt.Errorf("sweeping %s: %w", s.dir, err)
	}
	return slices.DeleteFunc(files, func(path string) bool {
		unfinished, _ := filepath.Match(temporary, filepath.Base(path))
		return unfinished
	}), nil
}

// clear removes a file that was not used for that long.
func (s *shelved) clear(ctx context.Context, path string, now time.Time, unused time.Duration) error {
	if filepath.Dir(filepath.Dir(path)) != s.dir {
		return nil
	}
	unlock, err := s.locks.Lock(ctx, path)
	if err != nil {
		return err
	}
	defer unlock()
	if old, err := s.used.stale(path, now, unused); err != nil || !old {
		return err
	}
	if err := present(os.Remove(path)); err != nil {
		return err
	}
	if os.Remove(filepath.Dir(path)) == nil && s.emptied != nil {
		s.emptied(filepath.Dir(path))
	}
	return nil
}

// tidy forgets the uses of what is not there.
func (s *shelved) tidy() { s.used.tidy() }

// present makes it no failure that a file went by itself.
func present(err error) error {
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return fmt.Errorf("sweeping: %w", err)
}

// forget drops what is held of a source that was swept.
func (s *ChartStore) forget(folder string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.indexes[folder]; known != nil {
		known.http.CloseIdleConnections()
		delete(s.indexes, folder)
	}
}

// tidy drops the repositories that nobody asked since it was last called: those that never answered have nothing to be swept.
func (s *ChartStore) tidy() {
	s.shelved.tidy()
	s.mu.Lock()
	defer s.mu.Unlock()
	for folder, known := range s.indexes {
		if known.idle {
			known.http.CloseIdleConnections()
			delete(s.indexes, folder)
		}
		known.idle = true
	}
}
