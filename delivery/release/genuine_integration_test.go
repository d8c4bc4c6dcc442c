package release

import (
	"errors"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"
	helm "helm.sh/helm/v3/pkg/release"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/release/cluster"
	"github.com/kubeop/kubeop/delivery/release/decide"
	"github.com/kubeop/kubeop/delivery/release/records"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

// alter changes the content of a record and keeps its labels, as anyone can who may write Secrets.
func (t *team) alter(number int, change func(*helm.Release)) {
	t.Helper()
	secrets := t.admin.CoreV1().Secrets(t.namespace)
	secret, err := secrets.Get(t.Context(), decide.KeyOf("web", number), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	rel, err := records.Decode(secret)
	if err != nil {
		t.Fatal(err)
	}
	change(rel)
	forged, err := records.Encode(rel, "createdAt", t.opts.Now())
	if err != nil {
		t.Fatal(err)
	}
	secret.Data = forged.Data
	if _, err := secrets.Update(t.Context(), secret, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.catchUp()
}

func configMapOf(metadata string) string {
	return "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {" + metadata + "}\n"
}

// hookOf is a hook that creates the ConfigMap "stolen" at an event.
func hookOf(event helm.HookEvent) *helm.Hook {
	return &helm.Hook{Name: "stolen", Kind: "ConfigMap", Path: "stolen.yaml", Events: []helm.HookEvent{event}, Manifest: configMapOf("name: stolen")}
}

// notStolen fails when an object was made that no policy checked.
func (t *team) notStolen() {
	t.Helper()
	_, err := t.admin.CoreV1().ConfigMaps(t.namespace).Get(t.Context(), "stolen", metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("what nobody checked was applied as the deployer: %v", err)
	}
}

func TestUninstallRunsNothingOfAnAlteredRecord(t *testing.T) {
	tm := newTeam(t)
	r := tm.good("blue")
	tm.deploy(r)
	given := tm.theirs()
	tm.alter(1, func(rel *helm.Release) {
		rel.Hooks = []*helm.Hook{hookOf(helm.HookPreDelete), hookOf(helm.HookPostDelete)}
		rel.Manifest += configMapOf("name: given") + configMapOf("name: x, namespace: kube-system") +
			strings.Replace(configMapOf("name: admin"), "apiVersion: v1\nkind: ConfigMap", "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole", 1)
	})
	tm.uninstall(r)
	tm.notStolen()
	if left := tm.versions(); len(left) != 1 || left["configmaps/given"] != given.ResourceVersion {
		t.Errorf("left: %v", left)
	}
}

func TestUninstallRunsTheHooksOfAGenuineRecord(t *testing.T) {
	for name, disabled := range map[string]bool{"usual": false, "disabled": true} {
		t.Run(name, func(t *testing.T) {
			tm := newTeam(t)
			files := fourObjects(map[string]string{"templates/h.yaml": strings.Replace(configMap, "metadata:\n", "metadata:\n  annotations:\n    helm.sh/hook: pre-delete\n", 1)})
			r := tm.request(sources.ChartFolder(files))
			r.Actions.Uninstall.DisableHooks = disabled
			tm.deploy(r)
			tm.uninstall(r)
			if left := tm.versions(); len(left) > 1 || (left["configmaps/a"] == "") != disabled {
				t.Errorf("left: %v", left)
			}
		})
	}
}

func TestAnAlteredRecordIsRefused(t *testing.T) {
	tests := map[string]func(*team, Request) error{
		"drift": func(tm *team, r Request) error {
			stolen := cluster.Ref{GroupVersionKind: corev1.SchemeGroupVersion.WithKind("ConfigMap"), Namespace: tm.namespace, Name: "stolen"}
			_, err := tm.Drift(tm.Context(), r, []cluster.Ref{stolen}, true)
			return err
		},
		"tests": func(tm *team, r Request) error {
			if _, err := tm.Test(tm.Context(), r); err != nil {
				return err
			}
			tm.await(r)
			return tm.pool.Slot(r.key()).Memory.last.Err
		},
		"report": func(tm *team, r Request) error {
			tm.restart("other")
			_, err := tm.Reconcile(tm.Context(), r)
			return err
		},
	}
	for name, act := range tests {
		t.Run(name, func(t *testing.T) {
			tm := newTeam(t)
			r := tm.good("blue")
			tm.deploy(r)
			tm.alter(1, func(rel *helm.Release) {
				rel.Hooks = []*helm.Hook{hookOf(helm.HookTest)}
				rel.Manifest += configMapOf("name: stolen")
			})
			again := "may run: kubectl annotate app " + r.App.Name + " -n " + r.App.Namespace + " --overwrite " + meta.ForceRequestAnnotation
			if err := act(tm, r); !errors.Is(err, decide.ErrAltered) || !strings.Contains(err.Error(), again) {
				t.Errorf("got %v, want that the record was altered, and %q", err, again)
			}
			tm.notStolen()
			r.Manual.Force, r.Manual.ID = true, "now"
			if _, err := tm.Reconcile(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			tm.await(r)
			r.Manual.Force = false
			if out := tm.deploy(r); out.Release.Revision != 2 {
				t.Errorf("released anew: %+v", out.Release)
			}
		})
	}
}

// A record has a label that names an app; people of the namespace can copy such a label.
func TestALabelAloneDoesNotProveAFormerRelease(t *testing.T) {
	tm := newTeam(t)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: decide.KeyOf("db", 2), Labels: map[string]string{
		"owner": "helm", "name": "db", "status": "deployed", "version": "2", decide.AppLabel: "shop", decide.RevisionLabel: "1",
	}}, Type: "helm.sh/release.v1"}
	if _, err := tm.admin.CoreV1().Secrets(tm.namespace).Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	tm.catchUp()
	r := tm.good("blue")
	tm.deploy(r)
	tm.catchUp()
	tm.uninstall(r)
	if left := tm.versions(); len(left) != 1 || left["secrets/"+secret.Name] == "" {
		t.Errorf("left: %v", left)
	}
}

func TestObjectsOutsideTheNamespaceAreNoApps(t *testing.T) {
	tm := newTeam(t)
	role := "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: admin"
	got, shared, err := cluster.OfRevision(tm.opts.Mapper, &helm.Release{Name: "web", Namespace: tm.namespace, Manifest: configMapOf("name: a") +
		configMapOf("name: b, namespace: "+tm.namespace) + configMapOf("name: c, namespace: kube-system") + role + "}\n" +
		role + ", namespace: " + tm.namespace + "}\n"}, false)
	if err != nil || len(got) != 2 || got[0].GetName() != "a" || got[1].GetName() != "b" || got[0].GetNamespace() != tm.namespace || len(shared) != 2 {
		t.Errorf("%v, %v, %v", got, shared, err)
	}
}

// databases creates the ConfigMap "given", which belongs to another app of the project.
func (t *team) databases() *corev1.ConfigMap {
	t.Helper()
	c := t.theirs()
	c.Labels = map[string]string{decide.AppLabel: "database"}
	t.update(c)
	return t.configMap("given")
}

func TestAnotherAppsObjectsAreLeftAlone(t *testing.T) {
	hook := strings.Replace(strings.Replace(configMap, "name: a", "name: given", 1), "metadata:\n",
		"metadata:\n  annotations: {helm.sh/hook: pre-install, helm.sh/hook-delete-policy: before-hook-creation}\n", 1)
	tests := map[string]func(*team) Request{
		"taken over": func(tm *team) Request {
			r := tm.claiming()
			r.Actions.Install.TakeOwnership = true
			return r
		},
		"marked as the release's own by hand": func(tm *team) Request {
			c := tm.configMap("given")
			c.Annotations = map[string]string{cluster.NameAnnotation: "web", cluster.NamespaceAnnotation: tm.namespace}
			tm.update(c)
			return tm.claiming()
		},
		"replaced by a hook": func(tm *team) Request {
			r := tm.claiming()
			r.Input.Chart.Files = sources.ChartFolder(fourObjects(map[string]string{"templates/given.yaml": hook}))
			return r
		},
	}
	for name, claim := range tests {
		t.Run(name, func(t *testing.T) {
			tm := newTeam(t)
			tm.databases()
			r := claim(tm)
			given := tm.configMap("given")
			out := tm.settle(r)
			if out.Failed == nil || !strings.Contains(out.Failed.Error(), "ConfigMap/given exists and belongs to app database") || out.Environment {
				t.Errorf("%v, Environment is %t", out.Failed, out.Environment)
			}
			tm.uninstall(r)
			if now := tm.configMap("given"); now.UID != given.UID || now.ResourceVersion != given.ResourceVersion {
				t.Errorf("it was changed: %v", now)
			}
		})
	}
}

func TestDriftLeavesAnotherAppsObjectsAlone(t *testing.T) {
	tm := newTeam(t)
	r := tm.good("blue")
	out := tm.deploy(r)
	c := tm.configMap("web")
	c.Labels[v1alpha1.AppLabel], c.Data["color"] = "database", "green"
	tm.update(c)
	var refs []cluster.Ref
	for _, a := range out.Deployed.Objects {
		refs = append(refs, a.Ref)
	}
	if _, err := tm.Drift(t.Context(), r, refs, true); err == nil || !strings.Contains(err.Error(), "belongs to app database") {
		t.Errorf("got %v", err)
	}
	if tm.configMap("web").Data["color"] != "green" {
		t.Error("it was changed")
	}
}
