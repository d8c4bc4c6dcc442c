package cluster

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/kube"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/resource"
)

func info(kind, name string) *resource.Info {
	return &resource.Info{Name: name, Mapping: &meta.RESTMapping{GroupVersionKind: schema.GroupVersionKind{Kind: kind}}}
}

func TestNamed(t *testing.T) {
	tests := map[string]struct{ err, want string }{
		"no name":          {"json: cannot unmarshal number", "ConfigMap/web: json: cannot unmarshal number"},
		"named":            {`configmaps "web" is forbidden`, `configmaps "web" is forbidden`},
		"only a like name": {`namespaces "web-1" not found`, `ConfigMap/web: namespaces "web-1" not found`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			cause := errors.New(test.err)
			if got := named(info("ConfigMap", "web"), cause); got.Error() != test.want || !errors.Is(got, cause) {
				t.Errorf("got %v, want %s", got, test.want)
			}
		})
	}
	if err := named(info("ConfigMap", "web"), nil); err != nil {
		t.Errorf("named nothing: %v", err)
	}
}

func TestByKind(t *testing.T) {
	list := kube.ResourceList{info("Secret", "a"), info("Secret", "b"), info("ConfigMap", "c"), info("Secret", "d")}
	var got [][]string
	for _, batch := range byKind(list) {
		var names []string
		for _, i := range batch {
			names = append(names, nameOf(i))
		}
		got = append(got, names)
	}
	want := [][]string{{"Secret/a", "Secret/b"}, {"ConfigMap/c"}, {"Secret/d"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestUnaskedGetIsNotFound pins how an info's Get finds nothing: building the request fails with a 404, and none is sent.
func TestUnaskedGetIsNotFound(t *testing.T) {
	if err := (requestless{}).Get().Resource("pods").Name("web").Do(t.Context()).Error(); !apierrors.IsNotFound(err) {
		t.Errorf("got %v, want a 404", err)
	}
}
