package health

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestLastLinesAreOfTheNewestPodOfAJob(t *testing.T) {
	with := func(p *corev1.Pod) { p.Spec.Containers = []corev1.Container{{Name: "main"}, {Name: "proxy"}} }
	older, newer := pod(containers(), named("web-1", 1), with), pod(containers(), named("web-2", 2), with)
	logs := map[string]string{"web-2/main": "one\n\n  two\r\nthree\tsecret\n", "web-1/main": "an earlier attempt\n", "web-2/proxy": "proxy\n"}
	cases := map[string]struct {
		pods  []client.Object
		most  int
		fails map[string]error
		want  []string
	}{
		"all of them":          {pods: []client.Object{older, newer}, most: 9, want: []string{"one", "two", "three ***"}},
		"no more than asked":   {pods: []client.Object{older, newer}, most: 2, want: []string{"two", "three ***"}},
		"of an older pod":      {pods: []client.Object{older}, most: 9, want: []string{"an earlier attempt"}},
		"none without a pod":   {most: 9},
		"none without a right": {pods: []client.Object{newer}, most: 9, fails: map[string]error{"PodList": errors.New("away")}},
		"none without a log":   {pods: []client.Object{pod(containers(), named("web-3", 1), with)}, most: 9},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := &world{objects: c.pods, logs: logs, fails: c.fails}
			e := w.explainer(t)
			e.Mask = func(s string) string { return strings.ReplaceAll(s, "secret", "***") }
			if diff := cmp.Diff(c.want, e.LastLines(t.Context(), unstructuredOf(t, job()), c.most)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			e.Logs = nil
			if got := e.LastLines(t.Context(), unstructuredOf(t, job()), c.most); got != nil {
				t.Errorf("got %q without a reader of logs", got)
			}
		})
	}
}

func TestAnUnhealthyObjectSaysWhy(t *testing.T) {
	broken := unstructuredOf(t, deployment())
	broken.Object["status"] = "text"
	cases := map[string]struct {
		of    client.Object
		why   string
		final bool
	}{
		"a failed Job":                {jobFailed("BackoffLimitExceeded", "reached the limit"), "failed: reached the limit", true},
		"a Job that runs":             {job(), "has not completed yet", false},
		"another controller's reason": {deployment(says("Stalled", corev1.ConditionTrue, "Frozen", "its change window is closed")), "its change window is closed", true},
		"a healthy Service":           {service(func(s *corev1.Service) { s.Status.LoadBalancer = addressed }), "", false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			why, final, err := WhyUnhealthy(unstructuredOf(t, c.of))
			if err != nil || why != c.why || final != c.final {
				t.Errorf("got %q, %t, %v, want %q, %t", why, final, err, c.why, c.final)
			}
		})
	}
	if why, final, err := WhyUnhealthy(broken); err == nil {
		t.Errorf("a status that cannot be read: got %q, %t and no error", why, final)
	}
}
