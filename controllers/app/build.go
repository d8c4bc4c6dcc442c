package app

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/decrypt"
	"github.com/kubeop/kubeop/delivery/render"
)

// errReading is wrapped by errors of the API server about a ConfigMap or Secret; another try may find it.
var errReading = errors.New("reading from the API server")

// made is what a build made.
type made struct {
	objects []*unstructured.Unstructured
	// secrets are what it decrypted; source is what it was made from, which knows what of that was read.
	secrets []string
	source  fetched
}

// buildGit builds the folder of a Git app.
func (r *Reconciler) buildGit(ctx context.Context, s *scope) ([]*unstructured.Unstructured, error) {
	spec := s.app.Spec.Git.DeepCopy() // A build that takes long goes on with it.
	variables, held := r.variables(ctx, s, spec.SubstituteFrom)
	from := from{folder: s.source.files, identity: s.source.revision, decryption: spec.Decryption, variables: held}
	return r.build(ctx, s, from, func(files *decrypt.Files) ([]*unstructured.Unstructured, error) {
		objects, err := render.Build(files, spec.Path, &spec.Build)
		if err != nil {
			return nil, err
		}
		return render.Substitute(objects, &spec.Build, variables)
	})
}

// variable is a ConfigMap or Secret with variables, as it was read, or why it was not.
type variable struct {
	Kind, Name string
	Data       map[string][]byte
	err        error
}

// variables reads the ConfigMaps and Secrets with variables. It is done before the build, which may go on after the Reconcile and
// must not use the scope.
func (r *Reconciler) variables(ctx context.Context, s *scope, refs []v1alpha1.SubstituteReference) (render.Lookup, []variable) {
	var held []variable
	lookup := r.lookup(ctx, s)
	for _, ref := range refs {
		data, err := lookup(ref.Kind, ref.Name)
		held = append(held, variable{ref.Kind, ref.Name, data, err})
	}
	return func(kind, name string) (map[string][]byte, error) {
		for _, v := range held {
			if v.Kind == kind && v.Name == name {
				return v.Data, v.err
			}
		}
		return nil, nil
	}, held
}

// buildRaw reads the manifests of a Raw app.
func (r *Reconciler) buildRaw(ctx context.Context, s *scope) ([]*unstructured.Unstructured, error) {
	app := s.app.DeepCopy()
	from := from{decryption: app.Spec.Raw.Decryption}
	if s.folder != nil {
		digest, err := s.folder.Digest(".")
		if err != nil {
			return nil, err
		}
		from.folder, from.identity = s.folder, digest
	}
	return r.build(ctx, s, from, func(files *decrypt.Files) ([]*unstructured.Unstructured, error) {
		if err := decryptInline(files, app.Spec.Raw.Manifests); err != nil {
			return nil, err
		}
		if from.folder == nil {
			return render.Raw(app, nil)
		}
		return render.Raw(app, files)
	})
}

// decryptInline decrypts the manifests in the spec itself. The API server keeps no order of keys but the alphabet's, so
// the MAC of such a manifest must be over that.
func decryptInline(files *decrypt.Files, manifests []runtime.RawExtension) error {
	for i := range manifests {
		plain, err := files.Manifest(fmt.Sprintf("spec.raw.manifests[%d]", i), manifests[i].Raw)
		if errors.Is(err, decrypt.ErrDamaged) {
			return fmt.Errorf("%w; inline manifests must be encrypted with their keys in alphabetical order, others belong in a folder", err)
		}
		if err != nil {
			return err
		}
		manifests[i].Raw = plain
	}
	return nil
}

// maker makes objects of decrypted files. What it uses must be its own: it may go on after the Reconcile.
type maker func(*decrypt.Files) ([]*unstructured.Unstructured, error)

// from is what a build is made of beside the spec: a folder, which the identity tells from others, and what was read for it.
type from struct {
	folder     fs.FS
	identity   string
	decryption *v1alpha1.Decryption
	variables  []variable
}

// input tells a build from one that may come to something else. It holds no secret, but their digest.
func (f *from) input(app *v1alpha1.App, keys map[string][]byte) (string, error) {
	content, err := json.Marshal([]any{app.Generation, f.identity, f.variables, keys})
	if err != nil {
		return "", fmt.Errorf("encoding what a build is made of: %w", err)
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:]), nil
}

// build has objects made of a folder. It is an error of step where that lasts: the app is woken when it has ended.
func (r *Reconciler) build(ctx context.Context, s *scope, from from, makes maker) ([]*unstructured.Unstructured, error) {
	keys, data, err := r.keys(ctx, s, from.decryption)
	if err != nil {
		return nil, err
	}
	input, err := from.input(s.app, data)
	if err != nil {
		return nil, err
	}
	app, source := client.ObjectKeyFromObject(s.app), s.source
	done, err := r.builders.Do(render.Task[made]{
		Key: string(s.app.UID), Input: input, Tenant: s.owner.Tenant, Within: s.app.Spec.Within(), Wake: func() { r.Wake(app) },
		Run: func(context.Context) (made, error) {
			files := decrypt.Open(from.folder, keys)
			objects, err := makes(files)
			return made{objects, files.Secrets(), source}, err
		},
	})
	switch {
	case errors.Is(err, render.ErrBusy):
		return nil, r.waitForTurn(s, err)
	case errors.Is(err, render.ErrUnfinished):
		return nil, r.wait(s, "build", patience, fmt.Errorf("builds its manifests: %w", err))
	case errors.Is(err, render.ErrTimeout):
		return nil, err
	}
	for _, secret := range done.secrets {
		s.sensitive = append(s.sensitive, sensitiveIn([]byte(secret))...)
	}
	if s.app.Spec.Git != nil {
		s.source = done.source
		r.built(s)
	}
	return done.objects, err
}

// waitForTurn waits until a build may begin, at first quietly.
func (r *Reconciler) waitForTurn(s *scope, why error) error {
	now := r.Clock.Now()
	if waited := now.Sub(s.memory.began("build in line", now)); waited < patienceInLine {
		return step.Soon(patienceInLine - waited)
	}
	return step.Wait(v1alpha1.WaitingForTurnReason, time.Minute, "%w", why)
}

// keys are the private keys for decryption, and what they were read from; nil without any.
func (r *Reconciler) keys(ctx context.Context, s *scope, with *v1alpha1.Decryption) (*decrypt.Keys, map[string][]byte, error) {
	if with == nil {
		return nil, nil, nil
	}
	data, err := r.lookup(ctx, s)("Secret", with.SecretRef.Name)
	if errors.Is(err, render.ErrMissing) {
		return nil, nil, fmt.Errorf("decryption.secretRef: Secret %s does not exist in this namespace: %w", with.SecretRef.Name, errNoKeys)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("decryption.secretRef: %w", err)
	}
	keys, err := decrypt.ReadKeys(with.SecretRef.Name, data)
	return keys, data, err
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
	case errors.Is(err, errReading), errors.Is(err, render.ErrMissing):
		return step.Fail(v1alpha1.ValuesFailedReason, err)
	case errors.Is(err, decrypt.ErrKeys), errors.Is(err, decrypt.ErrDamaged):
		return step.Stop(v1alpha1.DecryptionFailedReason, err)
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
