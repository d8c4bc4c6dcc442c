package budget

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

func TestCheckNamesTheFieldAndItsAllowedValues(t *testing.T) {
	cases := map[string]struct{ set, want string }{
		"nothing set":      {"{}", ""},
		"the least":        {"{projects: 0, apps: 0, treeBytes: 64Ki, appObjects: 1, appBytes: 64Ki, appValues: 1000, sourceBytes: 1Mi, renderedBytes: 64Ki, storeBytes: 1Mi}", ""},
		"the most":         {"{projects: 10000, apps: 100000, treeBytes: 1Gi, appObjects: 5000, appBytes: 16Mi, appValues: 5000000, sourceBytes: 3Gi, renderedBytes: 64Gi, storeBytes: 64Gi}", ""},
		"a negative count": {"{projects: -1}", "projects is -1; it may be 0 to 10000"},
		"too small a size": {"{treeBytes: 1Ki}", "treeBytes is 1Ki; it may be 64Ki to 1Gi"},
		"too large a size": {"{appBytes: 65Mi}", "appBytes is 65Mi; it may be 64Ki to 16Mi"},
		"too many objects": {"{appObjects: 5001}", "appObjects is 5001; it may be 1 to 5000"},
		"too few apps":     {"{apps: -1}", "apps is -1; it may be 0 to 100000"},
		"too few values":   {"{appValues: 1}", "appValues is 1; it may be 1000 to 5000000"},
		"too small a pack": {"{packBytes: 1Mi}", "packBytes is 1Mi; it may be 16Mi to 4Gi"},
		"too much at once": {"{renderedBytes: 65Gi}", "renderedBytes is 65Gi; it may be 64Ki to 64Gi"},
		"too little store": {"{storeBytes: 1Ki}", "storeBytes is 1Ki; it may be 1Mi to 64Gi"},
		"a negative size":  {"{sourceBytes: -1Mi}", "sourceBytes is -1Mi; it may be 1Mi to 3Gi"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			set := &v1alpha1.TenantLimits{}
			if err := yaml.UnmarshalStrict([]byte(c.set), set); err != nil {
				t.Fatal(err)
			}
			got := ""
			if err := Check(set); err != nil {
				got = err.Error()
			}
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestWithKeepsFieldsThatAreNotSet(t *testing.T) {
	want := Default()
	if diff := cmp.Diff(want, Default().With(&v1alpha1.TenantLimits{})); diff != "" {
		t.Errorf("nothing was set (-want +got):\n%s", diff)
	}
	want.Projects, want.TreeBytes, want.App.Values = 0, 1<<20, 2000
	got := Default().With(&v1alpha1.TenantLimits{
		Projects: ptr.To[int32](0), TreeBytes: ptr.To(resource.MustParse("1Mi")), AppValues: ptr.To[int32](2000),
	})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Every number must have a field: one that nobody can set is no limit of a tenant.
func TestEachLimitIsSetByItsField(t *testing.T) {
	for _, f := range fields {
		l := Limits{}
		*f.in(&l) = 7
		if l == (Limits{}) {
			t.Errorf("%s sets nothing", f.Name)
		}
		for _, other := range fields {
			if other.Name != f.Name && *other.in(&l) != 0 {
				t.Errorf("%s sets %s", f.Name, other.Name)
			}
		}
		if is := *f.in(ptr.To(Default())); is < f.least || is > f.most {
			t.Errorf("the default of %s is %d, which may not be set", f.Name, is)
		}
	}
}

func TestExceededNamesTheLimitAndWhereToRaiseIt(t *testing.T) {
	err := &Exceeded{Field: TreeBytes, What: "the files of tenant acme", Is: 17<<20 + 512, Limit: 16 << 20}
	for _, want := range []string{"the files of tenant acme: 17826304 bytes", "the limit is 16Mi", "spec.limits.treeBytes of the Tenant"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
}
