package plan

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/app"
	"github.com/kubeop/kubeop/controllers/app/subject"
	"github.com/kubeop/kubeop/delivery/inventory"
	"github.com/kubeop/kubeop/delivery/release"
)

const password = "hunter22hunter22"

// secretive is the delivery of an App that reads a password of a Secret.
func secretive() *delivery {
	of := &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	s := (&subject.Subjects{}).New(of)
	s.Hide(password)
	return &delivery{app: of, made: &app.Preview{Subject: s}}
}

// TestAPlanShowsNoSecretValue: it may become a comment on a pull request.
func TestAPlanShowsNoSecretValue(t *testing.T) {
	k, denied := &cluster{Connection: &Connection{}}, errors.New("admission: no access with "+password)
	failed := secretive()
	failed.err = denied
	refused, err := k.refused(secretive(), inventory.ErrorAbout(inventory.ObjectID{Namespace: "shop", Name: "a", Kind: "ConfigMap"}, denied))
	if err != nil {
		t.Fatal(err)
	}
	released := secretive()
	released.at.Client = interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return denied },
	})
	released.release = &release.Preview{
		Before: []*unstructured.Unstructured{settings("old", map[string]any{"a": password})},
		After:  []*unstructured.Unstructured{settings("old", map[string]any{"a": "no " + password}), settings("new", map[string]any{"a": password})},
	}
	itself := &cluster{Connection: &Connection{Itself: true}}
	for name, tc := range map[string]struct {
		shown any
		says  string
	}{
		"an app that fails":             {k.report(t.Context(), failed, &siblings{}), "no access with ***"},
		"an object that is refused":     {refused, "no access with ***"},
		"fields of a release":           {k.released(t.Context(), released), `no ***`},
		"a refused object of a release": {itself.released(t.Context(), released), "no access with ***"},
	} {
		if got := fmt.Sprintf("%+v", tc.shown); strings.Contains(got, password) || !strings.Contains(got, tc.says) {
			t.Errorf("%s: got %s", name, got)
		}
	}
}
