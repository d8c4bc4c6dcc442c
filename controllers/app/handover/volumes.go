package handover

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/app/subject"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/inventory"
	"github.com/kubeop/kubeop/delivery/kube"
	"github.com/kubeop/kubeop/delivery/render/workload"
)

var claimKind = corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim")

const (
	// firstLook is when an App that was never applied checks again: the App that it was renamed from may still be in deletion.
	firstLook = 10 * time.Second
	// declaredLag is how long after its own declaration an App may see the removal of another one in the same commit.
	declaredLag = 10 * time.Second
	// justMade is how long a new claim may be the result of a rename. If another App is removed later, its claims are unrelated.
	justMade = 10 * time.Minute
)

// Volumes finds the PersistentVolumeClaims that an Image App takes over, and the claims that a deleted App left behind.
type Volumes struct {
	Client    client.Reader
	Watch     *kube.Watch
	Transfers *Transfers

	mounts subject.Memory[mounts]
}

// mounts are claims of claimName that exist, for the generation of the App in which they were checked.
type mounts struct {
	seen       map[string]bool
	generation int64
}

// Empty are volumes that start empty although there is an older claim for them.
type Empty struct {
	// Why says which volumes these are, and where the data is; "" for none.
	Why string
	// Claims are the names of their claims beside which an App that is gone left an older one, for status.startedEmpty.
	Claims []string
}

// CarryOver waits until the claims that the volumes of an Image App name exist and belong to no other App. It returns which volumes start
// empty although there is an older claim for them. Recorded are the entries of the App's inventory.
func (t *Volumes) CarryOver(ctx context.Context, s *subject.Subject, recorded []v1alpha1.InventoryEntry) (empty Empty, err error) {
	if s.App.Spec.Image == nil || len(s.App.Spec.Image.Volumes) == 0 {
		return Empty{}, nil
	}
	if err := t.mounted(ctx, s); err != nil {
		return Empty{}, err
	}
	if s.App.Status.LastAppliedRevision == "" {
		s.LookAgain(firstLook)
	}
	if s.App.Spec.MovedFrom == nil {
		return t.leftBehind(ctx, s)
	}
	if hasTakenOver(s.App, recorded) {
		return Empty{}, nil // A claim that was taken over once belongs to this App.
	}
	empty.Why, err = t.movedFrom(ctx, s)
	return empty, err
}

// Forget drops the record of an App.
func (t *Volumes) Forget(app *v1alpha1.App) { t.mounts.Forget(app) }

// mounted checks that the mounted claims exist which the App does not create. No watch has claims without labels, such as those of a
// StatefulSet, so each of these is read once per generation.
func (t *Volumes) mounted(ctx context.Context, s *subject.Subject) error {
	m := t.mounts.Get(s.App)
	if m.generation != s.App.Generation {
		m.seen, m.generation = map[string]bool{}, s.App.Generation
	}
	for _, v := range s.App.Spec.Image.Volumes {
		if v.ClaimName == "" || m.seen[v.ClaimName] {
			continue
		}
		key, claim := client.ObjectKey{Namespace: s.App.Namespace, Name: v.ClaimName}, &metav1.PartialObjectMetadata{}
		if shown, _, err := t.Watch.Live(ctx, claimKind, key); shown != nil || err != nil {
			if err != nil {
				return err
			}
			continue
		}
		claim.SetGroupVersionKind(claimKind)
		err := s.Client.Get(ctx, key, claim)
		if apierrors.IsNotFound(err) {
			return step.FailAfter(v1alpha1.ClaimMissingReason, 15*time.Second, fmt.Errorf(
				"spec.image.volumes[%s].claimName: there is no PersistentVolumeClaim %s in namespace %s: name one of those that kubectl get pvc -n %s lists, "+
					"or set size instead to have one made", v.Name, v.ClaimName, s.App.Namespace, s.App.Namespace))
		}
		if err != nil {
			return fmt.Errorf("looking for claim %s: %w", v.ClaimName, err)
		}
		m.seen[v.ClaimName] = true
	}
	return nil
}

// movedFrom waits until the former App, whose claims this App takes over, is gone.
func (t *Volumes) movedFrom(ctx context.Context, s *subject.Subject) (empty string, err error) {
	from := s.App.Spec.MovedFrom.App
	former := &v1alpha1.App{}
	err = t.Client.Get(ctx, client.ObjectKey{Namespace: s.App.Namespace, Name: from}, former)
	switch {
	case apierrors.IsNotFound(err):
		return t.named(s)
	case err != nil:
		return "", fmt.Errorf("reading app %s: %w", from, err)
	case former.DeletionTimestamp != nil:
		return "", step.Wait(v1alpha1.ProgressingReason, 2*time.Second, "waits until app %s is gone, because this app takes over its claims", from)
	case t.Transfers.Syncing(ctx, s) != "" || s.Now().Sub(t.Transfers.declaredAt(s)) < declaredLag:
		return "", step.Wait(v1alpha1.ProgressingReason, 2*time.Second, "waits until the commit is declared, which may remove app %s", from)
	}
	return "", step.FailAfter(v1alpha1.StillDeclaredReason, 15*time.Second, fmt.Errorf(
		"spec.movedFrom: app %s is still declared, and has its claims: remove its folder, or movedFrom here", from))
}

// hasTakenOver reports whether every claim of the App's volumes was applied as this App's.
func hasTakenOver(app *v1alpha1.App, recorded []v1alpha1.InventoryEntry) bool {
	applied := map[string]bool{}
	for _, e := range recorded {
		applied[e.ID] = e.Digest != ""
	}
	return !slices.ContainsFunc(app.Spec.Image.Volumes, func(v v1alpha1.ImageVolume) bool {
		id := inventory.ObjectID{Namespace: app.Namespace, Name: workload.ClaimOf(app, v), Kind: claimKind.Kind}
		return v.Size != nil && !applied[id.String()]
	})
}

// named stops the step if the claims of the former App are named after yet another App, from which it had taken them over itself.
func (t *Volumes) named(s *subject.Subject) (empty string, err error) {
	from := s.App.Spec.MovedFrom.App
	all, err := t.Watch.InNamespace(claimKind, s.App.Namespace)
	if err != nil {
		return "", err
	}
	var lacks []string
	for _, v := range s.App.Spec.Image.Volumes {
		name := workload.ClaimOf(s.App, v)
		if v.Size == nil || slices.ContainsFunc(all, func(c metav1.Object) bool { return c.GetName() == name }) {
			continue
		}
		lacks = append(lacks, name)
		for _, c := range all {
			if named, ok := strings.CutSuffix(c.GetName(), "-"+v.Name); ok && c.GetLabels()[v1alpha1.AppLabel] == from {
				return "", step.Stop(v1alpha1.RenderFailedReason, fmt.Errorf(
					"spec.movedFrom: the claims of app %s are named after app %s, from which it was moved itself: write movedFrom: {app: %s}", from, named, named))
			}
		}
	}
	if len(lacks) == 0 {
		return "", nil
	}
	return fmt.Sprintf("movedFrom: app %s left no claim %s; a new, empty one is made", from, strings.Join(lacks, ", ")), nil
}

// leftBehind finds claims of deleted Apps that have the names of this App's volumes and are older than its own claims.
func (t *Volumes) leftBehind(ctx context.Context, s *subject.Subject) (empty Empty, err error) {
	all, err := t.Watch.InNamespace(claimKind, s.App.Namespace)
	if err != nil {
		return Empty{}, err
	}
	var found []string
	for _, v := range s.App.Spec.Image.Volumes {
		name := workload.ClaimOf(s.App, v)
		own := claimNamed(all, name)
		if v.Size == nil || !mayHaveMoved(s, own, name) {
			continue
		}
		here, err := t.leftHere(ctx, s, all, v)
		if err != nil {
			return Empty{}, err
		}
		elsewhere, err := t.leftElsewhere(ctx, s, own, name)
		if err != nil {
			return Empty{}, err
		}
		if found = slices.Concat(found, here, elsewhere); len(here)+len(elsewhere) > 0 {
			empty.Claims = append(empty.Claims, name)
		}
	}
	empty.Why = strings.Join(found, "\n")
	return empty, nil
}

// mayHaveMoved reports whether the App's own claim is new or does not exist, or was reported before as a new one beside an older one. A status that was
// written before startedEmpty existed has only the condition.
func mayHaveMoved(s *subject.Subject, own metav1.Object, name string) bool {
	reported := s.App.Status.StartedEmpty
	return own == nil || s.Now().Sub(own.GetCreationTimestamp().Time) < justMade || slices.Contains(reported, name) ||
		reported == nil && conditions.IsTrue(s.App, v1alpha1.StartedEmptyCondition)
}

// leftHere finds claims for a volume that deleted Apps left in the namespace.
func (t *Volumes) leftHere(ctx context.Context, s *subject.Subject, all []metav1.Object, v v1alpha1.ImageVolume) ([]string, error) {
	name := workload.ClaimOf(s.App, v)
	own := claimNamed(all, name)
	var found []string
	for _, c := range all {
		left, err := t.isLeft(ctx, s, c, v)
		if err != nil {
			return nil, err
		}
		if left && !newer(c, own) {
			found = append(found, fmt.Sprintf("volume %s starts empty, in claim %s; claim %s of app %s, which is gone, holds older data: to go on with that write below spec: "+
				"movedFrom: {app: %s}", v.Name, name, c.GetName(), c.GetLabels()[v1alpha1.AppLabel], strings.TrimSuffix(c.GetName(), "-"+v.Name)))
		}
	}
	return found, nil
}

// isLeft reports whether a claim has the name of that volume and belongs to a deleted App; or to this App, which took it over with
// movedFrom and has removed movedFrom since.
func (t *Volumes) isLeft(ctx context.Context, s *subject.Subject, c metav1.Object, v v1alpha1.ImageVolume) (bool, error) {
	owner := c.GetLabels()[v1alpha1.AppLabel]
	mounted := slices.ContainsFunc(s.App.Spec.Image.Volumes, func(other v1alpha1.ImageVolume) bool { return workload.ClaimOf(s.App, other) == c.GetName() })
	switch {
	case owner == "" || mounted || !strings.HasSuffix(c.GetName(), "-"+v.Name):
		return false, nil
	case owner == s.App.Name:
		return true, nil
	}
	return t.appIsGone(ctx, s.App.Namespace, owner)
}

// leftElsewhere finds a claim of the same name that an App of the same name left in another project: the App was moved.
func (t *Volumes) leftElsewhere(ctx context.Context, s *subject.Subject, own metav1.Object, name string) ([]string, error) {
	projects := &v1alpha1.ProjectList{}
	if err := t.Client.List(ctx, projects, client.InNamespace(v1alpha1.HomeNamespace(s.Owner.Tenant))); err != nil {
		return nil, fmt.Errorf("listing the projects of %s: %w", s.Owner.Tenant, err)
	}
	var found []string
	for i := range projects.Items {
		there := v1alpha1.ProjectNamespace(s.Owner.Tenant, projects.Items[i].Name)
		if there == s.App.Namespace {
			continue
		}
		left, _, err := t.Watch.Live(ctx, claimKind, client.ObjectKey{Namespace: there, Name: name})
		if err != nil {
			return nil, err
		}
		if left == nil || left.GetLabels()[v1alpha1.AppLabel] != s.App.Name || newer(left, own) {
			continue
		}
		gone, err := t.appIsGone(ctx, there, s.App.Name)
		if err != nil {
			return nil, err
		}
		if gone {
			found = append(found, fmt.Sprintf("claim %s starts empty here; the one of this name in namespace %s, of an app %s that is gone there, holds older data. Data does not move "+
				"between projects: bring the app back there in Git, or ask an administrator of the cluster to hand its volume over as docs/data.md says", name, there, s.App.Name))
		}
	}
	return found, nil
}

func claimNamed(all []metav1.Object, name string) metav1.Object {
	for _, c := range all {
		if c.GetName() == name {
			return c
		}
	}
	return nil
}

// newer reports whether claim a was created after claim b, which may be nil.
func newer(a, b metav1.Object) bool {
	if b == nil {
		return false
	}
	mine, others := a.GetCreationTimestamp(), b.GetCreationTimestamp()
	return others.Before(&mine)
}

func (t *Volumes) appIsGone(ctx context.Context, namespace, name string) (bool, error) {
	app := &v1alpha1.App{}
	err := t.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, app)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading app %s: %w", name, err)
	}
	return app.DeletionTimestamp != nil, nil
}
