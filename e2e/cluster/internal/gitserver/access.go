package gitserver

import (
	"os"
	"sync"
)

// accessCache caches the file of users, because each request needs it and with a thousand repositories it is large. Every change replaces the
// file, see Store.change.
type accessCache struct {
	mu    sync.Mutex
	file  os.FileInfo
	known access
}

// read returns the current content of the file. Callers must not change it.
func (c *accessCache) read(store *Store) (access, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	file, err := os.Stat(store.file())
	if err == nil && c.file != nil && os.SameFile(file, c.file) && file.ModTime().Equal(c.file.ModTime()) && file.Size() == c.file.Size() {
		return c.known, nil
	}
	a, readErr := store.read() // This is also called if there is no file yet.
	if readErr == nil && err == nil {
		c.file, c.known = file, a
	}
	return a, readErr
}
