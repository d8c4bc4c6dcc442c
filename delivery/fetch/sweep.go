package fetch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// unusedFor is how long a chart is kept that nobody asks for. It is longer than the interval of most apps, which ask anew
// each time; an app that finds its archive gone fetches it again, see Has.
const unusedFor = 7 * 24 * time.Hour

// usage is what was used since the last sweep. In memory, because a write for each use would cost more than it tells; a
// crash loses a day of it at most.
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

// shelved is a folder of files that were fetched, <dir>/<source>/<file>, each whole or not there. What is not used for 7 days
// is swept.
type shelved struct {
	dir    string
	locks  locks
	used   usage
	tidied sync.Once
	// emptied is told of a source of which nothing is left; it may be nil.
	emptied func(folder string)
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

// HasAll is Has for the archives among dependencies. Where it is false, ask for the dependencies anew.
func (s *ChartStore) HasAll(needs []Dependency) bool {
	all := true
	for _, d := range needs {
		// All are asked for, because all are used.
		all = s.HasAll(d.Needs) && all
		all = (d.Path != "" || s.Has(d.Archive)) && all
	}
	return all
}

// Sweep removes what was not used for 7 days: archives, artifacts and indexes of repositories. Call it daily: a use counts for as
// long as the sweep after it sees it. What one fetches meanwhile stays, or is downloaded again.
func (s *shelved) Sweep(ctx context.Context, now time.Time) error {
	s.begin()
	var failures []error
	files, err := filepath.Glob(filepath.Join(s.dir, "*", "*"))
	if err != nil {
		return fmt.Errorf("sweeping %s: %w", s.dir, err)
	}
	for _, path := range files {
		if unfinished, _ := filepath.Match(temporary, filepath.Base(path)); unfinished {
			continue
		}
		if err := s.sweepFile(ctx, path, now); err != nil {
			failures = append(failures, err)
		}
	}
	return errors.Join(failures...)
}

// sweepFile writes down that a file was used, or removes it.
func (s *shelved) sweepFile(ctx context.Context, path string, now time.Time) error {
	unlock, err := s.locks.lock(ctx, path)
	if err != nil {
		return err
	}
	defer unlock()
	if s.used.take(path) {
		return present(os.Chtimes(path, now, now))
	}
	about, err := os.Stat(path)
	if err != nil || now.Sub(about.ModTime()) < unusedFor {
		return present(err)
	}
	if err := present(os.Remove(path)); err != nil {
		return err
	}
	if os.Remove(filepath.Dir(path)) == nil && s.emptied != nil {
		s.emptied(filepath.Dir(path))
	}
	return nil
}

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
