package records

import (
	"context"
	"errors"
	"fmt"

	helm "helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage/driver"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/delivery/release/decide"
	"github.com/kubeop/kubeop/delivery/release/fence"
)

// Driver is Helm's storage for one action. It lists records from the index, reads payloads by name when they are needed, and refuses a
// write if someone else has written the record since.
type Driver struct {
	Store
	fence *fence.Fence
	ctx   context.Context
	state decide.State
	// held are the revisions as Helm knows them. Revisions that were not loaded have only what the index has.
	held      map[int]*held
	Callbacks Callbacks
	// Made is the revision that the action recorded. broken is the last error of storage.
	Made   *helm.Release
	Broken error
}

// Callbacks are the decisions that the storage needs from the action. All may be nil.
type Callbacks struct {
	// Create is called before a new revision is recorded.
	Create func(*helm.Release) error
	// Weigh is called before a revision is recorded, with the size of its record in bytes.
	Weigh func(rel *helm.Release, bytes int) error
	// Later reports whether the action itself writes this revision when it ends.
	Later func(*helm.Release) bool
	// Proven reports whether a deployed revision was seen healthy.
	Proven func(*decide.Revision) bool
}

// held is a revision with the version of its record.
type held struct {
	*helm.Release
	version string
	loaded  bool
}

// ErrAgain ends an action because the release has changed since the decision. It does not count as an attempt.
var ErrAgain = errors.New("decide again")

var _ driver.Driver = (*Driver)(nil)

// NewDriver returns the storage of an action on a release with a known history.
func NewDriver(ctx context.Context, s Store, f *fence.Fence, known decide.State) *Driver {
	r := &Driver{Store: s, fence: f, ctx: ctx, state: known, held: map[int]*held{}}
	for i := range known {
		v := &known[i]
		r.held[v.Number] = &held{version: v.Version, Release: &helm.Release{
			Name: s.release.Name, Namespace: s.release.Namespace, Version: v.Number,
			Info: &helm.Info{Status: v.Status}, Labels: map[string]string{},
		}}
	}
	return r
}

// Name returns the name of Helm's own driver for Secrets.
func (r *Driver) Name() string { return driver.SecretsDriverName }

// Load reads the payloads of revisions. The error is ErrAgain if one is not as in the index any more.
func (r *Driver) Load(numbers ...int) error {
	for _, n := range numbers {
		h := r.held[n]
		if h == nil || h.loaded {
			continue
		}
		rel, meta, err := r.Read(r.ctx, n)
		if apierrors.IsNotFound(err) {
			r.memory.removed(decide.KeyOf(r.release.Name, n), h.version, r.now())
			return ErrAgain
		}
		if err != nil {
			return r.note(err)
		}
		if meta.ResourceVersion != h.version {
			r.memory.wrote(meta, r.now())
			return ErrAgain
		}
		*h.Release, h.loaded = *rel, true
	}
	return nil
}

// Revision returns a revision. If it is not loaded, it has only a status.
func (r *Driver) Revision(number int) *helm.Release { return r.held[number].Release }

// IsLoaded reports whether the payload of a revision was read.
func (r *Driver) IsLoaded(number int) bool { return r.held[number].loaded }

// VersionOf returns the version of the record of a revision.
func (r *Driver) VersionOf(number int) string { return r.held[number].version }

// Revisions returns all revisions, like Revision.
func (r *Driver) Revisions() []*helm.Release {
	var out []*helm.Release
	for _, h := range r.held {
		out = append(out, h.Release)
	}
	return out
}

// Get returns the payload of a revision.
func (r *Driver) Get(key string) (*helm.Release, error) {
	for n, h := range r.held {
		if decide.KeyOf(r.release.Name, n) == key {
			return h.Release, r.Load(n)
		}
	}
	return nil, driver.ErrReleaseNotFound
}

// List is not supported, because no action uses it.
func (r *Driver) List(func(*helm.Release) bool) ([]*helm.Release, error) {
	return nil, errors.New("an action lists no releases")
}

// Query answers from the index.
func (r *Driver) Query(labels map[string]string) ([]*helm.Release, error) {
	var out []*helm.Release
	for _, v := range r.state {
		h := r.held[v.Number]
		if status := labels["status"]; h != nil && (status == "" || h.Info.Status.String() == status) {
			out = append(out, h.Release)
		}
	}
	if len(out) == 0 {
		return nil, driver.ErrReleaseNotFound
	}
	return out, nil
}

// Create records a new revision; after that, Helm begins to apply it. If a revision with that number exists, there is another writer.
func (r *Driver) Create(_ string, rel *helm.Release) error {
	if r.Callbacks.Create != nil {
		if err := r.Callbacks.Create(rel); err != nil {
			return err
		}
	}
	meta, err := r.insert(r.ctx, rel, r.Callbacks.Weigh)
	if err != nil {
		return r.note(err)
	}
	r.Made = rel
	r.held[rel.Version] = &held{Release: rel, version: meta.ResourceVersion, loaded: true}
	r.guard(meta)
	return nil
}

// Update records the status of a revision, unless the status is unchanged or the action writes it later. A failed or uninstalled revision
// keeps its status: Helm marks the revision that it takes for the current one as superseded, as if it had succeeded.
func (r *Driver) Update(_ string, rel *helm.Release) error {
	if r.Callbacks.Later != nil && r.Callbacks.Later(rel) {
		return nil
	}
	was := r.state.Number(rel.Version)
	if rel.Info.Status == helm.StatusSuperseded && was != nil && was.Status != helm.StatusDeployed {
		return nil
	}
	return r.Put(rel)
}

// Put overwrites a revision that this action read or wrote.
func (r *Driver) Put(rel *helm.Release) error {
	h := r.held[rel.Version]
	if h == nil {
		return driver.ErrReleaseNotFound
	}
	if !h.loaded {
		status := h.Info.Status
		if err := r.Load(rel.Version); err != nil {
			return r.note(err)
		}
		h.Info.Status = status
	}
	if rel != h.Release {
		*h.Release = *rel
	}
	if h.Info.Status == helm.StatusSuperseded {
		r.judge(h.Release)
	}
	meta, err := r.Replace(r.ctx, h.Release, h.version)
	if err != nil {
		return r.note(err)
	}
	h.version = meta.ResourceVersion
	if r.fence.Watches(meta.Name) {
		r.guard(meta)
	}
	return nil
}

// judge records on a superseded revision whether a rollback may return to it.
func (r *Driver) judge(rel *helm.Release) {
	was := r.state.Number(rel.Version)
	if was == nil || !was.Ours {
		return
	}
	rel.Labels[decide.ProvenLabel] = decide.No
	if r.Callbacks.Proven(was) {
		rel.Labels[decide.ProvenLabel] = decide.Yes
	}
}

// Delete is not supported: Helm's actions must not delete records, the action does that with Drop.
func (r *Driver) Delete(key string) (*helm.Release, error) {
	return nil, fmt.Errorf("record %s is not Helm's to delete", key)
}

// Drop deletes revisions, the oldest first, so that after an interrupted removal the remaining ones still say what was removed.
func (r *Driver) Drop(ctx context.Context, revisions decide.State) error {
	for _, v := range revisions {
		version := v.Version
		if h := r.held[v.Number]; h != nil {
			version = h.version
		}
		if err := r.remove(ctx, v.Number, version); err != nil {
			return r.note(fmt.Errorf("removing revision %d from the history: %w", v.Number, err))
		}
		delete(r.held, v.Number)
	}
	return nil
}

// guard makes the fence check the record.
func (r *Driver) guard(meta *metav1.ObjectMeta) {
	r.fence.Watch(meta.Name, meta.ResourceVersion)
}

func (r *Driver) note(err error) error {
	r.Broken = err
	if errors.Is(err, fence.ErrFenced) {
		r.fence.Shut()
	}
	return err
}
