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
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/app/inputs"
	"github.com/kubeop/kubeop/controllers/app/source"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/build"
	"github.com/kubeop/kubeop/delivery/build/scheduler"
	"github.com/kubeop/kubeop/delivery/render/workload"
)

// made is the result of a build and its files, which record the paths that the build read.
type made struct {
	build.Made
	files source.Files
}

// retried is the last reconcile request for which a build was repeated.
type retried struct{ request string }

// buildGit builds the folder of a Git App.
func (r *renderer) buildGit(ctx context.Context, s *scope) ([]*unstructured.Unstructured, error) {
	spec := s.App.Spec.Git.DeepCopy() // A long build still uses the spec after the Reconcile.
	from := build.Source{Files: s.found.Files.FS, Git: spec, Variables: r.variables(ctx, s, spec.SubstituteFrom), Limits: s.Limits.App}
	return r.build(ctx, s, from, s.found.Files.Revision, spec.Decryption)
}

// buildImage makes the objects of an Image App, and applies its patches.
func (r *renderer) buildImage(ctx context.Context, s *scope) ([]*unstructured.Unstructured, error) {
	objects, err := workload.Render(s.App, r.imageSettings(s))
	if err == nil && len(s.App.Spec.Image.Patches) > 0 {
		objects, err = r.patch(ctx, s, objects)
	}
	if err != nil {
		return nil, err
	}
	workload.NameJob(s.App, objects)
	return objects, nil
}

// imageSettings are the settings for rendering an Image App.
func (r *renderer) imageSettings(s *scope) workload.Settings {
	settings := r.hosting
	if s.found.Folder != nil {
		settings.Files = s.found.Folder
	}
	settings.Reference, settings.PullSecrets = s.found.Reference, s.PullSecrets
	return settings
}

// patch applies the patches of an Image App to its objects.
func (r *renderer) patch(ctx context.Context, s *scope, objects []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	from, sum := build.Source{Raw: &v1alpha1.RawSource{}, Patches: s.App.Spec.Image.DeepCopy().Patches, Limits: s.Limits.App}, sha256.New()
	for _, o := range objects {
		text, err := o.MarshalJSON()
		if err != nil {
			return nil, fmt.Errorf("encoding %s/%s: %w", o.GetKind(), o.GetName(), err)
		}
		sum.Write(text) // Each ends with a line break, and has no other.
		from.Raw.Manifests = append(from.Raw.Manifests, runtime.RawExtension{Raw: text})
	}
	patched, err := r.build(ctx, s, from, hex.EncodeToString(sum.Sum(nil)), nil)
	if err != nil && !step.Ended(err) {
		err = fmt.Errorf("spec.image: %w", err)
	}
	return patched, err
}

// variables reads the ConfigMaps and Secrets with variables before the build begins. The build may outlive the Reconcile, so it must not
// use the scope.
func (r *renderer) variables(ctx context.Context, s *scope, refs []v1alpha1.SubstituteReference) []build.Variable {
	var held []build.Variable
	lookup := r.inputs.Lookup(ctx, s.Subject)
	for _, ref := range refs {
		data, err := lookup(ref.Kind, ref.Name)
		held = append(held, build.Variable{Kind: ref.Kind, Name: ref.Name, Data: data, Err: err})
	}
	return held
}

// buildRaw reads the manifests of a Raw App.
func (r *renderer) buildRaw(ctx context.Context, s *scope) ([]*unstructured.Unstructured, error) {
	raw, identity := s.App.Spec.Raw.DeepCopy(), ""
	from := build.Source{Raw: raw, Limits: s.Limits.App}
	if folder := s.found.Folder; folder != nil {
		digest, err := folder.Digest(".")
		if err != nil {
			return nil, err
		}
		from.Files, identity = folder, digest
	}
	return r.build(ctx, s, from, identity, raw.Decryption)
}

// inputOf identifies everything that a build depends on except the files. It contains secrets only as part of a digest.
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

// build builds the objects of a source; identity identifies the files of the source. While the build runs, build returns an error of
// package step. The end of the build wakes the App.
func (r *renderer) build(ctx context.Context, s *scope, from build.Source, identity string, decryption *v1alpha1.Decryption) ([]*unstructured.Unstructured, error) {
	if decryption != nil {
		keys, err := r.inputs.Keys(ctx, s.Subject, decryption)
		if err != nil {
			return nil, err
		}
		from.Keys = (*build.Keys)(keys)
	}
	input, err := inputOf(s.App, &from)
	if err != nil {
		return nil, err
	}
	files, tried := s.found.Files, r.retried.Get(s.App)
	requested, _ := meta.ReconcileAnnotationValue(s.App.Annotations)
	request := build.Request{App: s.Key(), Tenant: s.Owner.Tenant, Source: from, Input: input, Identity: identity, Retry: s.Requested() && tried.request != requested}
	if files.FromCommit() {
		request.Reads, request.Same = files.Noted, files.ReadsAs
	}
	small, did, err := from.Small() // A small source is built at once: waiting for a turn would take longer.
	done := made{small, files}
	if !did {
		done, err = r.builds.Do(r.task(s, request, files))
	}
	if !errors.Is(err, scheduler.ErrBusy) {
		tried.request = requested
	}
	switch {
	case errors.Is(err, scheduler.ErrBusy):
		return nil, r.waitForTurn(s, err)
	case errors.Is(err, scheduler.ErrUnfinished):
		return nil, step.WaitQuietly(s.Waited("build"), step.Quiet, step.LastLook, fmt.Errorf("builds its manifests: %w", err))
	case errors.Is(err, scheduler.ErrTimeout):
		return nil, err
	}
	for _, secret := range done.Secrets {
		s.Hide(inputs.Sensitive([]byte(secret))...)
	}
	s.found.Encryption = source.Encrypted(from.Keys.Present(), done.Outdated, err)
	if s.App.Spec.Git != nil {
		s.found.Files = done.files
		r.sources.Built(s.Subject, &s.found, done.Reads)
	}
	return done.Objects, err
}

// task is a build to be queued.
func (r *renderer) task(s *scope, request build.Request, files source.Files) scheduler.Task[made] {
	app := s.Key()
	return scheduler.Task[made]{
		Key: string(s.App.UID), Input: request.Input + " of " + request.Identity, Tenant: request.Tenant, Within: s.App.Spec.Within(),
		Wake: func() { r.queue.Add(app) },
		Run: func(ctx context.Context) (made, error) {
			done, err := r.builder.Build(ctx, request)
			return made{done, files}, err
		},
	}
}

// waitForTurn waits for the build's turn. For the first step.QuietInLine it does not change the conditions.
func (r *renderer) waitForTurn(s *scope, why error) error {
	s.found.InLine = true
	if waited := s.Waited("build in line"); waited < step.QuietInLine {
		return step.Soon(step.QuietInLine - waited)
	}
	return step.Wait(v1alpha1.WaitingForTurnReason, time.Minute, "%w", why)
}
