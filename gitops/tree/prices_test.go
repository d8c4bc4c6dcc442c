package tree

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/gitops/identity"
)

const listed = `{default: true, currency: EUR, meters: [{name: pods, unit: hour, periods: [{from: "2026-01-01", tiers: [{price: "1"}]}]}]}`

// withPrices is a platform repository with a default price list, and another one for one tenant.
func withPrices() map[string]string {
	texts := withPolicies()
	texts["prices/standard.yaml"] = declaration("PriceList", "standard", listed)
	texts["prices/partners.yaml"] = declaration("PriceList", "partners", "{currency"+listed[len("{default: true, currency"):])
	texts["tenants/rival/tenant.yaml"] = declaration("Tenant", "rival", "{priceList: partners}")
	return texts
}

// TestAPriceListIsStampedWithItsCommit: so each price has an author and a date.
func TestAPriceListIsStampedWithItsCommit(t *testing.T) {
	tree := fresh(filesOf(withPrices()), Scope{Repository: "platform"})
	if found := problems(tree); len(found) > 0 || tree.Counts().PriceLists != 2 {
		t.Fatalf("%d price lists, problems: %v", tree.Counts().PriceLists, found)
	}
	node, there := tree.Find(identity.Ref{PriceList: "standard"})
	if !there || tree.File(node) != "prices/standard.yaml" {
		t.Fatal("the price list is not read")
	}
	list, is := tree.Object(node, revision).(*v1alpha1.PriceList)
	if !is || !list.Spec.Default || list.Labels[v1alpha1.RepositoryLabel] != "platform" || list.Annotations[v1alpha1.RevisionAnnotation] != revision || list.Annotations[v1alpha1.FolderAnnotation] != "prices/standard.yaml" {
		t.Errorf("it is %v", list)
	}
}

// TestAPriceListIsRefusedUntilOtherFilesAreRight: a second default and a name without a file are refused, and what is refused is accepted again once the other file is right.
func TestAPriceListIsRefusedUntilOtherFilesAreRight(t *testing.T) {
	for name, c := range map[string]struct {
		change func(map[string]string)
		want   []string
	}{
		"a second default": {func(m map[string]string) { m["prices/partners.yaml"] = declaration("PriceList", "partners", listed) }, []string{
			"prices/partners.yaml:4:8: spec.default: prices/standard.yaml is the default, too; take it out of one of the two [second-default]",
			"prices/standard.yaml:4:8: spec.default: prices/partners.yaml is the default, too; take it out of one of the two [second-default]"}},
		"a name without a file": {func(m map[string]string) { delete(m, "prices/partners.yaml") }, []string{
			`tenants/rival/tenant.yaml:4:8: spec.priceList: there is no price list "partners"; add prices/partners.yaml, or remove the name [unknown-price-list]`}},
		"a file in a wrong folder": {func(m map[string]string) { m["tenants/acme/prices/more.yaml"] = listed }, []string{
			"tenants/acme/prices/more.yaml: nothing is read from here; a PriceList belongs in prices/<pricelist>.yaml, a file of its own directly in that folder of the root [misplaced-file]"}},
	} {
		t.Run(name, func(t *testing.T) {
			texts := withPrices()
			sound := fresh(filesOf(texts), Scope{})
			right := maps.Clone(texts)
			c.change(texts)
			wrong := shared.Read(filesOf(texts), Scope{}, sound)
			if diff := cmp.Diff(c.want, textsOf(problems(wrong))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if again := shared.Read(filesOf(texts), Scope{}, wrong); len(problems(again)) != len(c.want) || again.PriceLists[0] != wrong.PriceLists[0] {
				t.Errorf("the same commit read again has the problems %v", problems(again))
			}
			if healed := shared.Read(filesOf(right), Scope{}, wrong); len(problems(healed)) > 0 || healed.Counts() != sound.Counts() {
				t.Errorf("the files are right again, with the problems %v", problems(healed))
			}
		})
	}
}

// TestPriceListsAreOfThePlatform: a tenant's repository cannot set prices.
func TestPriceListsAreOfThePlatform(t *testing.T) {
	tree := fresh(filesOf(map[string]string{"kubeop.yaml": "layout: v1\n", "prices/standard.yaml": declaration("PriceList", "standard", listed)}), Scope{Tenant: "acme"})
	want := []string{"prices/standard.yaml: nothing is read from here; PriceLists are declared in prices/<pricelist>.yaml of the platform repository only [misplaced-file]"}
	if diff := cmp.Diff(want, textsOf(problems(tree))); diff != "" || tree.Counts().Objects() != 0 {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestPriceListsThatCannotBeReadStay: their deletion does not follow from a folder that is a symlink.
func TestPriceListsThatCannotBeReadStay(t *testing.T) {
	files := filesOf(withPolicies())
	files["prices"] = link("elsewhere")
	tree := fresh(files, Scope{})
	if ref := (identity.Ref{PriceList: "standard"}); tree.Covers(ref) || !tree.Covers(baseline) {
		t.Error("price lists are gone though their folder could not be read")
	}
}

func textsOf(all []Problem) (texts []string) {
	for _, p := range all {
		texts = append(texts, p.String())
	}
	return texts
}

// TestChangesOfPriceListsAreFound: a new, a changed and a deleted one.
func TestChangesOfPriceListsAreFound(t *testing.T) {
	texts := withPrices()
	before := fresh(filesOf(texts), Scope{})
	texts["prices/a.yaml"] = strings.Replace(texts["prices/partners.yaml"], "name: partners", "name: a", 1)
	texts["prices/partners.yaml"] += "# more\n"
	delete(texts, "prices/standard.yaml")
	var got []string
	Changes(before, shared.Read(filesOf(texts), Scope{}, before), func(ref identity.Ref) { got = append(got, ref.String()) })
	if diff := cmp.Diff([]string{"PriceList a", "PriceList partners", "PriceList standard"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
