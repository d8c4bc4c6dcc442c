package release

import (
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/release/cluster"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

// theirs creates the ConfigMap "given" without an owner.
func (t *team) theirs() *corev1.ConfigMap {
	t.Helper()
	c := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "given"}, Data: map[string]string{"color": "green"}}
	c, err := t.admin.CoreV1().ConfigMaps(t.namespace).Create(t.Context(), c, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// claiming returns a request with a chart that contains that ConfigMap, too.
func (t *team) claiming() Request {
	files := fourObjects(map[string]string{"templates/given.yaml": strings.Replace(configMap, "name: a", "name: given", 1) + "data: {color: blue}\n"})
	r := t.request(sources.ChartFolder(files), "color=claimed")
	r.Actions.Remediation = v1alpha1.HelmRemediation{Retries: new(int32), Strategy: v1alpha1.RemediationNone}
	return r
}

// refusedOver settles a request that must be refused because of the ConfigMap.
func (t *team) refusedOver(r Request) Outcome {
	t.Helper()
	out := t.settle(r)
	if out.Failed == nil || !strings.Contains(out.Failed.Error(), "ConfigMap/given exists and does not belong to this release") || out.Environment {
		t.Fatalf("got %+v", out)
	}
	return out
}

func TestObjectsOfOthersAreNeitherChangedNorDeleted(t *testing.T) {
	tests := map[string]func(*team, Request){
		"uninstalled after a refused install": func(tm *team, r Request) {
			tm.refusedOver(r)
		},
		"another chart after a refused install": func(tm *team, r Request) {
			tm.refusedOver(r)
			tm.deploy(tm.good("blue"))
		},
		"uninstalled after a refused upgrade": func(tm *team, r Request) {
			tm.deploy(tm.good("blue"))
			tm.refusedOver(r)
		},
		"another chart after a refused upgrade": func(tm *team, r Request) {
			tm.deploy(tm.good("blue"))
			tm.refusedOver(r)
			tm.deploy(tm.good("red"))
		},
		"cleaned up": func(tm *team, r Request) {
			tm.deploy(tm.good("blue"))
			r.Actions.Upgrade.CleanupOnFail = true
			tm.refusedOver(r)
		},
		"rolled back": func(tm *team, r Request) {
			tm.deploy(tm.good("blue"))
			r = tm.knowing(r)
			r.Actions.Remediation.Strategy, r.Actions.Upgrade.CleanupOnFail, r.Recorded.Proven = v1alpha1.RemediationRollback, true, true
			if out := tm.refusedOver(r); out.Remediation == nil || out.Remediation.Err != nil || tm.color() != "blue" {
				tm.Errorf("not rolled back: %+v", out.Remediation)
			}
		},
		"uninstalled for remedy": func(tm *team, r Request) {
			tm.deploy(tm.good("blue"))
			r.Actions.Remediation.Strategy = v1alpha1.RemediationUninstall
			tm.refusedOver(r)
		},
		"tried again where nothing is deployed any more": func(tm *team, r Request) {
			tm.deploy(tm.good("red"))
			good := tm.good("blue")
			tm.deploy(good)
			if done, err := tm.MarkFailed(tm.Context(), good, "not healthy"); !done || err != nil {
				tm.Fatal(err)
			}
			r.Actions.Upgrade.Force = true
			tm.refusedOver(r)
			r.Manual.Force, r.Manual.ID = true, "1"
			if _, err := tm.Reconcile(tm.Context(), r); err != nil {
				tm.Fatal(err)
			}
			tm.await(r)
			r.Manual.Force = false
			tm.refusedOver(r)
		},
		"renamed": func(tm *team, r Request) {
			tm.refusedOver(r)
			tm.catchUp()
			other := tm.good("blue")
			other.Name, other.Actions.Install.TakeOwnership = "other", true
			tm.deploy(other)
		},
	}
	for name, happens := range tests {
		t.Run(name, func(t *testing.T) {
			tm := newTeam(t)
			given := tm.theirs()
			r := tm.claiming()
			happens(tm, r)
			tm.catchUp()
			tm.uninstall(r)
			left := tm.versions()
			if left["configmaps/given"] != given.ResourceVersion {
				t.Errorf("ConfigMap given is at version %q, want %s", left["configmaps/given"], given.ResourceVersion)
			}
			if len(left) != 1 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

func TestUninstallKeepsObjectsThatAnotherReleaseAdopted(t *testing.T) {
	tm := newTeam(t)
	r := tm.good("blue")
	tm.deploy(r)
	r = tm.knowing(r)
	taken := tm.configMap("web")
	taken.Annotations[cluster.NameAnnotation] = "other"
	tm.update(taken)
	r.Recorded.Unmoved = func(u *unstructured.Unstructured) bool { return u.GetKind() != "ConfigMap" }
	tm.requests.take()
	tm.uninstall(r)
	if left := tm.versions(); len(left) != 1 || left["configmaps/web"] == "" {
		t.Errorf("left: %v", left)
	}
	asked := tm.requests.take()
	if verbs(asked) == "" || len(asked) > 8 {
		t.Errorf("asked %v", asked)
	}
}

// toHook returns the ConfigMap "moved" as an object, or as a hook.
func toHook(annotations string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: moved, annotations: {" + annotations + "}}\ndata: {as: {{ .Values.color }}}\n"
}

func TestAnObjectMayBecomeAHookAndBack(t *testing.T) {
	asObject := fourObjects(map[string]string{"templates/moved.yaml": toHook("")})
	asHook := fourObjects(map[string]string{"templates/moved.yaml": toHook("helm.sh/hook: pre-upgrade")})
	fails := maps.Clone(asHook)
	fails["templates/z.yaml"] = refused
	tests := map[string]func(tm *team, object, bad Request){
		"and an object again": func(tm *team, object, bad Request) {
			tm.settle(bad)
			again := tm.request(object.Input.Chart.Files, "color=again")
			tm.deploy(again)
			if got := tm.configMap("moved"); got.Data["as"] != "again" || got.Annotations["helm.sh/hook"] != "" {
				tm.Errorf("%v, %v", got.Data, got.Annotations)
			}
		},
		"and rolled back": func(tm *team, _, bad Request) {
			bad = tm.knowing(bad)
			bad.Actions.Remediation.Strategy, bad.Recorded.Proven = v1alpha1.RemediationRollback, true
			if out := tm.settle(bad); out.Remediation == nil || out.Remediation.Err != nil {
				tm.Fatalf("%+v: %v", out.Remediation, out.Failed)
			}
			if got := tm.configMap("moved"); got.Data["as"] != "object" || got.Annotations[cluster.NameAnnotation] != "web" {
				tm.Errorf("%v, %v", got.Data, got.Annotations)
			}
		},
	}
	for name, happens := range tests {
		t.Run(name, func(t *testing.T) {
			tm := newTeam(t)
			object := tm.request(sources.ChartFolder(asObject), "color=object")
			tm.deploy(object)
			bad := tm.request(sources.ChartFolder(fails), "color=hook")
			bad.Actions.Remediation = v1alpha1.HelmRemediation{Retries: new(int32), Strategy: v1alpha1.RemediationNone}
			happens(tm, object, bad)
			tm.uninstall(object)
			if left := tm.versions(); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}
