package health

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestTheLastLineOfALogIsShownWithoutNoise(t *testing.T) {
	cases := map[string]struct{ log, want string }{
		"nothing":                       {"", ""},
		"blank lines":                   {"\n \t\n", ""},
		"the last line":                 {"starting\nno config\n\n", "no config"},
		"overwritten lines":             {"10%\r50%\rno space left\r\n", "no space left"},
		"colors":                        {"\x1b[1;31mERROR\x1b[0m no config", "ERROR no config"},
		"control characters":            {"no\x00 con\x07fig\x9b \u202eabc", "no config abc"},
		"bytes that are no text":        {"no \xff\xfeconfig", "no config"},
		"a line of time only":           {"no config\n2026-03-01T12:00:00Z\n", "no config"},
		"Go's log":                      {"2026/03/01 12:00:00 no config", "no config"},
		"Go's log, finer":               {"2026/03/01 12:00:00.123456 main.go:7: no config", "main.go:7: no config"},
		"klog":                          {"F0301 12:00:00.123456       1 main.go:7] no config", "main.go:7] no config"},
		"brackets, comma, and a zone":   {"[2026-03-01 12:00:00,123 +0100] [FATAL] no config", "[FATAL] no config"},
		"logfmt":                        {`time="2026-03-01T12:00:00.1Z" level=fatal msg="no config"`, `time="…" level=fatal msg="no config"`},
		"JSON with seconds since 1970":  {`{"level":"fatal","ts":1772366400.123,"msg":"no config"}`, `{"level":"fatal","ts":…,"msg":"no config"}`},
		"the port a connection is from": {"read tcp 10.1.0.5:43210->10.1.0.9:5432: connection reset by peer", "read tcp 10.1.0.5->10.1.0.9:5432: connection reset by peer"},
		"addresses in memory":           {"[signal SIGSEGV: addr=0x0 pc=0x47b2af]", "[signal SIGSEGV: addr=… pc=…]"},
		"a day and a flag are kept":     {"--since 2026-03-01 is not a time", "--since 2026-03-01 is not a time"},
		"what is cut ends in a sign":    {strings.Repeat("ä", 400), strings.Repeat("ä", 299) + "…"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := (Explainer{}).lastWords(c.log); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// A secret that the cut goes through, that has several lines, or that looks like something fleeting would not be found
// afterwards.
func TestMaskSeesTheWholeText(t *testing.T) {
	for _, secret := range []string{"s3cr3t", "first line\nsecond line", "01234567-89ab-cdef-0123-456789abcdef"} {
		w := &world{objects: []client.Object{pod(looping(1, "Error", ""))}, logs: map[string]string{
			"web-1/main/previous": "x\n" + strings.Repeat("-", 289) + " key " + secret + "\n",
		}}
		e := w.explainer(t)
		e.Mask = func(s string) string { return strings.ReplaceAll(s, secret, "***") }
		v, err := Look(t.Context(), e, watch(t, deployment()), []Ref{refTo(deployment())})
		if err != nil || !strings.HasSuffix(v.String(), "- key ***; its log begins: x") {
			t.Errorf("got %q, %v", v, err)
		}
	}
}

func TestMaskHidesInEventsAndStatuses(t *testing.T) {
	hide := func(s string) string { return strings.ReplaceAll(s, "s3cr3t", "***") }
	unready := pod(containers(container(runs, noState)))
	cases := map[string]situation{
		"event":               {of: deployment(), beside: []client.Object{unready, event(unready, 1, "Unhealthy", "Readiness probe failed: got s3cr3t")}},
		"termination message": {of: deployment(), beside: []client.Object{pod(looping(1, "Error", "got s3cr3t"))}},
		"container":           {of: deployment(), beside: []client.Object{pod(waitingFor("CreateContainerError", "got s3cr3t"))}},
		"scheduler":           {of: deployment(), beside: []client.Object{pod(refusedByScheduler("got s3cr3t"))}},
		"condition":           {of: jobFailed("x", "got s3cr3t")},
		"provisioner":         {of: claim(), beside: []client.Object{event(claim(), 1, "ProvisioningFailed", "got s3cr3t")}},
		"load balancer":       {of: service(nil), beside: []client.Object{event(service(nil), 1, "SyncLoadBalancerFailed", "got s3cr3t")}},
	}
	for name, s := range cases {
		t.Run(name, func(t *testing.T) {
			w := &world{objects: s.beside}
			e := w.explainer(t)
			e.Mask = hide
			v, err := Look(t.Context(), e, watch(t, s.of), []Ref{refTo(s.of)})
			if err != nil || !strings.HasSuffix(v.String(), "got ***") {
				t.Errorf("got %q, %v", v, err)
			}
		})
	}
}

func TestWithoutLogsACrashHasItsExitCode(t *testing.T) {
	e := (&world{objects: []client.Object{pod(looping(2, "Error", ""))}}).explainer(t)
	e.Logs = nil
	v, err := Look(t.Context(), e, watch(t, deployment()), []Ref{refTo(deployment())})
	if want := "Deployment/web: its pod crashes with exit code 2"; err != nil || v.String() != want {
		t.Errorf("got %q, %v, want %q", v, err, want)
	}
}

func TestLogsNeedAnAddress(t *testing.T) {
	if _, err := LogsOf(&rest.Config{Host: "https://[::1"}); err == nil || !strings.HasPrefix(err.Error(), "making the client of logs: ") {
		t.Errorf("got %v", err)
	}
}

func TestTheLogOfAContainerIsReadUpToALimit(t *testing.T) {
	answers := map[string]string{"web-1": "one\ntwo\n", "torn": "one\n", "huge": strings.Repeat(strings.Repeat("x", 99)+"\n", 700) + "torn"}
	var asked string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.String()
		answer, ok := answers[strings.Split(r.URL.Path, "/")[6]]
		if !ok {
			http.Error(w, "previous terminated container not found", http.StatusBadRequest)
			return
		}
		if answer == answers["torn"] { // The node goes away while it answers.
			w.Header().Set("Content-Length", "100")
		}
		_, _ = w.Write([]byte(answer))
	}))
	defer server.Close()
	logs, err := LogsOf(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	if text, err := logs(t.Context(), "team", "gone", "main", true); err == nil {
		t.Errorf("a log that is not there reads %q", text)
	}
	if text, err := logs(t.Context(), "team", "torn", "main", true); err == nil || !strings.HasPrefix(err.Error(), "reading the log of pod torn: ") {
		t.Errorf("a log that breaks off reads %q, %v", text, err)
	}
	text, err := logs(t.Context(), "team", "web-1", "main", true)
	if err != nil || text != answers["web-1"] {
		t.Errorf("got %q, %v", text, err)
	}
	if want := "/api/v1/namespaces/team/pods/web-1/log?container=main&limitBytes=65536&previous=true&tailLines=20"; asked != want {
		t.Error(cmp.Diff(want, asked))
	}
	text, err = logs(t.Context(), "team", "huge", "main", false)
	if err != nil || len(text) > logBytes || !strings.HasSuffix(text, "\n"+strings.Repeat("x", 99)) {
		t.Errorf("got %d bytes ending in %q, %v", len(text), text[max(0, len(text)-10):], err)
	}
}

func TestOnlyALineThatTheLimitCutIsDropped(t *testing.T) {
	full := strings.Repeat("x", logBytes)
	for name, c := range map[string]struct{ text, want string }{
		"a short log":          {"one\ntwo", "one\ntwo"},
		"just below the limit": {"one\n" + full[5:], "one\n" + full[5:]},
		"up to the limit":      {"one\n" + full[4:], "one"},
		"one line":             {full, full},
	} {
		if got := dropCutLine(c.text); got != c.want {
			t.Errorf("%s: got %d bytes, want %d", name, len(got), len(c.want))
		}
	}
}
