package controllers

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// TestABadFileIsReportedAndItsProjectUnchanged pushes one fault after the other beside a change of a sibling project: the message names fault
// and file, the project of the fault keeps its last good state, and the sibling gets its change.
func TestABadFileIsReportedAndItsProjectUnchanged(t *testing.T) {
	n := newTeam(t, "faulty")
	good := shopFiles("shop", "web")
	for k, v := range shopFiles("other", "side") {
		good[k] = v
	}
	n.push(good)
	n.ready(n.app("shop", "web"), n.app("other", "side"))

	const web = "projects/shop/apps/web/app.yaml"
	raw := func(object string) string {
		return "apiVersion: paas.kubeop.io/v1alpha1\nkind: App\n" + object
	}
	cases := map[string]struct {
		file, content string
		want          []string
	}{
		"broken YAML":       {web, "apiVersion: [", []string{web + ":1:"}},
		"an unknown field":  {web, strings.Replace(good[web], "type: Raw", "type: Raw\n  hosts: x", 1), []string{web + ":7:", "spec.hosts", "spec.host"}},
		"a wrong kind":      {web, strings.Replace(good[web], "kind: App", "kind: Project", 1), []string{web + ":2:", "Project"}},
		"another name":      {web, strings.Replace(good[web], "name: web", "name: webb", 1), []string{web + ":4:", `"webb"`, `"web"`}},
		"a namespace":       {web, raw("metadata: {name: web, namespace: kube-system}\nspec: {type: Raw, raw: {path: m}}\n"), []string{web + ":3:", "namespace"}},
		"another tenant":    {web, raw("metadata:\n  name: web\n  labels: {paas.kubeop.io/tenant: road}\nspec: {type: Raw, raw: {path: m}}\n"), []string{web + ":5:", "paas.kubeop.io/tenant"}},
		"a Tenant":          {"tenants/faulty/tenant.yaml", "apiVersion: paas.kubeop.io/v1alpha1\nkind: Tenant\nmetadata: {name: faulty}\n", []string{"tenants/faulty/tenant.yaml", "platform"}},
		"two sources":       {web, strings.Replace(good[web], "type: Raw", "type: Raw\n  git: {url: \"https://x.example\"}", 1), []string{web + ":", "git is required when type is Git, and only then"}},
		"a folder too many": {"projects/shop/apps/empty/notes.yaml", "a: b\n", []string{"projects/shop/apps/empty", "app.yaml"}},
	}
	turn := 0
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			turn++
			before := n.configMap("shop", "web").ResourceVersion
			side := fmt.Sprintf("turn-%d", turn)
			revision := n.push(map[string]string{
				c.file:                              c.content,
				"projects/other/apps/side/app.yaml": fmt.Sprintf(rawFile, "side", "side", side),
			})
			repository := n.synced(revision, metav1.ConditionFalse)
			problems := strings.Join(repository.Status.Problems, "\n")
			for _, want := range c.want {
				if !strings.Contains(problems, want) {
					t.Errorf("the problems do not say %q:\n%s", want, problems)
				}
			}
			if c.file != "tenants/faulty/tenant.yaml" {
				n.eventually(func() error {
					if got := n.configMap("other", "side").Data["greeting"]; got != side {
						return fmt.Errorf("the greeting of the sibling is %q, want %q", got, side)
					}
					return nil
				})
			}
			if got := n.configMap("shop", "web").ResourceVersion; got != before {
				t.Errorf("the last good state was changed")
			}
			fixed := "-"
			if c.file == web {
				fixed = good[web]
			}
			n.synced(n.push(map[string]string{c.file: fixed, "projects/shop/apps/empty": "-", "tenants": "-"}), metav1.ConditionTrue)
		})
	}
}

func TestASymlinkIsNamedAndHeld(t *testing.T) {
	n := newTeam(t, "linked")
	n.push(shopFiles("shop", "web"))
	n.ready(n.app("shop", "web"))
	n.repo.Link("/etc/passwd", "projects/shop/apps/web/values.yaml")
	repository := n.synced(n.push(map[string]string{}), metav1.ConditionFalse)
	if problems := strings.Join(repository.Status.Problems, "\n"); !strings.Contains(problems, "projects/shop/apps/web/values.yaml") || !strings.Contains(problems, "symlink") {
		t.Errorf("the problems do not name the symlink:\n%s", problems)
	}
	n.configMap("shop", "web")
}

func TestAnEmptiedTreeIsHeldUntilConfirmed(t *testing.T) {
	n := newTeam(t, "emptied")
	n.push(shopFiles("shop", "web"))
	n.ready(n.app("shop", "web"))
	revision := n.push(map[string]string{"projects": "-"})
	repository := n.synced(revision, metav1.ConditionFalse)
	message := n.until(repository, v1alpha1.ReadyCondition, metav1.ConditionFalse, v1alpha1.DeletionsHeldReason)
	token := repository.Status.HeldToken
	if token == "" || !strings.Contains(message, v1alpha1.ConfirmAnnotation+"="+token) || !strings.Contains(message, "Project kubeop-emptied/shop: with 1 namespace, 1 app") {
		t.Errorf("the message does not say how to confirm: %s", message)
	}
	n.configMap("shop", "web")

	before := repository.DeepCopy()
	if repository.Annotations == nil {
		repository.Annotations = map[string]string{}
	}
	repository.Annotations[v1alpha1.ConfirmAnnotation] = token
	if err := n.admin.Patch(t.Context(), repository, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	n.gone(n.app("shop", "web"), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kubeop-emptied-shop"}})
}

func TestAWrongPasswordIsReportedButNotShown(t *testing.T) {
	n := newTeam(t, "secretive")
	const wrong = "wr0ng-pa$$-w%rd"
	n.push(shopFiles("shop", "web"))
	n.ready(n.app("shop", "web"))
	secret := &corev1.Secret{}
	if err := n.admin.Get(t.Context(), client.ObjectKey{Namespace: "kubeop-system", Name: "secretive-git"}, secret); err != nil {
		t.Fatal(err)
	}
	secret.Data["password"] = []byte(wrong)
	if err := n.admin.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	n.reconcile(n.repository())
	message := n.until(n.repository(), v1alpha1.FetchedCondition, metav1.ConditionFalse, v1alpha1.AuthenticationFailedReason)
	if !strings.Contains(message, n.repo.URL) {
		t.Errorf("the message is %q, want %q in it", message, n.repo.URL)
	}
	n.configMap("shop", "web")

	events := &eventsv1.EventList{}
	if err := n.admin.List(t.Context(), events); err != nil {
		t.Fatal(err)
	}
	shown := message + n.log() + fmt.Sprint(events.Items)
	for _, form := range []string{wrong, "wr0ng-pa$$-w%25rd", "wr0ng-pa%24%24-w%25rd", n.repo.Password} {
		if strings.Contains(shown, form) {
			t.Errorf("the message contains the password as %q", form)
		}
	}
}

func TestARepositoryThatVanishesHarmsNothing(t *testing.T) {
	n := newTeam(t, "vanished")
	n.push(shopFiles("shop", "web"))
	n.ready(n.app("shop", "web"))
	n.repo.Vanish()
	n.reconcile(n.repository())
	n.until(n.repository(), v1alpha1.FetchedCondition, metav1.ConditionFalse, v1alpha1.SourceNotFoundReason)
	n.configMap("shop", "web")
	n.repo.Return()
	n.reconcile(n.repository())
	n.ready(n.repository())
}
