package layout

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
)

func TestAMisplacedFileIsSentWhereItBelongs(t *testing.T) {
	const nothing = "nothing is read from here; "
	tests := map[string]struct {
		file     string
		platform bool
		want     string
		declares bool
	}{
		"version":                   {"a/kubeop.yml", true, "the layout version belongs in kubeop.yaml at the root", false},
		"tenant":                    {"a/Tenant.yaml", true, "a Tenant belongs in tenants/<tenant>/tenant.yaml", true},
		"tenant of a tenant":        {"tenant.yaml", false, "Tenants are declared in the platform repository only", true},
		"project":                   {"project/project.yaml", false, "a Project belongs in projects/<project>/project.yaml", true},
		"app":                       {"app.YML", true, "an App belongs in tenants/<tenant>/projects/<project>/apps/<app>/app.yaml", true},
		"of Flux":                   {"clusters/production/web.yaml", false, "what Flux reads from such a folder is written as an App in projects/<project>/apps/<app>/app.yaml", false},
		"of Flux itself":            {"gotk-sync.yaml", true, "what Flux reads from such a folder is written as an App in tenants/<tenant>/projects/<project>/apps/<app>/app.yaml", false},
		"of Argo CD":                {"argocd/web.yaml", false, "what Argo CD reads from such a folder is written as an App in projects/<project>/apps/<app>/app.yaml", false},
		"of Flux, by its namespace": {"apps/flux-system/web.yaml", false, "what Flux reads from such a folder is written as an App in projects/<project>/apps/<app>/app.yaml", false},
		"of Argo CD, with a dash":   {"Argo-CD/web.yaml", false, "what Argo CD reads from such a folder is written as an App in projects/<project>/apps/<app>/app.yaml", false},
		"of sets of Argo CD":        {"applicationsets/web.yaml", false, "what Argo CD reads from such a folder is written as an App in projects/<project>/apps/<app>/app.yaml", false},
		"what an app may need":      {"values.yaml", false, "files an app uses belong in its folder, projects/<project>/apps/<app>/", false},
		"policy":                    {"policy.yml", true, "a Policy belongs in policies/<policy>.yaml, a file of its own directly in that folder of the root", false},
		"policy in a folder":        {"policies/images/baseline.yaml", true, "a Policy belongs in policies/<policy>.yaml, a file of its own directly in that folder of the root", false},
		"policy of a tenant":        {"policies/baseline.yaml", false, "Policies are declared in policies/<policy>.yaml of the platform repository only", false},
		"named like one":            {"a/Policy.yaml", false, "Policies are declared in policies/<policy>.yaml of the platform repository only", false},
		"below a tenant":            {"tenants/acme/policies/baseline.yaml", true, "a Policy belongs in policies/<policy>.yaml, a file of its own directly in that folder of the root", false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Belongs(tc.file, tc.platform); got != nothing+tc.want {
				t.Errorf("got %q, want %q", got, nothing+tc.want)
			}
			if got := Declares(tc.file); got != tc.declares {
				t.Errorf("it is named like a declaration: %t, want %t", got, tc.declares)
			}
		})
	}
}

func TestAMisplacedFileOfThePlatformIsSentWhereItBelongs(t *testing.T) {
	const nothing = "nothing is read from here; "
	for file, want := range map[string]string{
		"platform/project.yaml":             "a Project belongs in platform/<project>/project.yaml",
		"platform/ingress/nginx/app.yaml":   "an App belongs in platform/<project>/apps/<app>/app.yaml",
		"platform/ingress/values.yaml":      "files an app uses belong in its folder, platform/<project>/apps/<app>/",
		"tenants/platform/tenant.yaml":      "the platform itself is no tenant: its projects belong in platform/<project>/project.yaml, without a tenant.yaml",
		"platform/ingress/apps/kubeop.yaml": "the layout version belongs in kubeop.yaml at the root",
	} {
		if !OfPlatform(file) {
			t.Errorf("%s is not taken for the platform's", file)
		}
		if got := BelongsToPlatform(file, true); got != nothing+want {
			t.Errorf("%s: got %q, want %q", file, got, nothing+want)
		}
	}
	for _, file := range []string{"platforms/a/project.yaml", "tenants/acme/platform/project.yaml", "tenants/platforms/tenant.yaml"} {
		if OfPlatform(file) {
			t.Errorf("%s is taken for the platform's", file)
		}
	}
}

func TestAnOperatorWithoutAppsOfThePlatformSaysSo(t *testing.T) {
	for file, says := range map[string]string{
		"platform/ingress/project.yaml": "as platformApps of the values of kubeop's chart",
		"platform/tenant.yaml":          "as platformApps of the values of kubeop's chart",
		"tenants/platform/tenant.yaml":  "nothing is read from here; the platform itself is no tenant: its projects belong in platform/<project>/project.yaml, without a tenant.yaml",
	} {
		if got := BelongsToPlatform(file, false); !strings.Contains(got, says) {
			t.Errorf("%s: got %q, want %q", file, got, says)
		}
	}
}

// entry is an entry of a folder.
type entry struct {
	fs.DirEntry
	name string
	mode fs.FileMode
}

func (e entry) Name() string      { return e.name }
func (e entry) Type() fs.FileMode { return e.mode }
func (e entry) IsDir() bool       { return e.mode.IsDir() }

// TestAnEntryThatCannotBeReadSaysWhy and is not walked into: ".." would make the walk endless.
func TestAnEntryThatCannotBeReadSaysWhy(t *testing.T) {
	for name, tc := range map[string]struct {
		entry entry
		says  string
		skip  bool
	}{
		"a file":              {entry{name: "app.yaml"}, "", false},
		"a folder":            {entry{name: "web", mode: fs.ModeDir}, "", true},
		"the folder itself":   {entry{name: ".", mode: fs.ModeDir}, "this is not a usable file name", true},
		"the folder above":    {entry{name: "..", mode: fs.ModeDir}, "this is not a usable file name", true},
		"no name":             {entry{}, "this is not a usable file name", false},
		"a path as a name":    {entry{name: "../web/app.yaml"}, "this is not a usable file name", false},
		"a path below":        {entry{name: "web/app.yaml"}, "this is not a usable file name", false},
		"no UTF-8":            {entry{name: "\xff.yaml"}, "this is not a usable file name", false},
		"a symlink":           {entry{name: "app.yaml", mode: fs.ModeSymlink}, "symlinks are not followed; commit the file itself", false},
		"a submodule":         {entry{name: "web", mode: fs.ModeDir | fs.ModeIrregular}, "submodules are not fetched; commit the files themselves", true},
		"a socket":            {entry{name: "app.yaml", mode: fs.ModeSocket}, "only regular files and folders are read", false},
		"a file with 2 dots":  {entry{name: "..app.yaml"}, "", false},
		"a file in uppercase": {entry{name: "APP.YAML"}, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Unusable(tc.entry); got != tc.says {
				t.Errorf("got %q, want %q", got, tc.says)
			}
			if got := SkipUnusable(tc.entry); errors.Is(got, fs.SkipDir) != tc.skip || !tc.skip && got != nil {
				t.Errorf("a walk gets %v, skips: %t", got, tc.skip)
			}
		})
	}
}

func TestNamesOfFilesAreComparedWithoutCase(t *testing.T) {
	for name, tc := range map[string]struct {
		file                  string
		nearly, yaml, ignored bool
	}{
		"the name":               {"app.yaml", true, true, false},
		"another extension":      {"app.yml", true, true, false},
		"uppercase":              {"App.YAML", true, true, false},
		"no extension":           {"app", false, false, false},
		"JSON":                   {"app.json", false, false, false},
		"another name":           {"apps.yaml", false, true, false},
		"only an extension":      {".yaml", false, true, true},
		"hidden":                 {".github", false, false, true},
		"for readers":            {"readme.md", false, false, true},
		"for readers, in German": {"README.de.md", false, false, true},
		"a license":              {"License", false, false, true},
		"a folder of docs":       {"docs", false, false, true},
		"another folder":         {"docs2", false, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Nearly(tc.file, AppFile); got != tc.nearly {
				t.Errorf("it is nearly app.yaml: %t, want %t", got, tc.nearly)
			}
			if got := IsYAML(tc.file); got != tc.yaml {
				t.Errorf("it is YAML: %t, want %t", got, tc.yaml)
			}
			if got := IgnoredAtRoot(tc.file); got != tc.ignored {
				t.Errorf("it is ignored at the root: %t, want %t", got, tc.ignored)
			}
		})
	}
}

// TestANameIsJoinedAsItIs: one that leads out of its folder stays visible to who checks it.
func TestANameIsJoinedAsItIs(t *testing.T) {
	for want, at := range map[string][2]string{"app.yaml": {".", "app.yaml"}, "projects/shop": {"projects", "shop"}, "projects/..": {"projects", ".."}, "..": {".", ".."}} {
		if got := Join(at[0], at[1]); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestAFileLooksLikeAPolicyByItsNameOrItsFolder(t *testing.T) {
	for file, want := range map[string]bool{
		"policy.yaml": true, "a/Policy.yml": true, "policies/baseline.yml": true, "tenants/policies/baseline.yaml": true, "Policies/a/b.yaml": true,
		"policies/README.md": false, "policy/baseline.yaml": false, "policies.yaml": false,
	} {
		if got := DeclaresByName(file); got != want {
			t.Errorf("%s: %t, want %t", file, got, want)
		}
	}
	if got := PolicyFile(NameOf("policies/baseline.YML")); got != "policies/baseline.yaml" {
		t.Errorf("the policy of policies/baseline.YML is in %s", got)
	}
}
