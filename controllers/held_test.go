package controllers

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// bound creates a claim and its volume, and waits until they are bound.
func (n *team) bound(project, name string) *corev1.PersistentVolumeClaim {
	n.t.Helper()
	namespace, class := v1alpha1.ProjectNamespace(n.name, project), ""
	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: namespace + "-" + name}, Spec: corev1.PersistentVolumeSpec{
		Capacity: size, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
		ClaimRef:               &corev1.ObjectReference{Namespace: namespace, Name: name},
		PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/nowhere"}},
	}}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: volume.Spec.AccessModes, StorageClassName: &class, VolumeName: volume.Name, Resources: corev1.VolumeResourceRequirements{Requests: size},
	}}
	n.create(volume)
	n.create(claim)
	n.eventually(func() error {
		if err := n.admin.Get(n.t.Context(), client.ObjectKeyFromObject(claim), claim); err != nil {
			return err
		}
		if claim.Status.Phase != corev1.ClaimBound {
			return fmt.Errorf("the phase of the claim is %s, want %s", claim.Status.Phase, corev1.ClaimBound)
		}
		return nil
	})
	return claim
}

// confirm confirms the held deletions of the team's repository with a token.
func (n *team) confirm(token string) {
	n.t.Helper()
	repository := n.repository()
	n.eventually(func() error {
		if err := n.admin.Get(n.t.Context(), client.ObjectKeyFromObject(repository), repository); err != nil {
			return err
		}
		before := repository.DeepCopy()
		metav1.SetMetaDataAnnotation(&repository.ObjectMeta, v1alpha1.ConfirmAnnotation, token)
		return n.admin.Patch(n.t.Context(), repository, client.MergeFrom(before))
	})
}

// held waits until the repository holds deletions whose list begins with these lines, and returns the token.
func (n *team) held(lines ...string) string {
	n.t.Helper()
	repository := n.repository()
	n.until(repository, v1alpha1.ReadyCondition, metav1.ConditionFalse, v1alpha1.DeletionsHeldReason)
	n.eventually(func() error {
		if err := n.admin.Get(n.t.Context(), client.ObjectKeyFromObject(repository), repository); err != nil {
			return err
		}
		for i, line := range lines {
			if len(repository.Status.Held) <= i || !strings.HasPrefix(repository.Status.Held[i], line) {
				return fmt.Errorf("status.held is %q, want %q at %d", repository.Status.Held, line, i)
			}
		}
		return nil
	})
	return repository.Status.HeldToken
}

// TestAProjectThatHoldsDataIsHeld: the list begins with its claims, a new claim needs a new confirmation, and a confirmation of
// an older list is refused.
func TestAProjectThatHoldsDataIsHeld(t *testing.T) {
	n := newTeam(t, "holding")
	files := shopFiles("shop", "web")
	for name, text := range shopFiles("blog", "web") {
		files[name] = text
	}
	n.push(files)
	n.ready(n.app("shop", "web"), n.app("blog", "web"))
	n.bound("shop", "disk")
	n.push(map[string]string{"projects/shop": "-"})
	first := n.held("PersistentVolumeClaim kubeop-holding-shop/disk: 1Gi", "Project kubeop-holding/shop: with 1 namespace, 1 app")

	n.bound("shop", "more")
	n.confirm(first)
	second := n.held("PersistentVolumeClaim kubeop-holding-shop/disk", "PersistentVolumeClaim kubeop-holding-shop/more")
	if second == first {
		t.Fatal("the token for two claims equals that for one")
	}
	n.ready(n.app("shop", "web"))
	commit := n.push(map[string]string{"projects/shop": "-", "projects/blog/apps/web/app.yaml": fmt.Sprintf(rawFile, "web", "web", "bye")})
	n.synced(commit, metav1.ConditionFalse)
	third := n.held("PersistentVolumeClaim kubeop-holding-shop/disk")
	if third == second {
		t.Fatal("two commits have the same token")
	}
	n.confirm(third)
	n.gone(n.app("shop", "web"), &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-holding", Name: "shop"}})
	repository := n.repository()
	n.ready(repository, n.app("blog", "web"))
	if left, there := repository.Annotations[v1alpha1.ConfirmAnnotation]; there {
		t.Errorf("the confirmation %q is still there after it was used", left)
	}
}

// TestTheDeletionsOfACommitAreCountedTogether: those of a project that comes after a new one are counted, too.
func TestTheDeletionsOfACommitAreCountedTogether(t *testing.T) {
	n := newTeam(t, "together")
	files := map[string]string{}
	var names []string
	for i := range 10 {
		names = append(names, fmt.Sprint("app", i))
	}
	for _, project := range []string{"first", "last"} {
		maps.Copy(files, shopFiles(project, names...))
	}
	n.push(files)
	n.ready(n.repository(), n.app("last", "app9"))
	many := make([]string, 60)
	for i := range many {
		many[i] = fmt.Sprint("new", i)
	}
	files = shopFiles("middle", many...)
	for _, project := range []string{"first", "last"} {
		for _, name := range names[:5] {
			files["projects/"+project+"/apps/"+name] = "-"
		}
	}
	n.push(files)
	n.held("App kubeop-together-last/app4")
	if held := len(n.repositoryNow().Status.Held); held != 10 {
		t.Errorf("%d apps are held, want 10", held)
	}
	n.ready(n.app("first", "app0"), n.app("last", "app0"), n.app("middle", "new59"))
}

// TestAForeignTreeIsHeld pushes another tenant's tree to the branch by mistake.
func TestAForeignTreeIsHeld(t *testing.T) {
	n := newTeam(t, "foreign")
	files := shopFiles("shop", "web")
	maps.Copy(files, shopFiles("blog", "web"))
	n.push(files)
	n.ready(n.repository(), n.app("shop", "web"), n.app("blog", "web"))
	files = shopFiles("wrong", "page")
	files["projects/shop"], files["projects/blog"] = "-", "-"
	n.push(files)
	n.held("Project kubeop-foreign/shop", "Project kubeop-foreign/blog")
	if message, want := conditions.GetMessage(n.repositoryNow(), v1alpha1.ReadyCondition), "it declares nothing of what runs"; !strings.Contains(message, want) {
		t.Errorf("the message of Ready is %q, want %q in it", message, want)
	}
	n.ready(n.app("shop", "web"), n.app("blog", "web"), n.app("wrong", "page")) // The repository is the same, so new objects are created.
	n.confirm(n.repositoryNow().Status.HeldToken)
	n.gone(n.app("shop", "web"), n.app("blog", "web"))
	n.ready(n.repository(), n.app("wrong", "page"))
}

// TestAHeldDeletionIsReportedBesideAStuckOne deletes one project that hangs while another one is held.
func TestAHeldDeletionIsReportedBesideAStuckOne(t *testing.T) {
	n := newTeam(t, "hung")
	files := shopFiles("shop", "web", "held")
	maps.Copy(files, shopFiles("data", "web"))
	n.push(files)
	n.ready(n.repository(), n.app("shop", "held"), n.app("data", "web"))
	n.bound("data", "disk")
	const finalizer = "example.com/held"
	change(n, n.app("shop", "held"), func(a *v1alpha1.App) { a.Finalizers = append(a.Finalizers, finalizer) })
	n.push(map[string]string{"projects/shop/apps/held": "-", "projects/data": "-"})
	n.held("PersistentVolumeClaim kubeop-hung-data/disk")
	if message, want := n.until(n.repository(), v1alpha1.SyncedCondition, metav1.ConditionUnknown, v1alpha1.DeletingReason), "kubeop-hung-shop/held"; !strings.Contains(message, want) {
		t.Errorf("the message of Synced is %q, want %q in it", message, want)
	}
	change(n, n.app("shop", "held"), func(a *v1alpha1.App) {
		a.Finalizers = slices.DeleteFunc(a.Finalizers, func(f string) bool { return f == finalizer })
	})
	n.gone(n.app("shop", "held"))
	n.until(n.repository(), v1alpha1.SyncedCondition, metav1.ConditionTrue, "")
}

// TestACommitThatCannotBeReadKeepsTheRefusals: objects that the previous commit had refused are still not applied.
func TestACommitThatCannotBeReadKeepsTheRefusals(t *testing.T) {
	n := newTeam(t, "unreadable")
	n.push(shopFiles("shop", "web"))
	n.ready(n.repository(), n.app("shop", "web"))
	n.push(map[string]string{"projects/shop/apps/web/app.yaml": "kind: [\n"})
	n.until(n.app("shop", "web"), v1alpha1.CurrentCondition, metav1.ConditionFalse, "")
	n.synced(n.repo.Push(map[string]string{"kubeop.yaml": "layout: v7\n"}), metav1.ConditionFalse)
	n.until(n.app("shop", "web"), v1alpha1.CurrentCondition, metav1.ConditionFalse, "")
}

// TestARefusedAppThatLeavesGitIsForgotten: the API server's refusal of it is no longer among the problems.
func TestARefusedAppThatLeavesGitIsForgotten(t *testing.T) {
	n := newTeam(t, "forgiven")
	n.push(shopFiles("shop", "web", "api"))
	n.ready(n.repository(), n.app("shop", "web"))
	const image = "apiVersion: paas.kubeop.io/v1alpha1\nkind: App\nmetadata: {name: web}\nspec: {type: Image, image: {reference: hello}}\n"
	n.push(map[string]string{"projects/shop/apps/web/app.yaml": image}) // An App's type cannot be changed.
	n.until(n.repository(), v1alpha1.ReadyCondition, metav1.ConditionFalse, v1alpha1.InvalidTreeReason)
	n.push(map[string]string{"projects/shop/apps/web": "-"})
	n.gone(n.app("shop", "web"))
	n.ready(n.repository())
}

// repositoryNow reads the team's repository.
func (n *team) repositoryNow() *v1alpha1.Repository {
	n.t.Helper()
	repository := n.repository()
	if err := n.admin.Get(n.t.Context(), client.ObjectKeyFromObject(repository), repository); err != nil {
		n.t.Fatal(err)
	}
	return repository
}

// TestABadFileHoldsOnlyItsObject: other objects of the same commit are delivered.
func TestABadFileHoldsOnlyItsObject(t *testing.T) {
	n := newTeam(t, "smallest")
	n.push(shopFiles("shop", "web", "api"))
	n.ready(n.app("shop", "web"), n.app("shop", "api"))
	web := n.configMap("shop", "web")
	files := shopFiles("shop", "api", "third")
	files["projects/shop/apps/web/app.yaml"] = "kind: [\n"
	files["projects/shop/apps/api/app.yaml"] = fmt.Sprintf(rawFile, "api", "api", "changed")
	files["projects/shop/project.yaml"] = "kind: Project\n"
	files["projects/stray.yaml"] = "who: knows\n"
	n.push(files)
	n.ready(n.app("shop", "third"))
	n.eventually(func() error {
		if got := n.configMap("shop", "api").Data["greeting"]; got != "changed" {
			return fmt.Errorf("the greeting of the sibling is %q, want %q", got, "changed")
		}
		return nil
	})
	repository := n.repository()
	n.until(repository, v1alpha1.ReadyCondition, metav1.ConditionFalse, v1alpha1.InvalidTreeReason)
	if len(repository.Status.Problems) != 3 {
		t.Errorf("status.problems is %q", repository.Status.Problems)
	}
	if again := n.configMap("shop", "web"); again.ResourceVersion != web.ResourceVersion {
		t.Error("the app with the bad file was changed")
	}
}

// TestARecreatedRepositoryDeletesWhatLeftGit: objects that left Git while there was no Repository are found by their labels.
func TestARecreatedRepositoryDeletesWhatLeftGit(t *testing.T) {
	n := newTeam(t, "forgetful")
	n.push(shopFiles("shop", "web", "api"))
	n.ready(n.app("shop", "web"), n.app("shop", "api"))
	config := n.configMap("shop", "api")
	repository := n.repository()
	if err := n.admin.Get(t.Context(), client.ObjectKeyFromObject(repository), repository); err != nil {
		t.Fatal(err)
	}
	if err := n.admin.Delete(t.Context(), repository); err != nil {
		t.Fatal(err)
	}
	n.push(map[string]string{"projects/shop/apps/web": "-"})
	n.gone(n.app("shop", "web"))
	n.ready(n.repository(), n.app("shop", "api"))
	if again := n.configMap("shop", "api"); again.UID != config.UID {
		t.Error("an object that is still in Git was recreated")
	}
}

// TestARepositoryPointedElsewhereIsHeld: a tree that declares none of the running objects changes nothing before it is confirmed.
func TestARepositoryPointedElsewhereIsHeld(t *testing.T) {
	n := newTeam(t, "moved")
	n.push(shopFiles("shop", "web"))
	n.ready(n.repository(), n.app("shop", "web"))
	other := env.Repo(t, "elsewhere", "", "")
	files := shopFiles("wrong", "page")
	files["kubeop.yaml"] = layoutFile
	other.Push(files)
	n.secret("elsewhere-git", map[string]string{"username": other.User, "password": other.Password})
	tenant := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: n.name}}
	if err := n.admin.Get(t.Context(), client.ObjectKeyFromObject(tenant), tenant); err != nil {
		t.Fatal(err)
	}
	point := func(url, secret string) {
		t.Helper()
		before := tenant.DeepCopy()
		tenant.Spec.Repository.URL, tenant.Spec.Repository.SecretRef.Name = url, secret
		if err := n.admin.Patch(t.Context(), tenant, client.MergeFrom(before)); err != nil {
			t.Fatal(err)
		}
	}
	point(other.URL, "elsewhere-git")
	n.held("Project kubeop-moved/shop")
	n.configMap("shop", "web")
	projects := &v1alpha1.ProjectList{}
	if err := n.admin.List(t.Context(), projects, client.InNamespace("kubeop-moved")); err != nil {
		t.Fatal(err)
	}
	if len(projects.Items) != 1 {
		t.Errorf("the foreign tree was applied before it was confirmed: %d projects, want 1", len(projects.Items))
	}
	point(n.repo.URL, n.name+"-git")
	n.ready(n.repository(), n.app("shop", "web"))
}
