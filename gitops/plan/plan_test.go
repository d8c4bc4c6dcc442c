package plan

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubeop/kubeop/gitops/identity"
)

// loss makes what a path such as "acme", "acme/shop" or "acme/shop/web" names, with so many apps below it.
func loss(path string, apps int, claims ...Claim) Loss {
	part := append(strings.Split(path, "/"), "", "")
	l := Loss{Ref: identity.Ref{Tenant: part[0], Project: part[1], App: part[2]}, UID: "uid of " + path, Apps: apps, Claims: claims}
	if apps > 0 {
		l.Namespaces = []string{"kubeop-" + strings.ReplaceAll(path, "/", "-")}
	}
	return l
}

// policy is one that so many tenants are under.
func policy(name string, tenants int) Loss {
	return Loss{Ref: identity.Ref{Policy: name}, UID: "uid of " + name, Tenants: tenants}
}

// registry is one whose credentials so many projects have.
func registry(name string, projects int) Loss {
	return Loss{Ref: identity.Ref{Registry: name}, UID: "uid of " + name, Projects: projects}
}

func data(name string, goes bool) Claim {
	return Claim{Namespace: "kubeop-acme-shop", Name: name, UID: "uid of " + name, Size: "10Gi", Goes: goes}
}

func paths(losses []Loss) []string {
	all := []string{}
	for _, l := range losses {
		all = append(all, l.Ref.Path())
	}
	return all
}

const revision = "main@sha1:0123456789abcdef0123456789abcdef01234567"

func TestWeighHoldsLargeDeletionsAndThoseOfData(t *testing.T) {
	apps := func(n int) (all []Loss) {
		for i := range n {
			all = append(all, loss(fmt.Sprintf("acme/shop/app%d", i), 0))
		}
		return all
	}
	tests := map[string]struct {
		commit    Commit
		goes, why string
		held      string
	}{
		"an app":                    {commit: Commit{Losses: apps(1), Apps: map[string]int{"acme": 1}}, goes: "acme/shop/app0"},
		"five of five apps":         {commit: Commit{Losses: apps(5), Apps: map[string]int{"acme": 5}}, goes: "acme/shop/app0 acme/shop/app1 acme/shop/app2 acme/shop/app3 acme/shop/app4"},
		"six of thirty apps":        {commit: Commit{Losses: apps(6), Apps: map[string]int{"acme": 30}}, goes: "acme/shop/app0 acme/shop/app1 acme/shop/app2 acme/shop/app3 acme/shop/app4 acme/shop/app5"},
		"six of 29 apps":            {commit: Commit{Losses: apps(6), Apps: map[string]int{"acme": 29}}, held: "acme/shop/app0 acme/shop/app1 acme/shop/app2 acme/shop/app3 acme/shop/app4 acme/shop/app5", why: "it removes 6 of 29 apps of tenant acme"},
		"a project without data":    {commit: Commit{Losses: []Loss{loss("acme/shop", 2)}, Apps: map[string]int{"acme": 3}}, goes: "acme/shop"},
		"a project of many apps":    {commit: Commit{Losses: []Loss{loss("acme/shop", 6)}, Apps: map[string]int{"acme": 7}}, held: "acme/shop", why: "it removes 6 of 7 apps of tenant acme"},
		"two projects of many apps": {commit: Commit{Losses: []Loss{loss("acme/a", 3), loss("acme/b", 3)}, Apps: map[string]int{"acme": 7}}, held: "acme/a acme/b", why: "it removes 6 of 7 apps of tenant acme"},
		"a project that holds data": {commit: Commit{Losses: []Loss{loss("acme/shop", 1, data("disk", false))}, Apps: map[string]int{"acme": 50}}, held: "acme/shop", why: "it removes a project that holds data"},
		"a tenant":                  {commit: Commit{Losses: []Loss{loss("acme", 0)}, Apps: map[string]int{"acme": 0}}, held: "acme", why: "it removes a tenant"},
		"one is held, another goes": {commit: Commit{Losses: []Loss{loss("acme", 0), loss("zeta/shop/web", 0)}, Apps: map[string]int{"zeta": 1}}, held: "acme", goes: "zeta/shop/web", why: "it removes a tenant"},
		"apps before projects":      {commit: Commit{Losses: []Loss{loss("acme/shop", 1), loss("acme/blog/web", 0)}, Apps: map[string]int{"acme": 2}}, goes: "acme/blog/web acme/shop"},
		"projects before tenants":   {commit: Commit{Losses: []Loss{loss("acme", 0), loss("zeta/shop", 1, data("disk", false))}}, held: "zeta/shop acme", why: "it removes a project that holds data"},
		"apps of two tenants":       {commit: Commit{Losses: []Loss{loss("acme/shop", 5), loss("zeta/shop", 5)}, Apps: map[string]int{"acme": 6, "zeta": 6}}, goes: "acme/shop zeta/shop"},
		"apps beside previews": {commit: Commit{Losses: []Loss{loss("acme/shop", 5), {Ref: identity.Ref{Tenant: "acme", Project: "shop-pr-a"}, UID: "1", Apps: 5, Preview: true}},
			Apps: map[string]int{"acme": 12}}, goes: "acme/shop acme/shop-pr-a"},
		"what is inside goes with it":      {commit: Commit{Losses: []Loss{loss("acme/shop/web", 0), loss("acme/shop", 1)}, Apps: map[string]int{"acme": 2}}, goes: "acme/shop"},
		"names that begin alike":           {commit: Commit{Losses: []Loss{loss("acme/shop", 0), loss("acme/shop-2/web", 0)}, Apps: map[string]int{"acme": 2}}, goes: "acme/shop-2/web acme/shop"},
		"an emptied tree":                  {commit: Commit{Losses: apps(1), Apps: map[string]int{"acme": 1}, Emptied: true}, held: "acme/shop/app0", why: "it declares nothing any more"},
		"a foreign tree":                   {commit: Commit{Losses: apps(1), Apps: map[string]int{"acme": 1}, Foreign: true}, held: "acme/shop/app0", why: "it declares nothing of what runs, as another repository would"},
		"a declaration that was misplaced": {commit: Commit{Losses: apps(1), Apps: map[string]int{"acme": 9}, Misplaced: "project/shop/project.yaml"}, held: "acme/shop/app0", why: "nothing is read from project/shop/project.yaml, which may be what is missing"},
		"a project that moves": {commit: Commit{Losses: []Loss{{Ref: identity.Ref{Tenant: "acme", Project: "shop"}, UID: "1", Cluster: "east"}, loss("acme/shop/web", 0)}, Apps: map[string]int{"acme": 9}},
			held: "acme/shop", why: "it places project acme/shop on cluster east, and nothing of what it has here goes along"},
		"a preview that moves": {commit: Commit{Losses: []Loss{{Ref: identity.Ref{Tenant: "acme", Project: "shop-pr-a"}, UID: "1", Cluster: "east", Preview: true}}},
			held: "acme/shop-pr-a", why: "it places project acme/shop-pr-a on cluster east, and nothing of what it has here goes along"},
		"a tenant that moves": {commit: Commit{Losses: []Loss{{Ref: identity.Ref{Tenant: "acme"}, UID: "1", Cluster: "east, north"}}},
			held: "acme", why: "it places tenant acme on cluster east, north, and nothing of what it has here goes along"},
		"a policy":                    {commit: Commit{Losses: []Loss{policy("strict", 0)}}, goes: "strict"},
		"a policy of a tenant":        {commit: Commit{Losses: []Loss{policy("strict", 1)}}, held: "strict", why: "it removes a policy that 1 tenant is under"},
		"a policy of many tenants":    {commit: Commit{Losses: []Loss{policy("base", 7), policy("strict", 0)}}, goes: "strict", held: "base", why: "it removes a policy that 7 tenants are under"},
		"policies after tenants":      {commit: Commit{Losses: []Loss{policy("a", 1), loss("zeta", 0)}}, held: "zeta a", why: "it removes a tenant"},
		"a registry":                  {commit: Commit{Losses: []Loss{registry("hub", 0)}}, goes: "hub"},
		"a registry of a project":     {commit: Commit{Losses: []Loss{registry("hub", 1)}}, held: "hub", why: "it removes a registry whose credentials 1 project has"},
		"a registry of many projects": {commit: Commit{Losses: []Loss{registry("hub", 2)}}, held: "hub", why: "it removes a registry whose credentials 2 projects have"},
		"a preview beside many apps": {commit: Commit{Losses: append(apps(6), Loss{Ref: identity.Ref{Tenant: "acme", Project: "shop-pr-a"}, UID: "1", Apps: 1, Preview: true}),
			Apps: map[string]int{"acme": 7}}, goes: "acme/shop-pr-a", held: "acme/shop/app0 acme/shop/app1 acme/shop/app2 acme/shop/app3 acme/shop/app4 acme/shop/app5", why: "it removes 6 of 7 apps of tenant acme"},
		"nothing": {commit: Commit{Emptied: true}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tc.commit.Revision = revision
			v := tc.commit.Weigh("")
			if diff := cmp.Diff(strings.Fields(tc.goes), paths(v.Go)); diff != "" {
				t.Errorf("go (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(strings.Fields(tc.held), paths(v.Held)); diff != "" {
				t.Errorf("held (-want +got):\n%s", diff)
			}
			if v.Why != tc.why {
				t.Errorf("why: %q, want %q", v.Why, tc.why)
			}
			if len(v.Held) == 0 {
				if v.Token != "" || v.Lines != nil {
					t.Errorf("nothing is held, and the token is %q of %v", v.Token, v.Lines)
				}
				return
			}
			confirmed := tc.commit.Weigh(v.Token)
			if len(confirmed.Held) > 0 || len(confirmed.Go) != len(v.Go)+len(v.Held) {
				t.Errorf("confirmed: %v go, %v are held", paths(confirmed.Go), paths(confirmed.Held))
			}
		})
	}
}

// TestAConfirmationIsOfOneCommitAndOneList: whatever was not shown is asked anew.
func TestAConfirmationIsOfOneCommitAndOneList(t *testing.T) {
	base := func() Commit {
		return Commit{Revision: revision, Losses: []Loss{loss("acme/shop", 1, data("disk", false))}, Apps: map[string]int{"acme": 9}}
	}
	token := base().Weigh("").Token
	tests := map[string]func(*Commit){
		"another commit":                   func(c *Commit) { c.Revision = "main@sha1:ffff456789abcdef0123456789abcdef01234567" },
		"another claim":                    func(c *Commit) { c.Losses[0].Claims = append(c.Losses[0].Claims, data("more", false)) },
		"a claim of the same name":         func(c *Commit) { c.Losses[0].Claims[0].UID = "made anew" },
		"the claim goes now":               func(c *Commit) { c.Losses[0].Claims[0].Goes = true },
		"the project made anew":            func(c *Commit) { c.Losses[0].UID = "made anew" },
		"another project that holds data":  func(c *Commit) { c.Losses = append(c.Losses, loss("acme/blog", 1, data("blog", false))) },
		"one project less, another in its": func(c *Commit) { c.Losses[0] = loss("acme/blog", 1, data("disk", false)) },
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			c := base()
			change(&c)
			if v := c.Weigh(token); len(v.Held) == 0 || v.Token == token {
				t.Errorf("the confirmation of another list was taken: %v go", paths(v.Go))
			}
		})
	}
	two := base()
	two.Losses[0].Claims = append(two.Losses[0].Claims, data("more", false))
	before := two.Weigh("").Token
	if slices.Reverse(two.Losses[0].Claims); two.Weigh("").Token != before {
		t.Error("the same claims in another order have another token")
	}
	same := base()
	same.Losses[0].Pods = 7 // They come and go.
	if v := same.Weigh(token); len(v.Go) != 1 {
		t.Errorf("the same list is held: %v", v.Lines)
	}
}

// TestWhatTheOthersRunUnderIsDeletedLast: Policies, Registries and PriceLists.
func TestWhatTheOthersRunUnderIsDeletedLast(t *testing.T) {
	web, acme := loss("zeta/shop/web", 0), loss("acme", 2)
	prices, second := Loss{Ref: identity.Ref{PriceList: "prices"}}, Loss{Ref: identity.Ref{PriceList: "second"}, Second: true}
	cluster := Loss{Ref: identity.Ref{Cluster: "east"}}
	files := []Loss{policy("strict", 0), registry("ghcr", 0), prices, second, cluster}
	for name, c := range map[string]struct {
		verdict Verdict
		leaving bool
		want    string
	}{
		"nothing":                       {want: ""},
		"nothing, and others leave":     {leaving: true, want: ""},
		"no others":                     {verdict: Verdict{Go: files}, want: "strict ghcr prices second east"},
		"another goes":                  {verdict: Verdict{Go: append([]Loss{web}, files...)}, want: "zeta/shop/web second east"},
		"others leave":                  {verdict: Verdict{Go: files}, leaving: true, want: "second east"},
		"a tenant is held":              {verdict: Verdict{Go: files, Held: []Loss{acme}}, want: "strict ghcr second east"},
		"an app is held":                {verdict: Verdict{Go: []Loss{prices}, Held: []Loss{web}}, want: ""},
		"one goes, another is held":     {verdict: Verdict{Go: append([]Loss{web}, files...), Held: []Loss{acme}}, want: "zeta/shop/web second east"},
		"a policy is held":              {verdict: Verdict{Go: []Loss{prices}, Held: []Loss{policy("base", 2)}}, want: "prices"},
		"held only, and others leaving": {verdict: Verdict{Held: []Loss{acme, policy("base", 2)}}, leaving: true, want: ""},
	} {
		before := len(c.verdict.Go)
		if got := strings.Join(paths(c.verdict.Next(c.leaving)), " "); got != c.want || len(c.verdict.Go) != before || before > 0 && c.verdict.Go[before-1].Ref == (identity.Ref{}) {
			t.Errorf("%s: got %q, want %q; the verdict is %+v", name, got, c.want, c.verdict)
		}
	}
}

func TestLinesNameDataFirst(t *testing.T) {
	l := loss("acme", 3, data("disk", false), data("cache", true))
	l.Pods = 4
	c := Commit{Revision: revision, Losses: []Loss{loss("zeta", 0), l}, Apps: map[string]int{"acme": 3}}
	want := []string{
		"PersistentVolumeClaim kubeop-acme-shop/disk: 10Gi, stays, with its namespace",
		"PersistentVolumeClaim kubeop-acme-shop/cache: 10Gi, is deleted with its data",
		"Tenant zeta",
		"Tenant acme: with 1 namespace, 3 apps, 4 pods, 2 claims",
	}
	if diff := cmp.Diff(want, c.Weigh("").Lines); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}

func TestLinesSayWhoUsesAPolicyOrRegistry(t *testing.T) {
	c := Commit{Revision: revision, Losses: []Loss{policy("base", 7), policy("old", 1), registry("hub", 2), policy("unused", 0)}}
	c.Emptied = true
	want := []string{"Policy unused", "Policy old: 1 tenant is under it", "Registry hub: 2 projects have its credentials", "Policy base: 7 tenants are under it"}
	if diff := cmp.Diff(want, c.Weigh("").Lines); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}

// Whatever left a commit: each loss goes, is held, or goes with what it is in, and nothing that holds data, and no tenant,
// goes unless the very token of the list was given.
func TestWeighLetsNoDataGoWithoutItsToken(t *testing.T) {
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 1))
		c := Commit{Revision: revision, Apps: map[string]int{}, Emptied: r.IntN(8) == 0, Foreign: r.IntN(8) == 0}
		for _, path := range []string{"a", "a/x", "a/x/1", "a/x-1", "a/y/1", "a/y/2", "ab", "ab/x", "b/x/1"} {
			if r.IntN(2) == 0 {
				continue
			}
			l := loss(path, r.IntN(5))
			if l.Ref.App == "" && r.IntN(2) == 0 {
				l.Claims = []Claim{data(path, r.IntN(2) == 0)}
			}
			c.Losses = append(c.Losses, l)
			c.Apps[l.Ref.Tenant] = r.IntN(20)
		}
		v := c.Weigh("something else")
		for _, l := range c.Losses {
			outer := func(o Loss) bool { return strings.HasPrefix(l.Ref.Path()+"/", o.Ref.Path()+"/") }
			goes, held := slices.ContainsFunc(v.Go, outer), slices.ContainsFunc(v.Held, outer)
			if goes == held {
				t.Fatalf("seed %d: %s goes %t, held %t", seed, l.Ref.Path(), goes, held)
			}
		}
		for _, l := range v.Go {
			if l.Ref.Kind() == "Tenant" || len(l.Claims) > 0 || c.Emptied || c.Foreign {
				t.Fatalf("seed %d: %s goes unasked", seed, l.Ref.Path())
			}
		}
		if again := c.Weigh(v.Token); v.Token != "" && len(again.Held) > 0 {
			t.Fatalf("seed %d: confirmed, and yet held: %v", seed, paths(again.Held))
		}
	}
}

// TestAPreviewGoesUnlessItHoldsData: a preview goes with its branch, however many apps it has.
func TestAPreviewGoesUnlessItHoldsData(t *testing.T) {
	loss := func(preview bool, claims ...Claim) Commit {
		return Commit{Revision: "main@sha1:1", Apps: map[string]int{"acme": 10}, Losses: []Loss{{
			Ref: identity.Ref{Tenant: "acme", Project: "shop-pr-a"}, UID: "1", Apps: 9, Preview: preview, Claims: claims,
		}}}
	}
	for name, c := range map[string]struct {
		commit Commit
		held   int
	}{
		"a preview": {loss(true), 0}, "a project": {loss(false), 1}, "a preview with data": {loss(true, Claim{Name: "data"}), 1},
	} {
		if v := c.commit.Weigh(""); len(v.Held) != c.held || len(v.Go) != 1-c.held {
			t.Errorf("%s: %d held, because %s", name, len(v.Held), v.Why)
		}
	}
}
