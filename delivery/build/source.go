// Package build builds the objects of Git and Raw apps from folders and manifests. A sandboxed process reads, decrypts, builds with
// kustomize and parses the text of tenants; it requests each file that it needs from the operator. Only a few KiB of plain manifests are
// read in the operator's own process.
package build

import (
	"io/fs"
	"net/http"
	"slices"

	flux "github.com/fluxcd/pkg/apis/kustomize"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/delivery/decrypt"
	"github.com/kubeop/kubeop/delivery/render"
	"github.com/kubeop/kubeop/delivery/render/kustomize"
	"github.com/kubeop/kubeop/delivery/render/manifests"
	"github.com/kubeop/kubeop/delivery/render/substitute"
)

// Source is the input of a build. Either Git or Raw is set. An Image app with patches has its rendered objects in Raw.
type Source struct {
	// Files are the whole repository of a Git app, or the folder of a Raw app. Nil: the app has none.
	Files fs.FS
	// Git is built at its path, with its variables in Variables. Raw has inline manifests or a path.
	Git *v1alpha1.GitSource
	Raw *v1alpha1.RawSource
	// Patches change the objects of Raw. Each must match one.
	Patches []flux.Patch
	// Keys decrypt the files and manifests. Nil: encrypted ones are refused.
	Keys *Keys
	// Variables are the ConfigMaps and Secrets that Git.SubstituteFrom refers to.
	Variables []Variable
	// Limits are the app's limits; zero values mean the default limits.
	Limits budget.App
}

// Keys is a Secret with private keys. The operator does not parse it, because a tenant wrote it.
type Keys struct {
	Secret string
	Data   map[string][]byte
	// Recipient is the age public key for which files are to be encrypted; "" if any of the keys will do.
	Recipient string
}

// Present returns the Recipient; "" without keys.
func (k *Keys) Present() string {
	if k == nil {
		return ""
	}
	return k.Recipient
}

// Variable is a ConfigMap or Secret with variables, or the error of reading it. If it does not exist, the error is a render.ErrMissing.
type Variable struct {
	Kind, Name string
	Data       map[string][]byte
	Err        error
}

// confidential reports whether the objects of the source may contain values of a Secret.
func (s *Source) confidential() bool {
	return s.Keys != nil || slices.ContainsFunc(s.Variables, func(v Variable) bool { return v.Kind == "Secret" })
}

// Made is the result of a build.
type Made struct {
	Objects []*unstructured.Unstructured
	// Secrets are the decrypted values, also those of a failed build.
	Secrets []string
	// Outdated are the names of the decrypted files that are not encrypted for the Recipient of the Keys.
	Outdated []string
	// Reads is the record that Request.Reads returned when the result was built, if the result is cached; otherwise "".
	Reads string
}

// Opener makes a Decrypter of the keys in the data of the named Secret. It may reach key services only through the RoundTripper.
type Opener = func(secret string, data map[string][]byte, through http.RoundTripper) (decrypt.Decrypter, error)

// make builds the objects in this process. It calls stage with the name of each step. open returns the Decrypter for files.
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
	made := Made{Objects: objects, Secrets: files.Secrets()}
	if present := s.Keys.Present(); present != "" {
		made.Outdated = files.NotFor(present)
	}
	return made, err
}

func (s *Source) objects(files *decrypt.Files, stage func(string)) ([]*unstructured.Unstructured, error) {
	if s.Git == nil {
		objects, err := s.raw(files)
		if err != nil || len(s.Patches) == 0 {
			return objects, err
		}
		stage("applying the patches")
		return kustomize.Patched(objects, s.Patches)
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

// variable implements render.Lookup.
func (s *Source) variable(kind, name string) (map[string][]byte, error) {
	for _, v := range s.Variables {
		if v.Kind == kind && v.Name == name {
			return v.Data, v.Err
		}
	}
	return nil, render.ErrMissing
}
