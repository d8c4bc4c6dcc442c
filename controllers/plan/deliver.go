package plan

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/app/project"
	"github.com/kubeop/kubeop/delivery/apply"
	"github.com/kubeop/kubeop/delivery/differ"
	"github.com/kubeop/kubeop/delivery/garbage"
	"github.com/kubeop/kubeop/delivery/inventory"
	"github.com/kubeop/kubeop/delivery/policy"
	"github.com/kubeop/kubeop/delivery/render/workload"
	"github.com/kubeop/kubeop/gitops/identity"
	"github.com/kubeop/kubeop/gitops/lines"
)

// delivery is an App that the commit changes, and what it renders to.
type delivery struct {
	app  *v1alpha1.App
	at   project.Place
	made *Rendered
	// file is the path of app.yaml in files, which are those of the commit.
	file  string
	files fs.FS
	// homeless: the namespace does not exist yet. unruled: the person may not read the rules of the policies that hold there.
	homeless, unruled bool
	err               error
}

// render renders an App.
func (k *cluster) render(ctx context.Context, d *delivery) {
	d.made, d.err = k.Render(ctx, d.app, d.at)
}

// siblings knows which Apps declare which objects.
type siblings struct {
	// declared are the objects of the Apps that the commit changes. recorded are those in the inventories of the other ones, which the
	// operator leaves to them although they have another owner now.
	declared, recorded map[inventory.ObjectID]string
}

func siblingsOf(of *comparison, changed []*delivery) (*siblings, error) {
	s := &siblings{map[inventory.ObjectID]string{}, map[inventory.ObjectID]string{}}
	planned := map[identity.Ref]bool{}
	for _, d := range changed {
		ref, _ := identity.Of(d.app)
		planned[ref] = true
		for _, o := range d.made.Declared() {
			s.declared[inventory.IDOf(o)] = pathOf(d.app)
		}
	}
	for ref, o := range of.there {
		other, isApp := o.(*v1alpha1.App)
		if _, stays := of.tree.Find(ref); !isApp || !stays || planned[ref] || other.Spec.Helm != nil {
			continue
		}
		for _, e := range other.Status.Inventory.Entries {
			id, err := inventory.ParseObjectID(e.ID)
			if err != nil {
				return nil, fmt.Errorf("the inventory of app %s: %w", pathOf(other), err)
			}
			s.recorded[id] = pathOf(other)
		}
	}
	return s, nil
}

// leftTo returns what happens to an object that left an App and that another App of the same project declares; nil if none does.
func (s *siblings) leftTo(id inventory.ObjectID, d *delivery) *Change {
	if by := s.declared[id]; by != "" && by != pathOf(d.app) {
		return &Change{Action: Move, Object: nameOf(id, d.app.Namespace), Why: "app " + by + " takes it over", to: by}
	}
	if by := s.recorded[id]; by != "" {
		return &Change{Action: Keep, Object: nameOf(id, d.app.Namespace), Why: "app " + by + " declares it, too"}
	}
	return nil
}

// report returns what happens to the objects of an App.
func (k *cluster) report(ctx context.Context, d *delivery, others *siblings) App {
	out := App{App: pathOf(d.app)}
	if d.made != nil {
		out.Source = d.made.Revision
	}
	err := d.err
	if err == nil {
		switch {
		case d.made.Release != nil:
			out.Changes = k.released(ctx, d)
		default:
			out.Changes, err = k.applied(ctx, d, others)
		}
	}
	if err != nil {
		why := d.why(err)
		if d.made != nil {
			why = d.made.Mask(why)
		}
		if !k.Itself && apierrors.IsForbidden(err) {
			out.Unknown = why
			return out
		}
		out.Failed = why
	}
	out.Note = k.note(d)
	sortChanges(out.Changes)
	return out
}

// note says what limits the comparison; "" if nothing does.
func (k *cluster) note(d *delivery) string {
	var notes []string
	if !k.Itself {
		notes = append(notes, "compared without the API server: its defaults and refusals are shown to who may impersonate the project's deployer")
	}
	if d.unruled {
		notes = append(notes, "compared without the policies, which may refuse what is shown here: their rules are shown to who may read guardrails in namespace "+d.app.Namespace)
	}
	return strings.Join(notes, "; ")
}

// why returns the text of an error, with the lines of the commit's files that have what is refused.
func (d *delivery) why(err error) string {
	if !errors.As(err, new(*policy.Violation)) {
		return err.Error()
	}
	var all []string
	for _, found := range (lines.Declaration{App: d.app, File: d.file, Files: d.files}).Findings(err) {
		all = append(all, found.Place()+": "+found.Why)
	}
	return strings.Join(all, "\n")
}

// applied applies the objects in a dry run and finds what left the source.
func (k *cluster) applied(ctx context.Context, d *delivery, others *siblings) ([]Change, error) {
	rec := newRecorder(d.at.Client, k.Itself && !d.homeless)
	if d.homeless {
		rec.absent = d.app.Namespace
	}
	ignore, err := differ.ReadRules(d.app.Spec.Drift.Ignore)
	if err != nil {
		return nil, err
	}
	recorded := d.app.Status.Inventory.Entries
	applier := &apply.Applier{Live: rec.live}
	result, err := applier.Apply(ctx, apply.Set{
		Client: rec, Objects: copies(d.made.Objects), Recorded: recorded, Force: d.app.Spec.Force, TakeOwnership: d.app.Spec.TakeOwnership, Ignore: ignore, Keep: workload.KeepSecrets(d.app),
		Yields: func(id inventory.ObjectID, from string) bool {
			return others.declared[id] == pathOf(d.app) && from != d.app.Name
		},
	})
	// As in a Reconcile, nothing is deleted before everything is applied, except what has no place in the quota.
	prunes := d.app.Spec.Prunes() && (err == nil || apply.Only(err, apply.ErrQuota))
	changes, err := k.refused(d, err)
	if err != nil {
		return nil, err
	}
	stale, moves, err := moved(d, inventory.Without(recorded, result.Entries), others)
	if err != nil {
		return nil, err
	}
	changes = append(changes, moves...)
	if prunes && len(stale) > 0 {
		pruned, err := k.pruned(ctx, d, rec, stale)
		if err != nil {
			return nil, err
		}
		changes = append(changes, pruned...)
	}
	return append(changes, rec.changes(d)...), nil
}

// refused turns the errors about objects into changes. That a person may not read an object is no refusal: the operator may.
func (k *cluster) refused(d *delivery, err error) ([]Change, error) {
	var changes []Change
	for _, each := range inventory.Split(err) {
		var about *inventory.ObjectError
		if !errors.As(each, &about) || !k.Itself && apierrors.IsForbidden(each) {
			return nil, each
		}
		changes = append(changes, Change{Action: Refuse, Object: nameOf(about.ID, d.app.Namespace), Why: d.made.Mask(about.Err.Error())})
	}
	return changes, nil
}

// moved finds the objects that left the source and that other Apps declare. It returns the rest.
func moved(d *delivery, stale []v1alpha1.InventoryEntry, others *siblings) (rest []v1alpha1.InventoryEntry, moves []Change, err error) {
	for _, e := range stale {
		id, err := inventory.ParseObjectID(e.ID)
		if err != nil {
			return nil, nil, err
		}
		if left := others.leftTo(id, d); left != nil {
			moves = append(moves, *left)
			continue
		}
		rest = append(rest, e)
	}
	return rest, moves, nil
}

// pruned finds what happens to the objects that left the source.
func (k *cluster) pruned(ctx context.Context, d *delivery, rec *recorder, stale []v1alpha1.InventoryEntry) ([]Change, error) {
	removed, err := garbage.Remove(ctx, garbage.Removal{
		Client: rec, Live: rec.live, Entries: stale, Owner: d.made.Labels(), Guarded: true, // Nothing is confirmed here.
		Dependents: &garbage.Dependents{Client: d.at.Client, Namespace: d.app.Namespace},
	})
	if err != nil {
		return nil, err
	}
	var changes []Change
	for action, entries := range map[Action][]v1alpha1.InventoryEntry{Hold: removed.Held, Keep: removed.Kept} {
		why := map[Action]string{Hold: "it holds data or is protected: a person has to confirm its deletion", Keep: "it is annotated not to be pruned"}[action]
		for _, e := range entries {
			id, err := inventory.ParseObjectID(e.ID)
			if err != nil {
				return nil, err
			}
			changes = append(changes, Change{Action: action, Object: nameOf(id, d.app.Namespace), Why: why})
		}
	}
	return changes, nil
}

// changes returns what the writes change.
func (r *recorder) changes(d *delivery) []Change {
	var out []Change
	for id, s := range r.objects {
		c := Change{Object: nameOf(id, d.app.Namespace)}
		switch {
		case s.deleted && s.after != nil:
			c.Action = Recreate
		case s.deleted:
			c.Action = Delete
		case s.after == nil:
			continue
		case s.before == nil:
			c.Action = Create
		default:
			c.Action = Update
			if c.Fields = fieldsOf(s.before, s.after, d.made.Mask); len(c.Fields) == 0 {
				continue
			}
		}
		out = append(out, c)
	}
	return out
}

// released compares the next revision of a release with the deployed one.
func (k *cluster) released(ctx context.Context, d *delivery) []Change {
	before, after := byID(d.made.Release.Before), byID(d.made.Release.After)
	changes := differences(before, after, d.app.Namespace, d.made.Mask)
	for i := range changes {
		c := &changes[i]
		switch o := before[c.id]; {
		case after[c.id] != nil:
			if err := k.try(ctx, d, o, after[c.id]); err != nil {
				*c = Change{Action: Refuse, Object: c.Object, Why: d.made.Mask(err.Error())}
			}
		case o.GetAnnotations()["helm.sh/resource-policy"] == "keep":
			c.Action, c.Why = Keep, "the chart keeps it"
		}
	}
	for _, hook := range d.made.Release.Hooks {
		changes = append(changes, Change{Action: Run, Object: nameOf(inventory.IDOf(hook), d.app.Namespace), Why: "hook " + hook.GetAnnotations()["helm.sh/hook"]})
	}
	return changes
}

// differences compares two sets of objects.
func differences(before, after map[inventory.ObjectID]*unstructured.Unstructured, namespace string, mask func(string) string) []Change {
	var changes []Change
	for id, o := range after {
		c := Change{Action: Create, Object: nameOf(id, namespace), id: id}
		if was := before[id]; was != nil {
			c.Action = Update
			if c.Fields = fieldsOf(was, o, mask); len(c.Fields) == 0 {
				continue
			}
		}
		changes = append(changes, c)
	}
	for id := range before {
		if after[id] == nil {
			changes = append(changes, Change{Action: Delete, Object: nameOf(id, namespace), id: id})
		}
	}
	sortChanges(changes)
	return changes
}

// try writes an object of a release in a dry run, with the rights of the deployer.
func (k *cluster) try(ctx context.Context, d *delivery, before, after *unstructured.Unstructured) error {
	if !k.Itself || d.homeless {
		return nil
	}
	o := after.DeepCopy()
	if before == nil {
		return d.at.Client.Create(ctx, o, client.DryRunAll)
	}
	return client.IgnoreNotFound(d.at.Client.Patch(ctx, o, client.MergeFrom(before), client.DryRunAll))
}

func byID(objects []*unstructured.Unstructured) map[inventory.ObjectID]*unstructured.Unstructured {
	out := map[inventory.ObjectID]*unstructured.Unstructured{}
	for _, o := range objects {
		out[inventory.IDOf(o)] = o
	}
	return out
}

func copies(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	out := make([]*unstructured.Unstructured, len(objects))
	for i, o := range objects {
		out[i] = &unstructured.Unstructured{Object: maps.Clone(o.DeepCopy().Object)}
	}
	return out
}
