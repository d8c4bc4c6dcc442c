package controllers

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// adding returns what sets the labels and annotations that a policy adds.
func adding(labels map[string]v1alpha1.LabelValue, annotations map[string]v1alpha1.AnnotationValue) func(*v1alpha1.PolicySpec) {
	return func(s *v1alpha1.PolicySpec) {
		s.Metadata = &v1alpha1.MetadataRules{Added: &v1alpha1.AddedMetadata{Labels: labels, Annotations: annotations}}
	}
}

// markedApps are apps of three types. The ConfigMap of one has a label of its own.
func markedApps() map[string]string {
	files := usualApps("")
	files["projects/shop/apps/folder/manifests/config.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: config, labels: {team: own}}\n"
	maps.Copy(files, imageFile("site", "  image: {reference: registry.example.com/web:v1, replicas: 0}\n"))
	return files
}

// marks waits until the objects of the apps have this value of the label team, and of the annotation example.org/note. own is the value of the ConfigMap. It
// returns their versions. templates are those of the pods when it was first called: no pod starts anew.
func (n *team) marks(templates map[string]any, team, own, note string) map[string]string {
	n.t.Helper()
	versions := map[string]string{}
	objects := map[string]client.Object{"chart": &appsv1.Deployment{}, "folder": &appsv1.Deployment{}, "site": &appsv1.Deployment{}, "config": &corev1.ConfigMap{}}
	for name, object := range objects {
		want := team
		if name == "config" {
			want = own
		}
		n.eventually(func() error {
			if err := n.admin.Get(n.t.Context(), client.ObjectKey{Namespace: n.namespace(), Name: name}, object); err != nil {
				return err
			}
			if got, noted := object.GetLabels()["team"], object.GetAnnotations()["example.org/note"]; got != want || noted != note {
				return fmt.Errorf("%s has team %q and note %q, want %q and %q", name, got, noted, want, note)
			}
			return nil
		})
		if deployment, ok := object.(*appsv1.Deployment); ok {
			is := any(deployment.Spec.Template)
			if was, known := templates[name]; known {
				if diff := cmp.Diff(was, is); diff != "" {
					n.t.Errorf("the pods of %s change (-before +after):\n%s", name, diff)
				}
			}
			templates[name] = is
			versions[name] = fmt.Sprint(object.GetGeneration()) // Controllers of Kubernetes write the status.
			continue
		}
		versions[name] = object.GetResourceVersion()
	}
	return versions
}

// TestPoliciesMarkTheObjectsOfApps: each object of an app gets the labels and annotations of a policy, whatever renders it, follows a change of the policy, and
// loses them with it. No pod starts anew for that, and nothing is written twice. What policies contradict each other about, no object gets.
func TestPoliciesMarkTheObjectsOfApps(t *testing.T) {
	n, bot := limited(t, "marked")
	templates := map[string]any{}
	n.push(markedApps())
	apps := []*v1alpha1.App{n.app("shop", "chart"), n.app("shop", "folder"), n.app("shop", "site")}
	n.ready(apps[0], apps[1], apps[2])
	n.marks(templates, "", "own", "")

	n.under(setting("marks", adding(map[string]v1alpha1.LabelValue{"team": "acme"}, map[string]v1alpha1.AnnotationValue{"example.org/note": "a b"})))
	before := n.marks(templates, "acme", "acme", "a b")
	n.ready(apps[0], apps[1], apps[2])
	if manifest := n.helm("get", "manifest", "chart"); !strings.Contains(manifest, "team: acme") {
		t.Errorf("helm get manifest shows another manifest than the applied one:\n%s", manifest)
	}
	n.eventually(func() error {
		if got := n.history(apps[0]); len(got) != 2 {
			return fmt.Errorf("the release has revisions %v, want one more", got)
		}
		return nil
	})
	n.reconcile(apps[0], apps[1], apps[2])
	n.ready(apps[0], apps[1], apps[2])
	if diff := cmp.Diff(before, n.marks(templates, "acme", "acme", "a b")); diff != "" || len(n.history(apps[0])) != 2 {
		t.Errorf("written again without a change (-before +after):\n%s\n%d revisions, before 2", diff, len(n.history(apps[0])))
	}
	n.marksPods(bot)

	// Somebody takes a label off: it is put back.
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: n.namespace(), Name: "config"}}
	if err := n.admin.Patch(t.Context(), config, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"team":"stolen"}}}`))); err != nil {
		t.Fatal(err)
	}
	n.marks(templates, "acme", "acme", "a b")

	n.resets("marks", adding(map[string]v1alpha1.LabelValue{"team": "beta"}, map[string]v1alpha1.AnnotationValue{"example.org/note": "c"}))
	n.marks(templates, "beta", "beta", "c")

	// Another policy contradicts it about the label.
	n.create(&v1alpha1.Policy{ObjectMeta: metav1.ObjectMeta{Name: "marked-other"}, Spec: setting("", adding(map[string]v1alpha1.LabelValue{"team": "gamma"}, nil)).Spec})
	n.tenanted(func(s *v1alpha1.TenantSpec) { s.Policies = append(s.Policies, "marked-other") })
	n.mentions(n.project("shop"), v1alpha1.ReadyCondition, "policies contradict each other about labels and annotations, which no object gets until an administrator of the cluster changes one of them in Git: "+
		"spec.metadata.added.labels of policies/marked-marks.yaml has team=beta, and that of policies/marked-other.yaml has gamma")
	n.marks(templates, "", "own", "c")

	n.tenanted(func(s *v1alpha1.TenantSpec) { s.Policies = nil })
	n.marks(templates, "", "own", "")
	n.ready(apps[0], apps[1], apps[2])
}

// marksPods checks that the API server writes the label and the annotation into new pods and Services that lack them, whoever creates them.
func (n *team) marksPods(bot client.Client) {
	n.t.Helper()
	for text, want := range map[string]string{
		placed("Pod", "hostname: a"): "acme",
		strings.Replace(placed("Pod", "hostname: a"), "metadata: {name: x}", "metadata: {name: x, labels: {team: mine}}", 1): "mine",
		"{apiVersion: v1, kind: Service, metadata: {name: x, annotations: {a: b}}, spec: {ports: [{port: 80}]}}":             "acme",
	} {
		if env.OlderThan(36) && want == "acme" {
			want = "" // Only kubeop writes them.
		}
		n.eventually(func() error {
			object := n.object(n.namespace(), text)
			if err := bot.Create(n.t.Context(), object, client.DryRunAll); err != nil {
				return err
			}
			if got := object.GetLabels()["team"]; got != want {
				return fmt.Errorf("%s has team %q, want %q", object.GetKind(), got, want)
			}
			if noted := object.GetAnnotations()["example.org/note"]; noted != "a b" && !env.OlderThan(36) {
				return fmt.Errorf("%s has the note %q", object.GetKind(), noted)
			}
			return nil
		})
	}
}
