package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/limit"
	"github.com/kubeop/kubeop/delivery/fetch/pool"
)

const (
	// maxTenantDisk bounds, in bytes, what is kept on disk for one tenant, in all stores together. It is more than one Git
	// repository takes that is within its own limits, see repository.usable.
	maxTenantDisk = 2 * limit.GiB
	// maxTenantFiles bounds the files of one tenant: what is not used is looked for file by file.
	maxTenantFiles = 20_000
	// maxDisk bounds, in bytes, what tenants with more than an even share of it may add to. When a sixth more is there, nobody may:
	// the chart's volume holds 4 GiB, and a fuller one would cost the operator its pod.
	maxDisk = 3 * limit.GiB
	// unusedFor is how long is kept what nobody asks for. It is longer than the interval of most apps, which ask anew each time;
	// an app that finds its source gone fetches it again, see Has.
	unusedFor = 7 * 24 * time.Hour
	// idleFor is how long is kept what nobody asks for, when the room is needed, or when nobody asked for it since the process
	// started.
	idleFor = time.Hour
	// clearEvery is the least time between two looks for what a tenant does not use.
	clearEvery = time.Minute
)

// disk is what the stores share, and each tenant may take a part of. What is in a store counts for one tenant: a chart or an artifact
// for the one that asked for it last, a pack for the one whose fetch brought it; what a restart found, for nobody until then. So no
// tenant can make another pay for what it does not use itself. A nil disk has no limit.
type disk struct {
	charges
	// limit and files bound a tenant, total bounds all. Where limitOf is set it says the limit of each tenant, with the name of a
	// Repository for what is fetched for one.
	limitOf      func(tenant string) int64
	limit, total int64
	files        int
	now          func() time.Time
	began        time.Time
	stores       []keeper

	clearing sync.Mutex
	// cleared is when it was last looked for what a tenant does not use.
	cleared map[string]time.Time
}

func newDisk(now func() time.Time, stores ...keeper) *disk {
	return &disk{
		charges: charges{owner: map[string]string{}, shares: map[string]*share{}},
		limit:   maxTenantDisk, total: maxDisk, files: maxTenantFiles,
		now: now, began: now(), stores: stores, cleared: map[string]time.Time{},
	}
}

// find counts for nobody what an earlier process left.
func (d *disk) find(dir string) {
	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			d.count(nobody, path)
		}
		return nil // What cannot be read cannot be counted.
	})
}

// keeper is a store as its disk sees it.
type keeper interface {
	// kept is what is there, in pieces that go as a whole.
	kept() ([]string, error)
	// clear removes the piece that a path is of, if it is of this store and nobody used it for that long.
	clear(ctx context.Context, path string, now time.Time, unused time.Duration) error
	// tidy drops what is held in memory of what is not there or was not used since it was last called.
	tidy()
}

// claim counts files for a tenant.
func (d *disk) claim(tenant string, paths ...string) {
	if d == nil || tenant == "" {
		return
	}
	for _, path := range paths {
		d.count(tenant, path)
	}
}

// room returns what is downloaded for a tenant in a form that ends with ErrTooLarge when the tenant has no room left for it.
func (d *disk) room(ctx context.Context, tenant string, from io.ReadCloser) io.ReadCloser {
	if d == nil || tenant == "" {
		return from
	}
	return &metered{ReadCloser: from, ctx: ctx, disk: d, tenant: tenant}
}

// check is an error when a tenant takes more than it may, also after what is not used has gone.
func (d *disk) check(ctx context.Context, tenant string) error {
	for _, of := range d.tight(tenant) {
		d.empty(ctx, of)
	}
	return d.refusal(tenant)
}

// tight are those whose unused files have to go before the tenant takes more.
func (d *disk) tight(tenant string) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var of []string
	if files, bytes := d.take(tenant); bytes > d.bound(tenant) || files >= d.files {
		of = append(of, tenant)
	}
	if d.sum > d.total {
		of = append(of, nobody, d.most())
	}
	return of
}

// bound is how many bytes may count for a tenant.
func (d *disk) bound(tenant string) int64 {
	if d.limitOf == nil {
		return d.limit
	}
	return d.limitOf(pool.NameOf(tenant))
}

// empty removes what counts for a tenant and was not used for an hour.
func (d *disk) empty(ctx context.Context, tenant string) {
	now := d.now()
	d.clearing.Lock()
	due := now.Sub(d.cleared[tenant]) >= clearEvery
	if due {
		d.cleared[tenant] = now
	}
	d.clearing.Unlock()
	if !due {
		return
	}
	for _, file := range d.filesOf(tenant) {
		if !d.recount(file) {
			continue
		}
		for _, store := range d.stores {
			_ = store.clear(ctx, file, now, idleFor) // What cannot be removed still counts.
		}
		d.recount(file)
	}
}

// refusal is why a tenant may not take more.
func (d *disk) refusal(tenant string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	files, bytes := d.take(tenant)
	switch {
	case bytes > d.bound(tenant):
		return failure.Over(budget.SourceBytes, "the sources of %s take %s on the operator's disk together, and the limit is %s: remove what is not needed; what nobody uses goes after an hour. "+
			"An administrator of the cluster allows more with spec.limits.sourceBytes of the Tenant", pool.Whose(tenant), limit.Text(bytes), limit.Text(d.bound(tenant)))
	case files >= d.files:
		return failure.New(failure.ErrTooLarge, "the sources of %s are as many files on disk as the limit of %d: remove what is not needed; what nobody uses goes after an hour", pool.Whose(tenant), d.files)
	case d.sum > d.total && bytes > d.total/int64(len(d.shares)), d.sum > d.total+d.total/6:
		return failure.New(errDisk, "the sources of all tenants take more disk together than the limit of %s: nothing more is fetched for %s until others need less; what nobody uses goes after an hour", limit.Text(d.total), pool.Whose(tenant))
	}
	return nil
}

// sweep removes from the stores what nobody uses any more.
func (d *disk) sweep(ctx context.Context) error {
	now, owned := d.now(), d.owned()
	var failures []error
	for _, store := range d.stores {
		pieces, err := store.kept()
		failures = append(failures, err)
		for _, piece := range pieces {
			unused := unusedFor
			if now.Sub(d.began) >= idleFor && !owned[piece] {
				unused = idleFor
			}
			failures = append(failures, store.clear(ctx, piece, now, unused))
		}
		store.tidy()
	}
	for _, path := range d.all() {
		d.recount(path)
	}
	d.clearing.Lock()
	defer d.clearing.Unlock()
	clear(d.cleared)
	return errors.Join(failures...)
}

// metered is a download that counts for a tenant.
type metered struct {
	io.ReadCloser
	ctx    context.Context
	disk   *disk
	tenant string
	// got are the bytes that came.
	got int64
}

func (m *metered) Read(p []byte) (int, error) {
	n, err := m.ReadCloser.Read(p)
	m.got += int64(n)
	m.disk.arrive(m.tenant, int64(n))
	if full := m.disk.check(m.ctx, m.tenant); full != nil {
		return 0, full
	}
	return n, err
}

// Close ends the download. What is kept of it counts from now on as a file.
func (m *metered) Close() error {
	m.disk.arrive(m.tenant, -m.got)
	m.got = 0
	return m.ReadCloser.Close()
}

// writing explains a failed write below dir. A full disk is named, because its cause is never the source.
func writing(dir string, err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("no space left below %s: free some or give the operator a larger volume: %w", dir, err)
	}
	return fmt.Errorf("writing below %s: %w", dir, err)
}

// errDisk marks what went wrong on our side, which no other answer of the server would help.
var errDisk = errors.New("disk error")

func diskFailed(dir string, err error) error {
	return fmt.Errorf("%w: %w", errDisk, writing(dir, err))
}
