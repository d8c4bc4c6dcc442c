// Package disk shares a disk between the stores: which file counts for which tenant, how much each may have, and the garbage collection of
// unused files.
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
	"github.com/kubeop/kubeop/delivery/command"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/limit"
)

const (
	// maxTenantDisk bounds, in bytes, what is kept on disk for one tenant, in all stores together. It is more than one Git repository
	// within its own limits takes, see repository.usable.
	maxTenantDisk = 2 * limit.GiB
	// maxTenantFiles bounds the files of one tenant, because unused ones are searched file by file.
	maxTenantFiles = 20_000
	// maxDisk bounds, in bytes, the usage up to which tenants with more than an even share may add. A sixth above it, no tenant may: the
	// chart's volume has 4 GiB, and a fuller one would cost the operator its pod.
	maxDisk = 3 * limit.GiB
	// unusedFor is how long an unused file is kept. It is longer than the interval of most apps, and each fetch counts as a use; an app
	// that finds its source deleted fetches it again, see Has.
	unusedFor = 7 * 24 * time.Hour
	// IdleFor is how long an unused file is kept when the space is needed, or when it was not used since the process
	// started.
	IdleFor = time.Hour
	// clearEvery is the least time between two searches for unused files of a tenant.
	clearEvery = time.Minute
)

// Disk is shared by the stores, and each tenant may use a part of it. A chart or an artifact counts for the tenant that requested it last,
// a pack for the one that fetched it; files found after a restart count for no tenant until then. So no tenant can make another pay for
// files that this one does not use. A nil Disk has no limit.
type Disk struct {
	charges
	// Limits are the limits of the disk. LimitOf returns how many bytes a tenant may have; it gets the name of a Repository for what is
	// fetched for one. Nil: Limits.Bytes. Both are set before the first fetch.
	Limits  Limits
	LimitOf func(tenant string) int64
	now     func() time.Time
	began   time.Time
	stores  []Store

	clearing sync.Mutex
	// cleared is when unused files of a tenant were last searched.
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

// Find counts the files that an earlier process left, for no tenant.
func (d *Disk) Find(dir string) {
	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			d.count(unowned, path)
		}
		return nil // What cannot be read cannot be counted.
	})
}

// Store is a store as seen by its disk.
type Store interface {
	// Kept returns its pieces; each is removed as a whole.
	Kept() ([]string, error)
	// Clear removes the piece that a path belongs to, if it belongs to this store and was not used for that long.
	Clear(ctx context.Context, path string, now time.Time, unused time.Duration) error
	// Tidy drops from memory what no longer exists on disk or was not used since the last call.
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

// Meter counts a download for a tenant, and ends it with ErrTooLarge when the tenant exceeds its part of the disk.
func (d *Disk) Meter(ctx context.Context, tenant string, from io.ReadCloser) io.ReadCloser {
	if d == nil || tenant == "" {
		return from
	}
	return &metered{ReadCloser: from, ctx: ctx, disk: d, tenant: tenant}
}

// Check returns an error when a tenant uses more than it may, even after unused files were removed.
func (d *Disk) Check(ctx context.Context, tenant string) error {
	for _, of := range d.tight(tenant) {
		d.empty(ctx, of)
	}
	return d.refusal(tenant)
}

// tight returns the tenants that have to give up unused files before this tenant may add more.
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

// bound returns how many bytes may count for a tenant.
func (d *Disk) bound(tenant string) int64 {
	if d.LimitOf == nil {
		return d.Limits.Bytes
	}
	return d.LimitOf(budget.NameOf(tenant))
}

// empty removes files of a tenant that were not used for an hour.
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

// refusal explains why a tenant may not add more.
func (d *Disk) refusal(tenant string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	files, bytes := d.take(tenant)
	switch {
	case bytes > d.bound(tenant):
		return failure.Because(failure.ErrTooLarge, &budget.Exceeded{Field: budget.SourceBytes}, "the sources of %s take %s on the operator's disk together, and the limit is %s: remove what is not needed in Git; unused files are deleted after an hour. "+
			"An administrator of the cluster allows more with %s", budget.Describe(tenant), failure.Size(bytes), failure.Size(d.bound(tenant)), command.OfTenant("spec.limits.sourceBytes"))
	case files >= d.Limits.Files:
		return failure.New(failure.ErrTooLarge, "the sources of %s are as many files on disk as the limit of %d: remove what is not needed in Git; unused files are deleted after an hour", budget.Describe(tenant), d.Limits.Files)
	case d.sum > d.Limits.Total && bytes > d.Limits.Total/int64(len(d.shares)), d.sum > d.Limits.Total+d.Limits.Total/6:
		return failure.New(Err, "the sources of all tenants take more disk together than the limit of %s: nothing more is fetched for %s until others need less; unused files are deleted after an hour", failure.Size(d.Limits.Total), budget.Describe(tenant))
	}
	return nil
}

// Sweep removes unused files from the stores.
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
	// got are the received bytes.
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

// Close ends the download. What is kept of it counts as a file from now on.
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
