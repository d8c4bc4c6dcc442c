package sampler

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"gopkg.in/inf.v0"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/internal/fence"
	"github.com/kubeop/kubeop/internal/meter"
	"github.com/kubeop/kubeop/internal/store"
)

// measured is a store that keeps minutes, and may fail.
type measured struct {
	store.Usage
	fails   error
	minutes []store.Minute
}

// AddMinute implements store.Usage.
func (m *measured) AddMinute(_ context.Context, minute store.Minute) error {
	if m.fails != nil {
		return m.fails
	}
	m.minutes = append(m.minutes, minute)
	return nil
}

// texts returns minutes as texts. Only groups that are named are in them.
func (m *measured) texts(groups ...meter.Group) (all []string) {
	for _, minute := range m.minutes {
		text := minute.Begin.Format("15:04")
		for _, group := range groups {
			if !slices.Contains(minute.Groups, group) {
				text += " without " + group
			}
		}
		for _, place := range slices.SortedFunc(maps.Keys(minute.Used), func(a, b store.Place) int { return strings.Compare(a.App, b.App) }) {
			maps.DeleteFunc(minute.Used[place], func(name string, _ *inf.Dec) bool { return !slices.Contains(groups, meter.GroupOf(name)) })
			if amounts := meter.Amounts(minute.Used[place]).String(); amounts != "" {
				text += fmt.Sprintf(" %s/%s/%s:%s", place.Tenant, place.Project, place.App, amounts)
			}
		}
		all = append(all, text)
	}
	return all
}

// watched is a sampler whose watches follow all since a minute before noon, with a clock that stands still.
type watched struct {
	*testing.T
	*Sampler
	at fence.Instant
	to *measured
}

var noon = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)

func newWatched(t *testing.T) *watched {
	w := &watched{T: t, at: fence.Instant{Wall: noon.Add(-time.Minute), Running: time.Hour}, to: &measured{}}
	w.Sampler = New("local", w.to, func() fence.Instant { return w.at })
	for _, kind := range []string{apps, pods, claims, services} {
		w.Followed(kind)
	}
	w.pass(time.Minute)
	return w
}

// pass has time pass, second by second.
func (w *watched) pass(d time.Duration) {
	for range d / time.Second {
		w.stop(time.Second)
		w.Pass(w.Context())
		if err := w.Write(w.Context()); err != nil && !errors.Is(err, w.to.fails) {
			w.Error(err)
		}
	}
}

// stop stops the process for a while.
func (w *watched) stop(d time.Duration) {
	w.at.Wall, w.at.Running = w.at.Wall.Add(d), w.at.Running+d
}

func (w *watched) put(object client.Object) client.Object {
	w.Helper()
	kept, err := slim(object.DeepCopyObject())
	if err != nil {
		w.Fatal(err)
	}
	w.Put(kept.(client.Object))
	return kept.(client.Object)
}

func requests(cpu, memory string) corev1.Container {
	return corev1.Container{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}}}
}

func podOf(app string, containers ...corev1.Container) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-acme-shop", Name: "web-1"}, Spec: corev1.PodSpec{NodeName: "n", Containers: containers}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
	if app != "" {
		pod.Labels = map[string]string{v1alpha1.AppLabel: app}
	}
	return pod
}

func appNamed(name string) *v1alpha1.App {
	return &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-acme-shop", Name: name}}
}

// TestUsageCountsRequestsOfPodsClaimsAndLoadBalancers: the requests of pods as the scheduler counts them, what claims have, and load balancers that are there.
func TestUsageCountsRequestsOfPodsClaimsAndLoadBalancers(t *testing.T) {
	always, fast := corev1.ContainerRestartPolicyAlways, "fast.example.com"
	sidecar := requests("100m", "10")
	sidecar.RestartPolicy = &always
	of := func(change func(*corev1.Pod)) *corev1.Pod {
		pod := podOf("", requests("250m", "100"), requests("50m", "20"))
		change(pod)
		return pod
	}
	claim := func(phase corev1.PersistentVolumeClaimPhase, class *string, capacity string) *corev1.PersistentVolumeClaim {
		c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-acme-shop", Name: "data"}, Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: class}}
		c.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1")}
		c.Status = corev1.PersistentVolumeClaimStatus{Phase: phase, Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(capacity)}}
		return c
	}
	annotated := claim(corev1.ClaimBound, new(string), "2")
	*annotated.Spec.StorageClassName = "cheap"
	annotated.Annotations = map[string]string{corev1.BetaStorageClassAnnotation: fast}
	service := func(kind corev1.ServiceType, addresses ...corev1.LoadBalancerIngress) *corev1.Service {
		return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-acme-shop", Name: "web"}, Spec: corev1.ServiceSpec{Type: kind}, Status: corev1.ServiceStatus{LoadBalancer: corev1.LoadBalancerStatus{Ingress: addresses}}}
	}
	for name, c := range map[string]struct {
		object client.Object
		want   string
	}{
		"containers":        {of(func(*corev1.Pod) {}), "cpu.requested=18 memory.requested=7200 pods=60"},
		"sidecars":          {of(func(p *corev1.Pod) { p.Spec.InitContainers = []corev1.Container{sidecar} }), "cpu.requested=24 memory.requested=7800 pods=60"},
		"an init container": {of(func(p *corev1.Pod) { p.Spec.InitContainers = []corev1.Container{requests("1", "1")} }), "cpu.requested=60 memory.requested=7200 pods=60"},
		"overhead": {of(func(p *corev1.Pod) {
			p.Spec.Overhead = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("700m")}
		}), "cpu.requested=60 memory.requested=7200 pods=60"},
		"resources of the pod":     {of(func(p *corev1.Pod) { p.Spec.Resources = &requestsOfPod }), "cpu.requested=120 memory.requested=7200 pods=60"},
		"one that requests none":   {podOf("", corev1.Container{}), "pods=60"},
		"one that waits for place": {of(func(p *corev1.Pod) { p.Spec.NodeName = "" }), ""},
		"one that succeeded":       {of(func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }), ""},
		"one that failed":          {of(func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }), ""},
		"one that pulls its image": {of(func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending }), "cpu.requested=18 memory.requested=7200 pods=60"},
		"one that is ending":       {of(func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: noon} }), "cpu.requested=18 memory.requested=7200 pods=60"},
		"more than there is":       {podOf("", requests("10G", "9Ei")), "cpu.requested=553402322211.28654842 memory.requested=553402322211286548420 pods=60"},
		"one of the platform":      {of(func(p *corev1.Pod) { p.Namespace = "edge" }), ""},
		"one in a home":            {of(func(p *corev1.Pod) { p.Namespace = "kubeop-acme" }), ""},
		"one of kubeop itself":     {of(func(p *corev1.Pod) { p.Namespace = "kubeop-system" }), ""},
		"a claim":                  {claim(corev1.ClaimBound, &fast, "2"), "storage/fast.example.com=120"},
		"a claim without a class":  {claim(corev1.ClaimBound, nil, "2"), "storage=120"},
		"a claim with both":        {annotated, "storage/fast.example.com=120"}, // The annotation counts.
		"a claim without a volume": {claim(corev1.ClaimPending, &fast, "2"), ""},
		"a claim of 8 EiB":         {claim(corev1.ClaimBound, nil, "8Ei"), "storage=553402322211286548420"},
		"a load balancer":          {service(corev1.ServiceTypeLoadBalancer, corev1.LoadBalancerIngress{IP: "192.0.2.1"}, corev1.LoadBalancerIngress{IP: "2001:db8::1"}), "loadbalancers=60"},
		"one without an address":   {service(corev1.ServiceTypeLoadBalancer), ""},
		"a Service in the cluster": {service(corev1.ServiceTypeClusterIP), ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWatched(t)
			w.put(c.object)
			w.pass(150 * time.Second)
			want := "12:00"
			if c.want != "" {
				want += " acme/shop/:" + c.want
			}
			if diff := cmp.Diff([]string{want}, w.to.texts(meter.OfPods, meter.OfVolumes, meter.OfServices)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

var requestsOfPod = corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}}

// TestUsageBelongsToTheProjectOfTheNamespace: anybody may write a label, so it counts only if there is such an App.
func TestUsageBelongsToTheProjectOfTheNamespace(t *testing.T) {
	w := newWatched(t)
	forged := podOf("other")
	forged.Labels[v1alpha1.TenantLabel] = "beta"
	w.put(forged)
	w.pass(30 * time.Second)
	app := appNamed("other")
	app.Status.Inventory.Entries = make([]v1alpha1.InventoryEntry, 3)
	kept := w.put(app)
	w.pass(60 * time.Second)
	w.Delete(kept)
	w.pass(30 * time.Second)
	w.Delete(forged)
	w.pass(180 * time.Second)
	if diff := cmp.Diff([]string{
		"12:00 acme/shop/:pods=30 acme/shop/other:objects=90 pods=30", "12:01 acme/shop/:pods=30 acme/shop/other:objects=90 pods=30", "12:02",
	}, w.to.texts(meter.OfPods, meter.OfObjects)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func answerOf(cpu string) []byte {
	return []byte(`{"kind":"PodMetricsList","items":[{"metadata":{"name":"web-1","namespace":"kubeop-acme-shop"},"timestamp":"2026-11-28T12:00:00Z","window":"15s","containers":[{"name":"a","usage":{"cpu":"` + cpu + `","memory":"1Ki"}}]},
		{"metadata":{"name":"gone","namespace":"kubeop-acme-shop"},"containers":[{"name":"a","usage":{"cpu":"9"}}]},{"metadata":{"name":"x","namespace":"kube-system"},"containers":[{"name":"a","usage":{"cpu":"9"}}]}]}`)
}

// TestASampleCountsUntilTheNextOne, and for two and a half intervals if there is none. Then there is a gap, and nothing counts twice when the metrics API answers again.
func TestASampleCountsUntilTheNextOne(t *testing.T) {
	w := newWatched(t)
	w.put(podOf("", requests("1", "1")))
	sample := func(cpu string) {
		if err := w.Sample(answerOf(cpu)); err != nil {
			t.Error(err)
		}
	}
	w.pass(40 * time.Second)
	sample("100m") // It is known since noon, and was so all the time.
	w.pass(60 * time.Second)
	sample("200000000n")
	w.pass(200 * time.Second) // It was held for 150.
	sample("1")
	w.pass(110 * time.Second)
	sample("1")
	w.Delete(podOf(""))
	w.pass(200 * time.Second)
	got := w.to.texts(meter.OfMetrics)
	for i, text := range got { // What there is of a gap does not count.
		if gap := strings.Index(text, " without metrics"); gap > 0 {
			got[i] = text[:gap] + " gap"
		}
	}
	if diff := cmp.Diff([]string{
		"12:00 gap", "12:01 acme/shop/:cpu.used=8 memory.used=61440", "12:02 acme/shop/:cpu.used=12 memory.used=61440", "12:03 acme/shop/:cpu.used=12 memory.used=61440", "12:04 gap", "12:05 gap",
		"12:06 acme/shop/:cpu.used=50 memory.used=51200", "12:07",
	}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if used := meter.Amounts(w.to.minutes[0].Used[store.Place{Tenant: "acme", Project: "shop", Cluster: "local"}]).String(); used != "cpu.used=6 memory.used=61440" {
		t.Errorf("before it was measured first it used %s", used)
	}
	if err := w.Sample([]byte(`{"items":[{"metadata":5}]}`)); err == nil {
		t.Error("an answer that is none is taken")
	}
}

// TestMinutesWaitForTheStore, in their order, and only so many of them.
func TestMinutesWaitForTheStore(t *testing.T) {
	w := newWatched(t)
	w.put(podOf(""))
	w.to.fails = errors.New("disk full")
	w.pass(10*time.Minute + 30*time.Second)
	if len(w.to.minutes) > 0 || len(w.unwritten) != 9 {
		t.Fatalf("%d minutes wait", len(w.unwritten))
	}
	if err := w.Write(t.Context()); !errors.Is(err, w.to.fails) || !strings.HasPrefix(err.Error(), "9 minutes wait: ") {
		t.Errorf("the write ended with %v", err)
	}
	w.to.fails = nil
	w.pass(time.Second)
	if got := w.to.texts(meter.OfPods); len(got) != 9 || got[0] != "12:00 acme/shop/:pods=60" || got[8] != "12:08 acme/shop/:pods=60" {
		t.Errorf("%q", got)
	}
	w.to.fails, w.to.minutes = errors.New("disk full"), nil
	w.pass(2 * time.Hour)
	w.to.fails = nil
	w.pass(time.Second)
	if got := w.to.texts(meter.OfPods); len(got) != maxUnwritten || got[maxUnwritten-1] != "14:08 acme/shop/:pods=60" {
		t.Errorf("%d: %q", len(got), got)
	}
}

// TestAMinuteIsWrittenOnlyWhenNoLossCanChangeIt: that a connection was silent is known later. After a loss, the first minute that was followed
// as a whole is measured again.
func TestAMinuteIsWrittenOnlyWhenNoLossCanChangeIt(t *testing.T) {
	w := newWatched(t)
	w.put(podOf(""))
	w.pass(149 * time.Second)
	if len(w.to.minutes) > 0 {
		t.Errorf("written are %q", w.to.texts(meter.OfPods))
	}
	w.Lost(pods, 100*time.Second)
	if err := w.Following(); err == nil || !strings.Contains(err.Error(), "pods are not followed") || strings.Contains(err.Error(), "apps") {
		t.Errorf("Following returns %v", err)
	}
	w.pass(26 * time.Second)
	w.Followed(pods)
	w.pass(19 * time.Second) // The pods are mended at 12:03:25.
	if err := w.Following(); err != nil {
		t.Error(err)
	}
	w.pass(240 * time.Second)
	if diff := cmp.Diff([]string{
		"12:00 without pods acme/shop/:pods=60", "12:01 without pods acme/shop/:pods=60", "12:02 without pods acme/shop/:pods=60", "12:03 without pods acme/shop/:pods=60",
		"12:04 acme/shop/:pods=60",
	}, w.to.texts(meter.OfPods, meter.OfServices)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	w.Lost(apps, 0) // Then it is not known which app anything is of.
	w.pass(180 * time.Second)
	if last := w.to.minutes[len(w.to.minutes)-1]; len(w.to.minutes) != 7 || !last.Begin.Equal(noon.Add(6*time.Minute)) {
		t.Errorf("written are %q", w.to.texts(meter.OfPods))
	}
}

// TestAClockThatJumpsChangesNothing, unless it stays where it is for ten minutes: then that is taken for right.
func TestAClockThatJumpsChangesNothing(t *testing.T) {
	w := newWatched(t)
	w.put(podOf(""))
	w.at.Wall = w.at.Wall.Add(time.Hour)
	w.pass(9 * time.Minute)
	w.at.Wall = w.at.Wall.Add(-2 * time.Hour)
	w.pass(9 * time.Minute)
	w.at.Wall = w.at.Wall.Add(time.Hour)
	w.pass(12 * time.Minute)
	got := w.to.texts(meter.OfPods)
	for i, text := range got {
		if want := noon.Add(time.Duration(i)*time.Minute).Format("15:04") + " acme/shop/:pods=60"; text != want {
			t.Errorf("minute %d is %q", i, text)
		}
	}
	if len(got) != 28 {
		t.Errorf("there are %d minutes", len(got))
	}
	w.to.minutes = nil
	w.at.Wall = w.at.Wall.Add(-30 * time.Minute) // It is 12:00, and was taken for 12:30.
	w.pass(15 * time.Minute)
	// Those before are not written: they are of one clock or of the other.
	if diff := cmp.Diff([]string{"12:11 acme/shop/:pods=60", "12:12 acme/shop/:pods=60"}, w.to.texts(meter.OfPods)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if math.Abs(float64(w.clock.now().Sub(w.at.Wall))) > float64(tolerance) {
		t.Errorf("it is %s, and is taken for %s", w.at.Wall, w.clock.now())
	}
}
