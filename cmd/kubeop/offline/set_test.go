package offline

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kubeop/kubeop/cmd/kubeop/exit"
)

func TestSetChangesFieldsAndKeepsTheRest(t *testing.T) {
	const before = "# the shop's face\n" + `apiVersion: paas.kubeop.io/v1alpha1
kind: App
metadata: {name: web}
spec:
  suspend: true # for the fair
  type: Image
  image: {reference: "registry.example.com/acme/web:1", replicas: 1}   # one
`
	root := write(t, repository(map[string]string{"projects/shop/apps/web/app.yaml": before}))
	t.Chdir(root)
	out, err := do(t, Set, "app", "shop/web", "spec.image.replicas=3", `spec.image.env[0]={name: A, value: "2"}`, "spec.image.reference=registry.example.com/acme/web:1.10", "--unset", "spec.suspend")
	if err != nil || !strings.Contains(out, "Changed projects/shop/apps/web/app.yaml.") {
		t.Fatalf("%q, %v", out, err)
	}
	text, err := os.ReadFile("projects/shop/apps/web/app.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"# the shop's face\n", "   # one\n", "replicas: 3", "web:1.10", "metadata: {name: web}\nspec:\n  type: Image\n"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	if strings.Contains(string(text), "suspend") {
		t.Errorf("the field is still there:\n%s", text)
	}
	if out, err := do(t, Set, "shop/web", "spec.image.replicas=3"); err != nil || out != "projects/shop/apps/web/app.yaml has this already.\n" {
		t.Errorf("again: %q, %v", out, err)
	}
	if out, err := do(t, Set, "project", "shop", `spec.quota[requests.cpu]="4"`); err != nil {
		t.Errorf("%q, %v", out, err)
	}
}

// TestAPolicyIsChangedAndDeletedLikeTheOtherKinds: its file is, and those of other policies stay. What is wrong elsewhere is
// not reported, such as the price list of a tenant.
func TestAPolicyIsChangedAndDeletedLikeTheOtherKinds(t *testing.T) {
	c := clone(t)
	c.Git("rm", "-r", "--quiet", "projects")
	for _, name := range []string{"a", "b"} {
		c.Write("policies/"+name+".yaml", "apiVersion: paas.kubeop.io/v1alpha1\nkind: Policy\nmetadata: {name: "+name+"}\nspec: {} # none yet\n")
	}
	c.Push("policies")
	c.Write("tenants/acme/tenant.yaml", "apiVersion: paas.kubeop.io/v1alpha1\nkind: Tenant\nmetadata: {name: acme}\nspec: {policies: [a]}\n")
	c.Write("policies/wrong.yaml", "kind: Policy\n")
	c.Write("tenants/beta/tenant.yaml", "apiVersion: paas.kubeop.io/v1alpha1\nkind: Tenant\nmetadata: {name: beta}\nspec: {priceList: gone}\n")
	if out, err := live(t, Set, "policy", "a", "spec.default=maybe"); exit.Code(err) != exit.Differences || !strings.Contains(out, "policies/a.yaml:5:") || strings.Contains(out, "wrong.yaml") {
		t.Errorf("a value of another type: %q, %v", out, err)
	}
	c.Git("checkout", "--quiet", ".")
	if out, err := live(t, Set, "policy", "a", "spec.default=true"); err != nil || !strings.Contains(out, "Changed policies/a.yaml.") {
		t.Fatalf("%q, %v", out, err)
	}
	if text, err := os.ReadFile("policies/a.yaml"); err != nil || !strings.Contains(string(text), "default: true") || !strings.Contains(string(text), "# none yet") {
		t.Errorf("%v\n%s", err, text)
	}
	if _, err := live(t, Delete, "policy", "a"); err == nil || !strings.Contains(err.Error(), "not committed") {
		t.Errorf("with a change that Git does not have: %v", err)
	}
	c.Git("checkout", "--quiet", ".")
	out, err := live(t, Delete, "policy", "a")
	if exit.Code(err) != exit.Differences || !strings.HasPrefix(out, "Deleted policies/a.yaml.\ntenants/acme/tenant.yaml:4:") || strings.Count(out, "\n") != 2 {
		t.Errorf("%q, %v", out, err)
	}
	if files, err := os.ReadDir("policies"); err != nil || len(files) != 2 || files[0].Name() != "b.yaml" {
		t.Errorf("left are %v, %v", files, err)
	}
}

func TestSetRefusesWhatItCannotWrite(t *testing.T) {
	root := write(t, repository(map[string]string{"projects/shop/apps/list/app.yaml": "- a\n"}))
	if err := os.MkdirAll(filepath.Join(root, "projects/shop/apps/link"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../web/app.yaml", filepath.Join(root, "projects/shop/apps/link/app.yaml")); err != nil {
		t.Fatal(err)
	}
	t.Chdir(root)
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no name":            {[]string{"project"}, "name the project to change"},
		"a field as name":    {[]string{"spec.suspend=true"}, "name the app to change"},
		"no change":          {[]string{"shop/web"}, "nothing to change"},
		"no value":           {[]string{"shop/web", "spec.suspend"}, "write FIELD=VALUE"},
		"no field":           {[]string{"shop/web", "=a"}, "the field is empty"},
		"no field to delete": {[]string{"shop/web", "--unset", "spec["}, "is not a field: a bracket holds an index or a key"},
		"broken YAML":        {[]string{"shop/web", "spec.image={"}, "the value of spec.image is not YAML"},
		"no such app":        {[]string{"shop/api", "spec.suspend=true"}, "projects/shop/apps/api/app.yaml does not exist: kubeop create app writes it"},
		"a symlink":          {[]string{"shop/link", "spec.suspend=true"}, "projects/shop/apps/link/app.yaml: is a symbolic link"},
		"a list":             {[]string{"shop/list", "spec.suspend=true"}, "projects/shop/apps/list/app.yaml: reading spec.suspend: line 1: the file is not an object"},
		"a field not there":  {[]string{"shop/web", "spec.image.replicas=2", "--unset", "spec.suspend"}, "deleting spec.suspend: "},
		"another repository": {[]string{"tenant", "acme", "spec.weight=2"}, "tenants are declared in the platform repository"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := do(t, Set, c.args...); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
	if text, err := os.ReadFile("projects/shop/apps/web/app.yaml"); err != nil || string(text) != app {
		t.Errorf("a refused change was written: %v\n%s", err, text)
	}
	// What is written and not valid is said, as by create.
	if out, err := do(t, Set, "shop/web", "spec.typo=1"); exit.Code(err) != exit.Differences || !strings.Contains(out, "projects/shop/apps/web/app.yaml:7:3: unknown field spec.typo") {
		t.Errorf("%q, %v", out, err)
	}
}
