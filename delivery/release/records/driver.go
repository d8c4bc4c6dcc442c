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

// Driver is Helm's storage for one action: the list of records comes from the index, payloads are read by name when they are needed, and a
// write is refused if someone else has written since.
type Driver struct {
	Store
	fence *fence.Fence
	ctx   context.Context
	state decide.State
	// held are the revisions as Helm knows them. Those that were not loaded have no more than the index says.
	held      map[int]*held
	Callbacks Callbacks
	// Made is the revision that the action recorded, broken the last error of storage.
	Made   *helm.Release
	Broken error
}

// Callbacks are the decisions that storage needs from the action. All may be nil.
type Callbacks struct {
	// Create stands before every new revision.
	Create func(*helm.Release) error
	// Weigh stands before a record of so many bytes is made of a revision.
	Weigh func(rel *helm.Release, bytes int) error
	// Later says that the action itself writes this revision when it has ended.
	Later func(*helm.Release) bool
	// Proven says of a deployed revision that it was seen to be good.
	Proven func(*decide.Revision) bool
}

// held is a revision, and the version of its record.
type held struct {
	*helm.Release
	version string
	loaded  bool
}

// ErrAgain ends an action that found the release otherwise than it was when it was decided on. It is no attempt.
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

// Name is that of Helm's own driver.
func (r *Driver) Name() string { return driver.SecretsDriverName }

// Load reads the payloads of revisions. errAgain says that one is no longer as the index has it.
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

// Revision returns a revision, which is loaded or has no more than its status.
func (r *Driver) Revision(number int) *helm.Release { return r.held[number].Release }

// IsLoaded is whether the payload of a revision was read.
func (r *Driver) IsLoaded(number int) bool { return r.held[number].loaded }

// VersionOf is the version of the record of a revision.
func (r *Driver) VersionOf(number int) string { return r.held[number].version }

// Revisions returns all, as revision does.
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

// List is used by no action.
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

// Create records a new revision, after which Helm begins to apply it. A revision of that number means another writer.
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

// Update records how a revision fares, unless that says nothing new or is the session's to write. What failed or was
// uninstalled stays so: Helm has whatever it took for the current revision be superseded, as if it had been good.
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

// Put writes a revision over what this action read or wrote of it.
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

// judge notes on a revision that is superseded whether a rollback may return to it.
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

// Delete is the session's own: no action of Helm deletes records here.
func (r *Driver) Delete(key string) (*helm.Release, error) {
	return nil, fmt.Errorf("record %s is not Helm's to delete", key)
}

// Drop deletes revisions, oldest first: what is left of a removal that was cut short says what it was.
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

// guard has the fence watch the record.
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
