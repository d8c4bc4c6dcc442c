package sampler

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/internal/fence"
	"github.com/kubeop/kubeop/internal/manager/watches"
	"github.com/kubeop/kubeop/internal/meter"
	"github.com/kubeop/kubeop/internal/store"
)

// TestWhileTheProcessIsStoppedNothingIsMeasured: its connections live on, and what happened arrives late. What was certain before is
// written once silent connections would have been found out.
func TestWhileTheProcessIsStoppedNothingIsMeasured(t *testing.T) {
	for name, c := range map[string]struct {
		// stopped is for how long it is, and silent for how long the watch of pods was when it is found out, 20 s after that.
		stopped, silent time.Duration
		want            []string
	}{
		"shortly":                  {9 * time.Second, 0, []string{"12:03", "12:04", "12:05", "12:06", "12:07"}},
		"for longer":               {10 * time.Minute, 0, []string{"12:03", "12:04", "12:16", "12:17"}},
		"and its watch was silent": {10 * time.Minute, 11 * time.Minute, []string{"12:03", "12:16", "12:17"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWatched(t)
			kept := w.put(podOf(""))
			w.pass(5 * time.Minute)
			written := len(w.to.minutes)
			w.stop(c.stopped)
			w.Delete(kept) // It is handled before the time passes.
			w.put(podOf(""))
			w.pass(20 * time.Second)
			if len(w.to.minutes) > written && c.stopped > time.Minute {
				t.Errorf("at once it writes %q", w.to.texts(meter.OfPods)[written:])
			}
			if c.silent > 0 {
				w.Lost(pods, c.silent)
				w.Followed(pods)
			}
			w.pass(5 * time.Minute)
			var got []string
			for _, text := range w.to.texts(meter.OfPods) {
				if begin, amounts, _ := strings.Cut(text, " "); begin > "12:02" && !strings.HasPrefix(amounts, "without") {
					got = append(got, begin)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +measured:\n%s", diff)
			}
		})
	}
}

// slow is a store that needs long for each minute.
type slow struct {
	safely
	takes time.Duration
}

// AddMinute implements store.Usage.
func (s *slow) AddMinute(ctx context.Context, m store.Minute) error {
	time.Sleep(s.takes)
	return s.safely.AddMinute(ctx, m)
}

// TestTheTimePassesWhileTheStoreIsSlow: otherwise it would look as if the process was stopped.
func TestTheTimePassesWhileTheStoreIsSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithTimeout(t.Context(), 10*time.Minute+time.Millisecond)
		defer stop()
		began, to := time.Now(), &slow{takes: 20 * time.Second}
		s := New("local", to, func() fence.Instant { return fence.Instant{Wall: time.Now(), Running: time.Since(began)} })
		for _, kind := range []string{apps, pods, claims, services} {
			s.Followed(kind)
		}
		s.run(ctx, tick)
		if n, last := to.last(meter.OfPods); n != 7 || last.Begin.Sub(began.Truncate(time.Minute)) != 7*time.Minute {
			t.Errorf("%d minutes are measured until %s, and it began at %s", n, last.Begin, began)
		}
	})
}

// TestAPodThatTheMetricsAPILeavesOutUsesNothing, and counts again from when it is there: nobody knows what it used before.
func TestAPodThatTheMetricsAPILeavesOutUsesNothing(t *testing.T) {
	w := newWatched(t)
	w.put(podOf("", requests("1", "1")))
	sample := func(answer string, want error) {
		t.Helper()
		if err := w.Sample([]byte(answer)); !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
		w.pass(time.Minute)
	}
	sample(string(answerOf("100m")), nil)
	for range 5 {
		sample(`{"items":[{"metadata":{"name":"x","namespace":"kube-system"},"containers":[{"name":"a","usage":{"cpu":"9"}}]}]}`, nil)
	}
	sample(string(answerOf("200m")), nil)
	w.pass(90 * time.Second)
	if diff := cmp.Diff([]string{
		"12:01 acme/shop/:cpu.used=6 memory.used=61440", "12:02 acme/shop/:cpu.used=3.1 memory.used=31744", "12:03", "12:04", "12:05", "12:06 acme/shop/:cpu.used=12 memory.used=61440",
	}, w.to.texts(meter.OfMetrics)[1:7]); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	sample(`{"items":[]}`, errNoPods)
	w.Delete(podOf(""))
	sample(`{"items":[]}`, nil)
}

// TestOnlyTheNameOfOtherObjectsIsKept: all namespaces are watched.
func TestOnlyTheNameOfOtherObjectsIsKept(t *testing.T) {
	of := metav1.ObjectMeta{Namespace: "edge", Name: "web", Labels: map[string]string{"paas.kubeop.io/app": "web", "secret": "x"}, Annotations: map[string]string{"secret": "x"}}
	bare := metav1.ObjectMeta{Namespace: "edge", Name: "web", Labels: map[string]string{}}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: of, Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "v", StorageClassName: &of.Name}, Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound}}
	service := &corev1.Service{ObjectMeta: of, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer}}
	service.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.1"}}
	for _, c := range []struct{ object, want client.Object }{
		{&corev1.Pod{ObjectMeta: of, Spec: corev1.PodSpec{NodeName: "n"}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}, &corev1.Pod{ObjectMeta: bare}},
		{claim, &corev1.PersistentVolumeClaim{ObjectMeta: bare}}, {service, &corev1.Service{ObjectMeta: bare}},
	} {
		kept, err := slim(c.object)
		if diff := cmp.Diff(c.want, kept); diff != "" || err != nil {
			t.Errorf("%v: -want +kept:\n%s", err, diff)
		}
	}
}

// TestWhyAResourceIsNotFollowedIsLoggedOnce, until it is followed again.
func TestWhyAResourceIsNotFollowedIsLoggedOnce(t *testing.T) {
	var lines []string
	l := &losses{log: funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{}), of: map[string]bool{}}
	forbidden := errors.New("the API server answers 403 Forbidden")
	l.lost(pods, 0, watches.ErrReadAnew)
	l.lost(pods, 0, forbidden)
	l.lost(pods, time.Second, forbidden)
	l.lost(apps, 0, forbidden)
	l.followed(pods)
	l.lost(pods, 0, forbidden)
	if len(lines) != 3 || !strings.Contains(lines[0], `"of"="pods"`) || !strings.Contains(lines[0], "403 Forbidden") || !strings.Contains(lines[1], `"of"="apps"`) {
		t.Errorf("%q", lines)
	}
}
