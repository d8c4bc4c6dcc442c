package controllers

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

const volumeFile = `apiVersion: paas.kubeop.io/v1alpha1
kind: App
metadata:
  name: %s
spec:
  type: Image
  image:
    reference: registry.example.com/acme/blog:1
    replicas: 0
    volumes: [{name: data, mountPath: /data, %s}]
%s`

const sized = `size: 1Mi, storageClassName: ""`

// volumeApp returns the files of an app of the shop with a volume, and more fields of its spec.
func (n *team) volumeApp(name, volume, more string) map[string]string {
	files := beside(shopFiles("shop"))
	files["projects/shop/apps/"+name+"/app.yaml"] = fmt.Sprintf(volumeFile, name, volume, more)
	return files
}

// without returns the files without those of an app of the shop.
func without(files map[string]string, app string) map[string]string {
	files["projects/shop/apps/"+app] = "-"
	return files
}

// mounts waits until the app is ready and mounts a claim, which belongs to owner, or to no app.
func (n *team) mounts(app, claim, owner string) {
	n.t.Helper()
	n.ready(n.app("shop", app))
	d := &appsv1.Deployment{}
	n.eventually(func() error {
		if err := n.admin.Get(n.t.Context(), client.ObjectKey{Namespace: n.namespace(), Name: app}, d); err != nil {
			return err
		}
		if got := d.Spec.Template.Spec.Volumes[0].PersistentVolumeClaim.ClaimName; got != claim {
			return fmt.Errorf("app %s mounts %s, want %s", app, got, claim)
		}
		return nil
	})
	if c := n.boundClaim(claim); c.Labels[v1alpha1.AppLabel] != owner {
		n.t.Errorf("claim %s is labelled %v", claim, c.Labels)
	}
}

// startsEmpty waits until the app has, or no longer has, the condition that it starts with empty volumes, and returns the message.
func (n *team) startsEmpty(name string, is bool) string {
	n.t.Helper()
	app, message := n.app("shop", name), ""
	n.eventually(func() error {
		if err := n.admin.Get(n.t.Context(), client.ObjectKeyFromObject(app), app); err != nil {
			return err
		}
		if conditions.IsTrue(app, v1alpha1.StartedEmptyCondition) != is {
			return fmt.Errorf("conditions are %+v", app.Status.Conditions)
		}
		message = conditions.GetMessage(app, v1alpha1.StartedEmptyCondition)
		return nil
	})
	return message
}

// TestARenamedAppReportsThatItStartsEmpty renames an app twice: without movedFrom, and with it.
func TestARenamedAppReportsThatItStartsEmpty(t *testing.T) {
	n := newTeam(t, "renames")
	for _, c := range []string{"old-data", "new-data"} {
		n.bind(c)
	}
	n.push(n.volumeApp("old", sized, ""))
	n.mounts("old", "old-data", "old")
	was := n.boundClaim("old-data").UID
	n.startsEmpty("old", false)

	n.push(without(n.volumeApp("new", sized, ""), "old"))
	n.gone(n.app("shop", "old"))
	message := n.startsEmpty("new", true)
	if !strings.Contains(message, "claim old-data of app old") || !strings.Contains(message, "movedFrom: {app: old}") {
		t.Errorf("the message is %s", message)
	}
	n.eventually(func() error {
		if events := n.events(n.app("shop", "new"), v1alpha1.ClaimLeftBehindReason); len(events) == 0 {
			return fmt.Errorf("no event reports the claim that was left behind")
		}
		return nil
	})
	n.mounts("new", "new-data", "new")

	n.push(n.volumeApp("new", sized, "  movedFrom: {app: old}\n"))
	n.mounts("new", "old-data", "new")
	n.startsEmpty("new", false)
	n.there(n.claim("new-data"))

	// Renamed again, from an app that the claims are not named after.
	n.push(without(n.volumeApp("third", sized, "  movedFrom: {app: new}\n"), "new"))
	n.gone(n.app("shop", "new"))
	n.mounts("third", "new-data", "third")
	n.push(n.volumeApp("third", sized, "  movedFrom: {app: old}\n"))
	n.mounts("third", "old-data", "third")

	// The rename is reverted.
	n.push(without(n.volumeApp("old", sized, ""), "third"))
	n.mounts("old", "old-data", "old")
	if n.uid(n.claim("old-data")) != was {
		t.Error("the claim was recreated")
	}
}

// TestAnAppTakesOverTheClaimsOfAnother renames an app in one commit, with movedFrom.
func TestAnAppTakesOverTheClaimsOfAnother(t *testing.T) {
	n := newTeam(t, "goeson")
	n.bind("old-data")
	n.push(n.volumeApp("old", sized, ""))
	n.mounts("old", "old-data", "old")
	was := n.boundClaim("old-data").UID

	// While the old app is declared, it keeps its claims.
	n.push(n.volumeApp("new", sized, "  movedFrom: {app: old}\n"))
	message := n.until(n.app("shop", "new"), v1alpha1.AppliedCondition, metav1.ConditionFalse, v1alpha1.StillDeclaredReason)
	if want := "app old is still declared"; !strings.Contains(message, want) {
		t.Errorf("the message is %q, want %q in it", message, want)
	}
	n.mounts("old", "old-data", "old")

	n.push(map[string]string{"projects/shop/apps/old": "-"})
	n.mounts("new", "old-data", "new")
	n.push(without(n.volumeApp("third", sized, "  movedFrom: {app: new}\n"), "new"))
	message = n.until(n.app("shop", "third"), v1alpha1.AppliedCondition, metav1.ConditionFalse, v1alpha1.RenderFailedReason)
	if want := "write movedFrom: {app: old}"; !strings.Contains(message, want) {
		t.Errorf("the message is %q, want %q in it", message, want)
	}
	n.push(n.volumeApp("third", sized, "  movedFrom: {app: old}\n"))
	n.mounts("third", "old-data", "third")
	if n.uid(n.claim("old-data")) != was {
		t.Error("the claim was recreated")
	}
	n.startsEmpty("third", false)
}

// TestAnAppMountsAClaimThatExists mounts a claim before it exists, and then after it was created by hand.
func TestAnAppMountsAClaimThatExists(t *testing.T) {
	n := newTeam(t, "existing")
	n.push(n.volumeApp("web", "claimName: theirs", ""))
	message := n.until(n.app("shop", "web"), v1alpha1.AppliedCondition, metav1.ConditionFalse, v1alpha1.ClaimMissingReason)
	if want := "there is no PersistentVolumeClaim theirs in namespace kubeop-existing-shop"; !strings.Contains(message, want) {
		t.Errorf("the message is %q, want %q in it", message, want)
	}
	n.byHand("theirs")
	n.bind("theirs")
	was := n.boundClaim("theirs").UID
	n.reconcile(n.app("shop", "web"))
	n.mounts("web", "theirs", "")
	app := n.app("shop", "web")
	n.there(app)
	n.annotate(app, v1alpha1.ConfirmAnnotation, v1alpha1.ConfirmAll)
	n.push(map[string]string{"projects/shop/apps/web": "-"})
	n.gone(app)
	c := n.boundClaim("theirs")
	ours := slices.ContainsFunc(c.ManagedFields, func(f metav1.ManagedFieldsEntry) bool { return strings.HasPrefix(f.Manager, v1alpha1.FieldManager) })
	if c.UID != was || ours {
		t.Errorf("the claim was changed: %+v", c.ObjectMeta)
	}
}

// TestAnAppThatMovedToAnotherProjectReportsWhereItsDataIs moves an app with a volume.
func TestAnAppThatMovedToAnotherProjectReportsWhereItsDataIs(t *testing.T) {
	n := newTeam(t, "moves")
	n.bind("web-data")
	files := n.volumeApp("web", sized, "")
	for k, v := range shopFiles("lab", "a") {
		files[k] = v
	}
	n.push(files)
	n.mounts("web", "web-data", "web")
	n.push(map[string]string{"projects/shop/apps/web": "-", "projects/lab/apps/web/app.yaml": fmt.Sprintf(volumeFile, "web", sized, "")})
	n.gone(n.app("shop", "web"))
	app := n.app("lab", "web")
	message := n.until(app, v1alpha1.StartedEmptyCondition, metav1.ConditionTrue, v1alpha1.ClaimLeftBehindReason)
	if !strings.Contains(message, "in namespace kubeop-moves-shop") || !strings.Contains(message, "Data does not move between projects") {
		t.Errorf("the message is %s", message)
	}
}
