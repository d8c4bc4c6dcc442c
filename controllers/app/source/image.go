package source

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/app/inputs"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/command"
	"github.com/kubeop/kubeop/delivery/fetch/cache"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/image"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
	"github.com/kubeop/kubeop/delivery/fetch/verdict"
	"github.com/kubeop/kubeop/delivery/reference"
	"github.com/kubeop/kubeop/delivery/render"
)

// registryPause is the pause before the next request to a registry that could not be reached, if the policy's interval is longer.
const registryPause = 30 * time.Second

// imageMemory is the state of an image policy that is kept in memory between Reconciles.
type imageMemory struct {
	// trusted is the time until which the choice in the status is used without a request to the registry; zero before the first check.
	trusted time.Time
	// request and push are the last reconcile request and the last push for which the registry was contacted.
	request, push string
	// change describes a new choice, for an event; "" for none.
	change string
}

// chooseImage chooses an image by the policy. If the registry cannot be reached, the last choice is kept as long as the policy still
// accepts it; with policy.write, the app runs what its file says.
func (f *Fetcher) chooseImage(ctx context.Context, p *pass) error {
	spec := p.App.Spec.Image
	if spec.Policy == nil {
		return nil
	}
	last := p.App.Status.Image
	if last != nil && !image.Accepts(reference.Name(spec.Reference), spec.Policy, last.Reference, last.Tag) {
		last = nil
	}
	err := f.askPolicy(ctx, p, last)
	switch {
	case saysWhich(spec):
		p.found.Reference = spec.Reference
		if err != nil {
			p.LookAgain(min(registryPause, image.PolicyInterval(spec.Policy)))
		}
		if !errors.As(err, new(*cache.Unanswered)) {
			p.found.imageStale = err
		}
	case err != nil:
		return fmt.Errorf("choosing a tag of %s: %w", reference.Name(spec.Reference), err)
	default:
		p.found.Reference = p.found.Image.Reference
	}
	f.write(p)
	return nil
}

// askPolicy finds out what the policy chooses. last is the last choice, if the policy still accepts it.
func (f *Fetcher) askPolicy(ctx context.Context, p *pass, last *v1alpha1.ImageStatus) error {
	spec, now := p.App.Spec.Image, p.Now()
	if p.pin != "" && last != nil {
		p.found.Image, p.last.image.trusted = last, now // After the freeze, the registry is contacted.
		return nil
	}
	push := f.pushes.of(p.Owner.Tenant, sourceURL(&p.App.Spec))
	if p.last.image.push == push && p.trustsImage(last, now) {
		p.found.Image = last
		p.LookAgain(p.last.image.trusted.Sub(now))
		return nil
	}
	chosen, err := f.queryRegistry(ctx, p, push)
	switch {
	case err == nil:
		p.found.Image = p.choiceOf(chosen, now)
		p.LookAgain(max(chosen.Until.Sub(now), time.Second))
		return nil
	case last == nil || !keepsLast(err) || p.justQueried(err):
		return err
	case !errors.Is(err, failure.ErrBusy) && !errors.As(err, new(*cache.Unanswered)):
		p.found.imageStale = err
	}
	p.found.Image = last
	p.LookAgain(min(registryPause, image.PolicyInterval(spec.Policy)))
	return nil
}

// trustsImage reports whether the choice in the status is used without a request to the registry. That is so for one interval after a
// restart, if the status has a choice for the present spec.
func (p *pass) trustsImage(last *v1alpha1.ImageStatus, now time.Time) bool {
	m := &p.last.image
	settled := last != nil && p.App.Status.ObservedGeneration == p.App.Generation && !p.Requested()
	if m.trusted.IsZero() {
		m.trusted = now.Add(image.PolicyInterval(p.App.Spec.Image.Policy))
	}
	if !settled || !now.Before(m.trusted) {
		m.trusted = now
		return false
	}
	return true
}

// repository returns a repository of images with the credentials for it: those of spec.image.pullSecrets, or of the Registry of its host.
func (f *Fetcher) repository(ctx context.Context, p *pass, name string) (image.Repository, error) {
	repository := image.Repository{Name: name, Tenant: p.Owner.Tenant}
	var secrets []v1alpha1.LocalSecretReference
	if p.App.Spec.Image != nil {
		secrets = p.App.Spec.Image.PullSecrets
	}
	for _, ref := range secrets {
		data, err := f.Inputs.Data(ctx, p.Subject, inputs.Secret, ref.Name)
		if errors.Is(err, render.ErrMissing) {
			return repository, fmt.Errorf("secret %s of spec.image.pullSecrets does not exist: create it; %s may run: kubectl create secret docker-registry %s "+
				"--docker-server=... --docker-username=... --docker-password=... -n %s", ref.Name, command.Admin.In(p.Owner.Tenant), ref.Name, p.App.Namespace)
		}
		if err != nil {
			return repository, fmt.Errorf("reading secret %s of spec.image.pullSecrets: %w", ref.Name, err)
		}
		auth, err := transport.AuthFromSecret(p.App.Namespace, ref.Name, data)
		if err != nil {
			return repository, fmt.Errorf("secret %s of spec.image.pullSecrets: %w", ref.Name, err)
		}
		repository.Pull = append(repository.Pull, p.ofRegistry(auth, &ref))
	}
	for _, registry := range p.registriesOf(reference.Host(name)) {
		access, err := f.accessBy(ctx, p, registry, false)
		if err != nil {
			return repository, err
		}
		repository.Registry = &access
	}
	return repository, nil
}

// queryRegistry contacts the registry with the credentials of the pull secrets. A reconcile request or a push causes one new request.
func (f *Fetcher) queryRegistry(ctx context.Context, p *pass, push string) (image.Chosen, error) {
	spec := p.App.Spec.Image
	repository, err := f.repository(ctx, p, reference.Name(spec.Reference))
	if err != nil {
		return image.Chosen{}, err
	}
	token, _ := meta.ReconcileAnnotationValue(p.App.Annotations)
	anew := p.Requested() && p.last.image.request != token || p.last.image.push != push
	if !anew {
		if chosen, ok := f.Tags.Known(repository, spec.Policy); ok {
			return chosen, nil
		}
	}
	chosen, err := f.choose(ctx, p, repository, anew)
	if !errors.As(err, new(*cache.Unanswered)) {
		p.last.image.request, p.last.image.push = token, push
	}
	return chosen, err
}

// choose chooses an image through the cache.
func (f *Fetcher) choose(ctx context.Context, p *pass, repository image.Repository, anew bool) (image.Chosen, error) {
	query, err := f.query(ctx, p, image.Host(repository.Name))
	if err != nil {
		return image.Chosen{}, err
	}
	policy := p.App.Spec.Image.Policy.DeepCopy()
	query.MaxAge = min(query.MaxAge, image.PolicyInterval(policy)) / 2 // The cache of tags has its own maximum age.
	return f.Answers.Choices.Get(query, func() (cache.Fetcher[image.Chosen], error) {
		return func(ctx context.Context) (image.Chosen, error) { return f.Tags.Choose(ctx, repository, policy, anew) }, nil
	})
}

// keepsLast reports whether the last choice stays after an error. It does not if the registry has no tag that the policy accepts.
func keepsLast(err error) bool { return !errors.Is(err, failure.ErrNoTag) }

// choiceOf returns the status for a choice, and records a new choice for an event.
func (p *pass) choiceOf(chosen image.Chosen, now time.Time) *v1alpha1.ImageStatus {
	was := p.App.Status.Image
	if was != nil && was.Reference == chosen.Reference {
		return was
	}
	is := &v1alpha1.ImageStatus{Reference: chosen.Reference, Tag: chosen.Tag, Since: metav1.NewTime(now)}
	if was != nil {
		is.Written = was.Written
	}
	p.last.image.change = fmt.Sprintf("%s: %s", p.App.Name, chosen.Tag)
	if was != nil {
		is.Previous = was.Reference
		p.last.image.change = fmt.Sprintf("%s: %s → %s", p.App.Name, was.Tag, chosen.Tag)
		if was.Tag == chosen.Tag {
			p.last.image.change = fmt.Sprintf("%s: %s → %s", p.App.Name, was.Reference, chosen.Reference)
		}
	}
	return is
}

// imageFacts are what is known about the image of a policy.
type imageFacts struct {
	// imageStale is why the registry could not be reached. Image is then the last choice.
	imageStale error
	image      *imageMemory
	// written is the condition ImageWriteFailed; the zero Note if nothing is known about it.
	written step.Note
}

// Notes report a new image, a registry that could not be reached, a freeze, and files for an earlier key.
func (f *Found) Notes(app *v1alpha1.App) []step.Note {
	return append(f.imageNotes(app), f.freezeNote(), f.Encryption.note(app))
}

func (f *Found) imageNotes(app *v1alpha1.App) []step.Note {
	var notes []step.Note
	if f.image != nil && f.image.change != "" {
		notes = append(notes, step.Note{Reason: v1alpha1.ImageChosenReason, Message: f.image.change, Event: "Normal"})
		f.image.change = ""
	}
	if app.Spec.Image == nil || app.Spec.Image.Policy == nil {
		return append(notes, step.Note{Condition: v1alpha1.ImageKeptCondition}, step.Note{Condition: v1alpha1.ImageWriteFailedCondition})
	}
	if f.written.Condition != "" {
		notes = append(notes, f.written)
	}
	if f.Image == nil && f.imageStale == nil {
		return notes // The registry was not contacted.
	}
	kept := step.Note{Condition: v1alpha1.ImageKeptCondition}
	if f.imageStale != nil {
		reason, _ := verdict.Of(f.imageStale)
		kept.Status, kept.Reason, kept.Event = metav1.ConditionTrue, reason, "Warning"
		kept.Message = fmt.Sprintf("%s stays: choosing a tag of %s: %s", f.stays(), reference.Name(app.Spec.Image.Reference), f.imageStale)
	}
	return append(notes, kept)
}
