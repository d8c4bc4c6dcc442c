package controllers

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// database is a StatefulSet with one claim, data-db-0, and a field of its spec.
func database(field string) string {
	return `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db}, spec: {` + field + `serviceName: db, replicas: 1, selector: {matchLabels: {a: db}}, ` +
		`template: {metadata: {labels: {a: db}}, spec: {` + podSpec + `}}, volumeClaimTemplates: [{metadata: {name: data}, ` +
		`spec: {accessModes: [ReadWriteOnce], storageClassName: "", resources: {requests: {storage: 1Mi}}}}]}}`
}

func (n *team) statefulSet() *appsv1.StatefulSet {
	return &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: n.namespace(), Name: "db"}}
}

// beside adds an app that keeps the project shop in Git when the others are removed.
func beside(files map[string]string) map[string]string {
	files["projects/shop/apps/api/app.yaml"] = fmt.Sprintf(rawFile, "api", "api", "hello")
	return files
}

// TestAStatefulSetKeepsItsClaims delivers a StatefulSet whose retention policy is Delete, and removes its app.
func TestAStatefulSetKeepsItsClaims(t *testing.T) {
	n := newTeam(t, "sets")
	n.bind("data-db-0")
	n.push(beside(n.shop("web", database("persistentVolumeClaimRetentionPolicy: {whenDeleted: Delete, whenScaled: Delete}, "))))
	was := n.boundClaim("data-db-0")
	set, app := n.statefulSet(), n.app("shop", "web")
	n.there(set, app)
	if policy := set.Spec.PersistentVolumeClaimRetentionPolicy; policy.WhenDeleted != "Retain" || policy.WhenScaled != "Retain" {
		t.Errorf("the retention policy of claims is %+v, want Retain", policy)
	}
	n.eventually(func() error {
		if events := n.events(app, v1alpha1.ClaimsRetainedReason); len(events) != 1 || !strings.Contains(events[0], "StatefulSet db") {
			return fmt.Errorf("the events about the changed policy are %q, want one that names StatefulSet db", events)
		}
		return nil
	})
	n.push(map[string]string{"projects/shop/apps/web": "-"})
	n.gone(app, set)
	n.there(n.claim("data-db-0"))
	if n.uid(n.claim("data-db-0")) != was.UID || len(n.boundClaim("data-db-0").OwnerReferences) > 0 {
		t.Error("the claim was recreated, or still has owners")
	}
}

// TestClaimsOwnedByAStatefulSetAreKept: somebody sets the retention policy of a running StatefulSet to Delete.
func TestClaimsOwnedByAStatefulSetAreKept(t *testing.T) {
	n := newTeam(t, "ownsclaims")
	n.bind("data-db-0")
	files := beside(n.shop("web", database(""), plain("last")))
	files["projects/shop/apps/web/app.yaml"] += "  drift: {mode: \"Off\"}\n"
	n.push(files)
	was := n.boundClaim("data-db-0")
	change(n, n.statefulSet(), func(s *appsv1.StatefulSet) {
		s.Spec.PersistentVolumeClaimRetentionPolicy.WhenDeleted = appsv1.DeletePersistentVolumeClaimRetentionPolicyType
	})
	n.eventually(func() error {
		if len(n.boundClaim("data-db-0").OwnerReferences) == 0 {
			return errors.New("the claim has no owner yet")
		}
		return nil
	})
	files = n.shop("web", plain("last"))
	files["projects/shop/apps/web/app.yaml"] += "  drift: {mode: \"Off\"}\n"
	revision := n.push(files)
	app := n.applied("web", revision)
	if len(app.Status.Held) != 1 || !strings.HasPrefix(app.Status.Held[0], "StatefulSet db: owns claims that hold data and would go with it, and claimDeletionPolicy is Retain") {
		t.Errorf("status.held is %q", app.Status.Held)
	}
	n.annotate(app, v1alpha1.ConfirmAnnotation, app.Status.HeldToken)
	n.reconcile(app)
	n.there(n.statefulSet(), n.claim("data-db-0"))

	files["projects/shop/apps/web/app.yaml"] += "  claimDeletionPolicy: Delete\n"
	n.push(files)
	n.eventually(func() error {
		if err := n.admin.Get(t.Context(), client.ObjectKeyFromObject(app), app); err != nil {
			return err
		}
		if len(app.Status.Held) != 1 || strings.Contains(app.Status.Held[0], "Retain") {
			return fmt.Errorf("status.held is %q", app.Status.Held)
		}
		return nil
	})
	n.there(n.statefulSet(), n.claim("data-db-0"))
	n.annotate(app, v1alpha1.ConfirmAnnotation, app.Status.HeldToken)
	n.gone(n.statefulSet(), was)
}

// TestARemovedReleaseKeepsItsClaims removes a claim from a chart, and then the app.
func TestARemovedReleaseKeepsItsClaims(t *testing.T) {
	for name, c := range map[string]struct {
		policy, confirmed string
		stays             bool
	}{"chartretains": {"Retain", "all", true}, "chartasks": {"Delete", "", true}, "chartdeletes": {"Delete", "all", false}} {
		t.Run(name, func(t *testing.T) {
			n := newTeam(t, name)
			n.bind("data")
			n.bind("data-db-0")
			files := beside(withRelease(shopFiles("shop")))
			const app = "projects/shop/apps/released/"
			files[app+"app.yaml"] += "  claimDeletionPolicy: " + c.policy + "\n"
			files[app+"chart/templates/claim.yaml"] = claim
			files[app+"chart/templates/db.yaml"] = strings.Replace(database("persistentVolumeClaimRetentionPolicy: {whenDeleted: Delete}, "), "replicas: 1", "replicas: 0", 1)
			n.push(files)
			released := n.app("shop", "released")
			n.ready(released)
			was := n.boundClaim("data").UID
			revision := released.Status.Release.Revision
			set := n.statefulSet()
			n.there(set)
			if policy := set.Spec.PersistentVolumeClaimRetentionPolicy; policy.WhenDeleted != "Retain" {
				t.Errorf("the retention policy of claims is %+v, want Retain", policy)
			}
			n.push(map[string]string{app + "chart/templates/claim.yaml": "-"})
			n.eventually(func() error {
				n.there(released)
				if released.Status.Release.Revision == revision {
					return errors.New("the release was not upgraded yet")
				}
				return nil
			})
			n.ready(released)
			if n.uid(n.claim("data")) != was {
				t.Error("the claim was recreated")
			}
			if c.confirmed != "" {
				n.annotate(released, v1alpha1.ConfirmAnnotation, c.confirmed)
			}
			n.push(map[string]string{"projects/shop/apps/released": "-"})
			n.gone(released)
			if !c.stays {
				n.gone(n.claim("data"))
				return
			}
			if n.uid(n.claim("data")) != was {
				t.Error("the claim was recreated")
			}
		})
	}
}
