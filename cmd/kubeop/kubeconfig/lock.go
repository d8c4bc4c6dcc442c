package kubeconfig

import (
	"context"
	"os"
	"path/filepath"
	"time"
)

// lockEvery is how often a call looks whether another one still gets the token.
const lockEvery = 20 * time.Millisecond

// lock waits until no other process gets this token, so that programs that start at once get one kubeconfig together. The system releases
// the lock of a process that ends. Where there is no lock, as in a folder that cannot be written, each gets its own.
func (f file) lock(ctx context.Context) (unlock func()) {
	if err := os.MkdirAll(filepath.Dir(f.path), 0o700); err != nil {
		return func() {}
	}
	lock, err := os.OpenFile(f.path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return func() {}
	}
	unlock = func() { _ = lock.Close() } // Nothing was written.
	again := time.NewTicker(lockEvery)
	defer again.Stop()
	for isLocked(lock) {
		select {
		case <-ctx.Done():
			return unlock
		case <-again.C:
		}
	}
	return unlock
}
