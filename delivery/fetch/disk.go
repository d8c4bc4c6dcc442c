package fetch

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// maxTenantDisk bounds, in bytes, what is kept on disk for one tenant, in all stores together. It is more than one Git
	// repository takes that is within its own limits, see repository.usable.
	maxTenantDisk = 2 * gibibyte
	// measureEvery is how many bytes of a download may come until the disk is measured again.
	measureEvery = 16 * mebibyte
	// unusedFor is how long is kept what nobody asks for. It is longer than the interval of most apps, which ask anew each time;
	// an app that finds its source gone fetches it again, see Has.
	unusedFor = 7 * 24 * time.Hour
	// idleFor is how long is kept what nobody asks for, when its tenant needs the room, or when nobody asked for it since the
	// process started.
	idleFor = time.Hour
)

// disk is what the stores share, and each tenant may take a part of. What is in a store counts for one tenant: a chart or an artifact
// for the one that asked for it last, a pack for the one whose fetch brought it, or after a restart asked first. So no tenant can
// make another pay for what it does not use itself. Sizes are measured, not remembered: whatever sweeps, crashes or deletes by
// hand, they are right. A nil disk has no limit.
type disk struct {
	limit  int64
	now    func() time.Time
	began  time.Time
	stores []keeper

	mu sync.Mutex
	// owner is the tenant that a file counts for.
	owner map[string]string
	// coming are the bytes of each tenant that are on their way.
	coming map[string]int64
}

// keeper is a store as its disk sees it.
type keeper interface {
	// kept is what is there, in pieces that go as a whole.
	kept() ([]string, error)
	// clear removes the piece that a path is of, if it is of this store and nobody used it for that long.
	clear(ctx context.Context, path string, now time.Time, unused time.Duration) error
}

// claim counts files for a tenant.
func (d *disk) claim(tenant string, paths ...string) {
	if d == nil || tenant == "" {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, path := range paths {
		d.owner[path] = tenant
	}
}

// adopt counts those of the files for a tenant that count for none.
func (d *disk) adopt(tenant string, paths []string) {
	if d == nil {
		return
	}
	d.claim(tenant, slices.DeleteFunc(paths, d.owned)...)
}

// owned says whether something counts for a tenant, or a part of it does.
func (d *disk) owned(path string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.owner[path] != "" {
		return true
	}
	for file := range d.owner {
		if strings.HasPrefix(file, path+string(filepath.Separator)) {
			return true
		}
	}
	return false
}

// room returns what is downloaded for a tenant in a form that ends with ErrTooLarge when the tenant has no room left for it.
func (d *disk) room(ctx context.Context, tenant string, from io.ReadCloser) io.ReadCloser {
	if d == nil || tenant == "" {
		return from
	}
	return &metered{ReadCloser: from, ctx: ctx, disk: d, tenant: tenant}
}

// check is an error when a tenant takes more than it may, also after what it does not use has gone.
func (d *disk) check(ctx context.Context, tenant string) error {
	files, taken := d.taken(tenant)
	if taken <= d.limit {
		return nil
	}
	for _, file := range files {
		for _, store := range d.stores {
			_ = store.clear(ctx, file, d.now(), idleFor) // What cannot be removed still counts.
		}
	}
	if _, taken = d.taken(tenant); taken <= d.limit {
		return nil
	}
	return fail(ErrTooLarge, "the sources of tenant %s take more disk together than the limit of %s: remove apps, or have them made from less; what no app uses goes after an hour", printable(tenant), bytesText(d.limit))
}

// taken are the files that count for a tenant, and their bytes with those on their way.
func (d *disk) taken(tenant string) (files []string, sum int64) {
	d.mu.Lock()
	owner := maps.Clone(d.owner)
	sum = d.coming[tenant]
	d.mu.Unlock()
	for file, of := range owner {
		if of != tenant {
			continue
		}
		if about, err := os.Stat(file); err == nil {
			files, sum = append(files, file), sum+about.Size()
		} else if errors.Is(err, fs.ErrNotExist) {
			d.mu.Lock()
			delete(d.owner, file)
			d.mu.Unlock()
		}
	}
	return files, sum
}

func (d *disk) arrive(tenant string, n int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.coming[tenant] += n; d.coming[tenant] == 0 {
		delete(d.coming, tenant)
	}
}

// sweep removes from the stores what nobody uses any more.
func (d *disk) sweep(ctx context.Context) error {
	now := d.now()
	var failures []error
	for _, store := range d.stores {
		pieces, err := store.kept()
		failures = append(failures, err)
		for _, piece := range pieces {
			unused := unusedFor
			if now.Sub(d.began) >= idleFor && !d.owned(piece) {
				unused = idleFor
			}
			failures = append(failures, store.clear(ctx, piece, now, unused))
		}
	}
	return errors.Join(failures...)
}

// metered is a download that counts for a tenant.
type metered struct {
	io.ReadCloser
	ctx    context.Context
	disk   *disk
	tenant string
	// got are the bytes that came, checked those at which room was last looked for.
	got, checked int64
}

func (m *metered) Read(p []byte) (int, error) {
	n, err := m.ReadCloser.Read(p)
	m.disk.arrive(m.tenant, int64(n))
	if m.got += int64(n); m.checked == 0 || m.got-m.checked >= measureEvery || errors.Is(err, io.EOF) {
		m.checked = m.got
		if full := m.disk.check(m.ctx, m.tenant); full != nil {
			return 0, full
		}
	}
	return n, err
}

// Close ends the download. What is kept of it counts from now on as a file.
func (m *metered) Close() error {
	m.disk.arrive(m.tenant, -m.got)
	m.got = 0
	return m.ReadCloser.Close()
}
