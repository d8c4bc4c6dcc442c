package reference

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

func TestTheNameOfAnImageHasNeitherTagNorDigest(t *testing.T) {
	const digest = "@sha256:0123"
	for _, name := range []string{"web", "org/web", "example.com/web", "example.com:5000/web", "localhost:5000/a/b"} {
		for _, tail := range []string{"", ":1.0", digest, ":1.0" + digest} {
			if got := Name(name + tail); got != name {
				t.Errorf("the name of %s is %s, want %s", name+tail, got, name)
			}
		}
	}
}

func TestImagesNeedTheSecretsOfTheirHosts(t *testing.T) {
	all := []v1alpha1.PullSecret{{Registry: "a", Host: "a.example"}, {Registry: "hub", Host: "docker.io"}, {Registry: "port", Host: "a.example:5000"}}
	for name, c := range map[string]struct{ images, want []string }{
		"none":           {nil, nil},
		"another host":   {[]string{"b.example/x"}, nil},
		"a host":         {[]string{"a.example/x:1", "A.example/y@sha256:0"}, []string{"kubeop-registry-a"}},
		"a port":         {[]string{"a.example:5000/x"}, []string{"kubeop-registry-port"}},
		"the hub":        {[]string{"nginx:1"}, []string{"kubeop-registry-hub"}},
		"its aliases":    {[]string{"index.docker.io/library/nginx"}, []string{"kubeop-registry-hub"}},
		"an owner there": {[]string{"team/web"}, []string{"kubeop-registry-hub"}},
		"several":        {[]string{"nginx", "a.example/x"}, []string{"kubeop-registry-a", "kubeop-registry-hub"}},
	} {
		if diff := cmp.Diff(c.want, PullSecrets(all, c.images...)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
