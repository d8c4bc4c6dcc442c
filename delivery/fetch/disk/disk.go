// Package disk has the stores share a disk: which file counts for which tenant, how much each may have, and the garbage collection of
// what is not used.
package disk

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"sync"
	"time"

	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/limit"
)

const (
	// maxTenantDisk bounds, in bytes, what is kept on disk for one tenant, in all stores together. It is more than one Git
	// repository takes that is within its own limits, see repository.usable.
	maxTenantDisk = 2 * limit.GiB
	// maxTenantFiles bounds the files of one tenant: what is not used is looked for file by file.
	maxTenantFiles = 20_000
	// maxDisk bounds, in bytes, what tenants with more than an even share of it may add to. When a sixth more is there, no tenant may:
	// the chart's volume holds 4 GiB, and a fuller one would cost the operator its pod.
	maxDisk = 3 * limit.GiB
	// unusedFor is how long an unused file is kept. It is longer than the interval of most apps, which ask anew each time;
	// an app that finds its source gone fetches it again, see Has.
	unusedFor = 7 * 24 * time.Hour
	// IdleFor is how long an unused file is kept when the space is needed, or when it was not used since the process
	// started.
	IdleFor = time.Hour
	// clearEvery is the least time between two looks for what a tenant does not use.
	clearEvery = time.Minute
)

// Disk is what the stores share, and each tenant may take a part of. What is in a store counts for one tenant: a chart or an artifact
// for the one that asked for it last, a pack for the one whose fetch brought it; what a restart found, for no tenant until then. So no
// tenant can make another pay for what it does not use itself. A nil Disk has no limit.
type Disk struct {
	charges
	// Limits are those of the disk. LimitOf says how many bytes each tenant may have, with the name of a Repository for what is fetched for
	// one; nil: Limits.Bytes. Both are set before anything is fetched.
	Limits  Limits
	LimitOf func(tenant string) int64
	now     func() time.Time
	began   time.Time
	stores  []Store

	clearing sync.Mutex
	// cleared is when it was last looked for what a tenant does not use.
	cleared map[string]time.Time
}

// Limits of a disk.
type Limits struct {
	// Bytes and Files are what a tenant may have, Total the bytes of all.
	Bytes, Total int64
	Files        int
}

// New returns the disk of stores, with the usual limits.
func New(now func() time.Time, stores ...Store) *Disk {
	return &Disk{
		charges: charges{owner: map[string]string{}, shares: map[string]*share{}},
		Limits:  Limits{Bytes: maxTenantDisk, Total: maxDisk, Files: maxTenantFiles},
		now:     now, began: now(), stores: stores, cleared: map[string]time.Time{},
	}
}

// Find counts what an earlier process left, for no tenant.
func (d *Disk) Find(dir string) {
	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			d.count(unowned, path)
		}
		return nil // What cannot be read cannot be counted.
	})
}

// Store is a store as its disk sees it.
type Store interface {
	// Kept is what is there, in pieces that go as a whole.
	Kept() ([]string, error)
	// Clear removes the piece that a path is of, if it is of this store and was not used for that long.
	Clear(ctx context.Context, path string, now time.Time, unused time.Duration) error
	// Tidy drops what is held in memory of what is not there or was not used since it was last called.
	Tidy()
}

// Claim counts files for a tenant.
func (d *Disk) Claim(tenant string, paths ...string) {
	if d == nil || tenant == "" {
		return
	}
	for _, path := range paths {
		d.count(tenant, path)
	}
}

// Meter counts what is downloaded for a tenant, and ends it with ErrTooLarge when the tenant is over its part of the disk.
func (d *Disk) Meter(ctx context.Context, tenant string, from io.ReadCloser) io.ReadCloser {
	if d == nil || tenant == "" {
		return from
	}
	return &metered{ReadCloser: from, ctx: ctx, disk: d, tenant: tenant}
}

// Check is an error when a tenant takes more than it may, also after what is not used has gone.
func (d *Disk) Check(ctx context.Context, tenant string) error {
	for _, of := range d.tight(tenant) {
		d.empty(ctx, of)
	}
	return d.refusal(tenant)
}

// tight are those whose unused files have to go before the tenant takes more.
func (d *Disk) tight(tenant string) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var of []string
	if files, bytes := d.take(tenant); bytes > d.bound(tenant) || files >= d.Limits.Files {
		of = append(of, tenant)
	}
	if d.sum > d.Limits.Total {
		of = append(of, unowned, d.most())
	}
	return of
}

// bound is how many bytes may count for a tenant.
func (d *Disk) bound(tenant string) int64 {
	if d.LimitOf == nil {
		return d.Limits.Bytes
	}
	return d.LimitOf(budget.NameOf(tenant))
}

// empty removes what counts for a tenant and was not used for an hour.
func (d *Disk) empty(ctx context.Context, tenant string) {
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
			_ = store.Clear(ctx, file, now, IdleFor) // What cannot be removed still counts.
		}
		d.recount(file)
	}
}

// refusal is why a tenant may not take more.
func (d *Disk) refusal(tenant string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	files, bytes := d.take(tenant)
	switch {
	case bytes > d.bound(tenant):
		return failure.Because(failure.ErrTooLarge, &budget.Exceeded{Field: budget.SourceBytes}, "the sources of %s take %s on the operator's disk together, and the limit is %s: remove what is not needed; what nobody uses goes after an hour. "+
			"An administrator of the cluster allows more with spec.limits.sourceBytes of the Tenant", budget.Describe(tenant), failure.Size(bytes), failure.Size(d.bound(tenant)))
	case files >= d.Limits.Files:
		return failure.New(failure.ErrTooLarge, "the sources of %s are as many files on disk as the limit of %d: remove what is not needed; what nobody uses goes after an hour", budget.Describe(tenant), d.Limits.Files)
	case d.sum > d.Limits.Total && bytes > d.Limits.Total/int64(len(d.shares)), d.sum > d.Limits.Total+d.Limits.Total/6:
		return failure.New(Err, "the sources of all tenants take more disk together than the limit of %s: nothing more is fetched for %s until others need less; what nobody uses goes after an hour", failure.Size(d.Limits.Total), budget.Describe(tenant))
	}
	return nil
}

// Sweep removes from the stores what is not used any more.
func (d *Disk) Sweep(ctx context.Context) error {
	now, owned := d.now(), d.owned()
	var failures []error
	for _, store := range d.stores {
		pieces, err := store.Kept()
		failures = append(failures, err)
		for _, piece := range pieces {
			unused := unusedFor
			if now.Sub(d.began) >= IdleFor && !owned[piece] {
				unused = IdleFor
			}
			failures = append(failures, store.Clear(ctx, piece, now, unused))
		}
		store.Tidy()
	}
	for _, path := range d.Files() {
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
	disk   *Disk
	tenant string
	// got are the bytes that came.
	got int64
}

func (m *metered) Read(p []byte) (int, error) {
	n, err := m.ReadCloser.Read(p)
	m.got += int64(n)
	m.disk.arrive(m.tenant, int64(n))
	if full := m.disk.Check(m.ctx, m.tenant); full != nil {
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

// Used are the bytes that count for a tenant.
func (d *Disk) Used(tenant string) int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, bytes := d.take(tenant)
	return bytes
}

// Sum are the bytes that count for all.
func (d *Disk) Sum() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.sum
}
