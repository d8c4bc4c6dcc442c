package release

import (
	"context"
	"errors"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/action"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/release/cause"
	"github.com/kubeop/kubeop/delivery/release/charts"
	"github.com/kubeop/kubeop/delivery/release/fault"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

// dataClaim holds data, because it names a volume. It has no helm.sh/resource-policy, as in a revision that a person made.
const dataClaim = `apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], storageClassName: "", volumeName: some-volume, resources: {requests: {storage: 8Gi}}}
`

const statefulSet = `apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 0
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: db, image: "db:1"}]}
`

// claimHook is the claim as a hook that Helm deletes before it creates it, which is the default.
var claimHook = strings.Replace(dataClaim, "name: data", "name: data, annotations: {helm.sh/hook: 'pre-install,pre-upgrade'}", 1)

// claim returns the UID of the claim data.
func (t *team) claim() types.UID {
	t.Helper()
	c, err := t.admin.CoreV1().PersistentVolumeClaims(t.namespace).Get(t.Context(), "data", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if c.GetDeletionTimestamp() != nil {
		t.Fatal("the claim is being deleted")
	}
	return c.UID
}

// releaseByHand upgrades the release with Helm, as a person does.
func (t *team) releaseByHand(files map[string]string) {
	t.Helper()
	t.catchUp()
	c, err := charts.Chart{Files: sources.ChartFolder(files)}.Load()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := action.NewUpgrade(t.helm().config).RunWithContext(t.Context(), "web", c, nil); err != nil {
		t.Fatal(err)
	}
	t.catchUp()
}

// makeData creates the claim by hand, optionally with owners.
func (t *team) makeData(owners ...metav1.OwnerReference) types.UID {
	t.Helper()
	c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data", OwnerReferences: owners}, Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, VolumeName: "some-volume", StorageClassName: new(string),
		Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("8Gi")}},
	}}
	c, err := t.admin.CoreV1().PersistentVolumeClaims(t.namespace).Create(t.Context(), c, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return c.UID
}

func TestForceDeletesNoClaim(t *testing.T) {
	tm := newTeam(t)
	if err := tm.create(tm.cluster(), dataClaim); err != nil {
		t.Fatal(err)
	}
	before := tm.claim()
	c := tm.cluster()
	c.Terms.Force = true
	err := tm.upgradeTo(c, dataClaim, strings.Replace(dataClaim, "8Gi", "5Gi", 1))
	if err == nil || !strings.Contains(err.Error(), "force does not delete a PersistentVolumeClaim") || cause.IsEnvironment(c.Faults.All()) {
		t.Errorf("got %v", err)
	}
	if tm.claim() != before {
		t.Error("the claim is another")
	}
}

// TestNoActionDeletesAClaimWithData has claims in revisions whose manifests do not say that they are kept.
func TestNoActionDeletesAClaimWithData(t *testing.T) {
	tm := newTeam(t)
	r := tm.request(sources.ChartFolder(fourObjects(nil)))
	tm.deploy(r)
	withClaim := fourObjects(map[string]string{"templates/claim.yaml": dataClaim})
	tm.releaseByHand(withClaim)
	before := tm.claim()
	tm.deploy(r)
	if tm.claim() != before {
		t.Fatal("the claim went with the revision that a person made")
	}
	tm.releaseByHand(withClaim)
	tm.uninstall(r)
	if tm.claim() != before {
		t.Error("the claim went with the release")
	}
	if left := tm.versions(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func TestAnOwnerOfClaimsIsNotDeleted(t *testing.T) {
	settled := func(tm *team, r Request) error {
		for {
			out, err := tm.Reconcile(t.Context(), r)
			if err != nil || !out.Running {
				return errors.Join(err, out.Failed)
			}
			tm.await(r)
		}
	}
	tests := map[string]func(*team, Request) error{
		"the chart drops it": func(tm *team, r Request) error {
			return settled(tm, tm.request(sources.ChartFolder(fourObjects(nil)), "color=other"))
		},
		"another name of the release": func(tm *team, r Request) error {
			r.Name = "new"
			return settled(tm, r)
		},
		"remediation by uninstallation": func(tm *team, _ Request) error {
			bad := tm.request(sources.ChartFolder(fourObjects(map[string]string{"templates/db.yaml": statefulSet, "templates/z.yaml": refused})))
			bad.Policy.Retry = later
			bad.Actions.Remediation = v1alpha1.HelmRemediation{Retries: new(int32), Strategy: v1alpha1.RemediationUninstall}
			_ = settled(tm, bad)
			out, err := tm.Reconcile(t.Context(), bad)
			if out.Remediation == nil {
				return err
			}
			return out.Remediation.Err
		},
		"force": func(tm *team, r Request) error {
			r = tm.request(sources.ChartFolder(fourObjects(map[string]string{"templates/db.yaml": strings.Replace(statefulSet, "serviceName: db", "serviceName: other", 1)})))
			r.Actions.Upgrade.Force = true
			return settled(tm, r)
		},
		"uninstallation": func(tm *team, r Request) error {
			for {
				if done, err := tm.Uninstall(t.Context(), r); done || err != nil {
					return err
				}
				tm.await(r)
			}
		},
	}
	for name, happens := range tests {
		t.Run(name, func(t *testing.T) {
			tm := newTeam(t)
			r := tm.request(sources.ChartFolder(fourObjects(map[string]string{"templates/db.yaml": statefulSet})))
			r.Policy.Retry = later
			tm.deploy(r)
			db := tm.set()
			before := tm.makeData(metav1.OwnerReference{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "db", UID: db.UID})
			tm.catchUp()
			err := happens(tm, r)
			var inTheWay *fault.ClaimsInTheWay
			if !errors.As(err, &inTheWay) || !strings.Contains(err.Error(), "StatefulSet/db owns claims that hold data and would go with it: data") {
				t.Errorf("got %v", err)
			}
			if after := tm.set(); after.UID != db.UID || after.GetDeletionTimestamp() != nil || tm.claim() != before {
				t.Errorf("the StatefulSet or its claim is another: %v", after.ObjectMeta)
			}
			tm.configMap("web") // Nothing else went either.

			r.Policy.Retry, r.Policy.Owned = soon, func(context.Context) (map[types.UID][]string, error) { return nil, nil }
			tm.catchUp()
			tm.uninstall(r)
		})
	}
}

func (t *team) set() *appsv1.StatefulSet {
	t.Helper()
	set, err := t.admin.AppsV1().StatefulSets(t.namespace).Get(t.Context(), "db", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// TestAHookDeletesNoData has a claim that is, or was, a hook.
func TestAHookDeletesNoData(t *testing.T) {
	hooked := sources.ChartFolder(fourObjects(map[string]string{"templates/claim.yaml": claimHook}))
	tests := map[string]func(tm *team){
		"that runs again": func(tm *team) { tm.deploy(tm.request(hooked, "color=again")) },
		"that becomes a template": func(tm *team) {
			tm.deploy(tm.request(sources.ChartFolder(fourObjects(map[string]string{"templates/claim.yaml": dataClaim}))))
		},
		"and an upgrade that is cleaned up": func(tm *team) {
			bad := tm.request(sources.ChartFolder(fourObjects(map[string]string{"templates/claim.yaml": claimHook, "templates/z.yaml": refused})))
			bad.Actions.Upgrade.CleanupOnFail = true
			bad.Actions.Remediation = v1alpha1.HelmRemediation{Retries: new(int32), Strategy: v1alpha1.RemediationNone}
			tm.settle(bad)
		},
	}
	for name, happens := range tests {
		t.Run(name, func(t *testing.T) {
			tm := newTeam(t)
			tm.deploy(tm.request(hooked))
			before := tm.claim()
			happens(tm)
			if tm.claim() != before {
				t.Error("the claim is another")
			}
		})
	}
	t.Run("that a person made", func(t *testing.T) {
		tm := newTeam(t)
		before := tm.makeData()
		r := tm.request(hooked)
		r.Policy.Retry = later
		if out := tm.settle(r); out.Failed == nil || !strings.Contains(out.Failed.Error(), "PersistentVolumeClaim/data exists, and no hook deletes it") {
			t.Errorf("got %v", out.Failed)
		}
		if tm.claim() != before {
			t.Error("the claim is another")
		}
	})
}

// TestCleaningUpLeavesData has an upgrade make a claim that is bound, and fail.
func TestCleaningUpLeavesData(t *testing.T) {
	tm := newTeam(t)
	tm.deploy(tm.good("blue"))
	bad := tm.request(sources.ChartFolder(fourObjects(map[string]string{"templates/claim.yaml": dataClaim, "templates/z.yaml": refused})))
	bad.Actions.Upgrade.CleanupOnFail = true
	bad.Actions.Remediation = v1alpha1.HelmRemediation{Retries: new(int32), Strategy: v1alpha1.RemediationNone}
	if out := tm.settle(bad); out.Failed == nil {
		t.Error("it did not fail")
	}
	before := tm.claim()
	tm.deploy(tm.good("green"))
	if tm.claim() != before {
		t.Error("the claim is another")
	}
}
