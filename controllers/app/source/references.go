package source

import (
	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/app/inputs"
	"github.com/kubeop/kubeop/controllers/app/references"
)

// referencesOf lists the ConfigMaps, Secrets and Flux sources that an app's spec names.
func referencesOf(app *v1alpha1.App) []references.Object {
	var refs []references.Object
	add := func(kind, name string) {
		refs = append(refs, references.Object{Namespace: app.Namespace, Kind: kind, Name: name})
	}
	for _, secret := range secretRefsOf(&app.Spec) {
		add(inputs.Secret, secret.Name)
	}
	if git := app.Spec.Git; git != nil && git.SourceRef != nil {
		add(git.SourceRef.Kind, git.SourceRef.Name)
	}
	if helm := app.Spec.Helm; helm != nil {
		for _, from := range helm.ValuesFrom {
			add(from.Kind, from.Name)
		}
	}
	addBuild(&app.Spec, add)
	return refs
}

// Local reports whether an App is made from nothing but its spec and the files in its folder: its source is there, and it reads no ConfigMap and
// no Secret.
func Local(app *v1alpha1.App) bool {
	spec := &app.Spec
	inFolder := spec.Raw != nil || spec.Helm != nil && spec.Helm.Path != "" || spec.Image != nil && spec.Image.Policy == nil
	return inFolder && len(referencesOf(app)) == 0
}

// secretRefsOf lists the Secrets with the credentials of an App's source and with the keys that verify the source.
func secretRefsOf(spec *v1alpha1.AppSpec) []*v1alpha1.LocalSecretReference {
	var refs []*v1alpha1.LocalSecretReference
	add := func(ref *v1alpha1.LocalSecretReference) {
		if ref != nil {
			refs = append(refs, ref)
		}
	}
	if spec.Image != nil && spec.Image.Policy != nil {
		for i := range spec.Image.PullSecrets {
			add(&spec.Image.PullSecrets[i])
		}
	}
	if spec.Git != nil {
		add(spec.Git.SecretRef)
		if spec.Git.Verify != nil {
			add(&spec.Git.Verify.SecretRef)
		}
		if spec.Git.OCI != nil {
			add(spec.Git.OCI.SecretRef)
		}
	}
	if spec.Helm != nil {
		add(spec.Helm.SecretRef)
		if spec.Helm.Git != nil {
			add(spec.Helm.Git.SecretRef)
		}
	}
	return refs
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
	if keys != nil && keys.SecretRef.Name != "" {
		add(inputs.Secret, keys.SecretRef.Name)
	}
}

// refer records which objects the App refers to, and which shared source it uses. Answers of shared sources that no App uses any more are
// dropped.
func (f *Fetcher) refer(p *pass) {
	objects := referencesOf(p.App)
	for _, secret := range p.involved() {
		objects = append(objects, references.Object{Namespace: p.App.Namespace, Kind: inputs.Secret, Name: secret.Name()})
	}
	if p.last.source != "" {
		objects = append(objects, references.Object{Kind: sharedSource, Name: p.last.source})
	}
	f.drop(f.users.Set(p.Key(), objects))
}

func (f *Fetcher) drop(unused []references.Object) {
	for _, o := range unused {
		if o.Kind == sharedSource {
			f.Answers.Commits.Forget(o.Name)
			f.Answers.Pulled.Forget(o.Name)
		}
	}
}
