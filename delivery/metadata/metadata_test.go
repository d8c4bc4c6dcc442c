package metadata

import (
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func TestChangingIsRecognizedAndSaysWhatCouldNotBeDone(t *testing.T) {
	err := fmt.Errorf("ConfigMap/one: %w", Changing("deleted"))
	if want := "ConfigMap/one: it changes all the time, so it could not be deleted"; !errors.Is(err, ErrChanging) || err.Error() != want {
		t.Errorf("got %q, an ErrChanging: %t", err, errors.Is(err, ErrChanging))
	}
}

var (
	kind   = corev1.SchemeGroupVersion.WithKind("ConfigMap")
	object = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	notOne = apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, "web")
	noKind = &meta.NoKindMatchError{GroupKind: kind.GroupKind(), SearchedVersions: []string{"v1"}}
)

// noPath is the answer of an API server that serves nothing at the path of a request.
func noPath() error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: 404, Reason: metav1.StatusReasonNotFound, Details: &metav1.StatusDetails{}}}
}

// foreignAnswer is a 404 that does not come from the Kubernetes API, as client-go reports it.
func foreignAnswer() error {
	return apierrors.NewGenericServerResponse(404, "get", schema.GroupResource{Resource: "configmaps"}, "web", "404 page not found", 0, true)
}

func TestOnlyTheAPIServersAnswerAboutAnObjectMeansThatItIsMissing(t *testing.T) {
	for name, c := range map[string]struct {
		err               error
		missing, unserved bool
	}{
		"no error":                     {nil, false, false},
		"no such object":               {notOne, true, false},
		"wrapped":                      {fmt.Errorf("reading: %w", notOne), true, false},
		"nothing served at the path":   {noPath(), false, true},
		"an answer of something else":  {foreignAnswer(), false, true},
		"forbidden":                    {apierrors.NewForbidden(schema.GroupResource{}, "web", nil), false, false},
		"an error that is no answer":   {errors.New("connection refused"), false, false},
		"an unknown kind is no answer": {noKind, false, false},
	} {
		if missing, unserved := Missing(c.err), Unserved(c.err); missing != c.missing || unserved != c.unserved {
			t.Errorf("%s: missing %t, want %t; unserved %t, want %t", name, missing, c.missing, unserved, c.unserved)
		}
	}
}

func TestGetReadsOnlyWhatIsNotWatched(t *testing.T) {
	down := errors.New("down")
	for name, c := range map[string]struct {
		watch  Watch
		answer error
		reads  bool
		found  bool
		err    error
	}{
		"watched":                      {shows(object, true, nil), nil, false, true, nil},
		"watched, and there is none":   {shows(nil, true, nil), nil, false, false, nil},
		"the watch fails":              {shows(nil, false, down), nil, false, false, down},
		"not watched":                  {shows(nil, false, nil), nil, true, true, nil},
		"not watched, and gone":        {shows(nil, false, nil), notOne, true, false, nil},
		"of a kind that is not served": {shows(nil, false, nil), noKind, true, false, nil},
		"not served for a moment":      {shows(nil, false, nil), noPath(), true, false, noPath()},
		"not readable":                 {shows(nil, false, nil), down, true, false, down},
	} {
		t.Run(name, func(t *testing.T) {
			read := false
			api := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
				Get: func(_ context.Context, _ client.WithWatch, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
					read = true
					into.SetName("web")
					return c.answer
				},
			})
			found, err := c.watch.Get(t.Context(), api, kind, client.ObjectKeyFromObject(object))
			if (found != nil) != c.found || found != nil && found.GetName() != "web" || read != c.reads {
				t.Errorf("found %v after a request: %t", found, read)
			}
			if (err == nil) != (c.err == nil) || c.err != nil && err.Error() != c.err.Error() {
				t.Errorf("the error is %v, want %v", err, c.err)
			}
		})
	}
}

// shows is a watch with one answer.
func shows(found metav1.Object, watched bool, err error) Watch {
	return func(context.Context, schema.GroupVersionKind, types.NamespacedName) (metav1.Object, bool, error) {
		return found, watched, err
	}
}

func TestAWatchIsBehindUntilItShowsAVersion(t *testing.T) {
	at := func(version string) metav1.Object { return &metav1.ObjectMeta{ResourceVersion: version} }
	for name, c := range map[string]struct {
		live  metav1.Object
		floor string
		want  bool
	}{
		"nothing was written":        {at("5"), "", false},
		"not there, nothing written": {nil, "", false},
		"not there yet":              {nil, "5", true},
		"an older version":           {at("9"), "10", true},
		"the version":                {at("10"), "10", false},
		"a newer version":            {at("11"), "10", false},
		"no comparable version":      {at("a"), "10", false},
	} {
		if got := Behind(c.live, c.floor); got != c.want {
			t.Errorf("%s: behind %t, want %t", name, got, c.want)
		}
	}
}

func TestAnObjectIsReadInAVersionThatIsServed(t *testing.T) {
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{{Group: "policy", Version: "v1"}})
	mapper.Add(schema.GroupVersionKind{Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"}, meta.RESTScopeNamespace)
	api := fake.NewClientBuilder().WithRESTMapper(mapper).Build()
	for given, want := range map[schema.GroupVersionKind]string{
		{Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"}:      "v1",
		{Group: "policy", Version: "v1beta1", Kind: "PodDisruptionBudget"}: "v1",
		{Group: "policy", Version: "v1beta1", Kind: "Unknown"}:             "v1beta1",
	} {
		if got := ServedAs(api, given); got.Version != want || got.Kind != given.Kind || got.Group != given.Group {
			t.Errorf("%v is served as %v, want version %s", given, got, want)
		}
	}
}
