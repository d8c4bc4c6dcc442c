package build

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/fluxcd/pkg/apis/kustomize"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/delivery/decrypt"
	"github.com/kubeop/kubeop/delivery/message"
	"github.com/kubeop/kubeop/delivery/render"
	"github.com/kubeop/kubeop/delivery/trials"
	"github.com/kubeop/kubeop/delivery/yamlcheck"
)

// order is the request to a process: a Source without its files.
type order struct {
	HasFiles  bool
	Git       *v1alpha1.GitSource
	Path      string
	Manifests [][]byte
	Patches   []kustomize.Patch
	Keys      *Keys
	Variables []heldVariable
	Limits    budget.App
}

// heldVariable is a Variable; its error stays in the operator, and the process gets a failure with the error's number.
type heldVariable struct {
	Kind, Name string
	Data       map[string][]byte
	Err        *failure
}

// outcome is the result of a process.
type outcome struct {
	// Objects are encoded as JSON, so that their values can be counted before they are decoded.
	Objects [][]byte
	Secrets [][]byte
	// Outdated are as in Made, the first maxOutdated of them.
	Outdated []string
	Err      *failure
}

// failure is an error as it is sent to another process. It has the places of its classes in the list classes; the original error stays in
// the process where it occurred.
type failure struct {
	Text    string
	Classes []int
	// Exceeded is the name of the limit of a *budget.Exceeded; "" for any other error.
	Exceeded string
	// Kept are the numbers of errors, counted from 1, that the process received and passes on.
	Kept []int
}

// classes are the errors that errors.Is also finds in the process that receives the failure.
var classes = []error{render.ErrTooLarge, yamlcheck.ErrTooLarge, render.ErrMissing, fs.ErrNotExist, decrypt.ErrKeys, decrypt.ErrDamaged, decrypt.ErrService}

// ErrUnfit is wrapped by errors that are not about the source: the evaluating process could not be started or was killed, or the operator
// is stopping. A retry may succeed.
var ErrUnfit = errors.New("evaluating the manifests")

// unfit wraps an error with ErrUnfit, unless it is about the source.
func unfit(err error) error {
	if errors.As(err, new(*trials.Refused)) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnfit, err)
}

// failureOf converts an error to a failure; nil for nil.
func failureOf(err error) *failure {
	if err == nil {
		return nil
	}
	f := &failure{Text: err.Error()}
	if over := (*budget.Exceeded)(nil); errors.As(err, &over) {
		f.Exceeded = over.Field.Name
	}
	for i, class := range classes {
		if errors.Is(err, class) {
			f.Classes = append(f.Classes, i)
		}
	}
	return f
}

// sentError is a received failure as an error.
type sentError struct {
	text string
	// number of the error in the process that sent it, 0 if unknown.
	number  int
	classes []error
}

func (e *sentError) Error() string   { return e.text }
func (e *sentError) Unwrap() []error { return e.classes }

// error converts a received failure to an error.
func (f *failure) error() *sentError {
	t := &sentError{text: f.Text}
	for _, i := range f.Classes {
		if i >= 0 && i < len(classes) {
			t.classes = append(t.classes, classes[i])
		}
	}
	if field, ok := budget.FieldOf(f.Exceeded); ok {
		t.classes = append(t.classes, &budget.Exceeded{Field: field}) // The text says by how much the limit is exceeded.
	}
	return t
}

// numbersIn returns the numbers of the errors that an error wraps.
func numbersIn(err error) (found []int) {
	switch e := err.(type) { //nolint:errorlint // the whole tree is walked
	case nil:
		return nil
	case *sentError:
		if e.number > 0 {
			found = append(found, e.number)
		}
	case interface{ Unwrap() error }:
		return numbersIn(e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, inner := range e.Unwrap() {
			found = append(found, numbersIn(inner)...)
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// orderOf returns the order for a Source. Errors of the Source are passed to keep.
func orderOf(s *Source, keep func(error) *failure) order {
	o := order{HasFiles: s.Files != nil, Patches: s.Patches, Keys: s.Keys, Limits: s.Limits}
	if s.Git != nil {
		o.Git = &v1alpha1.GitSource{Path: s.Git.Path, Build: s.Git.Build}
	}
	if s.Raw != nil {
		o.Path = s.Raw.Path
		for i := range s.Raw.Manifests {
			o.Manifests = append(o.Manifests, s.Raw.Manifests[i].Raw)
		}
	}
	for _, v := range s.Variables {
		o.Variables = append(o.Variables, heldVariable{v.Kind, v.Name, v.Data, keep(v.Err)})
	}
	return o
}

// source returns the Source of an order.
func (o *order) source(files fs.FS) *Source {
	s := &Source{Git: o.Git, Patches: o.Patches, Keys: o.Keys, Limits: o.Limits}
	if o.HasFiles {
		s.Files = files
	}
	if o.Git == nil {
		s.Raw = &v1alpha1.RawSource{Path: o.Path}
		for _, m := range o.Manifests {
			s.Raw.Manifests = append(s.Raw.Manifests, runtime.RawExtension{Raw: m})
		}
	}
	for _, v := range o.Variables {
		is := Variable{Kind: v.Kind, Name: v.Name, Data: v.Data}
		if v.Err != nil {
			is.Err = v.Err.numbered()
		}
		s.Variables = append(s.Variables, is)
	}
	return s
}

// numbered returns a failure, which is one of those kept, as an error with its number.
func (f *failure) numbered() error {
	t := f.error()
	if len(f.Kept) == 1 {
		t.number = f.Kept[0]
	}
	return t
}

// reader bounds a message: no folder has that many files, and no build decrypts that many values.
var reader = message.NewReader(message.Limits{Items: 1_000_000, Depth: 32})
