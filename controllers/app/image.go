package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/fetch/cache"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/image"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
	"github.com/kubeop/kubeop/delivery/fetch/verdict"
	"github.com/kubeop/kubeop/delivery/render"
	"github.com/kubeop/kubeop/delivery/render/workload"
)

// registryPause is when a registry that could not be asked is looked at again, where the policy's interval is longer.
const registryPause = 30 * time.Second

// imageFacts are the facts of an image policy.
type imageFacts struct {
	// chosen is what is delivered, nil without a policy.
	chosen *v1alpha1.ImageStatus
	// stale is why the registry could not be asked; chosen is then what it said last.
	stale error
}

// imageMemory is what is remembered of an image policy.
type imageMemory struct {
	// trusted is until when the status is believed without asking the registry; zero before the first look.
	trusted time.Time
	// request is the last reconcile request for which the registry was asked anew.
	request string
	// change is told as an event as soon as the status is written.
	change string
}

// imageSettings are what an image is rendered with.
func (r *Reconciler) imageSettings(s *scope) workload.Settings {
	settings := workload.Settings{Gateway: r.Gateway}
	if s.folder != nil {
		settings.Files = s.folder
	}
	if s.image.chosen != nil {
		settings.Reference = s.image.chosen.Reference
	}
	return settings
}

// chooseImage has the image policy choose. A registry that cannot be asked stops nothing while the last choice is one that
// the policy may make.
func (r *Reconciler) chooseImage(ctx context.Context, s *scope) error {
	spec := s.app.Spec.Image
	if spec.Policy == nil {
		return nil
	}
	last := s.app.Status.Image
	if last != nil && !image.Accepts(spec.Reference, spec.Policy, last.Reference, last.Tag) {
		last = nil
	}
	now := r.Clock.Now()
	if r.trusts(s, last, now) {
		s.image.chosen, s.again = last, s.memory.image.trusted.Sub(now)
		return nil
	}
	chosen, err := r.askRegistry(ctx, s)
	switch {
	case err == nil:
		s.image.chosen = choiceOf(s, chosen, now)
		s.again = max(chosen.Until.Sub(now), time.Second)
		return nil
	case last == nil || !keepsLast(err) || r.moment(err):
		return fmt.Errorf("choosing a tag of %s: %w", spec.Reference, err)
	case !errors.Is(err, failure.ErrBusy) && !errors.As(err, new(*cache.Unanswered)):
		s.image.stale = err
	}
	s.image.chosen, s.again = last, min(registryPause, image.PolicyInterval(spec.Policy))
	return nil
}

// trusts reports whether the registry need not be asked: the process has just begun, and the status says what was chosen for
// the present spec. After an interval it is asked as always.
func (r *Reconciler) trusts(s *scope, last *v1alpha1.ImageStatus, now time.Time) bool {
	m := &s.memory.image
	settled := last != nil && s.app.Status.ObservedGeneration == s.app.Generation && !requested(s.app)
	if m.trusted.IsZero() && settled {
		m.trusted = now.Add(image.PolicyInterval(s.app.Spec.Image.Policy))
	}
	if !settled || !now.Before(m.trusted) {
		m.trusted = now
		return false
	}
	return true
}

// requested reports whether a reconcile request has not been handled.
func requested(app *v1alpha1.App) bool {
	token, ok := meta.ReconcileAnnotationValue(app.Annotations)
	return ok && token != app.Status.GetLastHandledReconcileRequest()
}

// askRegistry asks with the credentials of the pull secrets. A reconcile request asks anew, once.
func (r *Reconciler) askRegistry(ctx context.Context, s *scope) (image.Chosen, error) {
	spec := s.app.Spec.Image
	repository := image.Repository{Name: spec.Reference, Tenant: s.owner.Tenant}
	for _, ref := range spec.PullSecrets {
		data, err := r.data(ctx, s, "Secret", ref.Name)
		if errors.Is(err, render.ErrMissing) {
			return image.Chosen{}, fmt.Errorf("secret %s of spec.image.pullSecrets does not exist: create it", ref.Name)
		}
		if err != nil {
			return image.Chosen{}, fmt.Errorf("reading secret %s of spec.image.pullSecrets: %w", ref.Name, err)
		}
		auth, err := transport.AuthFromSecret(data)
		if err != nil {
			return image.Chosen{}, fmt.Errorf("secret %s of spec.image.pullSecrets: %w", ref.Name, err)
		}
		auth.Secret = s.app.Namespace + "/" + ref.Name
		repository.Pull = append(repository.Pull, auth)
	}
	token, _ := meta.ReconcileAnnotationValue(s.app.Annotations)
	anew := requested(s.app) && s.memory.image.request != token
	if !anew {
		if chosen, ok := r.Tags.Known(repository, spec.Policy); ok {
			return chosen, nil
		}
	}
	chosen, err := r.choose(ctx, s, repository, anew)
	if !errors.As(err, new(*cache.Unanswered)) {
		s.memory.image.request = token
	}
	return chosen, err
}

// choose has the registry asked.
func (r *Reconciler) choose(ctx context.Context, s *scope, repository image.Repository, anew bool) (image.Chosen, error) {
	ask, err := r.ask(ctx, s, image.Host(repository.Name))
	if err != nil {
		return image.Chosen{}, err
	}
	policy := s.app.Spec.Image.Policy.DeepCopy()
	ask.MaxAge = min(ask.MaxAge, image.PolicyInterval(policy)) / 2 // The list of tags has an age of its own.
	return r.Choices.Get(ask, func() (cache.Fetcher[image.Chosen], error) {
		return func(ctx context.Context) (image.Chosen, error) { return r.Tags.Choose(ctx, repository, policy, anew) }, nil
	})
}

// keepsLast reports whether an error is of the registry or the way to it, and not that no tag is what the policy wants.
func keepsLast(err error) bool { return !errors.Is(err, failure.ErrNoTag) }

// choiceOf returns the status of a choice, and has a new one told.
func choiceOf(s *scope, chosen image.Chosen, now time.Time) *v1alpha1.ImageStatus {
	was := s.app.Status.Image
	if was != nil && was.Reference == chosen.Reference {
		return was
	}
	is := &v1alpha1.ImageStatus{Reference: chosen.Reference, Tag: chosen.Tag, Since: metav1.NewTime(now)}
	s.memory.image.change = fmt.Sprintf("%s: %s", s.app.Name, chosen.Tag)
	if was != nil {
		is.Previous = was.Reference
		s.memory.image.change = fmt.Sprintf("%s: %s → %s", s.app.Name, was.Tag, chosen.Tag)
		if was.Tag == chosen.Tag {
			s.memory.image.change = fmt.Sprintf("%s: %s → %s", s.app.Name, was.Reference, chosen.Reference)
		}
	}
	return is
}

// record writes the choice into the status. Where none could be made, the last one stays.
func (i *imageFacts) record(app *v1alpha1.App) {
	if app.Spec.Image == nil || app.Spec.Image.Policy == nil {
		app.Status.Image = nil
		return
	}
	if i.chosen != nil {
		app.Status.Image = i.chosen
	}
}

// imageNotes tell of a new image, and of a registry that could not be asked.
func (s *scope) imageNotes() []step.Note {
	var notes []step.Note
	if change := s.memory.image.change; change != "" {
		s.memory.image.change = ""
		notes = append(notes, step.Note{Reason: v1alpha1.ImageChosenReason, Message: change, Event: "Normal"})
	}
	if s.image.chosen == nil && s.app.Spec.Image != nil && s.app.Spec.Image.Policy != nil {
		return notes // The registry was not looked for.
	}
	kept := step.Note{Condition: v1alpha1.ImageKeptCondition}
	if s.image.stale != nil {
		reason, _ := verdict.Of(s.image.stale)
		kept.Status, kept.Reason, kept.Event = metav1.ConditionTrue, reason, "Warning"
		kept.Message = fmt.Sprintf("%s stays: choosing a tag of %s: %s", s.image.chosen.Tag, s.app.Spec.Image.Reference, s.image.stale)
	}
	return append(notes, kept)
}
