package gitserver

import (
	"os"
	"sync"
)

// accessCache is the file of users as it was read last: with a thousand repositories it is large, and each request asks for it.
// Every change replaces the file, see Store.change.
type accessCache struct {
	mu    sync.Mutex
	file  os.FileInfo
	known access
}

// read returns what the file holds now. The answer is not to be changed.
func (c *accessCache) read(store *Store) (access, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	file, err := os.Stat(store.file())
	if err == nil && c.file != nil && os.SameFile(file, c.file) && file.ModTime().Equal(c.file.ModTime()) && file.Size() == c.file.Size() {
		return c.known, nil
	}
	a, readErr := store.read() // Also where there is no file yet.
	if readErr == nil && err == nil {
		c.file, c.known = file, a
	}
	return a, readErr
}
