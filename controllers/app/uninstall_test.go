package app

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/release"
	"github.com/kubeop/kubeop/delivery/release/fault"
)

// uninstalls answers requests to uninstall a release; it serves nothing else.
type uninstalls struct {
	releases
	done bool
	err  error
	// owners are the owners of claims in the request.
	owners map[types.UID][]string
	asked  int
}

// Uninstall implements releases.
func (u *uninstalls) Uninstall(ctx context.Context, req release.Request) (bool, error) {
	u.asked++
	var err error
	if u.owners, err = req.Policy.Owned(ctx); err != nil {
		return false, err
	}
	return u.done, u.err
}

func helmApp(app *v1alpha1.App) {
	app.Spec.Type, app.Spec.Helm = v1alpha1.AppHelm, &v1alpha1.HelmSource{}
}

func deletesClaims(app *v1alpha1.App) { app.Spec.ClaimDeletionPolicy = v1alpha1.ClaimDelete }

func TestClaimsOfAReleaseAreDeletedOnlyWhenConfirmed(t *testing.T) {
	all := annotated(v1alpha1.ConfirmAnnotation, v1alpha1.ConfirmAll)
	claim := boundClaim("data")
	claim.OwnerReferences = append(claim.OwnerReferences, ownerOf("db"))
	for name, c := range map[string]struct {
		set     []func(*v1alpha1.App)
		done    bool
		err     error
		goes    bool
		guarded bool
	}{
		"not confirmed":                 {set: []func(*v1alpha1.App){deletesClaims}, done: true, guarded: true},
		"confirmed, but to be retained": {set: []func(*v1alpha1.App){all}, done: true, guarded: true},
		"confirmed and to be deleted":   {set: []func(*v1alpha1.App){all, deletesClaims}, done: true, goes: true},
		"the release is still there":    {set: []func(*v1alpha1.App){all, deletesClaims}},
		"the release cannot be removed": {set: []func(*v1alpha1.App){all, deletesClaims}, err: errors.New("away")},
		"another list is confirmed":     {set: []func(*v1alpha1.App){annotated(v1alpha1.ConfirmAnnotation, "a-token"), deletesClaims}, done: true, guarded: true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t, deletedApp(nil, append(c.set, helmApp)...), interceptor.Funcs{}, labelled(claim.DeepCopy(), "web"), labelled(boundClaim("other"), "api"))
			engine := &uninstalls{done: c.done, err: c.err}
			b.releaser.engine = engine
			err := b.remover.remove(t.Context(), b.s)
			if (err == nil) != c.done {
				t.Errorf("got the error %v", err)
			}
			if b.has("PersistentVolumeClaim", "data") == c.goes || !b.has("PersistentVolumeClaim", "other") {
				t.Errorf("the release's claim exists: %t, another app's: %t", b.has("PersistentVolumeClaim", "data"), b.has("PersistentVolumeClaim", "other"))
			}
			if guarded := len(engine.owners["db"]) > 0; guarded != c.guarded {
				t.Errorf("the owner of the claim is protected: %t, want %t", guarded, c.guarded)
			}
		})
	}
}

func TestTheOutcomeOfAnUninstallDecidesWhatIsLeftToDo(t *testing.T) {
	entries := []v1alpha1.InventoryEntry{clusterEntry("disk"), entry("ConfigMap", "own")}
	held := "ConfigMap/one, which the finalizer example.com/held holds"
	for name, c := range map[string]struct {
		done   bool
		err    error
		waited time.Duration
		want   string
		left   bool
	}{
		"it is gone":            {done: true, want: "done"},
		"it runs":               {want: "soon, after 10s", left: true},
		"it runs for long":      {waited: 10 * time.Second, want: "waits Progressing: uninstalling release web, after 15s", left: true},
		"it is locked":          {err: fmt.Errorf("%w: by another", fault.ErrLocked), want: "waits ReleaseLocked: the release is locked: by another, after 1s", left: true},
		"objects being deleted": {err: &fault.Terminating{Objects: []string{"ConfigMap/one"}}, want: "soon, after 1s", left: true},
		"the same, for long":    {err: &fault.Terminating{Objects: []string{"ConfigMap/one"}}, waited: time.Minute, want: "waits Progressing: waiting for ConfigMap/one to be gone, after 6s", left: true},
		"a finalizer holds one": {err: &fault.Terminating{Objects: []string{held}, Foreign: true}, waited: time.Minute, want: "waits Progressing: waiting for " + held + " to be gone; a finalizer that nobody serves any more is taken off", left: true},
		"it fails":              {err: errors.New("away"), want: "failed UninstallFailed: away", left: true},
		"claims block it": {
			err: &fault.ClaimsInTheWay{Object: "StatefulSet/db", Claims: []string{"data"}}, left: true,
			want: `to keep everything, an administrator of the cluster may run: kubectl patch app web -n kubeop-acme-shop --type merge -p '{"spec":{"deletionPolicy":"Orphan"}}'; ` +
				`to delete the claims too, an administrator of the cluster may run: kubectl patch app web -n kubeop-acme-shop --type merge -p '{"spec":{"claimDeletionPolicy":"Delete"}}', ` +
				"and an owner of the tenant with the role admin, or an administrator of the cluster, may run: " +
				"kubectl annotate app web -n kubeop-acme-shop --overwrite paas.kubeop.io/confirm-deletions=all, after 30s",
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t, deletedApp(entries, helmApp), interceptor.Funcs{}, labelled(configMap("own"), "web"))
			b.releaser.engine = &uninstalls{done: c.done, err: c.err}
			_ = b.remover.remove(t.Context(), b.s)
			b.clock.Step(c.waited)
			got := b.ended(b.remover.remove(t.Context(), b.s))
			if got != c.want && !strings.Contains(got, c.want) || c.want == "done" && got != "done" {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
			if left := strings.Contains(b.recorded(), "own"); left != c.left {
				t.Errorf("the inventory is %q", b.recorded())
			}
			if !b.has("ConfigMap", "own") {
				t.Error("an object of the release was deleted without Helm")
			}
		})
	}
}

func TestNoReleaseIsUninstalledWithTheNamespaceOrUnderTheOrphanPolicy(t *testing.T) {
	for name, orphaned := range map[string]bool{"the namespace goes": false, "Orphan": true} {
		t.Run(name, func(t *testing.T) {
			app := deletedApp([]v1alpha1.InventoryEntry{clusterEntry("disk")}, helmApp)
			if orphaned {
				orphan(app)
			}
			b := newFixture(t, app, interceptor.Funcs{})
			engine := &uninstalls{done: true}
			b.releaser.engine = engine
			if !orphaned {
				b.seen.namespaces[shop] = endingNamespace()
			}
			if got := b.ended(b.remover.remove(t.Context(), b.s)); got != "done" || engine.asked != 0 {
				t.Errorf("got %q, uninstalled %d times", got, engine.asked)
			}
		})
	}
}
