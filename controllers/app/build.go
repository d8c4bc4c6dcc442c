package app

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/delivery/build"
	"github.com/kubeop/kubeop/delivery/build/scheduler"
	"github.com/kubeop/kubeop/delivery/decrypt"
	"github.com/kubeop/kubeop/delivery/render"
)

// errReading is wrapped by errors of the API server about a ConfigMap or Secret; another try may find it.
var errReading = errors.New("reading from the API server")

// made is what a build made, and what it was made from, which knows what of that was read.
type made struct {
	build.Made
	source fetched
}

// buildGit builds the folder of a Git app.
func (r *Reconciler) buildGit(ctx context.Context, s *scope) ([]*unstructured.Unstructured, error) {
	spec := s.app.Spec.Git.DeepCopy() // A build that takes long goes on with it.
	from := build.Source{Files: s.source.files, Git: spec, Variables: r.variables(ctx, s, spec.SubstituteFrom), Limits: s.limits}
	return r.build(ctx, s, from, s.source.revision, spec.Decryption)
}

// variables reads the ConfigMaps and Secrets with variables. It is done before the build, which may go on after the Reconcile and
// must not use the scope.
func (r *Reconciler) variables(ctx context.Context, s *scope, refs []v1alpha1.SubstituteReference) []build.Variable {
	var held []build.Variable
	lookup := r.lookup(ctx, s)
	for _, ref := range refs {
		data, err := lookup(ref.Kind, ref.Name)
		held = append(held, build.Variable{Kind: ref.Kind, Name: ref.Name, Data: data, Err: err})
	}
	return held
}

// buildRaw reads the manifests of a Raw app.
func (r *Reconciler) buildRaw(ctx context.Context, s *scope) ([]*unstructured.Unstructured, error) {
	raw, identity := s.app.Spec.Raw.DeepCopy(), ""
	from := build.Source{Raw: raw, Limits: s.limits}
	if s.folder != nil {
		digest, err := s.folder.Digest(".")
		if err != nil {
			return nil, err
		}
		from.Files, identity = s.folder, digest
	}
	return r.build(ctx, s, from, identity, raw.Decryption)
}

// inputOf tells a build from one that may come to something else, but for its files. It holds no secret, but their digest.
func inputOf(app *v1alpha1.App, from *build.Source) (string, error) {
	var variables []any
	for _, v := range from.Variables {
		variables = append(variables, []any{v.Kind, v.Name, v.Data})
	}
	content, err := json.Marshal([]any{app.UID, app.Generation, variables, from.Keys, from.Limits})
	if err != nil {
		return "", fmt.Errorf("encoding what a build is made of: %w", err)
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:]), nil
}

// build has objects made of a source, whose files the identity tells from others. It is an error of step where that lasts: the app is
// woken when it has ended.
func (r *Reconciler) build(ctx context.Context, s *scope, from build.Source, identity string, decryption *v1alpha1.Decryption) ([]*unstructured.Unstructured, error) {
	var err error
	if from.Keys, err = r.keys(ctx, s, decryption); err != nil {
		return nil, err
	}
	input, err := inputOf(s.app, &from)
	if err != nil {
		return nil, err
	}
	app, source := client.ObjectKeyFromObject(s.app), s.source
	asked, _ := meta.ReconcileAnnotationValue(s.app.Annotations)
	request := build.Request{App: app, Tenant: s.owner.Tenant, Source: from, Input: input, Identity: identity, Retry: requested(s.app) && s.memory.retried != asked}
	if source.reading != nil {
		request.Reads, request.Same = source.noted, source.readsAs
	}
	small, did, err := from.Small() // To have a turn would take longer.
	done := made{small, source}
	if !did {
		done, err = r.builders.Do(scheduler.Task[made]{
			Key: string(s.app.UID), Input: input + " of " + identity, Tenant: s.owner.Tenant, Within: s.app.Spec.Within(), Wake: func() { r.Wake(app) },
			Run: func(ctx context.Context) (made, error) {
				done, err := r.Builder.Build(ctx, request)
				return made{done, source}, err
			},
		})
	}
	if !errors.Is(err, scheduler.ErrBusy) {
		s.memory.retried = asked
	}
	switch {
	case errors.Is(err, scheduler.ErrBusy):
		return nil, r.waitForTurn(s, err)
	case errors.Is(err, scheduler.ErrUnfinished):
		return nil, r.wait(s, "build", patience, fmt.Errorf("builds its manifests: %w", err))
	case errors.Is(err, scheduler.ErrTimeout):
		return nil, err
	}
	for _, secret := range done.Secrets {
		s.sensitive = append(s.sensitive, sensitiveIn([]byte(secret))...)
	}
	if s.app.Spec.Git != nil {
		s.source = done.source
		r.built(s, done.Reads)
	}
	return done.Objects, err
}

// waitForTurn waits until a build may begin, at first quietly.
func (r *Reconciler) waitForTurn(s *scope, why error) error {
	now := r.Clock.Now()
	if waited := now.Sub(s.memory.began("build in line", now)); waited < patienceInLine {
		return step.Soon(patienceInLine - waited)
	}
	return step.Wait(v1alpha1.WaitingForTurnReason, time.Minute, "%w", why)
}

// keys are the Secret with the private keys for decryption; nil without any.
func (r *Reconciler) keys(ctx context.Context, s *scope, with *v1alpha1.Decryption) (*build.Keys, error) {
	if with == nil {
		return nil, nil
	}
	data, err := r.lookup(ctx, s)("Secret", with.SecretRef.Name)
	if errors.Is(err, render.ErrMissing) {
		return nil, fmt.Errorf("decryption.secretRef: Secret %s does not exist in this namespace: %w", with.SecretRef.Name, errNoKeys)
	}
	if err != nil {
		return nil, fmt.Errorf("decryption.secretRef: %w", err)
	}
	return &build.Keys{Secret: with.SecretRef.Name, Data: data}, nil
}

// errNoKeys is wrapped when the Secret with the keys does not exist. It may be on its way, and wakes the app.
var errNoKeys = errors.New("nothing is decrypted without it")

// lookup returns what ConfigMaps and Secrets hold; what is read wrong is an errReading.
func (r *Reconciler) lookup(ctx context.Context, s *scope) render.Lookup {
	return func(kind, name string) (map[string][]byte, error) {
		data, err := r.data(ctx, s, kind, name)
		if err != nil && !errors.Is(err, render.ErrMissing) {
			err = fmt.Errorf("%w: %s %s: %w", errReading, kind, name, err)
		}
		return data, err
	}
}

// renderOutcome tells what only a change of the source can help from what may mend itself.
func renderOutcome(err error) error {
	switch {
	case step.Ended(err):
		return err
	case errors.Is(err, errNoKeys):
		return step.Fail(v1alpha1.DecryptionFailedReason, err)
	case errors.Is(err, build.ErrUnfit):
		return step.Fail(v1alpha1.RenderFailedReason, err)
	case errors.Is(err, errReading), errors.Is(err, render.ErrMissing):
		return step.Fail(v1alpha1.ValuesFailedReason, err)
	case errors.Is(err, decrypt.ErrKeys), errors.Is(err, decrypt.ErrDamaged):
		return step.Stop(v1alpha1.DecryptionFailedReason, err)
	case errors.As(err, new(*budget.Exceeded)):
		return step.Stop(v1alpha1.TooLargeReason, err)
	}
	return step.Stop(v1alpha1.RenderFailedReason, err)
}

// addBuild adds the ConfigMaps and Secrets with variables and keys.
func addBuild(spec *v1alpha1.AppSpec, add func(kind, name string)) {
	var keys *v1alpha1.Decryption
	switch {
	case spec.Git != nil:
		keys = spec.Git.Decryption
		for _, from := range spec.Git.SubstituteFrom {
			add(from.Kind, from.Name)
		}
	case spec.Raw != nil:
		keys = spec.Raw.Decryption
	}
	if keys != nil {
		add("Secret", keys.SecretRef.Name)
	}
}
