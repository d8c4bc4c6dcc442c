// Package build makes objects of the folders and manifests of Git and Raw apps. What a tenant wrote is read, decrypted, built with
// kustomize and parsed in a process of its own, which requests each file that it needs; only a few plain KiB are read in this one.
package build

import (
	"io/fs"
	"net/http"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/delivery/decrypt"
	"github.com/kubeop/kubeop/delivery/render"
	"github.com/kubeop/kubeop/delivery/render/manifests"
	"github.com/kubeop/kubeop/delivery/render/substitute"
)

// Source is what objects are made from: Git or Raw is set.
type Source struct {
	// Files are the whole repository of a Git app, or the folder of a Raw app. Nil: the app has none.
	Files fs.FS
	// Git is built at its path, with its variables in Variables. Raw has its manifests inline or at its path.
	Git *v1alpha1.GitSource
	Raw *v1alpha1.RawSource
	// Keys decrypt the files and manifests. Nil: what is encrypted is refused.
	Keys *Keys
	// Variables are the ConfigMaps and Secrets that Git.SubstituteFrom refers to.
	Variables []Variable
	// Limits are those of the app; zero are the default ones.
	Limits budget.App
}

// Keys are a Secret with private keys, unread: what it holds is a tenant's.
type Keys struct {
	Secret string
	Data   map[string][]byte
}

// Variable is a ConfigMap or Secret with variables, or why it cannot be read; that it does not exist is a render.ErrMissing.
type Variable struct {
	Kind, Name string
	Data       map[string][]byte
	Err        error
}

// confidential reports whether what is made of the source may hold what was in a Secret.
func (s *Source) confidential() bool {
	return s.Keys != nil || slices.ContainsFunc(s.Variables, func(v Variable) bool { return v.Kind == "Secret" })
}

// Made is what a build made.
type Made struct {
	Objects []*unstructured.Unstructured
	// Secrets are the values that it decrypted, also of one that failed.
	Secrets []string
	// Reads are what Request.Reads returned for the files when it was built, where it was built before; else "".
	Reads string
}

// Opener makes a Decrypter of the keys in the data of a Secret of that name. Services that keep keys are reached by the RoundTripper alone.
type Opener = func(secret string, data map[string][]byte, through http.RoundTripper) (decrypt.Decrypter, error)

// make makes the objects in this process; stage gets the name of each step. Files are decrypted by what open makes.
func (s *Source) make(stage func(string), open func(*Keys) (decrypt.Decrypter, error)) (Made, error) {
	var decrypter decrypt.Decrypter
	if s.Keys != nil {
		stage("reading the keys of Secret " + s.Keys.Secret)
		var err error
		if decrypter, err = open(s.Keys); err != nil {
			return Made{}, err
		}
	}
	files := decrypt.Open(s.Files, decrypter)
	objects, err := s.objects(files, stage)
	return Made{Objects: objects, Secrets: files.Secrets()}, err
}

func (s *Source) objects(files *decrypt.Files, stage func(string)) ([]*unstructured.Unstructured, error) {
	if s.Git == nil {
		return s.raw(files)
	}
	objects, err := Folder(files, s.Git.Path, &s.Git.Build, s.Limits)
	if err != nil {
		return nil, err
	}
	stage("setting the variables")
	return substitute.Variables(objects, &s.Git.Build, s.variable)
}

func (s *Source) raw(files *decrypt.Files) ([]*unstructured.Unstructured, error) {
	raw := s.Raw.DeepCopy()
	if err := decryptInline(files, raw.Manifests); err != nil {
		return nil, err
	}
	if s.Files == nil {
		return manifests.Raw(raw, nil, s.Limits)
	}
	return manifests.Raw(raw, files, s.Limits)
}

// variable is a render.Lookup.
func (s *Source) variable(kind, name string) (map[string][]byte, error) {
	for _, v := range s.Variables {
		if v.Kind == kind && v.Name == name {
			return v.Data, v.Err
		}
	}
	return nil, render.ErrMissing
}
