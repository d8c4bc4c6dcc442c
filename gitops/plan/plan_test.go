package plan

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/gitops/tree"
)

// object makes what a path such as "acme", "acme/shop" or "acme/shop/web" declares.
func object(path string) client.Object {
	part := strings.Split(path, "/")
	meta := metav1.ObjectMeta{Name: part[len(part)-1]}
	kind := func(k string) metav1.TypeMeta {
		return metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: k}
	}
	switch len(part) {
	case 1:
		return &v1alpha1.Tenant{TypeMeta: kind(v1alpha1.TenantKind), ObjectMeta: meta}
	case 2:
		meta.Namespace = v1alpha1.HomeNamespace(part[0])
		return &v1alpha1.Project{TypeMeta: kind(v1alpha1.ProjectKind), ObjectMeta: meta}
	}
	meta.Namespace = v1alpha1.ProjectNamespace(part[0], part[1])
	return &v1alpha1.App{TypeMeta: kind(v1alpha1.AppKind), ObjectMeta: meta}
}

func treeOf(paths []string, problems ...tree.Problem) *tree.Tree {
	t := &tree.Tree{Problems: problems}
	for _, p := range paths {
		switch o := object(p).(type) {
		case *v1alpha1.Tenant:
			t.Tenants = append(t.Tenants, o)
		case *v1alpha1.Project:
			t.Projects = append(t.Projects, o)
		case *v1alpha1.App:
			t.Apps = append(t.Apps, o)
		}
	}
	return t
}

func recordOf(paths ...string) []v1alpha1.InventoryEntry {
	var all []v1alpha1.InventoryEntry
	for _, p := range paths {
		all = append(all, Entry(object(p)))
	}
	return all
}

// paths turns entries back into what the tests write; entries that are not ours stay as they are.
func paths(list []v1alpha1.InventoryEntry) []string {
	all := []string{}
	for _, e := range list {
		r := read(e)
		switch {
		case !r.ours():
			all = append(all, e.ID)
		case r.id.Kind == v1alpha1.AppKind:
			all = append(all, r.tenant+"/"+r.project+"/"+r.id.Name)
		default:
			all = append(all, strings.TrimSuffix(r.tenant+"/"+r.project, "/"))
		}
	}
	return all
}

func words(s string) []string { return strings.Fields(s) }

func TestMake(t *testing.T) {
	tests := map[string]struct {
		declares, recorded        string
		problems                  []tree.Problem
		confirmed                 bool
		apply, keep, delete, held string
	}{
		"first commit": {
			declares: "acme/shop/web acme acme/shop acme/shop-2/web acme/shop-2",
			apply:    "acme acme/shop acme/shop-2 acme/shop/web acme/shop-2/web",
		},
		"nothing changed":        {declares: "acme acme/shop", recorded: "acme acme/shop", apply: "acme acme/shop"},
		"nothing, nothing known": {},
		"an app is removed": {
			declares: "acme acme/shop", recorded: "acme acme/shop acme/shop/web",
			apply: "acme acme/shop", delete: "acme/shop/web",
		},
		"a project implies its apps": {
			declares: "acme acme/blog acme/blog/web", recorded: "acme acme/blog acme/blog/web acme/shop acme/shop/web acme/shop/api",
			apply: "acme acme/blog acme/blog/web", delete: "acme/shop",
		},
		"a tenant implies everything, another's name that begins alike does not": {
			declares: "acmes", recorded: "acme acme/shop acme/shop/web acmes acmes/shop acmes/shop/web",
			apply: "acmes", delete: "acmes/shop acme",
		},
		"projects whose names begin alike": {
			declares: "acme acme/shop-2", recorded: "acme acme/shop acme/shop-2 acme/shop-2/web",
			apply: "acme acme/shop-2", delete: "acme/shop-2/web acme/shop",
		},
		"apps before projects before tenants": {
			declares: "a a/x b b/y", recorded: "a a/x a/x/web a/y b b/y c",
			apply: "a b a/x b/y", delete: "a/x/web a/y c",
		},
		"a held project keeps what is recorded of it": {
			declares: "acme", problems: []tree.Problem{{Tenant: "acme", Project: "shop"}},
			recorded: "acme acme/shop acme/shop/web acme/shop/api acme/blog",
			apply:    "acme", keep: "acme/shop acme/shop/web acme/shop/api", delete: "acme/blog",
		},
		"a held tenant keeps all of it": {
			declares: "zeta", problems: []tree.Problem{{Tenant: "acme"}},
			recorded: "acme acme/shop acme/shop/web zeta", apply: "zeta", keep: "acme acme/shop acme/shop/web",
		},
		"a held repository keeps everything": {
			problems: []tree.Problem{{File: "kubeop.yaml"}}, confirmed: true,
			recorded: "acme acme/shop acme/shop/web", keep: "acme acme/shop acme/shop/web",
		},
		"a tenant that goes is kept for a held project": {
			declares: "zeta", problems: []tree.Problem{{Tenant: "acme", Project: "shop"}},
			recorded: "acme acme/shop zeta", apply: "zeta", keep: "acme acme/shop",
		},
		"an emptied tree is held":      {recorded: "acme/shop", held: "acme/shop"},
		"an emptied tree is confirmed": {recorded: "acme/shop acme/shop/web", confirmed: true, delete: "acme/shop"},
		"more than half and more than five are held, implied ones counted": {
			declares: "a a/x", recorded: "a a/x a/y a/y/1 a/y/2 a/y/3 a/y/4 a/y/5",
			apply: "a a/x", held: "a/y/1 a/y/2 a/y/3 a/y/4 a/y/5 a/y",
		},
		"held and confirmed": {
			declares: "a a/x", recorded: "a a/x a/y a/y/1 a/y/2 a/y/3 a/y/4 a/y/5", confirmed: true,
			apply: "a a/x", delete: "a/y",
		},
		"more than half but only five go": {
			declares: "a", recorded: "a a/y a/y/1 a/y/2 a/y/3 a/y/4", apply: "a", delete: "a/y",
		},
		"more than five but only half go": {
			declares: "a a/x a/x/1 a/x/2 a/x/3 a/x/4", recorded: "a a/x a/x/1 a/x/2 a/x/3 a/x/4 a/y a/y/1 a/y/2 a/y/3 a/y/4 a/y/5",
			apply: "a a/x a/x/1 a/x/2 a/x/3 a/x/4", delete: "a/y",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p := Make(treeOf(words(tc.declares), tc.problems...), recordOf(words(tc.recorded)...), tc.confirmed)
			var applied []v1alpha1.InventoryEntry
			for _, o := range p.Apply {
				applied = append(applied, Entry(o))
			}
			got := map[string][]string{"apply": paths(applied), "keep": paths(p.Keep), "delete": paths(p.Delete), "held": paths(p.Held)}
			want := map[string][]string{"apply": words(tc.apply), "keep": words(tc.keep), "delete": words(tc.delete), "held": words(tc.held)}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
		})
	}
}

// What another version recorded, or nobody can read, is never deleted, not even by a confirmed commit.
func TestMakeKeepsWhatItDoesNotUnderstand(t *testing.T) {
	recorded := []v1alpha1.InventoryEntry{
		{ID: "garbage"}, {ID: "_restricted_paas.kubeop.io_Policy"}, {ID: "kubeop-acme-shop_www_paas.kubeop.io_DNSRecord"},
		{ID: "kubeop-acme_shop_apps_Project"}, {ID: "elsewhere_web_paas.kubeop.io_App"}, {ID: "kubeop-acme_web_paas.kubeop.io_App"},
		{ID: "somewhere_acme_paas.kubeop.io_Tenant"},
	}
	p := Make(treeOf([]string{"acme"}), recorded, true)
	if diff := cmp.Diff(recorded, p.Keep); diff != "" || len(p.Delete)+len(p.Held) > 0 {
		t.Errorf("kept (-want +got):\n%s\ndelete %v, held %v", diff, p.Delete, p.Held)
	}
}

// The record is Flux's form, which other tools read.
func TestEntry(t *testing.T) {
	want := v1alpha1.InventoryEntry{ID: "kubeop-acme-shop_web_paas.kubeop.io_App", Version: "v1alpha1"}
	if diff := cmp.Diff(want, Entry(object("acme/shop/web"))); diff != "" {
		t.Error(diff)
	}
}

// Whatever was recorded and whatever a commit says: nothing recorded is forgotten, nothing is deleted that is declared
// or that a problem holds back, and nothing is deleted that was not recorded.
func TestMakeProperties(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 1))
		recorded := recordOf(somePaths(r)...)
		commit := treeOf(nil, someProblems(r)...)
		commit = treeOf(slices.DeleteFunc(somePaths(r), func(p string) bool { return held(commit, p) }), commit.Problems...)
		p := Make(commit, recorded, r.IntN(2) == 0)
		if why := broken(p, commit, recorded); why != "" {
			t.Fatalf("seed %d: %s\nrecorded %v\nproblems %+v\nplan %+v", seed, why, paths(recorded), commit.Problems, p)
		}
	}
}

func broken(p Plan, commit *tree.Tree, recorded []v1alpha1.InventoryEntry) string {
	declared := map[string]bool{}
	for _, o := range p.Apply {
		declared[Entry(o).ID] = true
	}
	takes := func(e v1alpha1.InventoryEntry) bool { // deleted itself, or with what it is in
		path := paths([]v1alpha1.InventoryEntry{e})[0] + "/"
		return slices.ContainsFunc(paths(p.Delete), func(d string) bool { return strings.HasPrefix(path, d+"/") })
	}
	for _, e := range recorded {
		path := paths([]v1alpha1.InventoryEntry{e})[0]
		stays := slices.Contains(p.Keep, e) || slices.Contains(p.Held, e) || declared[e.ID]
		switch {
		case takes(e) == stays:
			return fmt.Sprintf("%s is neither one nor the other: goes %t, stays %t", path, takes(e), stays)
		case takes(e) && held(commit, path):
			return path + " goes though a problem holds it"
		}
	}
	for _, e := range slices.Concat(p.Delete, p.Keep, p.Held) {
		if !slices.Contains(recorded, e) {
			return e.ID + " was never recorded"
		}
	}
	return ""
}

func held(t *tree.Tree, path string) bool {
	part := append(strings.Split(path, "/"), "")
	return slices.ContainsFunc(t.Problems, func(p tree.Problem) bool { return p.Holds(part[0], part[1]) })
}

// somePaths declares a random part of three tenants; what is inside something is declared only with it, as in files.
func somePaths(r *rand.Rand) []string {
	var all []string
	some := func(n int) bool { return r.IntN(n) > 0 }
	for _, tenant := range []string{"a", "ab", "b"} {
		if !some(4) {
			continue
		}
		all = append(all, tenant)
		for _, project := range []string{"x", "x-1", "y"} {
			if !some(4) {
				continue
			}
			all = append(all, tenant+"/"+project)
			for i := range r.IntN(5) {
				all = append(all, fmt.Sprintf("%s/%s/app%d", tenant, project, i))
			}
		}
	}
	return all
}

func someProblems(r *rand.Rand) []tree.Problem {
	var all []tree.Problem
	for range r.IntN(3) {
		p := tree.Problem{Tenant: []string{"a", "ab", "b"}[r.IntN(3)], Project: []string{"", "x", "x-1", "y"}[r.IntN(4)]}
		if r.IntN(10) == 0 {
			p = tree.Problem{}
		}
		all = append(all, p)
	}
	return all
}
