package apply

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubeop/kubeop/delivery/inventory"
)

var (
	widget  = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
	widgets = inventory.ObjectID{Name: "widgets.example.com", Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
)

// mapper knows Widgets after so many resets.
type mapper struct {
	meta.RESTMapper
	hidden int
	err    error
}

func (m *mapper) Reset() { m.hidden-- }

func (m *mapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if m.err != nil {
		return nil, m.err
	}
	if m.hidden > 0 {
		return nil, &meta.NoKindMatchError{GroupKind: kind, SearchedVersions: versions}
	}
	return &meta.RESTMapping{GroupVersionKind: widget}, nil
}

// mapped is a client with a mapper.
type mapped struct {
	client.Client
	mapper *mapper
}

func (m mapped) RESTMapper() meta.RESTMapper { return m.mapper }

// definer is a run of a set with the definition of Widgets, which it wrote if written is set.
func definer(c client.Client, written bool) *run {
	r := &run{Applier: &Applier{}, set: Set{Client: c}, definitions: definitions{widget.GroupKind(): {id: widgets, seen: map[string]error{}}}, result: Result{Written: map[string]string{}}}
	if written {
		r.wrote(widgets, "1")
	}
	return r
}

// TestAnObjectWaitsUntilItsKindIsServed, at most five seconds.
func TestAnObjectWaitsUntilItsKindIsServed(t *testing.T) {
	away := errors.New("away")
	const never = 1000
	for name, c := range map[string]struct {
		written bool
		hidden  int
		broken  error
		// established is the read after which the definition is; get is the error of reading it.
		established int
		get         error
		is          error
		says        string
		reads       int
		takes       time.Duration
	}{
		"served, and not written":       {established: never},
		"served, and just written":      {written: true, reads: 1},
		"established later":             {written: true, established: 3, reads: 4, takes: 3 * lookEvery},
		"not known at once":             {hidden: 2, reads: 3, takes: 2 * lookEvery},
		"never established":             {written: true, established: never, reads: 50, says: "CustomResourceDefinition/widgets.example.com was applied, but the API server does not serve it after 5s", takes: establishedWithin},
		"the definition cannot be read": {written: true, get: away, is: away, says: "looking whether CustomResourceDefinition/widgets.example.com is established: away", reads: 1},
		"the kinds cannot be read":      {written: true, broken: away, is: away, reads: 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				reads := 0
				c2 := answering(interceptor.Funcs{Get: func(_ context.Context, _ client.WithWatch, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
					status := "False"
					if reads++; reads > c.established {
						status = "True"
					}
					o.(*unstructured.Unstructured).Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Established", "status": status}}}
					if key.Name != widgets.Name {
						t.Errorf("%s is read", key.Name)
					}
					return c.get
				}})
				r, began := definer(mapped{c2, &mapper{hidden: c.hidden, err: c.broken}}, c.written), time.Now()
				for range 2 { // The second time, the answer is known.
					err := r.served(t.Context(), widget)
					if failed := c.is != nil || c.says != ""; (err != nil) != failed || c.is != nil && !errors.Is(err, c.is) || failed && !strings.Contains(err.Error(), c.says) {
						t.Errorf("got %v", err)
					}
				}
				// Whether it reads once more at the very end is not defined.
				if took := time.Since(began); reads != c.reads && (took != establishedWithin || reads != c.reads+1) || took != c.takes {
					t.Errorf("%d reads in %s, want %d in %s", reads, took, c.reads, c.takes)
				}
			})
		})
	}
}

// TestAWriteIsRepeatedWhileTheDefinitionIsNew: until all parts of the API server use it, they may refuse what it allows.
func TestAWriteIsRepeatedWhileTheDefinitionIsNew(t *testing.T) {
	conflict, forbidden, invalid := refusal(409, metav1.StatusReasonConflict), refusal(403, metav1.StatusReasonForbidden), refusal(422, metav1.StatusReasonInvalid)
	for name, c := range map[string]struct {
		kind    schema.GroupVersionKind
		written bool
		answers []error
		want    error
		writes  int
	}{
		"of another kind":       {schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, true, []error{forbidden}, forbidden, 1},
		"of an old definition":  {widget, false, []error{forbidden}, forbidden, 1},
		"accepted at once":      {widget, true, []error{nil}, nil, 1},
		"not found, then there": {widget, true, []error{apierrors.NewNotFound(schema.GroupResource{}, "one"), nil}, nil, 2},
		"invalid, then valid":   {widget, true, []error{invalid, invalid, nil}, nil, 3},
		"invalid for long":      {widget, true, []error{invalid}, invalid, 20},
		"a conflict":            {widget, true, []error{invalid, conflict}, conflict, 2},
		"forbidden":             {widget, true, []error{invalid, forbidden}, forbidden, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o, writes := &unstructured.Unstructured{}, 0
				o.SetGroupVersionKind(c.kind)
				err := definer(answering(interceptor.Funcs{}), c.written).whenServed(t.Context(), o, func() error {
					writes++
					return c.answers[min(writes, len(c.answers))-1]
				})
				if !errors.Is(err, c.want) || writes != c.writes && (writes != 21 || c.writes != 20) { // As above.
					t.Errorf("got %v after %d writes, want %v after %d", err, writes, c.want, c.writes)
				}
			})
		})
	}
}
