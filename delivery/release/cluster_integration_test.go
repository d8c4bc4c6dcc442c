package release

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/kube"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/kubeop/kubeop/delivery/mask"
	"github.com/kubeop/kubeop/delivery/release/cause"
	"github.com/kubeop/kubeop/delivery/release/cluster"
	"github.com/kubeop/kubeop/delivery/release/fault"
)

// four is a manifest of four objects, each with a value of its own.
func four(account, config, service, deployment string) string {
	return fmt.Sprintf(`---
apiVersion: v1
kind: ServiceAccount
metadata: {name: web, labels: {v: %q}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: web}
data: {v: %q}
---
apiVersion: v1
kind: Service
metadata: {name: web, labels: {v: %q}}
spec: {ports: [{port: 80}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {v: %q}}
spec:
  replicas: 0
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "web:v1", resources: {limits: {cpu: "1"}}}]}
`, account, config, service, deployment)
}

func allAt(v string) string { return four(v, v, v, v) }

// cluster returns a client as an action uses it.
func (t *team) cluster() *cluster.Client {
	t.Helper()
	conn, err := t.dial(t.request(nil))
	if err != nil {
		t.Fatal(err)
	}
	return conn.Client
}

// marked builds a manifest with Helm's marks, as its actions do it.
func (t *team) marked(c kube.Interface, manifest string) kube.ResourceList {
	t.Helper()
	list, err := c.Build(bytes.NewBufferString(manifest), false)
	if err != nil {
		t.Fatal(err)
	}
	r := t.request(nil)
	for _, info := range list {
		cluster.Objects{Release: r.key()}.Claim(info.Object.(*unstructured.Unstructured))
	}
	return list
}

func (t *team) create(c kube.Interface, manifest string) error {
	t.Helper()
	_, err := c.Create(t.marked(c, manifest))
	return err
}

func (t *team) upgradeTo(c kube.Interface, before, after string) error {
	t.Helper()
	original, err := c.Build(bytes.NewBufferString(before), false)
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Update(original, t.marked(c, after), false)
	return err
}

// verbs counts requests by method.
func verbs(all []string) string {
	var out []string
	for _, r := range all {
		verb, _, _ := strings.Cut(r, " ")
		out = append(out, verb)
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func TestAnUpdateSendsNoNeedlessRequest(t *testing.T) {
	yes := func(*unstructured.Unstructured) bool { return true }
	tests := map[string]struct {
		before, after string
		unmoved       func(*unstructured.Unstructured) bool
		want          string
		sent          int
	}{
		"unmoved, nothing changed": {allAt("1"), allAt("1"), yes, "", 0},
		"unmoved, one changed":     {allAt("1"), four("1", "2", "1", "1"), yes, "PATCH", 1},
		"unmoved, all changed":     {allAt("1"), allAt("2"), yes, "PATCH PATCH PATCH PATCH", 4},
		"unmoved, one left":        {allAt("1") + "---\n" + configMap, allAt("1"), yes, "DELETE", 0},
		"unmoved, one new":         {allAt("1"), allAt("1") + "---\n" + configMap, yes, "POST", 1},
		"unknown, nothing changed": {allAt("1"), allAt("1"), nil, "GET GET GET GET", 0},
		"unknown, one changed":     {allAt("1"), four("1", "2", "1", "1"), nil, "GET GET GET GET PATCH", 1},
		"unknown, all changed":     {allAt("1"), allAt("2"), nil, "GET GET GET GET PATCH PATCH PATCH PATCH", 4},
		"unknown, one left":        {allAt("1") + "---\n" + configMap, allAt("1"), nil, "DELETE GET GET GET GET GET", 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			tm := newTeam(t)
			if err := tm.create(tm.cluster(), test.before); err != nil {
				t.Fatal(err)
			}
			if got := verbs(tm.requests.take()); strings.Trim(got, "POST ") != "" {
				t.Errorf("creating asked %s", got)
			}
			c := tm.cluster()
			c.Terms.Unmoved = test.unmoved
			if err := tm.upgradeTo(c, test.before, test.after); err != nil {
				t.Fatal(err)
			}
			if got := verbs(tm.requests.take()); got != test.want {
				t.Errorf("asked %q, want %q", got, test.want)
			}
			sent := 0
			for _, a := range c.Sent {
				if a.Live != nil {
					sent++
				}
			}
			if want := strings.Count(test.after, "kind:"); len(c.Sent) != want || sent != test.sent {
				t.Errorf("%d objects, %d sent; want %d, %d", len(c.Sent), sent, want, test.sent)
			}
		})
	}
}

// live returns the objects as they are in the cluster, without the fields that always differ between two namespaces or two times.
func (t *team) live(manifest string) []map[string]any {
	t.Helper()
	c := t.cluster()
	var out []map[string]any
	for _, info := range t.marked(c, manifest) {
		u, err := cluster.Live(info)
		if err != nil || u == nil {
			t.Fatalf("%s: %v, %v", info.Name, u, err)
		}
		for _, field := range []string{"namespace", "uid", "resourceVersion", "creationTimestamp"} {
			unstructured.RemoveNestedField(u.Object, "metadata", field)
		}
		for _, field := range []string{"clusterIP", "clusterIPs"} {
			unstructured.RemoveNestedField(u.Object, "spec", field)
		}
		delete(u.Object, "status")
		annotations := u.GetAnnotations()
		delete(annotations, cluster.NamespaceAnnotation)
		delete(annotations, "deployment.kubernetes.io/revision")
		u.SetAnnotations(annotations)
		var owners []metav1.ManagedFieldsEntry
		for _, entry := range u.GetManagedFields() {
			if entry.Manager == "helm" {
				entry.Time = nil
				owners = append(owners, entry)
			}
		}
		u.SetManagedFields(owners)
		out = append(out, u.Object)
	}
	return out
}

func TestUpdateKeepsTheFieldsThatHelmKeeps(t *testing.T) {
	before := allAt("1")
	after := strings.Replace(allAt("2"), "image: \"web:v1\", resources: {limits: {cpu: \"1\"}}", "image: \"web:v2\", env: [{name: A, value: b}]", 1)
	ways := map[string]func(*team) kube.Interface{
		"Helm": func(tm *team) kube.Interface {
			conn, err := tm.dial(tm.request(nil))
			if err != nil {
				tm.Fatal(err)
			}
			c := kube.New(conn.Getter.(genericclioptions.RESTClientGetter))
			c.Namespace = tm.namespace
			return c
		},
		"unknown": func(tm *team) kube.Interface { return tm.cluster() },
		"unmoved": func(tm *team) kube.Interface {
			c := tm.cluster()
			c.Terms.Unmoved = func(*unstructured.Unstructured) bool { return true }
			return c
		},
	}
	left := map[string][]map[string]any{}
	var mu sync.Mutex
	t.Run("ways", func(t *testing.T) {
		for name, client := range ways {
			t.Run(name, func(t *testing.T) {
				tm := newTeam(t)
				if err := errors.Join(tm.create(client(tm), before), tm.upgradeTo(client(tm), before, after)); err != nil {
					t.Fatal(err)
				}
				mu.Lock()
				defer mu.Unlock()
				left[name] = tm.live(after)
			})
		}
	})
	for _, way := range []string{"unknown", "unmoved"} {
		if diff := cmp.Diff(left["Helm"], left[way]); diff != "" || len(left["Helm"]) != 4 {
			t.Errorf("%s: %s", way, diff)
		}
	}
}

func TestExistingObjectsAreAdoptedOrRefused(t *testing.T) {
	claimed := func(release string) map[string]string {
		return map[string]string{cluster.NameAnnotation: release, cluster.NamespaceAnnotation: "*"}
	}
	tests := map[string]struct {
		annotations map[string]string
		take        bool
		want        string
	}{
		"ours":               {claimed("web"), false, ""},
		"nobody's":           {nil, false, "ConfigMap/web exists and does not belong to this release; set spec.helm.install.takeOwnership in app.yaml or, if nobody needs it, an administrator of the cluster may run: kubectl delete configmap web -n"},
		"another release's":  {claimed("other"), false, "ConfigMap/web exists and does not belong to this release"},
		"nobody's, taken":    {nil, true, ""},
		"another's, taken":   {claimed("other"), true, ""},
		"ours, and released": {claimed("web"), true, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			tm := newTeam(t)
			there := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "web", Annotations: test.annotations}, Data: map[string]string{"mine": "yes"}}
			if there.Annotations != nil {
				there.Annotations[cluster.NamespaceAnnotation] = tm.namespace
			}
			if _, err := tm.admin.CoreV1().ConfigMaps(tm.namespace).Create(t.Context(), there, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			tm.requests.take()
			c := tm.cluster()
			c.Terms.TakeOwnership = test.take
			err := tm.create(c, four("1", "1", "1", "1"))
			if test.want != "" {
				if err == nil || !strings.Contains(err.Error(), test.want) || cause.IsEnvironment(err) || !apierrors.IsAlreadyExists(err) {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got := tm.configMap("web")
			if diff := cmp.Diff(map[string]string{"mine": "yes", "v": "1"}, got.Data); diff != "" || got.Annotations[cluster.NameAnnotation] != "web" {
				t.Errorf("%s, %v", diff, got.Annotations)
			}
			if asked := verbs(tm.requests.take()); asked != "GET PATCH POST POST POST POST" {
				t.Errorf("asked %s, want %q", asked, "GET PATCH POST POST POST POST")
			}
		})
	}
}

func TestALeftoverHookIsNamedInTheError(t *testing.T) {
	tm := newTeam(t)
	for i, want := range []string{"", "ConfigMap/a exists: an earlier run left this hook, and its helm.sh/hook-delete-policy keeps it"} {
		c := tm.cluster()
		hook, err := c.Build(bytes.NewBufferString(configMap), true)
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Create(hook)
		if (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("run %d: %v", i, err)
		}
		if len(c.Sent) != 0 {
			t.Errorf("a hook counts as an object of the release: %v", c.Sent)
		}
	}
}

func TestForceReplacesAnObjectWithImmutableFields(t *testing.T) {
	fixed := configMap + "immutable: true\ndata: {a: \"1\"}\n"
	tests := map[string]struct {
		after    string
		force    bool
		replaced bool
	}{
		"without force":               {strings.Replace(fixed, `"1"`, `"2"`, 1), false, false},
		"with force":                  {strings.Replace(fixed, `"1"`, `"2"`, 1), true, true},
		"with force, invalid for all": {strings.Replace(fixed, "name: a", "name: a\n  labels: {a: \"!\"}", 1), true, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			tm := newTeam(t)
			if err := tm.create(tm.cluster(), fixed); err != nil {
				t.Fatal(err)
			}
			before := tm.configMap("a").UID
			c := tm.cluster()
			c.Terms.Force = test.force
			err := tm.upgradeTo(c, fixed, test.after)
			if (err == nil) != test.replaced || !test.replaced && (!apierrors.IsInvalid(err) || cause.IsEnvironment(c.Faults.All())) {
				t.Errorf("got %v, noted %v", err, c.Faults.All())
			}
			if got := tm.configMap("a"); (got.UID != before) != test.replaced || test.replaced && got.Data["a"] != "2" {
				t.Errorf("uid %s before, now %s with %v", before, got.UID, got.Data)
			}
		})
	}
}

func TestUnknownFieldsAreWarnedOf(t *testing.T) {
	odd := configMap + "date: {a: b}\n"
	tm := newTeam(t)
	for lenient, want := range map[bool]string{false: `warning of the API server: unknown field "date"`, true: ""} {
		log := fault.Log{WarningPrefix: cluster.WarningPrefix}
		say := func(format string, args ...any) { log.Add(fmt.Sprintf(format, args...)) }
		c := tm.cluster()
		c.Terms.Lenient, c.Log = lenient, say
		if err := tm.create(c, odd); err != nil {
			t.Errorf("lenient %t: %v", lenient, err)
		}
		changing := tm.cluster()
		changing.Terms.Lenient, changing.Log = lenient, say
		if err := tm.upgradeTo(changing, configMap, odd); err != nil {
			t.Errorf("lenient %t, changing: %v", lenient, err)
		}
		if got := strings.Join(log.Warnings(mask.Of(nil)), "\n"); got != want {
			t.Errorf("lenient %t: warned %q, want %q", lenient, got, want)
		}
	}
}

// scale sets the replicas through the scale subresource, as an autoscaler does.
func (t *team) scale(replicas int32) {
	t.Helper()
	to := &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: t.namespace}, Spec: autoscalingv1.ScaleSpec{Replicas: replicas}}
	if _, err := t.admin.AppsV1().Deployments(t.namespace).UpdateScale(t.Context(), "web", to, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (t *team) deployment() *appsv1.Deployment {
	t.Helper()
	d, err := t.admin.AppsV1().Deployments(t.namespace).Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestAnUpgradeDoesNotFightAnAutoscaler(t *testing.T) {
	tm := newTeam(t)
	if err := tm.create(tm.cluster(), allAt("1")); err != nil {
		t.Fatal(err)
	}
	tm.scale(3)
	if err := tm.upgradeTo(tm.cluster(), allAt("1"), allAt("2")); err != nil {
		t.Fatal(err)
	}
	if d := tm.deployment(); *d.Spec.Replicas != 3 || d.Labels["v"] != "2" {
		t.Errorf("replicas %d, labels %v", *d.Spec.Replicas, d.Labels)
	}
	if err := tm.upgradeTo(tm.cluster(), allAt("2"), strings.Replace(allAt("2"), "replicas: 0", "replicas: 2", 1)); err != nil {
		t.Fatal(err)
	}
	if d := tm.deployment(); *d.Spec.Replicas != 2 {
		t.Errorf("the chart changed its mind: replicas %d", *d.Spec.Replicas)
	}
}

func TestObjectsThatLeaveTheChartAreDeleted(t *testing.T) {
	named := func(name, more string) string {
		return "---\n" + strings.Replace(configMap, "name: a", "name: "+name+more, 1)
	}
	const keep = "\n  annotations: {helm.sh/resource-policy: keep}"
	tm := newTeam(t)
	before := named("gone", "") + named("kept", keep) + named("stolen", "") + named("missing", "")
	if err := tm.create(tm.cluster(), before); err != nil {
		t.Fatal(err)
	}
	stolen := tm.configMap("stolen")
	stolen.Annotations[cluster.NameAnnotation] = "other"
	tm.update(stolen)
	if err := tm.admin.CoreV1().ConfigMaps(tm.namespace).Delete(t.Context(), "missing", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := tm.upgradeTo(tm.cluster(), before, allAt("1")); err != nil {
		t.Fatal(err)
	}
	left := tm.versions()
	if left["configmaps/gone"] != "" || left["configmaps/kept"] == "" || left["configmaps/stolen"] == "" {
		t.Errorf("left: %v", left)
	}
}

func TestWaitNamesObjectsThatAreNotReady(t *testing.T) {
	tm := newTeam(t)
	manifest := strings.Replace(allAt("1"), "replicas: 0", "replicas: 1", 1)
	c := tm.cluster()
	list := tm.marked(c, manifest)
	if _, err := c.Create(list); err != nil {
		t.Fatal(err)
	}
	idled := 0
	c.Terms.Idle = func(f func() error) error { idled++; return f() }
	err := c.Wait(list, 300*time.Millisecond)
	if err == nil || !strings.HasPrefix(err.Error(), "Deployment/web is not ready after 300ms: ") || cause.IsEnvironment(err) || idled != 1 {
		t.Errorf("got %v, idled %d times", err, idled)
	}
	ended := make(chan struct{})
	close(ended)
	c.Terms.Superseded = ended
	if err := c.Wait(list, time.Minute); !errors.Is(err, fault.ErrSuperseded) {
		t.Errorf("got %v", err)
	}
	if err := c.WaitWithJobs(list[:3], time.Minute); err != nil || idled != 2 {
		t.Errorf("what is ready: %v, idled %d times", err, idled)
	}
}

func TestAFailedHookNamesItsReason(t *testing.T) {
	tm := newTeam(t)
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "none"}}
	quota.Spec.Hard = corev1.ResourceList{corev1.ResourcePods: {}}
	if _, err := tm.admin.CoreV1().ResourceQuotas(tm.namespace).Create(t.Context(), quota, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	tm.until("the quota's first count, without which pods are refused with another word", func(ctx context.Context) (bool, error) {
		got, err := tm.admin.CoreV1().ResourceQuotas(tm.namespace).Get(ctx, "none", metav1.GetOptions{})
		return err == nil && len(got.Status.Hard) > 0, err
	})
	job := "apiVersion: batch/v1\nkind: Job\nmetadata: {name: migrate}\nspec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: a}]}}}\n"
	c := tm.cluster()
	list, err := c.Build(bytes.NewBufferString(job), true)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Create(list); err != nil {
		t.Fatal(err)
	}
	tm.until("the refusal of the Job's pod", func(ctx context.Context) (bool, error) {
		events, err := tm.admin.CoreV1().Events(tm.namespace).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=migrate"})
		return err == nil && len(events.Items) > 0, err
	})
	err = c.WatchUntilReady(list, 2*time.Second)
	if err == nil || !strings.HasPrefix(err.Error(), "hook Job/migrate has not ended after 2s: ") || !strings.Contains(err.Error(), "quota") || cause.IsEnvironment(c.Faults.All()) {
		t.Errorf("got %v", err)
	}
}
