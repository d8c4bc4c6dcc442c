package app

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
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/inventory"
	"github.com/kubeop/kubeop/delivery/render/workload"
)

var claimKind = corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim")

// firstLooks is when an app that was never applied looks again: the app that it was renamed from may still be on its way out.
const firstLooks = 10 * time.Second

// carryOver waits until the claims that the volumes of an Image app name are there and nobody else's, and finds volumes that
// start empty though a claim for them is left.
func (r *Reconciler) carryOver(ctx context.Context, s *scope) error {
	if s.app.Spec.Image == nil || len(s.app.Spec.Image.Volumes) == 0 {
		return nil
	}
	if err := r.mounted(ctx, s); err != nil {
		return err
	}
	if s.app.Status.LastAppliedRevision == "" {
		s.soon(firstLooks)
	}
	if s.app.Spec.MovedFrom == nil {
		return r.leftBehind(ctx, s)
	}
	return r.movedFrom(ctx, s)
}

// mounted checks that the claims which are mounted and not made exist. One that carries no label, such as a StatefulSet's, no
// watch shows: it is asked for once in a generation.
func (r *Reconciler) mounted(ctx context.Context, s *scope) error {
	m := s.memory
	if m.mounts == nil || m.mountsFor != s.app.Generation {
		m.mounts, m.mountsFor = map[string]bool{}, s.app.Generation
	}
	for _, v := range s.app.Spec.Image.Volumes {
		if v.ClaimName == "" || m.mounts[v.ClaimName] {
			continue
		}
		key, claim := client.ObjectKey{Namespace: s.app.Namespace, Name: v.ClaimName}, &metav1.PartialObjectMetadata{}
		if shown, _, err := r.Watch.Live(ctx, claimKind, key); shown != nil || err != nil {
			if err != nil {
				return err
			}
			continue
		}
		claim.SetGroupVersionKind(claimKind)
		err := s.client.Get(ctx, key, claim)
		if apierrors.IsNotFound(err) {
			return step.FailAfter(v1alpha1.ClaimMissingReason, 15*time.Second, fmt.Errorf(
				"spec.image.volumes[%s].claimName: there is no PersistentVolumeClaim %s in namespace %s: name one of those that kubectl get pvc -n %s lists, "+
					"or set size instead to have one made", v.Name, v.ClaimName, s.app.Namespace, s.app.Namespace))
		}
		if err != nil {
			return fmt.Errorf("looking for claim %s: %w", v.ClaimName, err)
		}
		m.mounts[v.ClaimName] = true
	}
	return nil
}

// carriesOver reports whether an object, whose label names an app that is gone, is a claim that this app goes on with: as movedFrom
// says, or because the claim is named after this one, from which that one had it. So a rename can be reverted. What is named
// after the app that is gone is its own, be it that this app's name begins alike.
func (s *scope) carriesOver(id inventory.ObjectID, gone string) bool {
	if s.app.Spec.Image == nil || id.Group != "" || id.Kind != claimKind.Kind {
		return false
	}
	if s.app.Spec.MovedFrom == nil && strings.HasPrefix(id.Name, gone+"-") {
		return false
	}
	return slices.ContainsFunc(s.app.Spec.Image.Volumes, func(v v1alpha1.ImageVolume) bool {
		return v.Size != nil && workload.ClaimOf(s.app, v) == id.Name
	})
}

// movedFrom waits until the app is gone whose claims this one goes on with. What was taken over once is this app's.
func (r *Reconciler) movedFrom(ctx context.Context, s *scope) error {
	if s.hasTakenOver() {
		return nil
	}
	from := s.app.Spec.MovedFrom.App
	former := &v1alpha1.App{}
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: s.app.Namespace, Name: from}, former)
	switch {
	case apierrors.IsNotFound(err):
		return r.named(s)
	case err != nil:
		return fmt.Errorf("reading app %s: %w", from, err)
	case former.DeletionTimestamp != nil:
		return step.Wait(v1alpha1.ProgressingReason, 2*time.Second, "waits until app %s is gone, whose claims it goes on with", from)
	case r.syncing(ctx, s) != "" || r.Clock.Now().Sub(s.memory.declaredAt) < lag:
		return step.Wait(v1alpha1.ProgressingReason, 2*time.Second, "waits until the commit is declared, which may remove app %s", from)
	}
	return step.FailAfter(v1alpha1.StillDeclaredReason, 15*time.Second, fmt.Errorf(
		"spec.movedFrom: app %s is still declared, and has its claims: remove its folder, or movedFrom here", from))
}

// hasTakenOver reports whether every claim of the app's volumes was applied as this app's.
func (s *scope) hasTakenOver() bool {
	applied := map[string]bool{}
	for _, e := range s.inventory.Entries {
		applied[e.ID] = e.Digest != ""
	}
	return !slices.ContainsFunc(s.app.Spec.Image.Volumes, func(v v1alpha1.ImageVolume) bool {
		id := inventory.ObjectID{Namespace: s.app.Namespace, Name: workload.ClaimOf(s.app, v), Kind: claimKind.Kind}
		return v.Size != nil && !applied[id.String()]
	})
}

// named stops where the claims of the former app are named after another, which it went on with itself.
func (r *Reconciler) named(s *scope) error {
	from := s.app.Spec.MovedFrom.App
	all, err := r.Watch.InNamespace(claimKind, s.app.Namespace)
	if err != nil {
		return err
	}
	var lacks []string
	for _, v := range s.app.Spec.Image.Volumes {
		name := workload.ClaimOf(s.app, v)
		if v.Size == nil || slices.ContainsFunc(all, func(c metav1.Object) bool { return c.GetName() == name }) {
			continue
		}
		lacks = append(lacks, name)
		for _, c := range all {
			if named, ok := strings.CutSuffix(c.GetName(), "-"+v.Name); ok && c.GetLabels()[v1alpha1.AppLabel] == from {
				return step.Stop(v1alpha1.RenderFailedReason, fmt.Errorf(
					"spec.movedFrom: the claims of app %s are named after app %s, from which it was moved itself: write movedFrom: {app: %s}", from, named, named))
			}
		}
	}
	if len(lacks) > 0 {
		s.data.empty = fmt.Sprintf("movedFrom: app %s left no claim %s; a new, empty one is made", from, strings.Join(lacks, ", "))
	}
	return nil
}

// leftBehind finds claims of apps that are gone which have the names of this app's volumes, and are older than its own.
func (r *Reconciler) leftBehind(ctx context.Context, s *scope) error {
	all, err := r.Watch.InNamespace(claimKind, s.app.Namespace)
	if err != nil {
		return err
	}
	var told []string
	for _, v := range s.app.Spec.Image.Volumes {
		own := claimNamed(all, workload.ClaimOf(s.app, v))
		if v.Size == nil || !r.mayHaveMoved(s, own) {
			continue
		}
		for _, c := range all {
			left, err := r.isLeft(ctx, s, c, v)
			if err != nil {
				return err
			}
			if left && !newer(c, own) {
				told = append(told, fmt.Sprintf("volume %s starts empty, in claim %s; claim %s of app %s, which is gone, holds older data: to go on with that write below spec: "+
					"movedFrom: {app: %s}", v.Name, workload.ClaimOf(s.app, v), c.GetName(), c.GetLabels()[v1alpha1.AppLabel], strings.TrimSuffix(c.GetName(), "-"+v.Name)))
			}
		}
		elsewhere, err := r.leftElsewhere(ctx, s, own, workload.ClaimOf(s.app, v))
		if err != nil {
			return err
		}
		told = append(told, elsewhere...)
	}
	s.data.empty = strings.Join(told, "\n")
	return nil
}

// justMade is how long a new claim may be one of a rename. Claims of other apps that go later have nothing to do with it.
const justMade = 10 * time.Minute

// mayHaveMoved reports whether the app's own claim is new, or was found to be a new one in the place of another.
func (r *Reconciler) mayHaveMoved(s *scope, own metav1.Object) bool {
	return own == nil || r.Clock.Now().Sub(own.GetCreationTimestamp().Time) < justMade || conditions.IsTrue(s.app, v1alpha1.StartedEmptyCondition)
}

// isLeft reports whether a claim is of a volume of that name, and of an app that is gone; or of this one when it was moved from
// another, and no longer says so.
func (r *Reconciler) isLeft(ctx context.Context, s *scope, c metav1.Object, v v1alpha1.ImageVolume) (bool, error) {
	owner := c.GetLabels()[v1alpha1.AppLabel]
	mounted := slices.ContainsFunc(s.app.Spec.Image.Volumes, func(other v1alpha1.ImageVolume) bool { return workload.ClaimOf(s.app, other) == c.GetName() })
	switch {
	case owner == "" || mounted || !strings.HasSuffix(c.GetName(), "-"+v.Name):
		return false, nil
	case owner == s.app.Name:
		return true, nil
	}
	return r.appIsGone(ctx, s.app.Namespace, owner)
}

// leftElsewhere finds a claim of the same name that an app of the same name left in another project: the app was moved.
func (r *Reconciler) leftElsewhere(ctx context.Context, s *scope, own metav1.Object, name string) ([]string, error) {
	projects := &v1alpha1.ProjectList{}
	if err := r.Client.List(ctx, projects, client.InNamespace(v1alpha1.HomeNamespace(s.owner.Tenant))); err != nil {
		return nil, fmt.Errorf("listing the projects of %s: %w", s.owner.Tenant, err)
	}
	var told []string
	for i := range projects.Items {
		there := v1alpha1.ProjectNamespace(s.owner.Tenant, projects.Items[i].Name)
		if there == s.app.Namespace {
			continue
		}
		left, _, err := r.Watch.Live(ctx, claimKind, client.ObjectKey{Namespace: there, Name: name})
		if err != nil {
			return nil, err
		}
		if left == nil || left.GetLabels()[v1alpha1.AppLabel] != s.app.Name || newer(left, own) {
			continue
		}
		gone, err := r.appIsGone(ctx, there, s.app.Name)
		if err != nil {
			return nil, err
		}
		if gone {
			told = append(told, fmt.Sprintf("claim %s starts empty here; the one of this name in namespace %s, of an app %s that is gone there, holds older data. Data does not move "+
				"between projects: bring the app back there, or hand its volume over as docs/data.md says", name, there, s.app.Name))
		}
	}
	return told, nil
}

func claimNamed(all []metav1.Object, name string) metav1.Object {
	for _, c := range all {
		if c.GetName() == name {
			return c
		}
	}
	return nil
}

// newer reports whether a claim was made after another that is there.
func newer(a, b metav1.Object) bool {
	if b == nil {
		return false
	}
	mine, others := a.GetCreationTimestamp(), b.GetCreationTimestamp()
	return others.Before(&mine)
}

func (r *Reconciler) appIsGone(ctx context.Context, namespace, name string) (bool, error) {
	app := &v1alpha1.App{}
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, app)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading app %s: %w", name, err)
	}
	return app.DeletionTimestamp != nil, nil
}
