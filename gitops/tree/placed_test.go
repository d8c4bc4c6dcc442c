package tree

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/gitops/identity"
	"github.com/kubeop/kubeop/gitops/placement"
)

// withClusters is a platform repository with two clusters. acme may use both, and its project far names one of them; rival has the default one.
func withClusters() map[string]string {
	project := func(spec string) string { return declaration("Project", "x", spec) }
	named := func(text, name string) string { return strings.Replace(text, "name: x", "name: "+name, 1) }
	app := declaration("App", "web", "{type: Raw, raw: {manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}]}}")
	return map[string]string{
		"kubeop.yaml":                                  "layout: v1\n",
		"clusters/west.yaml":                           declaration("Cluster", "west", "{default: true, description: The first one, server: 'https://west.example.com:6443'}"),
		"clusters/east.yaml":                           declaration("Cluster", "east", "{}"),
		"tenants/acme/tenant.yaml":                     declaration("Tenant", "acme", "{clusters: [west, east]}"),
		"tenants/acme/projects/shop/project.yaml":      named(project("{}"), "shop"),
		"tenants/acme/projects/shop/apps/web/app.yaml": app,
		"tenants/acme/projects/far/project.yaml":       named(project("{cluster: east}"), "far"),
		"tenants/acme/projects/far/apps/web/app.yaml":  app,
		"tenants/rival/tenant.yaml":                    declaration("Tenant", "rival", "{}"),
		"tenants/rival/projects/shop/project.yaml":     named(project("{}"), "shop"),
		"platform/ingress/project.yaml":                named(project("{}"), "ingress"),
		"platform/meter/project.yaml":                  named(project("{cluster: east}"), "meter"),
	}
}

// on returns a reader for the operator of a cluster, in which these objects are.
func on(cluster string, live ...client.Object) *Reader {
	reader := *shared
	reader.Platform = true
	reader.Placement = Placement{Cluster: &cluster, Live: func(ref identity.Ref) (client.Object, error) {
		for _, o := range live {
			if is, _ := identity.Of(o); is == ref {
				return o, nil
			}
		}
		return nil, nil
	}}
	return &reader
}

// declaredIn lists what a tree declares.
func declaredIn(t *Tree) (all []string) {
	t.Walk(func(n Node) bool {
		if n.Declared() {
			all = append(all, n.Ref().Kind()+" "+n.Ref().Path())
		}
		return true
	})
	slices.Sort(all)
	return all
}

func TestEachClusterHasTheProjectsThatArePlacedOnIt(t *testing.T) {
	clusters := []string{"Cluster east", "Cluster west"}
	all := []string{"App acme/far/web", "App acme/shop/web", "Cluster east", "Cluster west", "Project acme/far", "Project acme/shop", "Project platform/ingress", "Project platform/meter", "Project rival/shop", "Tenant acme", "Tenant rival"}
	files := filesOf(withClusters())
	east := on("east").Read(files, Scope{}, nil)
	if diff := cmp.Diff(append([]string{"App acme/far/web"}, append(slices.Clone(clusters), "Project acme/far", "Project platform/ingress", "Project platform/meter", "Tenant acme")...), declaredIn(east)); diff != "" {
		t.Errorf("east: -want +got:\n%s", diff)
	}
	west := on("west").Read(files, Scope{}, nil)
	if diff := cmp.Diff(append([]string{"App acme/shop/web"}, append(slices.Clone(clusters), "Project acme/shop", "Project platform/ingress", "Project rival/shop", "Tenant acme", "Tenant rival")...), declaredIn(west)); diff != "" {
		t.Errorf("west: -want +got:\n%s", diff)
	}
	for name, tree := range map[string]*Tree{"east": east, "west": west} {
		if found := problems(tree); len(found) > 0 || tree.ProjectsElsewhere() != 2 || tree.Empty() {
			t.Errorf("%s: %d projects elsewhere, problems %v", name, tree.ProjectsElsewhere(), found)
		}
	}
	for ref, want := range map[identity.Ref]string{
		{Tenant: "acme", Project: "shop"}: "west", {Tenant: "acme", Project: "shop", App: "web"}: "west", {Tenant: "rival"}: "west", {Tenant: "rival", Project: "shop"}: "west",
		{Tenant: "acme"}: "", {Tenant: "acme", Project: "far"}: "", {Cluster: "west"}: "",
	} {
		if got := east.Elsewhere(ref); got != want {
			t.Errorf("%s is on %q, want %q", ref, got, want)
		}
		if _, there := east.Find(ref); there == (want != "") || want != "" && !east.Covers(ref) {
			t.Errorf("%s: found %t, covered %t", ref, there, east.Covers(ref))
		}
	}
	reader := *shared
	reader.Platform = true
	if diff := cmp.Diff(all, declaredIn(reader.Read(files, Scope{}, nil))); diff != "" {
		t.Errorf("without a placement: -want +got:\n%s", diff)
	}
}

// TestWithoutClustersEverythingIsAsWithoutPlacement, for an operator without a name; one with a name uses nothing of the commit.
func TestWithoutClustersEverythingIsAsWithoutPlacement(t *testing.T) {
	files := filesOf(twoTenants())
	want := fresh(files, Scope{})
	if got := on("").Read(files, Scope{}, nil); !slices.Equal(declaredIn(got), declaredIn(want)) || got.Counts() != want.Counts() || got.whole != nil {
		t.Errorf("declared %v, want %v", declaredIn(got), declaredIn(want))
	}
	got := on("west").Read(files, Scope{}, nil)
	if found := problems(got); got.Usable() || len(found) != 1 || !strings.HasPrefix(found[0].String(), `clusters: the operator of this cluster has the name "west", and there is no clusters/west.yaml`) {
		t.Errorf("with a name: %v", found)
	}
	if ref := (identity.Ref{Tenant: "acme"}); got.Covers(ref) {
		t.Error("what the commit does not declare would be deleted")
	}
}

// TestNothingOfACommitIsUsedWhileThePlacementIsUndecided: an operator that guessed would delete what is its own.
func TestNothingOfACommitIsUsedWhileThePlacementIsUndecided(t *testing.T) {
	for name, c := range map[string]struct {
		operator string
		change   func(map[string]string)
		want     string
	}{
		"no name":                  {"", func(map[string]string) {}, "the operator of this cluster has no name"},
		"a name that is not there": {"north", func(map[string]string) {}, `has the name "north"`},
		"no default":               {"east", func(m map[string]string) { m["clusters/west.yaml"] = declaration("Cluster", "west", "{}") }, "no cluster is the default one"},
		"two defaults":             {"east", func(m map[string]string) { m["clusters/east.yaml"] = declaration("Cluster", "east", "{default: true}") }, "no cluster is the default one"},
		"a broken default":         {"east", func(m map[string]string) { m["clusters/west.yaml"] = "nothing" }, "no cluster is the default one"},
	} {
		texts := withClusters()
		c.change(texts)
		got := on(c.operator).Read(filesOf(texts), Scope{}, nil)
		if got.Usable() || !slices.ContainsFunc(problems(got), func(p Problem) bool { return strings.Contains(p.Why, c.want) && p.Code == "undecided-placement" }) {
			t.Errorf("%s: usable %t, problems %v", name, got.Usable(), problems(got))
		}
		if got.Covers(identity.Ref{Tenant: "gone"}) {
			t.Errorf("%s: what the commit does not declare would be deleted", name)
		}
	}
	files := filesOf(withClusters())
	for name := range files {
		if strings.HasPrefix(name, "clusters/") {
			delete(files, name)
		}
	}
	files["clusters"] = link("elsewhere")
	if got := on("").Read(files, Scope{}, nil); got.Usable() || got.Covers(identity.Ref{Cluster: "west"}) {
		t.Errorf("a folder that cannot be read: %v", problems(got))
	}
}

// TestTheLiveDefaultHoldsWhileItsFileHasAProblem: its object stays as it was, too.
func TestTheLiveDefaultHoldsWhileItsFileHasAProblem(t *testing.T) {
	texts := withClusters()
	texts["clusters/west.yaml"] = "nothing"
	reader := on("east")
	reader.Placement.Rules = placement.Rules{Clusters: []string{"east", "west"}, Default: "west"}
	if got := reader.Read(filesOf(texts), Scope{}, nil); !got.Usable() || got.Rules().Default != "west" || got.Elsewhere(identity.Ref{Tenant: "rival"}) != "west" {
		t.Errorf("usable %t, rules %+v", got.Usable(), got.Rules())
	}
	delete(texts, "clusters/west.yaml")
	if got := reader.Read(filesOf(texts), Scope{}, nil); got.Usable() {
		t.Error("the file was removed, and the default holds on")
	}
}

func TestAClusterThatAProjectMayNotHaveIsRefusedWithItsPlace(t *testing.T) {
	for name, c := range map[string]struct {
		file, text, want string
	}{
		"a project names none of all":  {"tenants/acme/projects/far/project.yaml", declaration("Project", "far", "{cluster: north}"), `tenants/acme/projects/far/project.yaml:4:8: spec.cluster: there is no cluster "north"; add clusters/north.yaml, or remove the name [unknown-cluster]`},
		"a project of the platform":    {"platform/meter/project.yaml", declaration("Project", "meter", "{cluster: north}"), `platform/meter/project.yaml:4:8: spec.cluster: there is no cluster "north"; add clusters/north.yaml, or remove the name [unknown-cluster]`},
		"one that its tenant may not":  {"tenants/rival/projects/shop/project.yaml", declaration("Project", "shop", "{cluster: east}"), `tenants/rival/projects/shop/project.yaml:4:8: spec.cluster: "east" is none of the clusters that tenant rival may use (west); name one of these, or ask an administrator of the cluster to add it to spec.clusters of the tenant [cluster-not-allowed]`},
		"a tenant names none of all":   {"tenants/acme/tenant.yaml", declaration("Tenant", "acme", "{clusters: [west, easst]}"), `tenants/acme/tenant.yaml:4:25: spec.clusters[1]: there is no cluster "easst" (did you mean east?); add clusters/easst.yaml, or remove the name [unknown-cluster]`},
		"a second default":             {"clusters/east.yaml", declaration("Cluster", "east", "{default: true}"), "clusters/east.yaml:4:8: spec.default: clusters/west.yaml is the default, too; take it out of one of the two [second-default]"},
		"a file in a wrong folder":     {"tenants/acme/clusters/more.yaml", "x: y", "tenants/acme/clusters/more.yaml: nothing is read from here; a Cluster belongs in clusters/<cluster>.yaml, a file of its own directly in that folder of the root [misplaced-file]"},
		"a folder as those of Flux":    {"clusters/west/apps.yaml", "x: y", "clusters/west/apps.yaml: nothing is read from here; what Flux reads from such a folder is written as an App in tenants/<tenant>/projects/<project>/apps/<app>/app.yaml [misplaced-file]"},
		"a cluster with another field": {"clusters/east.yaml", declaration("Cluster", "east", "{servers: x}"), "clusters/east.yaml:4:8: unknown field spec.servers (did you mean spec.server?) [unknown-field]"},
	} {
		t.Run(name, func(t *testing.T) {
			texts := withClusters()
			reader := *shared
			reader.Platform = true
			sound := reader.Read(filesOf(texts), Scope{}, nil)
			if found := problems(sound); len(found) > 0 {
				t.Fatalf("before: %v", found)
			}
			right := maps.Clone(texts)
			texts[c.file] = c.text
			wrong := reader.Read(filesOf(texts), Scope{}, sound)
			if got := textsOf(problems(wrong)); !slices.Contains(got, c.want) {
				t.Errorf("%s\nwant %s", strings.Join(got, "\n"), c.want)
			}
			if healed := reader.Read(filesOf(right), Scope{}, wrong); len(problems(healed)) > 0 || healed.Counts() != sound.Counts() {
				t.Errorf("the files are right again, with the problems %v", problems(healed))
			}
		})
	}
}

// TestAProjectWithAProblemStaysWhereItIs: on the cluster that has it, with its apps, and on no other one.
func TestAProjectWithAProblemStaysWhereItIs(t *testing.T) {
	shop, web := identity.Ref{Tenant: "acme", Project: "shop"}, identity.Ref{Tenant: "acme", Project: "shop", App: "web"}
	for name, text := range map[string]string{"a broken file": "nothing", "a cluster that is not there": declaration("Project", "shop", "{cluster: north}")} {
		texts := withClusters()
		texts["tenants/acme/projects/shop/project.yaml"] = text
		live := &v1alpha1.Project{}
		live.Namespace, live.Name = "kubeop-acme", "shop"
		for cluster, c := range map[string]struct {
			reader *Reader
			apps   bool
		}{"with it": {on("west", live), true}, "without it": {on("west"), false}} {
			got := c.reader.Read(filesOf(texts), Scope{}, nil)
			node, there := got.Find(shop)
			if !there || node.Declared() || len(node.Problems()) == 0 {
				t.Errorf("%s, a cluster %s: found %t, problems %v", name, cluster, there, problems(got))
			}
			if _, there := got.Find(web); there != c.apps || !there && got.Covers(web) {
				t.Errorf("%s, a cluster %s: its app is found: %t, would be deleted: %t", name, cluster, there, got.Covers(web))
			}
		}
	}
}

// TestATenantWithAProblemStaysWhereItIs, by the clusters that it has in the cluster.
func TestATenantWithAProblemStaysWhereItIs(t *testing.T) {
	texts := withClusters()
	texts["tenants/acme/tenant.yaml"] = "nothing"
	live := &v1alpha1.Tenant{}
	live.Name, live.Spec.Clusters = "acme", []string{"east", "west"}
	shop, far := identity.Ref{Tenant: "acme", Project: "shop"}, identity.Ref{Tenant: "acme", Project: "far"}
	got := on("east", live).Read(filesOf(texts), Scope{}, nil)
	if _, there := got.Find(shop); !there || got.Elsewhere(far) != "" {
		t.Errorf("where it is: %v", declaredIn(got))
	}
	got = on("east").Read(filesOf(texts), Scope{}, nil)
	if _, there := got.Find(shop); there || got.Covers(shop) || got.Covers(far) || len(problems(got)) == 0 {
		t.Errorf("where it is not: %v, problems %v", declaredIn(got), problems(got))
	}
	failing := on("east")
	failing.Placement.Live = func(identity.Ref) (client.Object, error) { return nil, errors.New("the API server is away") }
	if _, err := failing.Read(filesOf(texts), Scope{}, nil).Unread(); err == nil || err.Error() != "the API server is away" {
		t.Errorf("without the API server: %v", err)
	}
}

// TestTheProjectsOfATenantsOwnRepositoryArePlacedByWhatIsLive: it has neither the clusters nor the Tenant.
func TestTheProjectsOfATenantsOwnRepositoryArePlacedByWhatIsLive(t *testing.T) {
	scope := Scope{Tenant: "acme"}
	texts := map[string]string{"kubeop.yaml": "layout: v1\n"}
	for name, text := range withClusters() {
		if rest, ok := strings.CutPrefix(name, "tenants/acme/projects/"); ok {
			texts["projects/"+rest] = text
		}
	}
	reader := on("east")
	reader.Placement.Rules, reader.Placement.Tenant = placement.Rules{Clusters: []string{"east", "north", "west"}, Default: "west"}, []string{"west", "east"}
	first := reader.Read(filesOf(texts), scope, nil)
	if diff := cmp.Diff([]string{"App acme/far/web", "Project acme/far"}, declaredIn(first)); diff != "" || first.ProjectsElsewhere() != 1 || !reader.Made(first) {
		t.Errorf("%d elsewhere, -want +got:\n%s", first.ProjectsElsewhere(), diff)
	}
	texts["projects/far/project.yaml"] = declaration("Project", "far", "{cluster: west}")
	moved := reader.Read(filesOf(texts), scope, first)
	var changed []string
	Changes(first, moved, func(ref identity.Ref) { changed = append(changed, ref.String()) })
	if diff := cmp.Diff([]string{"Project kubeop-acme/far", "App kubeop-acme-far/web"}, changed); diff != "" || moved.Empty() || moved.Counts().Objects() != 0 {
		t.Errorf("moved away: -want +got:\n%s", diff)
	}
	texts["projects/far/project.yaml"] = declaration("Project", "far", "{cluster: north}")
	want := []string{`projects/far/project.yaml:4:8: spec.cluster: "north" is none of the clusters that tenant acme may use (west, east); name one of these, or ask an administrator of the cluster to add it to spec.clusters of the tenant [cluster-not-allowed]`}
	if diff := cmp.Diff(want, textsOf(problems(reader.Read(filesOf(texts), scope, moved)))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	other := on("east")
	other.Placement.Rules, other.Placement.Tenant = reader.Placement.Rules, []string{"east"}
	if other.Made(first) {
		t.Error("the tenant's clusters changed, and the tree is not read again")
	}
	if got := other.Read(filesOf(texts), scope, moved); got.Elsewhere(identity.Ref{Tenant: "acme", Project: "shop"}) != "" {
		t.Error("the tenant has only one cluster, and a project is on another one")
	}
	unknown := fresh(filesOf(texts), scope)
	if len(problems(unknown)) > 0 {
		t.Errorf("where the clusters are not known: %v", problems(unknown))
	}
}

// TestFoldersOfOtherClustersAreNotReadAgain: the projects of other clusters are remembered, too.
func TestFoldersOfOtherClustersAreNotReadAgain(t *testing.T) {
	reader := on("east")
	files := filesOf(withClusters())
	first := reader.Read(files, Scope{}, nil)
	files["README.md"] = filesOf(map[string]string{"README.md": "x"})["README.md"]
	again := reader.Read(files, Scope{}, first)
	for _, name := range []string{"acme", "rival"} {
		if first.whole == nil || again.whole == nil || find(first.whole.Tenants, name) != find(again.whole.Tenants, name) {
			t.Errorf("tenant %s was read again", name)
		}
	}
	var changed []string
	Changes(first, again, func(ref identity.Ref) { changed = append(changed, ref.String()) })
	if len(changed) > 0 {
		t.Errorf("changed: %v", changed)
	}
}
