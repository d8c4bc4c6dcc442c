package build

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/fxamacker/cbor/v2"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/delivery/decrypt"
	"github.com/kubeop/kubeop/delivery/render"
	"github.com/kubeop/kubeop/delivery/trials"
	"github.com/kubeop/kubeop/delivery/yamlcheck"
)

// order is what a process is to make: a Source without its files.
type order struct {
	HasFiles  bool
	Git       *v1alpha1.GitSource
	Path      string
	Manifests [][]byte
	Keys      *Keys
	Variables []heldVariable
	Limits    budget.App
}

// heldVariable is a Variable with an error that stays in the operator.
type heldVariable struct {
	Kind, Name string
	Data       map[string][]byte
	Err        *failure
}

// outcome is what the process made.
type outcome struct {
	// Objects are in JSON, so that their values can be counted before they are built.
	Objects [][]byte
	Secrets [][]byte
	Err     *failure
}

// failure is an error on its way from one process to the other. Its classes are kept, by their places in classes; the error that it
// is of stays where it was made.
type failure struct {
	Text    string
	Classes []int
	// Exceeded is the limit of a *budget.Exceeded, by name; "" of any other.
	Exceeded string
	// Kept are the numbers of errors, counted from 1, that the process received and passes on.
	Kept []int
}

// classes are the errors that errors.Is finds again on the other side.
var classes = []error{render.ErrTooLarge, yamlcheck.ErrTooLarge, render.ErrMissing, fs.ErrNotExist, decrypt.ErrKeys, decrypt.ErrDamaged, decrypt.ErrService}

// ErrUnfit is wrapped by errors that are not about the source: the process that evaluates could not be started, was
// killed, or the operator is stopping. Another try may succeed.
var ErrUnfit = errors.New("evaluating the manifests")

// unfit is the ErrUnfit of an error, unless it is about the source.
func unfit(err error) error {
	if errors.As(err, new(*trials.Refused)) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnfit, err)
}

// failureOf is nil for nil.
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

// sentError is a failure in the process that received it.
type sentError struct {
	text string
	// number of the error in the process that sent it, 0 where it is not known.
	number  int
	classes []error
}

func (e *sentError) Error() string   { return e.text }
func (e *sentError) Unwrap() []error { return e.classes }

// error is nil for nil.
func (f *failure) error() *sentError {
	t := &sentError{text: f.Text}
	for _, i := range f.Classes {
		if i >= 0 && i < len(classes) {
			t.classes = append(t.classes, classes[i])
		}
	}
	if field, ok := budget.FieldOf(f.Exceeded); ok {
		t.classes = append(t.classes, &budget.Exceeded{Field: field}) // How much is too much is in the text.
	}
	return t
}

// numbersIn are the numbers of the errors that an error was made of.
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

// orderOf is what is sent of a Source; its errors stay with keep.
func orderOf(s *Source, keep func(error) *failure) order {
	o := order{HasFiles: s.Files != nil, Keys: s.Keys, Limits: s.Limits}
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

// source is the Source again.
func (o *order) source(files fs.FS) *Source {
	s := &Source{Git: o.Git, Keys: o.Keys, Limits: o.Limits}
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

// numbered is the error of a failure that is one of those kept.
func (f *failure) numbered() error {
	t := f.error()
	if len(f.Kept) == 1 {
		t.number = f.Kept[0]
	}
	return t
}

// maxItems bounds lists and mappings of a message: no folder has as many files, and no build decrypts as many values.
const maxItems = 1_000_000

func marshal(message any) ([]byte, error) {
	text, err := cbor.Marshal(message)
	if err != nil {
		return nil, fmt.Errorf("writing a message: %w", err)
	}
	return text, nil
}

var reading = func() cbor.DecMode {
	mode, err := cbor.DecOptions{UTF8: cbor.UTF8DecodeInvalid, MaxArrayElements: maxItems, MaxMapPairs: maxItems}.DecMode()
	if err != nil {
		panic(err) // The options are fixed.
	}
	return mode
}()

func unmarshal(text []byte, message any) error { return reading.Unmarshal(text, message) }
