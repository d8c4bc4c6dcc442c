package offline

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kubeop/kubeop/cmd/kubeop/exit"
)

func declares(kind, name, spec string) string {
	return "apiVersion: paas.kubeop.io/v1alpha1\nkind: " + kind + "\nmetadata: {name: " + name + "}\nspec: " + spec + "\n"
}

// platformWith returns a platform repository with two tenants, a default policy, and more files.
func platformWith(t *testing.T, more map[string]string) string {
	files := map[string]string{
		"kubeop.yaml": "layout: v1\n", "policies/standard.yaml": declares("Policy", "standard", "{default: true, images: {allow: [registry.example.com/acme]}}"),
		"tenants/acme/tenant.yaml": declares("Tenant", "acme", "{}"), "tenants/rival/tenant.yaml": declares("Tenant", "rival", "{policies: [lax]}"),
		"policies/lax.yaml": declares("Policy", "lax", "{kinds: {deny: [CronJob.batch]}}"),
	}
	for name, text := range more {
		files[name] = text
	}
	return write(t, files)
}

// TestATenantsRepositoryIsCheckedByThePoliciesOfTheTenant, given by the platform repository or a folder in it.
func TestATenantsRepositoryIsCheckedByThePoliciesOfTheTenant(t *testing.T) {
	const images = "projects/shop/apps/web/app.yaml:6:11: Deployment/web has the image evil.org/web:1, which is not among the allowed ones: registry.example.com/acme; change that in Git, or ask an " +
		"administrator of the cluster to change spec.images.allow of policies/standard.yaml in the platform repository [not-allowed]\n"
	elsewhere := declares("App", "web", "{type: Git, git: {url: \"https://git.evil.org/a\", ref: {branch: main}}}")
	sources := map[string]string{"policies/standard.yaml": declares("Policy", "standard", "{default: true, sources: {git: {allow: [git.example.com]}}}")}
	signed := map[string]string{"policies/standard.yaml": declares("Policy", "standard", "{default: true, images: {allow: [registry.example.com], verify: [{images: [registry.example.com], identities: [{issuer: \"https://a.example\", subject: b}]}]}}")}
	quota := map[string]string{"policies/standard.yaml": declares("Policy", "standard", "{default: true, quota: {max: {pods: \"5\"}}}")}
	const opens = "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: own}\nspec: {podSelector: {}, policyTypes: [Egress]}\n"
	const urgent = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {priorityClassName: urgent, " +
		"containers: [{name: web, image: registry.example.com/acme/web:1}]}}}\n"
	large := strings.Replace(urgent, "priorityClassName: urgent, containers: [{name: web,", "containers: [{name: web, resources: {limits: {memory: 2Gi}},", 1)
	small := map[string]string{"policies/standard.yaml": declares("Policy", "standard", "{default: true, limits: {max: {memory: 1Gi}}}")}
	owning := func(files map[string]string) map[string]string {
		files["projects/shop/project.yaml"] = declares("Project", "shop", "{network: {policies: Own}}")
		return files
	}
	for name, c := range map[string]struct {
		files, platform map[string]string
		// folder is that of --policies, in the platform repository.
		folder string
		tenant string
		want   string
	}{
		"an image that is not allowed":         {files: inApp(strings.Replace(app, "registry.example.com/acme/web:1", "evil.org/web:1", 1), nil), want: images},
		"the folder of the policies":           {files: inApp(strings.Replace(app, "registry.example.com/acme/web:1", "evil.org/web:1", 1), nil), folder: "policies", want: images},
		"what is allowed":                      {files: repository(nil)},
		"another tenant's policies":            {files: inApp(strings.Replace(app, "registry.example.com/acme/web:1", "evil.org/web:1", 1), nil), tenant: "rival"},
		"an app that is not rendered":          {files: inApp(elsewhere, nil), platform: sources, want: "app.yaml:4:25: App/web is fetched from https://git.evil.org/a, which is not among the allowed sources: git.example.com; "},
		"an app from an allowed source":        {files: inApp(strings.Replace(elsewhere, "evil.org", "example.com", 1), nil), platform: sources},
		"a signature, which nobody looks for":  {files: inApp(strings.Replace(app, "web:1", "web@sha256:"+strings.Repeat("a", 64), 1), nil), platform: signed},
		"a quota above the policy's":           {files: repository(map[string]string{"projects/shop/project.yaml": declares("Project", "shop", "{quota: {pods: \"6\"}}")}), platform: quota, want: "projects/shop/project.yaml:4:16: spec.quota requests pods 6, of which 5 is allowed; "},
		"NetworkPolicies of a project":         {files: inApp(folderApp, map[string]string{"m/a.yaml": opens}), want: "NetworkPolicy/own is refused: the platform sets the network policies of a project"},
		"NetworkPolicies that it may have":     {files: owning(inApp(folderApp, map[string]string{"m/a.yaml": opens}))},
		"a PriorityClass of others":            {files: inApp(folderApp, map[string]string{"m/a.yaml": urgent}), want: "m/a.yaml:1: Deployment/web has priorityClassName urgent, with which its pods would push others off their nodes; none is allowed: "},
		"a pod that takes an hour to end":      {files: inApp(folderApp, map[string]string{"m/a.yaml": strings.Replace(urgent, "priorityClassName: urgent", "terminationGracePeriodSeconds: 3601", 1)}), want: "m/a.yaml:1: Deployment/web has terminationGracePeriodSeconds 3601, of which 3600 are allowed: "},
		"a container above a policy's limits":  {files: inApp(folderApp, map[string]string{"m/a.yaml": large}), platform: small, want: "m/a.yaml:1: Deployment/web has the container web with limits.memory 2Gi; at most 1Gi is allowed; change that in Git, or ask an administrator of the cluster to change spec.limits.max of policies/standard.yaml"},
		"what the tenant itself does not have": {files: inApp(folderApp, map[string]string{"m/a.yaml": role}), want: "ClusterRole/all is cluster-scoped; "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			platform := platformWith(t, c.platform)
			out, complaint, err := runFor(t, c.tenant, "--policies", filepath.Join(platform, c.folder), write(t, c.files))
			if (c.want == "") != (err == nil) || c.want != "" && exit.Code(err) != exit.Differences || !strings.Contains(out, c.want) {
				t.Errorf("got %v, %q, %q; want %q", err, out, complaint, c.want)
			}
		})
	}
}

// TestAPlatformWithoutPoliciesSaysWhatTheTenantMayHave: a folder policies/ is not needed.
func TestAPlatformWithoutPoliciesSaysWhatTheTenantMayHave(t *testing.T) {
	platform := write(t, map[string]string{"kubeop.yaml": "layout: v1\n", "tenants/acme/tenant.yaml": declares("Tenant", "acme", "{}")})
	for want, files := range map[string]map[string]string{"": repository(nil), "ClusterRole/all is cluster-scoped; ": inApp(folderApp, map[string]string{"m/a.yaml": role})} {
		out, complaint, err := runFor(t, "", "--policies", platform, write(t, files))
		if want == "" && err != nil || want != "" && exit.Code(err) != exit.Differences || !strings.Contains(out, want) {
			t.Errorf("got %v, %q, %q; want %q", err, out, complaint, want)
		}
	}
}

// TestPoliciesThatAreNotKnownAreAnError: fewer rules would allow more.
func TestPoliciesThatAreNotKnownAreAnError(t *testing.T) {
	tenantFile := filepath.Join(t.TempDir(), "tenant.yaml")
	if err := os.WriteFile(tenantFile, []byte(declares("Tenant", "acme", "{policies: [strict]}")), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		files, platform map[string]string
		tenant          string
		args            []string
		want            string
	}{
		"another tenant":           {tenant: "other", want: "it has no tenants/other/tenant.yaml; name the tenant with --tenant, or its file with --tenant-file"},
		"a tenant with a mistake":  {platform: map[string]string{"tenants/acme/tenant.yaml": declares("Tenant", "acme", "{policies: [strict]}")}, want: `tenants/acme/tenant.yaml:4:19: spec.policies[0]: there is no policy "strict"`},
		"a policy with a mistake":  {platform: map[string]string{"policies/standard.yaml": declares("Policy", "standard", "{defaults: true}")}, want: "policies/standard.yaml:4:8: "},
		"a file's tenant":          {args: []string{"--tenant-file", tenantFile}, want: "does not have: strict"},
		"no layout":                {platform: map[string]string{"kubeop.yaml": "layout: v0\n"}, want: "kubeop.yaml:1:1: "},
		"the platform's own":       {files: map[string]string{"kubeop.yaml": "layout: v1\n", "tenants/acme/tenant.yaml": declares("Tenant", "acme", "{}")}, want: "the platform's is checked by its own policies"},
		"what is not the platform": {args: []string{"--policies", t.TempDir()}, want: "it is in no platform repository: "},
		"nothing":                  {args: []string{"--policies", filepath.Join(t.TempDir(), "none")}, want: "none"},
	} {
		t.Run(name, func(t *testing.T) {
			files := c.files
			if files == nil {
				files = repository(nil)
			}
			_, _, err := runFor(t, c.tenant, append(append([]string{"--policies", platformWith(t, c.platform)}, c.args...), write(t, files))...)
			if err == nil || exit.Code(err) != exit.Failure || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}
