package logs

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/kubeop/kubeop/internal/manager/problem"
	"github.com/kubeop/kubeop/internal/store"
	"github.com/kubeop/kubeop/internal/testenv/operated"
)

const at = "/v1/apps/acme/shop/web/logs"

// cluster is an API server with pods and what their containers wrote.
type cluster struct {
	pods corev1.PodList
	// logs are by "pod/container"; a log that is not there is answered by 404. refuse, if set, is the answer to lists.
	logs   map[string]io.Reader
	refuse *apierrors.StatusError

	mu sync.Mutex
	// asked are the queries of logs and lists.
	asked []string
}

// ServeHTTP answers as an API server.
func (c *cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	c.asked = append(c.asked, r.URL.Path+"?"+r.URL.Query().Encode())
	c.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	pod, isLog := strings.CutSuffix(strings.TrimPrefix(r.URL.Path, "/api/v1/namespaces/kubeop-acme-shop/pods/"), "/log")
	log := c.logs[pod+"/"+r.URL.Query().Get("container")]
	switch {
	case !isLog && c.refuse != nil:
		w.WriteHeader(int(c.refuse.ErrStatus.Code))
		_ = json.NewEncoder(w).Encode(c.refuse.ErrStatus)
	case !isLog:
		_ = json.NewEncoder(w).Encode(c.pods)
	case log == nil:
		gone := apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, pod)
		w.WriteHeader(http.StatusNotFound)
		_ = json.NewEncoder(w).Encode(gone.ErrStatus)
	default:
		w.Header().Set("Content-Type", "text/plain")
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		_, _ = io.Copy(flushed{w}, log)
	}
}

// flushed sends what is written at once.
type flushed struct{ http.ResponseWriter }

// Write implements io.Writer.
func (f flushed) Write(data []byte) (int, error) {
	n, err := f.ResponseWriter.Write(data)
	return n, errors.Join(err, http.NewResponseController(f.ResponseWriter).Flush())
}

// manager serves the operation about a cluster at an address.
type manager struct {
	*operated.Served
	*cluster
	url string
	// refused is why the caller may not read; nil: it may.
	mu      sync.Mutex
	refused error
}

func newManager(t *testing.T, c *cluster) *manager {
	t.Helper()
	m := &manager{cluster: c}
	server := httptest.NewServer(c)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	pods, err := corev1client.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	m.Served = operated.Start(t, func(_ *operated.Served, api huma.API) {
		(&Operations{Pods: pods, Allowed: func(context.Context, string, string, string) error {
			m.mu.Lock()
			defer m.mu.Unlock()
			return m.refused
		}}).Register(api)
	})
	served := httptest.NewServer(m.Served)
	t.Cleanup(func() {
		served.CloseClientConnections()
		served.Close()
	})
	m.url = served.URL
	return m
}

// follow sends a request, and returns the answer, whose body ends with the test.
func (m *manager) follow(t *testing.T, secret, path string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, m.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+secret)
	answer, err := (&http.Client{}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = answer.Body.Close() })
	return answer
}

// events reads a stream to its end, an event on each line: its kind and its data.
func events(t *testing.T, body io.Reader) (all []string) {
	t.Helper()
	lines, kind := bufio.NewScanner(body), ""
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if name, is := strings.CutPrefix(lines.Text(), "event: "); is {
			kind = name
		}
		if data, is := strings.CutPrefix(lines.Text(), "data: "); is {
			all = append(all, kind+" "+data)
		}
	}
	if err := lines.Err(); err != nil {
		t.Errorf("reading the stream: %v", err)
	}
	return all
}

// podOf is a pod of the app whose containers run, unless a name has a suffix: "?" waits, "!" crashed once and waits.
func podOf(name string, containers ...string) corev1.Pod {
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-acme-shop", Name: name}}
	for _, c := range containers {
		status := corev1.ContainerStatus{Name: strings.TrimRight(c, "?!"), State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
		if strings.ContainsAny(c, "?!") {
			status.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}}
		}
		if strings.HasSuffix(c, "!") {
			status.RestartCount, status.LastTerminationState.Terminated = 1, &corev1.ContainerStateTerminated{}
		}
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, status)
	}
	return pod
}

func TestOnlyContainersThatBeganAreRead(t *testing.T) {
	first := podOf("web-1", "app", "proxy", "waits?", "crashed!")
	first.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "init", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}}}
	first.Status.EphemeralContainerStatuses = []corev1.ContainerStatus{{Name: "debug", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	many := make([]string, maxContainers+1)
	for i := range many {
		many[i] = fmt.Sprint("c", i)
	}
	for name, c := range map[string]struct {
		pods  []corev1.Pod
		more  string
		in    input
		want  string
		wrong problem.Code
	}{
		"all":                       {pods: []corev1.Pod{podOf("web-2", "app"), first}, want: "web-1/init web-1/app web-1/proxy web-1/crashed web-1/debug web-2/app"},
		"of one name":               {pods: []corev1.Pod{podOf("web-2", "app"), first}, in: input{Container: "app"}, want: "web-1/app web-2/app"},
		"the run before":            {pods: []corev1.Pod{podOf("web-2", "app"), first}, in: input{Previous: true}, want: "web-1/crashed"},
		"one that waits":            {pods: []corev1.Pod{first}, in: input{Container: "waits"}, wrong: problem.NotFound},
		"one that is not there":     {pods: []corev1.Pod{first}, in: input{Container: "APP"}, wrong: problem.NotFound},
		"none crashed":              {pods: []corev1.Pod{podOf("web-2", "app")}, in: input{Previous: true}, wrong: problem.NotFound},
		"no pods":                   {wrong: problem.NotFound},
		"as many as one stream has": {pods: []corev1.Pod{podOf("web", many[1:]...)}, want: "web/" + strings.Join(many[1:], " web/")},
		"one more":                  {pods: []corev1.Pod{podOf("web", many...)}, wrong: problem.Conflict},
		"one of many":               {pods: []corev1.Pod{podOf("web", many...)}, in: input{Container: "c7"}, want: "web/c7"},
		"more pods than were read":  {pods: []corev1.Pod{podOf("web-2", "app")}, more: "next", wrong: problem.Conflict},
	} {
		t.Run(name, func(t *testing.T) {
			kube := &cluster{pods: corev1.PodList{Items: c.pods, ListMeta: metav1.ListMeta{Continue: c.more}}}
			server := httptest.NewServer(kube)
			defer server.Close()
			pods, err := corev1client.NewForConfig(&rest.Config{Host: server.URL})
			if err != nil {
				t.Fatal(err)
			}
			c.in.Tenant, c.in.Project, c.in.App = "acme", "shop", "web"
			found, err := (&Operations{Pods: pods}).containers(t.Context(), &c.in)
			var refused *problem.Problem
			if errors.As(err, &refused) != (c.wrong != "") || refused != nil && refused.Code != c.wrong || refused == nil && err != nil {
				t.Fatalf("got %v, want %q", err, c.wrong)
			}
			var names []string
			for _, f := range found {
				names = append(names, f.pod+"/"+f.name)
			}
			if diff := cmp.Diff(c.want, strings.Join(names, " ")); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if want := "/api/v1/namespaces/kubeop-acme-shop/pods?labelSelector=paas.kubeop.io%2Fapp%3Dweb&limit=51"; len(kube.asked) != 1 || kube.asked[0] != want {
				t.Errorf("it asked %q, want %s", kube.asked, want)
			}
		})
	}
}

// TestAReasonAgainstLogsIsAnsweredBeforeTheStream. What the API server says is for the log of the manager.
func TestAReasonAgainstLogsIsAnsweredBeforeTheStream(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	for name, c := range map[string]struct {
		path    string
		refused error
		list    *apierrors.StatusError
		want    problem.Code
		again   string
	}{
		"no such app":                  {at, problem.New(problem.NotFound, ""), nil, problem.NotFound, ""},
		"no right":                     {at, problem.New(problem.Forbidden, ""), nil, problem.Forbidden, ""},
		"the chart does not allow it":  {at, nil, apierrors.NewForbidden(pods, "", errors.New("hunter2")), problem.Conflict, ""},
		"the API server is busy":       {at, nil, apierrors.NewServiceUnavailable("hunter2"), problem.Unavailable, "5"},
		"no lines":                     {at + "?tail=-1", nil, nil, problem.Invalid, ""},
		"too many lines":               {at + "?tail=10001", nil, nil, problem.Invalid, ""},
		"lines of the future":          {at + "?since=-1", nil, nil, problem.Invalid, ""},
		"lines of more than a year":    {at + "?since=31536001", nil, nil, problem.Invalid, ""},
		"a long name of a container":   {at + "?container=" + strings.Repeat("a", 64), nil, nil, problem.Invalid, ""},
		"an unknown parameter":         {at + "?namespace=kube-system", nil, nil, problem.Invalid, ""},
		"a name that selects all apps": {"/v1/apps/acme/shop/web,x/logs", nil, nil, problem.NotFound, ""},
	} {
		t.Run(name, func(t *testing.T) {
			m := newManager(t, &cluster{refuse: c.list})
			m.refused = c.refused
			answer := m.Do(m.Token("id", "tenant:acme:view"), "GET", c.path, "")
			if p := operated.Refused(t, answer, c.want); strings.Contains(answer.Body.String(), "hunter2") || answer.Header().Get("Retry-After") != c.again {
				t.Errorf("again after %q: %+v", answer.Header().Get("Retry-After"), p)
			}
		})
	}
	m := newManager(t, &cluster{})
	operated.Refused(t, m.Do("", "GET", at, ""), problem.Unauthenticated)
	without := operated.Start(t, func(_ *operated.Served, api huma.API) {
		(&Operations{Allowed: func(context.Context, string, string, string) error { return nil }}).Register(api)
	})
	if p := operated.Refused(t, without.Do(without.Token("id", "admin"), "GET", at, ""), problem.Conflict); !strings.Contains(p.Detail, "manager.logs.enabled") {
		t.Errorf("without the right of the chart: %+v", p)
	}
}

// TestLinesAreReturnedWithTheirTimes: a line may have any length and any bytes.
func TestLinesAreReturnedWithTheirTimes(t *testing.T) {
	long := strings.Repeat("x", maxLine)
	text := "2026-11-28T12:00:00.5+01:00 hello\n2026-11-28T11:00:01Z \n" + "no time\n" + "\n" + "2026-11-28T11:00:02Z \xff\x00{\"a\":\"<b>\"}\n2026-11-28T11:00:03Z " + long + long + "\nevent: end\nlast"
	m := newManager(t, &cluster{pods: corev1.PodList{Items: []corev1.Pod{podOf("web-1", "app")}}, logs: map[string]io.Reader{"web-1/app": strings.NewReader(text)}})
	answer := m.follow(t, m.Token("id", "admin"), at+"?follow=true&previous=false&tail=7&since=60")
	if answer.StatusCode != http.StatusOK || answer.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("%s %v", answer.Status, answer.Header)
	}
	var got []Line
	for _, e := range events(t, answer.Body) {
		data, is := strings.CutPrefix(e, "line ")
		var line Line
		if err := json.Unmarshal([]byte(data), &line); err != nil || !is || line.Pod != "web-1" || line.Container != "app" {
			t.Fatalf("%v: %s", err, e)
		}
		line.Pod, line.Container = "", ""
		got = append(got, line)
	}
	second := func(s int) time.Time { return time.Date(2026, 11, 28, 11, 0, s, 0, time.UTC) }
	want := []Line{
		{Time: second(0).Add(500 * time.Millisecond), Text: "hello"}, {Time: second(1)}, {Text: "no time"}, {}, {Time: second(2), Text: "\ufffd\x00{\"a\":\"<b>\"}"},
		{Time: second(3), Text: long[len("2026-11-28T11:00:03Z "):], Cut: true}, {Text: "event: end"}, {Text: "last"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%.2000s", diff)
	}
	if want := "/api/v1/namespaces/kubeop-acme-shop/pods/web-1/log?container=app&follow=true&limitBytes=16777216&sinceSeconds=60&tailLines=7&timestamps=true"; len(m.asked) != 2 || m.asked[1] != want {
		t.Errorf("it asked %q", m.asked)
	}
}

// follows is a log with a line, after which nothing is written any more.
func follows(ctx context.Context) io.Reader {
	return io.MultiReader(strings.NewReader("a\n"), silent{ctx})
}

type silent struct{ context.Context }

// Read implements io.Reader.
func (s silent) Read([]byte) (int, error) {
	<-s.Done()
	return 0, io.EOF
}

// TestAStreamEndsWithTheRightToReadIt, and says why.
func TestAStreamEndsWithTheRightToReadIt(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(m *manager) error
		want problem.Code
	}{
		"the token is revoked": {func(m *manager) error {
			return m.Store.RevokeToken(context.Background(), "acme", "id", store.Event{At: m.Time})
		}, problem.Unauthenticated},
		"the app is gone": {func(m *manager) error {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.refused = problem.New(problem.NotFound, "")
			return nil
		}, problem.NotFound},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newManager(t, &cluster{pods: corev1.PodList{Items: []corev1.Pod{podOf("web-1", "app")}}, logs: map[string]io.Reader{"web-1/app": follows(t.Context())}})
			answer := m.follow(t, m.Token("id", "tenant:acme:view"), at+"?follow=true")
			if err := c.end(m); err != nil {
				t.Fatal(err)
			}
			all := events(t, answer.Body)
			var why problem.Problem
			if len(all) != 2 || !strings.HasPrefix(all[0], "line ") || json.Unmarshal([]byte(strings.TrimPrefix(all[1], "end ")), &why) != nil || why.Code != c.want {
				t.Errorf("it has %.500q, want the code %s", all, c.want)
			}
		})
	}
}

// endless is a log, which several may follow, with a line now and then.
type endless struct{ context.Context }

// Read implements io.Reader.
func (e endless) Read(into []byte) (int, error) {
	select {
	case <-e.Done():
		return 0, io.EOF
	case <-time.After(10 * time.Millisecond):
		return copy(into, "a\n"), nil
	}
}

// TestATenantHasAtMostSoManyStreams: a stream that ended, or did not begin, does not count, and those of others do not either.
func TestATenantHasAtMostSoManyStreams(t *testing.T) {
	m := newManager(t, &cluster{pods: corev1.PodList{Items: []corev1.Pod{podOf("web-1", "app")}}, logs: map[string]io.Reader{"web-1/app": endless{t.Context()}}})
	secret := m.Token("id", "tenant:acme:view")
	m.refuse = apierrors.NewServiceUnavailable("busy")
	for range maxOfTenant + 1 {
		operated.Refused(t, m.Do(secret, "GET", at, ""), problem.Unavailable)
	}
	m.refuse = nil
	var open []*http.Response
	for range maxOfTenant {
		answer := m.follow(t, secret, at+"?follow=true")
		if answer.StatusCode != http.StatusOK {
			t.Fatal(answer.Status)
		}
		open = append(open, answer)
	}
	refused := m.Do(secret, "GET", at, "")
	if operated.Refused(t, refused, problem.TooManyRequests); refused.Header().Get("Retry-After") != "5" {
		t.Errorf("again after %q", refused.Header().Get("Retry-After"))
	}
	operated.Refused(t, m.Do(m.Token("other", "admin"), "GET", strings.Replace(at, "acme", "beta", 1)+"?container=none", ""), problem.NotFound)
	_ = open[0].Body.Close()
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		answer := m.follow(t, secret, at+"?follow=true")
		if answer.StatusCode == http.StatusOK {
			return
		}
		if time.Now().After(end) {
			t.Fatal("a stream that its client left still counts")
		}
	}
}
