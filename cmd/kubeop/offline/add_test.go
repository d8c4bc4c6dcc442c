package offline

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"
	"github.com/spf13/cobra"

	"github.com/kubeop/kubeop/cmd/kubeop/call"
	"github.com/kubeop/kubeop/delivery/decrypt"
	"github.com/kubeop/kubeop/delivery/decrypt/sops"
	"github.com/kubeop/kubeop/internal/testkeys"
)

// addIn is the command add with the flags --tenant and --project of the root.
func addIn(c *call.Call) *cobra.Command {
	command := Add(c)
	c.AddFlags(command.PersistentFlags())
	return command
}

func publicKey(t *testing.T) string {
	t.Helper()
	identity, err := age.ParseX25519Identity(testkeys.Age(testkeys.First))
	if err != nil {
		t.Fatal(err)
	}
	return identity.Recipient().String()
}

// TestAddSecretWritesWhatTheOperatorDecrypts: the first Secret of a project brings its app, the second one only its file.
func TestAddSecretWritesWhatTheOperatorDecrypts(t *testing.T) {
	root := write(t, repository(map[string]string{".sops.yaml": "creation_rules: [{path_regex: ^projects/shop/, age: " + publicKey(t) + "}]\n"}))
	t.Chdir(root)
	file := filepath.Join(t.TempDir(), "password.txt")
	if err := os.WriteFile(file, []byte("hunter2"), 0o600); err != nil {
		t.Fatal(err)
	}
	const folder = "projects/shop/apps/secrets/"
	out, err := do(t, addIn, "secret", "database", "--project", "shop", "--from-file", "password="+file, "--from-literal", "url=postgres://a=b")
	if err != nil || out != "Wrote "+folder+"app.yaml.\nWrote "+folder+"manifests/database.yaml.\n" {
		t.Fatalf("%v: %s", err, out)
	}
	out, err = do(t, addIn, "secret", "mail", "--project", "shop", "--from-literal", "token=t0ken", "--age", publicKey(t))
	if err != nil || out != "Wrote "+folder+"manifests/mail.yaml.\n" {
		t.Fatalf("%v: %s", err, out)
	}
	out, err = do(t, addIn, "secret", "login", "--project", "shop", "--from-file", file, "--type", "example.com/login")
	if err != nil || out != "Wrote "+folder+"manifests/login.yaml.\n" {
		t.Fatalf("%v: %s", err, out)
	}
	if problems, _, err := run(t); err != nil {
		t.Errorf("%v\n%s", err, problems)
	}
	keys, err := sops.New("sops", map[string][]byte{"age.agekey": []byte(testkeys.Age(testkeys.First))}, nil)
	if err != nil {
		t.Fatal(err)
	}
	files := decrypt.Open(os.DirFS(root), keys)
	for name, want := range map[string]string{"database": "password: hunter2\n    url: postgres://a=b", "mail": "token: t0ken", "login": "type: example.com/login\nstringData:\n    password.txt: hunter2"} {
		plain, err := fs.ReadFile(files, folder+"manifests/"+name+".yaml")
		if err != nil || !strings.Contains(string(plain), want) {
			t.Errorf("%s: %v\n%s", name, err, plain)
		}
	}
	text, err := os.ReadFile(folder + "app.yaml")
	if err != nil || !strings.Contains(string(text), "decryption:\n      provider: sops\n      secretRef:\n        name: sops\n    path: manifests\n") {
		t.Errorf("%v\n%s", err, text)
	}
}

func TestAddSecretRefusesWrongArguments(t *testing.T) {
	for name, tc := range map[string]struct {
		args string
		want string
	}{
		"no project":            {"a --from-literal a=b", "--project is required"},
		"another project":       {"a -p nope --from-literal a=b --age KEY", "there is no project nope here"},
		"no values":             {"a -p shop --age KEY", "a Secret needs values"},
		"a bare value":          {"a -p shop --from-literal hunter2", "--from-literal: write KEY=VALUE"},
		"a key with a path":     {"a -p shop --from-literal a/b=c", `"a/b" cannot be a key of a Secret`},
		"a key twice":           {"a -p shop --from-literal a=b --from-literal a=c", "the key a is given twice"},
		"a name with paths":     {"../a -p shop --from-literal a=b", `"../a" cannot be the name of a Secret`},
		"no recipient":          {"a -p shop --from-literal a=b", "no rule of .sops.yaml is for projects/shop/apps/secrets/manifests/a.yaml: name the public key"},
		"a wrong recipient":     {"a -p shop --from-literal a=b --age age1", `"age1" is no age recipient`},
		"an app of images":      {"a -p shop --app web --from-literal a=b --age KEY", "projects/shop/apps/web/app.yaml delivers no folder of manifests"},
		"an app of paths":       {"a -p shop --app ../web --from-literal a=b --age KEY", "does not name one app"},
		"no decryption":         {"a -p shop --app open --from-literal a=b --age KEY", "projects/shop/apps/open/app.yaml decrypts nothing"},
		"a file that is not":    {"a -p shop --from-file nope.txt --age KEY", "--from-file: open nope.txt: "},
		"a file twice":          {"a -p shop --from-file kubeop.yaml --from-file kubeop.yaml --age KEY", "the key kubeop.yaml is given twice"},
		"an app of broken YAML": {"a -p shop --app broken --from-literal a=b --age KEY", "projects/shop/apps/broken/app.yaml: "},
		"a file that is there": {"a -p shop --app raw --from-literal a=b --age KEY",
			"projects/shop/apps/raw/manifests/a.yaml exists: nothing is overwritten"},
	} {
		t.Run(name, func(t *testing.T) {
			raw := "apiVersion: paas.kubeop.io/v1alpha1\nkind: App\nmetadata: {name: raw}\nspec:\n  type: Raw\n  raw:\n    path: manifests\n"
			t.Chdir(write(t, repository(map[string]string{
				"projects/shop/apps/open/app.yaml":        strings.Replace(raw, "name: raw", "name: open", 1),
				"projects/shop/apps/raw/app.yaml":         raw + "    decryption: {provider: sops, secretRef: {name: sops}}\n",
				"projects/shop/apps/raw/manifests/a.yaml": "mine", "projects/shop/apps/broken/app.yaml": "a: [\n",
			})))
			out, err := do(t, addIn, append([]string{"secret"}, strings.Fields(strings.ReplaceAll(tc.args, "KEY", publicKey(t)))...)...)
			if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "hunter2") || out != "" {
				t.Errorf("got %v, want %s\n%s", err, tc.want, out)
			}
		})
	}
}

func TestASecretInThePlatformsRepositoryNeedsATenant(t *testing.T) {
	t.Chdir(write(t, map[string]string{
		"kubeop.yaml": "layout: v1\n", "tenants/acme/tenant.yaml": "apiVersion: paas.kubeop.io/v1alpha1\nkind: Tenant\nmetadata: {name: acme}\n",
		"tenants/acme/projects/shop/project.yaml": repository(nil)["projects/shop/project.yaml"],
	}))
	args := []string{"secret", "a", "-p", "shop", "--from-literal", "a=b", "--age", publicKey(t)}
	if out, err := do(t, addIn, args...); err == nil || !strings.Contains(err.Error(), "--tenant is required in the platform repository") {
		t.Errorf("%v: %s", err, out)
	}
	if out, err := do(t, addIn, append(args, "--tenant", "acme", "--key-secret=")...); err != nil || out != "Wrote tenants/acme/projects/shop/apps/secrets/app.yaml.\nWrote tenants/acme/projects/shop/apps/secrets/manifests/a.yaml.\n" {
		t.Errorf("%v: %s", err, out)
	}
	// The key is the tenant's own, so no Secret is named.
	if text, err := os.ReadFile("tenants/acme/projects/shop/apps/secrets/app.yaml"); err != nil || !strings.Contains(string(text), "provider: sops\n    path: ") {
		t.Errorf("%v\n%s", err, text)
	}
}
