package release

import (
	"context"
	"errors"
	"fmt"

	helm "helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage/driver"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/delivery/release/decide"
	"github.com/kubeop/kubeop/delivery/release/fault"
	"github.com/kubeop/kubeop/delivery/release/fence"
)

// records is Helm's storage as one action uses it: what there is comes from the index, payloads are read by name when they
// are needed, and each write is refused when somebody else wrote since.
type records struct {
	store
	fence *fence.Fence
	ctx   context.Context
	state decide.State
	// held are the revisions as Helm knows them. Those that were not loaded have no more than the index says.
	held map[int]*held
	// create stands before every new revision.
	create func(*helm.Release) error
	// weigh stands before a record of so many bytes is made of a revision.
	weigh func(rel *helm.Release, bytes int) error
	// later says that the session itself writes this revision when the action has ended.
	later func(*helm.Release) bool
	// proven says of a deployed revision that it was seen to be good.
	proven func(*decide.Revision) bool
	// made is the revision that the action recorded, broken the last error of storage.
	made   *helm.Release
	broken error
}

type held struct {
	*helm.Release
	version string
	loaded  bool
}

var _ driver.Driver = (*records)(nil)

func newRecords(ctx context.Context, s store, f *fence.Fence, known decide.State) *records {
	r := &records{store: s, fence: f, ctx: ctx, state: known, held: map[int]*held{}}
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
func (r *records) Name() string { return driver.SecretsDriverName }

// load reads the payloads of revisions. errAgain says that one is no longer as the index has it.
func (r *records) load(numbers ...int) error {
	for _, n := range numbers {
		h := r.held[n]
		if h == nil || h.loaded {
			continue
		}
		rel, meta, err := r.read(r.ctx, n)
		if apierrors.IsNotFound(err) {
			r.memory.removed(decide.KeyOf(r.release.Name, n), h.version, r.now())
			return errAgain
		}
		if err != nil {
			return r.note(err)
		}
		if meta.ResourceVersion != h.version {
			r.memory.wrote(meta, r.now())
			return errAgain
		}
		*h.Release, h.loaded = *rel, true
	}
	return nil
}

// Get returns the payload of a revision.
func (r *records) Get(key string) (*helm.Release, error) {
	for n, h := range r.held {
		if decide.KeyOf(r.release.Name, n) == key {
			return h.Release, r.load(n)
		}
	}
	return nil, driver.ErrReleaseNotFound
}

// List is asked for by no action.
func (r *records) List(func(*helm.Release) bool) ([]*helm.Release, error) {
	return nil, errors.New("an action lists no releases")
}

// Query answers from the index.
func (r *records) Query(labels map[string]string) ([]*helm.Release, error) {
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
func (r *records) Create(_ string, rel *helm.Release) error {
	if r.create != nil {
		if err := r.create(rel); err != nil {
			return err
		}
	}
	meta, err := r.insert(r.ctx, rel, r.weigh)
	if err != nil {
		return r.note(err)
	}
	r.made = rel
	r.held[rel.Version] = &held{Release: rel, version: meta.ResourceVersion, loaded: true}
	r.guard(meta)
	return nil
}

// Update records how a revision fares, unless that says nothing new or is the session's to write. What failed or was
// uninstalled stays so: Helm has whatever it took for the current revision be superseded, as if it had been good.
func (r *records) Update(_ string, rel *helm.Release) error {
	if r.later != nil && r.later(rel) {
		return nil
	}
	was := r.state.Number(rel.Version)
	if rel.Info.Status == helm.StatusSuperseded && was != nil && was.Status != helm.StatusDeployed {
		return nil
	}
	return r.put(rel)
}

// put writes a revision over what this action read or wrote of it.
func (r *records) put(rel *helm.Release) error {
	h := r.held[rel.Version]
	if h == nil {
		return driver.ErrReleaseNotFound
	}
	if !h.loaded {
		status := h.Info.Status
		if err := r.load(rel.Version); err != nil {
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
	meta, err := r.replace(r.ctx, h.Release, h.version)
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
func (r *records) judge(rel *helm.Release) {
	was := r.state.Number(rel.Version)
	if was == nil || !was.Ours {
		return
	}
	rel.Labels[decide.ProvenLabel] = decide.No
	if r.proven(was) {
		rel.Labels[decide.ProvenLabel] = decide.Yes
	}
}

// Delete is the session's own: no action of Helm deletes records here.
func (r *records) Delete(key string) (*helm.Release, error) {
	return nil, fmt.Errorf("record %s is not Helm's to delete", key)
}

// drop deletes revisions, oldest first: what is left of a removal that was cut short says what it was.
func (r *records) drop(ctx context.Context, revisions decide.State) error {
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
func (r *records) guard(meta *metav1.ObjectMeta) {
	r.fence.Watch(meta.Name, meta.ResourceVersion)
}

func (r *records) note(err error) error {
	r.broken = err
	if errors.Is(err, fault.ErrFenced) {
		r.fence.Shut()
	}
	return err
}
