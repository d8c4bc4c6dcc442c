package layout

import "testing"

func TestAMisplacedFileIsSentWhereItBelongs(t *testing.T) {
	const nothing = "nothing is read from here; "
	tests := map[string]struct {
		file     string
		platform bool
		want     string
		declares bool
	}{
		"version":              {"a/kubeop.yml", true, "the layout version belongs in kubeop.yaml at the root", false},
		"tenant":               {"a/Tenant.yaml", true, "a Tenant belongs in tenants/<tenant>/tenant.yaml", true},
		"tenant of a tenant":   {"tenant.yaml", false, "Tenants are declared in the platform repository only", true},
		"project":              {"project/project.yaml", false, "a Project belongs in projects/<project>/project.yaml", true},
		"app":                  {"app.YML", true, "an App belongs in tenants/<tenant>/projects/<project>/apps/<app>/app.yaml", true},
		"what an app may need": {"values.yaml", false, "files an app uses belong in its folder, projects/<project>/apps/<app>/", false},
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
