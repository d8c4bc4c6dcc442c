package docs

import (
	"os"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/gitops/check"
	"github.com/kubeop/kubeop/gitops/document"
	"github.com/kubeop/kubeop/gitops/identity"
)

// TestTheExamplesOfTheDocsAreValid checks each document of kubeop in a block of YAML in README.md and docs/ as the operator checks a pushed file.
// Blocks without an apiVersion are parts of a document.
func TestTheExamplesOfTheDocsAreValid(t *testing.T) {
	kinds, err := check.Compile()
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, page := range pages(t) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for i, example := range examples(string(text)) {
			checked++
			for _, problem := range problems(kinds, example) {
				t.Errorf("%s: example %d: %s\n%s", page, i+1, problem, example)
			}
		}
	}
	if checked < 18 {
		t.Errorf("%d examples were found; there are more", checked)
	}
}

// examples returns the documents of kubeop in the blocks of YAML on a page.
func examples(page string) (found []string) {
	block, in := "", false
	for line := range strings.Lines(page) {
		fence := strings.HasPrefix(strings.TrimSpace(line), "```")
		switch {
		case fence && in:
			for part := range strings.SplitSeq("\n"+block, "\n---") {
				if strings.Contains(part, "apiVersion: "+v1alpha1.GroupVersion.String()) {
					found = append(found, strings.TrimSpace(part)+"\n")
				}
			}
			block, in = "", false
		case fence:
			in = strings.TrimSpace(line) == "```yaml"
		case in:
			block += line
		}
	}
	return found
}

// problems returns what the operator would report of a file with this content.
func problems(kinds check.Kinds, example string) (all []string) {
	about := &v1alpha1.Project{}
	if err := yaml.Unmarshal([]byte(example), about); err != nil && about.Kind == "" {
		return []string{err.Error()}
	}
	at := map[string]identity.Ref{
		v1alpha1.PolicyKind: {Policy: about.Name}, v1alpha1.RegistryKind: {Registry: about.Name}, v1alpha1.PriceListKind: {PriceList: about.Name}, v1alpha1.ClusterKind: {Cluster: about.Name}, v1alpha1.TenantKind: {Tenant: about.Name}, v1alpha1.ProjectKind: {Tenant: "acme", Project: about.Name}, v1alpha1.AppKind: {Tenant: "acme", Project: "shop", App: about.Name},
	}
	ref, declared := at[about.Kind]
	if about.Kind == v1alpha1.ProjectKind && strings.Contains(example, "\n  namespace:") {
		ref.Tenant = v1alpha1.PlatformTenant // Only a project of the platform itself may set it.
	}
	if !declared { // Nobody pushes these.
		kind := map[string]any{
			v1alpha1.RepositoryKind: &v1alpha1.Repository{}, v1alpha1.HostnameClaimKind: &v1alpha1.HostnameClaim{}, v1alpha1.GuardrailsKind: &v1alpha1.Guardrails{},
		}[about.Kind]
		if err := yaml.UnmarshalStrict([]byte(example), kind); err != nil || kind == nil {
			return []string{"it is no valid Repository, HostnameClaim or Guardrails", example}
		}
		return nil
	}
	for _, finding := range kinds.Object(document.Parse("example.yaml", []byte(example)), ref, false).Findings {
		all = append(all, finding.Why)
	}
	return all
}

// TestAWrongExampleIsFound proves that the test above can fail.
func TestAWrongExampleIsFound(t *testing.T) {
	kinds, err := check.Compile()
	if err != nil {
		t.Fatal(err)
	}
	const app = "apiVersion: paas.kubeop.io/v1alpha1\nkind: App\nmetadata: {name: web}\nspec: {type: Image, image: {reference: nginx}%s}\n"
	page := "```yaml\n" + strings.Replace(app, "%s", "", 1) + "---\n" + strings.Replace(app, "%s", ", replica: 2", 1) + "```\n```sh\n" + app + "```\n"
	found := examples(page)
	if len(found) != 2 {
		t.Fatalf("found %q", found)
	}
	if got := problems(kinds, found[0]); len(got) != 0 {
		t.Errorf("the good one: %q", got)
	}
	if got := problems(kinds, found[1]); len(got) != 1 || !strings.Contains(got[0], "replica") {
		t.Errorf("the wrong one: %q", got)
	}
}
