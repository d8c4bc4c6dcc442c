package health

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// blind is a watch that sees no kind.
func blind(context.Context, schema.GroupVersionKind, client.ObjectKey) (*unstructured.Unstructured, bool, error) {
	return nil, false, nil
}

func floored(o client.Object, floor string) Ref {
	ref := refTo(o)
	ref.Floor = floor
	return ref
}

func TestLookNamesTheObjectThatIsNotHealthy(t *testing.T) {
	well, ill := deployment(available), deployment()
	plain := RefsOf([]v1alpha1.InventoryEntry{{ID: "team_web__Service", Version: "v1"}}, nil)[0]
	recorded := RefsOf([]v1alpha1.InventoryEntry{{ID: "team_web_apps_Deployment", Version: "v1"}}, nil)[0]
	shared := service(func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeClusterIP })
	const unseen = "Deployment/web: its last change has not been seen yet"
	cases := map[string]struct {
		watched  []client.Object
		unwatch  bool
		waitsFor bool
		live     []client.Object
		ref      Ref
		want     Verdict
		asked    string
	}{
		"held in an older version":                {watched: []client.Object{well}, ref: floored(well, "101"), want: Verdict{Pending: []string{unseen}}},
		"held in an older version of less digits": {watched: []client.Object{well}, ref: floored(well, "1000"), want: Verdict{Pending: []string{unseen}}},
		"held in the very version":                {watched: []client.Object{well}, ref: floored(well, "100")},
		"held in a newer version":                 {watched: []client.Object{well}, ref: floored(well, "99")},
		"held in any version":                     {watched: []client.Object{ill}, ref: refTo(ill), want: Verdict{Waiting: []string{"Deployment/web: not all of its pods are available yet"}}, asked: "PodList:1"},
		"not held though just written":            {ref: floored(well, "100"), want: Verdict{Pending: []string{unseen}}},
		"not held, and not there":                 {ref: refTo(well), want: Verdict{Waiting: []string{"Deployment/web: was deleted"}}, asked: "Get:1"},
		"not held, and well without its labels":   {live: []client.Object{well}, ref: refTo(well), asked: "Get:1"},
		"not held, and ill without its labels":    {live: []client.Object{ill}, ref: refTo(well), want: Verdict{Waiting: []string{"Deployment/web: not all of its pods are available yet"}}, asked: "Get:1 PodList:1"},
		"deleted after it was written":            {waitsFor: true, ref: floored(well, "100"), want: Verdict{Waiting: []string{"Deployment/web: was deleted, and is put back"}}, asked: "Get:1"},
		"held in an older version for long":       {waitsFor: true, watched: []client.Object{well}, live: []client.Object{ill}, ref: floored(well, "101"), want: Verdict{Waiting: []string{"Deployment/web: not all of its pods are available yet"}}, asked: "Get:1 PodList:1"},
		"held in the very version, for long":      {waitsFor: true, watched: []client.Object{well}, ref: floored(well, "100")},
		"a Service that is not held":              {ref: plain, want: Verdict{Waiting: []string{"Service/web: was deleted"}}, asked: "Get:1"},
		"a Service that was deleted":              {waitsFor: true, ref: Ref{Kind: plain.Kind, Key: plain.Key, Floor: "100", unsure: true}, want: Verdict{Waiting: []string{"Service/web: was deleted, and is put back"}}, asked: "Get:1"},
		"not held, a Job":                         {ref: refTo(job())},
		"not watched":                             {unwatch: true, live: []client.Object{well}, ref: floored(well, "101"), asked: "Get:1"},
		"not watched, and not there":              {unwatch: true, ref: refTo(well), want: Verdict{Waiting: []string{"Deployment/web: was deleted"}}, asked: "Get:1"},
		"not watched, and not well":               {unwatch: true, live: []client.Object{ill}, ref: refTo(ill), want: Verdict{Waiting: []string{"Deployment/web: not all of its pods are available yet"}}, asked: "Get:1 PodList:1"},
		"a Service of unknown type, watched":      {watched: []client.Object{service(nil)}, ref: plain, want: Verdict{Waiting: []string{"Service/web: no load balancer has been given to it yet"}}, asked: "EventList:1"},
		"one without a load balancer, watched":    {watched: []client.Object{shared}, ref: plain},
		"one of unknown type, not watched":        {unwatch: true, live: []client.Object{service(nil)}, ref: plain},
		"of the record, not watched":              {unwatch: true, live: []client.Object{ill}, ref: recorded, want: Verdict{Waiting: []string{"Deployment/web: not all of its pods are available yet"}}, asked: "Get:1 PodList:1"},
		"a custom resource":                       {watched: []client.Object{custom("the bucket is taken")}, ref: refTo(custom("")), want: Verdict{Waiting: []string{"Bucket/web: the bucket is taken"}}},
		"a load balancer, not watched":            {unwatch: true, live: []client.Object{service(nil)}, ref: refTo(service(nil)), want: Verdict{Waiting: []string{"Service/web: no load balancer has been given to it yet"}}, asked: "EventList:1 Get:1"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := &world{objects: c.live}
			object := watch(t, c.watched...)
			if c.unwatch {
				object = blind
			}
			explainer := w.explainer(t)
			if explainer.Late = c.waitsFor; c.waitsFor {
				explainer.AfterDeletion = ", and is put back"
			}
			got, err := Look(t.Context(), explainer, object, []Ref{c.ref})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if asked := w.requests(); asked != c.asked {
				t.Errorf("asked %q, want %q", asked, c.asked)
			}
		})
	}
}

func TestLookReadsAnObjectThatIsNotWatched(t *testing.T) {
	w := &world{objects: []client.Object{deployment(available)}}
	v, err := Look(t.Context(), w.explainer(t), nil, []Ref{refTo(deployment())})
	if err != nil || !v.Healthy() || w.requests() != "Get:1" {
		t.Errorf("got %v, %v, asked %q", v, err, w.requests())
	}
}

func TestWithoutAWatchAJobIsRead(t *testing.T) {
	failed := jobFailed("BackoffLimitExceeded", "Job has reached the specified backoff limit")
	w := &world{objects: []client.Object{failed}}
	v, err := Look(t.Context(), w.explainer(t), nil, []Ref{refTo(failed)})
	if err != nil || !v.Final {
		t.Errorf("got %v, %v, asked %q", v, err, w.requests())
	}
}

func TestFinishedAndScaledDownObjectsAreHealthy(t *testing.T) {
	running := pod(corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}, named("web", 0))
	cases := map[string]client.Object{
		"a Job that completed":           job(batchv1.JobCondition{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}),
		"a Pod that ended well":          pod(corev1.PodStatus{Phase: corev1.PodSucceeded}, named("web", 0), never),
		"a Pod that is ready":            running,
		"a load balancer's address":      service(func(s *corev1.Service) { s.Status.LoadBalancer = addressed }),
		"a load balancer made by hand":   service(func(s *corev1.Service) { s.Spec.ExternalIPs = []string{"203.0.113.5"} }),
		"a DaemonSet that no node wants": func() client.Object { d := daemonSet(0); d.Status.DesiredNumberScheduled = 0; return d }(),
		"a Deployment scaled to zero": deployment(available, func(d *appsv1.Deployment) {
			d.Spec.Replicas, d.Status = new(int32(0)), appsv1.DeploymentStatus{ObservedGeneration: 1, Conditions: d.Status.Conditions}
		}),
	}
	for name, o := range cases {
		t.Run(name, func(t *testing.T) {
			w := &world{}
			v, err := Look(t.Context(), w.explainer(t), watch(t, o), []Ref{refTo(o)})
			if err != nil || !v.Healthy() || w.requests() != "" {
				t.Errorf("got %v, %v, asked %q", v, err, w.requests())
			}
		})
	}
}

func TestLookExplainsThreeObjectsAtMost(t *testing.T) {
	var objects []client.Object
	var refs []Ref
	for i := range 5 {
		d := deployment()
		d.Name = fmt.Sprintf("web-%d", i)
		if i == 4 {
			says(appsv1.DeploymentProgressing, corev1.ConditionFalse, "ProgressDeadlineExceeded", "")(d)
		}
		objects, refs = append(objects, d), append(refs, refTo(d))
	}
	w := &world{objects: []client.Object{pod(looping(2, "Error", ""))}}
	v, err := Look(t.Context(), w.explainer(t), watch(t, objects...), refs)
	if err != nil {
		t.Fatal(err)
	}
	if want := "Logs:3 PodList:3"; w.requests() != want {
		t.Errorf("asked %q, want %q", w.requests(), want)
	}
	if !v.Final || len(v.Failed) != 3 || !strings.HasPrefix(v.Failed[2], "Deployment/web-4") || !strings.Contains(v.Failed[2], "exit code 2") || len(v.Waiting) != 2 {
		t.Errorf("what Kubernetes gave up on is not asked about first: %+v", v)
	}
}

func TestLookFailsIfTheAPIServerDoes(t *testing.T) {
	broken := errors.New("the API server is away")
	with := func(field string, value any) *unstructured.Unstructured {
		o := unstructuredOf(t, deployment())
		o.Object[field] = value
		return o
	}
	away := func(what string) map[string]error { return map[string]error{what: broken} }
	creating := pod(waitingFor("ContainerCreating", ""))
	watched := func(t *testing.T) Object { return watch(t, deployment()) }
	only := func(o client.Object) func(*testing.T) Object {
		return func(t *testing.T) Object { return watch(t, o) }
	}
	cases := map[string]struct {
		object func(*testing.T) Object
		fails  map[string]error
		want   string
		of     client.Object
		pod    *corev1.Pod
	}{
		"the watch": {object: func(*testing.T) Object {
			return func(context.Context, schema.GroupVersionKind, client.ObjectKey) (*unstructured.Unstructured, bool, error) {
				return nil, false, broken
			}
		}, want: "looking at Deployment/web: "},
		"reading the object":   {object: func(*testing.T) Object { return blind }, fails: map[string]error{"Get": broken}, want: "reading Deployment/web: "},
		"listing pods":         {object: watched, fails: away("PodList"), want: "asking why Deployment/web is not healthy: listing its pods: "},
		"listing events":       {object: watched, fails: away("EventList"), want: "asking why Deployment/web is not healthy: listing its events: "},
		"the status":           {object: only(with("status", "text")), want: "judging Deployment/web: "},
		"the selector":         {object: only(with("spec", map[string]any{"selector": "text"})), want: "asking why Deployment/web is not healthy: reading its selector: "},
		"labels of a selector": {object: only(with("spec", map[string]any{"selector": map[string]any{"matchLabels": "text"}})), want: "asking why Deployment/web is not healthy: reading its selector: "},
		"events of a claim":    {object: only(claim()), of: claim(), fails: away("EventList"), want: "asking why PersistentVolumeClaim/web is not healthy: listing its events: "},
		"events of a load balancer": {object: only(service(nil)), of: service(nil), fails: away("EventList"),
			want: "asking why Service/web is not healthy: listing its events: "},
		"events of a killed pod": {object: watched, pod: pod(looping(137, "Error", "")), fails: away("EventList"),
			want: "asking why Deployment/web is not healthy: listing its events: "},
		"events of a pod without its image": {object: watched, pod: pod(waitingFor("ImagePullBackOff", "")), fails: away("EventList"),
			want: "asking why Deployment/web is not healthy: listing its events: "},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := &world{objects: []client.Object{first(c.pod, creating)}, fails: c.fails}
			of := c.of
			if of == nil {
				of = deployment()
			}
			_, err := Look(t.Context(), w.explainer(t), c.object(t), []Ref{refTo(of)})
			if err == nil || c.fails != nil && !errors.Is(err, broken) || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("got %v, want %q…", err, c.want)
			}
		})
	}
}

func first(pods ...*corev1.Pod) *corev1.Pod {
	return pods[slices.IndexFunc(pods, func(p *corev1.Pod) bool { return p != nil })]
}

func TestKindsThatTheDeployerMayNotListAreLeftOut(t *testing.T) {
	for _, what := range []string{"PodList", "EventList"} {
		w := &world{objects: []client.Object{pod(waitingFor("ContainerCreating", ""))}, fails: map[string]error{what: forbidden}}
		v, err := Look(t.Context(), w.explainer(t), watch(t, deployment()), []Ref{refTo(deployment())})
		if want := "Deployment/web: not all of its pods are available yet"; err != nil || v.String() != want {
			t.Errorf("%s: got %q, %v, want %q", what, v, err, want)
		}
	}
}

// requests lists what was asked, in one line.
func (w *world) requests() string {
	var all []string
	for what, times := range w.asked {
		all = append(all, fmt.Sprintf("%s:%d", what, times))
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

func TestExplainNamesTheCulprit(t *testing.T) {
	out := jobFailed("BackoffLimitExceeded", "Job has reached the specified backoff limit")
	culprit := pod(containers(container(ends(1, "Error", ""), noState)), never)
	manifest := object("batch/v1", "Job", "")
	withStatus := object("batch/v1", "Job", "")
	withStatus.Object["status"] = map[string]any{}
	created, broken := object("batch/v1", "Job", ""), unstructuredOf(t, deployment())
	created.SetUID("job-uid")
	broken.Object["status"] = "text"
	unseen := deployment()
	unseen.Generation = 2
	logs := map[string]string{"web-1/main": "relation users exists\n"}
	const why = "Job/web: failed: Job has reached the specified backoff limit; its last pod crashes with exit code 1: relation users exists"
	cases := map[string]struct {
		of    *unstructured.Unstructured
		live  []client.Object
		fails map[string]error
		want  string
	}{
		"the manifest of a failed hook":     {of: manifest, live: []client.Object{out, culprit}, want: why},
		"the live object":                   {of: unstructuredOf(t, out), live: []client.Object{culprit}, want: why},
		"a manifest with a status":          {of: withStatus, live: []client.Object{out, culprit}, want: why},
		"the answer to its creation":        {of: created, live: []client.Object{out, culprit}, want: why},
		"a status that cannot be read":      {of: broken},
		"one that is not seen yet":          {of: unstructuredOf(t, unseen), live: []client.Object{pod(looping(2, "Error", ""))}, want: "Deployment/web: its controller has not seen the last change yet"},
		"as long as a message may be":       {of: custom(strings.Repeat("x", maxText)), want: "Bucket/web: " + strings.Repeat("x", maxText)},
		"a hook that ended well":            {of: manifest, live: []client.Object{job(batchv1.JobCondition{Type: batchv1.JobComplete, Status: corev1.ConditionTrue})}},
		"a hook that is gone":               {of: manifest},
		"a hook that cannot be read":        {of: manifest, live: []client.Object{out}, fails: map[string]error{"Get": errors.New("away")}},
		"one whose pods cannot be listed":   {of: manifest, live: []client.Object{out}, fails: map[string]error{"PodList": errors.New("away")}, want: "Job/web: failed: Job has reached the specified backoff limit"},
		"one that waits for its image":      {of: manifest, live: []client.Object{job(), pod(waitingFor("ErrImagePull", "not found"), never)}, want: "Job/web: its last pod waits for the image r.example/web:v1, which cannot be pulled: not found"},
		"a claim without its events":        {of: unstructuredOf(t, claim()), fails: map[string]error{"EventList": errors.New("away")}, want: "PersistentVolumeClaim/web: is not bound to a volume yet"},
		"a kind whose presence is all":      {of: object("v1", "ConfigMap", ""), live: nil},
		"a custom resource that says why":   {of: custom("the bucket is taken"), want: "Bucket/web: the bucket is taken"},
		"a custom resource that says a lot": {of: custom("one\ntwo\x00\t" + strings.Repeat("x", 400)), want: "Bucket/web: one two " + strings.Repeat("x", 291) + "…"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := &world{objects: c.live, logs: logs, fails: c.fails}
			if got := w.explainer(t).Explain(t.Context(), c.of).String(); got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

// TestAJobThatJustRunsIsMarked, unless something else is known of it.
func TestAJobThatJustRunsIsMarked(t *testing.T) {
	suspended := job()
	suspended.Spec.Suspend = new(true)
	for name, c := range map[string]struct {
		live []client.Object
		want bool
	}{
		"it runs":               {[]client.Object{job()}, true},
		"its pod cannot start":  {[]client.Object{job(), pod(waitingFor("ErrImagePull", "not found"), never)}, false},
		"it is suspended":       {[]client.Object{suspended}, false},
		"it failed":             {[]client.Object{jobFailed("BackoffLimitExceeded", "no more")}, false},
		"the object is another": {[]client.Object{deployment()}, false},
		"there is none":         {nil, false},
	} {
		of := object("batch/v1", "Job", "")
		if name == "the object is another" {
			of = object("apps/v1", "Deployment", "")
		}
		w := &world{objects: c.live}
		if got := w.explainer(t).Explain(t.Context(), of); got.Runs != c.want || got.Runs && got.Why != "has not completed yet" {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

func custom(message string) *unstructured.Unstructured {
	o := object("example.org/v1", "Bucket", "")
	o.SetUID("bucket-uid")
	o.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "False", "message": message}}}
	return o
}
