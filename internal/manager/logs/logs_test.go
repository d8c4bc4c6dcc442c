package logs

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/internal/manager/problem"
)

// serverOf answers as an API server that has pods of an app, each with one container, and their logs. A pod without a log is gone.
func serverOf(t *testing.T, logs map[string]string) corev1client.PodsGetter {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v1/namespaces/kubeop-acme-shop/pods", func(w http.ResponseWriter, _ *http.Request) {
		all := corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}}
		for name := range logs {
			all.Items = append(all.Items, corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-acme-shop", Name: name, Labels: map[string]string{v1alpha1.AppLabel: "web"}},
				Status:     corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "app", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}},
			})
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(all)
	})
	mux.HandleFunc("GET /api/v1/namespaces/kubeop-acme-shop/pods/{pod}/log", func(w http.ResponseWriter, r *http.Request) {
		text := logs[r.PathValue("pod")]
		if text == "" {
			http.NotFound(w, r)
			return
		}
		_, _ = io.WriteString(w, text)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	pods, err := corev1client.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	return pods
}

// streamOf reads the logs of the app: its lines, and the problem with which the stream ends, if it does.
func streamOf(t *testing.T, pods corev1client.PodsGetter) (lines []Line, bytes int, end *problem.Problem) {
	t.Helper()
	mux := http.NewServeMux()
	(&Operations{Pods: pods, Allowed: func(context.Context, string, string, string) error { return nil }}).Register(humago.New(mux, huma.DefaultConfig("", "")))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	answer, err := server.Client().Get(server.URL + "/v1/apps/acme/shop/web/logs")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %v %.200s", answer.Status, err, text)
	}
	for event := range strings.SplitSeq(strings.TrimSuffix(string(text), "\n\n"), "\n\n") {
		kind, data, _ := strings.Cut(event, "\ndata: ")
		switch {
		case end != nil:
			t.Fatalf("after its end the stream has %.200s", event)
		case kind == "event: end":
			end = &problem.Problem{}
			err = json.Unmarshal([]byte(data), end)
		case kind == "event: line":
			bytes += len(data)
			lines = append(lines, Line{})
			err = json.Unmarshal([]byte(data), &lines[len(lines)-1])
		default:
			t.Fatalf("the stream has %.200s", event)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return lines, bytes, end
}

func TestAStreamEndsWithItsLogs(t *testing.T) {
	lines, _, end := streamOf(t, serverOf(t, map[string]string{"web-1": "2026-11-28T12:00:00Z hello\n" + strings.Repeat("x", 2*maxLine) + "\nlast"}))
	if end != nil || len(lines) != 3 || lines[0].Text != "hello" || lines[0].Cut || lines[0].Time.IsZero() || !lines[1].Cut || len(lines[1].Text) != maxLine || lines[2].Text != "last" {
		t.Errorf("%.200v, and it ends with %v", lines, end)
	}
}

// TestAStreamSaysThatItIsNotComplete when a log could not be read, and has the others.
func TestAStreamSaysThatItIsNotComplete(t *testing.T) {
	lines, _, end := streamOf(t, serverOf(t, map[string]string{"web-1": "hello\n", "web-2": ""}))
	if len(lines) != 1 || lines[0].Pod != "web-1" || end == nil || end.Code != problem.Unavailable {
		t.Errorf("%v, and it ends with %v", lines, end)
	}
}

// TestAStreamHasABound, which is reported to its client.
func TestAStreamHasABound(t *testing.T) {
	line := strings.Repeat("x", maxLine-1) + "\n"
	lines, bytes, end := streamOf(t, serverOf(t, map[string]string{"web-1": strings.Repeat(line, 2*maxBytes/len(line))}))
	if end == nil || end.Code != problem.TooManyRequests || bytes > maxBytes || bytes < maxBytes-2*maxLine {
		t.Errorf("%d lines of %d bytes, and it ends with %v", len(lines), bytes, end)
	}
}
