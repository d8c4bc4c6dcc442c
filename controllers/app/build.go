package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/decrypt"
	"github.com/kubeop/kubeop/delivery/render"
)

// How long a Reconcile waits for its turn to build, and after how long it tries again when that did not come.
const (
	turnPatience = 2 * time.Second
	nextTurn     = 3 * time.Second
)

// errReading is wrapped by errors of the API server about a ConfigMap or Secret; another try may find it.
var errReading = errors.New("reading from the API server")

// buildGit builds the folder of a Git app.
func (r *Reconciler) buildGit(ctx context.Context, s *scope) ([]*unstructured.Unstructured, error) {
	spec := s.app.Spec.Git.DeepCopy() // A build that took too long goes on with it.
	variables := r.variables(ctx, s, spec.SubstituteFrom)
	objects, err := r.build(ctx, s, s.source.files, spec.Decryption, func(files *decrypt.Files) ([]*unstructured.Unstructured, error) {
		objects, err := render.Build(files, spec.Path, &spec.Build)
		if err != nil {
			return nil, err
		}
		return render.Substitute(objects, &spec.Build, variables)
	})
	if errors.Is(err, render.ErrTimeout) || errors.Is(err, render.ErrBusy) {
		return nil, err
	}
	r.built(s)
	return objects, err
}

// variables reads the ConfigMaps and Secrets with variables. It is done before the build, which may go on after the app's
// timeout and must not use the scope.
func (r *Reconciler) variables(ctx context.Context, s *scope, from []v1alpha1.SubstituteReference) render.Lookup {
	type content struct {
		data map[string][]byte
		err  error
	}
	read, lookup := map[[2]string]content{}, r.lookup(ctx, s)
	for _, f := range from {
		data, err := lookup(f.Kind, f.Name)
		read[[2]string{f.Kind, f.Name}] = content{data, err}
	}
	return func(kind, name string) (map[string][]byte, error) {
		found := read[[2]string{kind, name}]
		return found.data, found.err
	}
}

// buildRaw reads the manifests of a Raw app.
func (r *Reconciler) buildRaw(ctx context.Context, s *scope) ([]*unstructured.Unstructured, error) {
	var folder fs.FS
	if s.folder != nil {
		folder = s.folder
	}
	app := s.app.DeepCopy()
	return r.build(ctx, s, folder, app.Spec.Raw.Decryption, func(files *decrypt.Files) ([]*unstructured.Unstructured, error) {
		if err := decryptInline(files, app.Spec.Raw.Manifests); err != nil {
			return nil, err
		}
		if folder == nil {
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

// maker makes objects of decrypted files. What it uses must be its own: it may go on after the app's timeout.
type maker func(*decrypt.Files) ([]*unstructured.Unstructured, error)

// build has objects made of a folder, when it is its turn.
func (r *Reconciler) build(ctx context.Context, s *scope, folder fs.FS, with *v1alpha1.Decryption, makes maker) ([]*unstructured.Unstructured, error) {
	keys, err := r.keys(ctx, s, with)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.app.Spec.Within())
	defer cancel()
	files := decrypt.Open(folder, keys)
	var objects []*unstructured.Unstructured
	err = r.builders.Do(ctx, s.owner.Tenant, turnPatience, func() (err error) {
		objects, err = makes(files)
		return err
	})
	if errors.Is(err, render.ErrTimeout) || errors.Is(err, render.ErrBusy) {
		return nil, err
	}
	for _, secret := range files.Secrets() {
		s.sensitive = append(s.sensitive, sensitiveIn([]byte(secret))...)
	}
	return objects, err
}

// keys are the private keys for decryption; nil without any.
func (r *Reconciler) keys(ctx context.Context, s *scope, with *v1alpha1.Decryption) (*decrypt.Keys, error) {
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
	return decrypt.ReadKeys(with.SecretRef.Name, data)
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
	case errors.Is(err, render.ErrBusy):
		return step.Wait(v1alpha1.WaitingForTurnReason, nextTurn, "%w", err)
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
