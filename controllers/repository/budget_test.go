package repository

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/fetch/folder"
	"github.com/kubeop/kubeop/gitops/identity"
	"github.com/kubeop/kubeop/gitops/tree"
	"github.com/kubeop/kubeop/internal/testenv/steptest"
)

func cpus(n string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceRequestsCPU: resource.MustParse(n)}
}

// given is a project in the cluster whose quota has so many processors.
func given(name, cpu string) *v1alpha1.Project {
	return fromAcme(project("kubeop-acme", name), func(p *v1alpha1.Project) { p.Spec.Quota = cpus(cpu) })
}

// quotas is a pass over a commit with these projects, each as "name: processors". It returns how the pass ends.
func (k *cluster) quotas(before *scope, projects ...string) (*scope, string) {
	k.t.Helper()
	r, err := reader()
	if err != nil {
		k.t.Fatal(err)
	}
	files := fstest.MapFS{"kubeop.yaml": &fstest.MapFile{Data: []byte("layout: v1\n")}}
	for _, p := range projects {
		name, cpu, _ := strings.Cut(p, ": ")
		files["projects/"+name+"/project.yaml"] = &fstest.MapFile{Data: fmt.Appendf(nil,
			"apiVersion: %s\nkind: Project\nmetadata: {name: %s}\nspec:\n  quota:\n    requests.cpu: %s\n", v1alpha1.GroupVersion, name, cpu)}
	}
	now := r.Read(memory{MapFS: files}, tree.Scope{Repository: "acme", Tenant: "acme"}, nil)
	now.All(func(p tree.Problem) bool { k.t.Error(p); return true })
	s := k.scope(now)
	var was *tree.Tree
	if before != nil {
		s.progress, was = before.progress, before.progress.tree
		s.progress.tree = now
	}
	tree.Changes(was, now, func(r identity.Ref) { s.progress.look(r) })
	s.commit.Root, s.commit.Revision = folder.FromFS(files).Folder("."), "main@sha1:1"
	k.patches = nil
	return s, steptest.Outcome(k.t, k.declare(k.t.Context(), s))
}

func budgeted(t *testing.T, cpu string, projects ...*v1alpha1.Project) *cluster {
	tenant := acme()
	tenant.Spec.Budget, tenant.Spec.Quota = cpus(cpu), cpus("100")
	objects := []client.Object{tenant, namespace("kubeop-acme")}
	for _, p := range projects {
		objects = append(objects, p)
	}
	return watching(t, objects...)
}

func (k *cluster) refusals(s *scope) string {
	var all []string
	for _, p := range s.progress.refusals() {
		all = append(all, p.String())
	}
	return strings.Join(all, "\n")
}

func TestAProjectThatDoesNotFitIntoTheBudgetIsRefusedAtItsQuota(t *testing.T) {
	k := budgeted(t, "10", given("old", "4"))
	s, end := k.quotas(nil, "blog: 3", "new: 5", "old: 4")
	k.wantApplied("blog", "old")
	want := "projects/new/project.yaml:6:5: the quota of project new does not fit into the budget of tenant acme: requests.cpu 5, with 3 of 10 left (the others have 7: old 4, blog 3); "
	if got := k.refusals(s); !strings.HasPrefix(got, want) || !strings.HasSuffix(got, " [over-budget]") || strings.Contains(got, "\n") {
		t.Errorf("got %s\nwant %s", got, want)
	}
	// It is looked at again when there is room, and not before.
	again, endAgain := k.quotas(s, "blog: 3", "new: 5", "old: 4")
	k.wantApplied()
	if k.refusals(again) == "" {
		t.Error("it is not refused any more")
	}
	smaller, endSmaller := k.quotas(again, "blog: 3", "new: 5", "old: 2")
	k.wantApplied("new", "old")
	if got := k.refusals(smaller); got != "" {
		t.Errorf("there is room: %s", got)
	}
	if end != "done" || endAgain != "done" || endSmaller != "done" {
		t.Errorf("the passes end with %s, %s and %s", end, endAgain, endSmaller)
	}
}

func TestShrinksAreAppliedBeforeGrows(t *testing.T) {
	k := budgeted(t, "10", given("a", "2"), given("z", "8"))
	if _, end := k.quotas(nil, "a: 6", "z: 4"); !slices.Equal(k.patches, []string{"z", "a"}) || end != "done" {
		t.Errorf("applied are %v, want z and then a; %s", k.patches, end)
	}
}

func TestNothingGrowsWhileAShrinkFails(t *testing.T) {
	k := budgeted(t, "10", given("a", "2"), given("z", "8"))
	k.refuses = map[string]error{"z": errAway}
	s, end := k.quotas(nil, "a: 6", "z: 4")
	if !strings.Contains(end, errAway.Error()) || slices.Contains(k.patches, "a") || !s.progress.pending.Has(ref("acme/a")) {
		t.Errorf("applied are %v; %s", k.patches, end)
	}
}

// TestAShrinkThatIsRefusedGivesNothingBack: in the same pass, the other project does not fit.
func TestAShrinkThatIsRefusedGivesNothingBack(t *testing.T) {
	k := budgeted(t, "10", given("a", "2"), given("z", "8"))
	k.refuses = map[string]error{"z": apierrors.NewInvalid(v1alpha1.GroupVersion.WithKind(v1alpha1.ProjectKind).GroupKind(), "z", nil)}
	s, end := k.quotas(nil, "a: 6", "z: 4")
	if got := k.refusals(s); end != "done" || slices.Contains(k.patches, "a") || !strings.Contains(got, "projects/a/project.yaml:6:5: the quota of project a does not fit into the budget of tenant acme") {
		t.Errorf("%s; applied are %v, refused %s", end, k.patches, got)
	}
}

func TestALoweredBudgetKeepsWhatIsGiven(t *testing.T) {
	k := budgeted(t, "5", given("a", "4"), given("b", "4"))
	s, _ := k.quotas(nil, "a: 4", "b: 3")
	k.wantApplied("a", "b") // a only gets the labels of its repository.
	if got := k.refusals(s); got != "" {
		t.Errorf("a shrink is refused: %s", got)
	}
	s, _ = k.quotas(s, "a: 5", "b: 3")
	k.wantApplied()
	if got := k.refusals(s); !strings.Contains(got, "requests.cpu 5, with 2 of 5 left (the others have 3: b 3)") {
		t.Errorf("got %q", got)
	}
}
