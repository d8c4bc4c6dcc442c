package read

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kubeop/kubeop/cmd/kubeop/call"
	"github.com/kubeop/kubeop/internal/testenv/fakemanager"
)

// throughManager runs a command with a manager that answers by path. It returns what was printed, and what was requested.
func throughManager(t *testing.T, of func(*call.Call) *cobra.Command, answers map[string]string, args ...string) (out string, asked []string, err error) {
	t.Helper()
	t.Setenv("KUBEOP_TOKEN", "kubeop_x")
	manager := fakemanager.Serve(t, answers)
	var written bytes.Buffer
	c := call.New(genericiooptions.IOStreams{In: strings.NewReader(""), Out: &written, ErrOut: io.Discard}, clocktesting.NewFakeClock(time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)))
	command := of(c)
	c.AddFlags(command.Flags())
	command.SilenceErrors, command.SilenceUsage = true, true
	command.SetArgs(append(args, "--server", manager.URL))
	err = command.ExecuteContext(t.Context())
	return written.String(), manager.Asked(), err
}

const (
	webPath = "/v1/apps/acme/shop/web"
	hash    = "4f0c2d0000000000000000000000000000000000"
)

func TestAManagerAnswersTheHistory(t *testing.T) {
	answers := map[string]string{webPath + "/history": `{"items": [
		{"revision": "main@sha1:` + hash + `", "commit": "` + hash + `", "author": "ann", "started": "2026-11-29T11:00:00Z", "finished": "2026-11-29T11:00:07Z", "result": "Failed", "reason": "Unhealthy", "release": 3},
		{"revision": "main@sha1:1", "started": "2026-11-29T10:00:00Z", "result": "Progressing"}]}`}
	out, asked, err := throughManager(t, History, answers, "acme/shop/web", "-o", "wide")
	if err != nil || len(asked) != 1 || asked[0] != "GET "+webPath+"/history" {
		t.Fatalf("%v, after %q", err, asked)
	}
	for _, want := range []string{"main@sha1:4f0c2d00", "ann", "60m ago", "7s", "Failed (Unhealthy)", hash, "3"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
	if out, _, err = throughManager(t, History, answers, "acme/shop/web", "-o", "json"); err != nil || !strings.Contains(out, `"duration": "7s"`) {
		t.Errorf("%v: %s", err, out)
	}
	if _, _, err = throughManager(t, History, nil, "acme/shop/web"); err == nil || !strings.Contains(err.Error(), "reading the history of the app acme/shop/web") {
		t.Errorf("an app that is not there: %v", err)
	}
}

func TestAManagerStreamsTheLogs(t *testing.T) {
	const line = "event: line\ndata: {\"pod\": \"web-1\", \"container\": \"app\", \"time\": \"2026-11-28T12:00:00Z\", \"text\": \"listening\"}\n\n"
	answers := map[string]string{webPath + "/logs": line}
	out, asked, err := throughManager(t, Logs, answers, "acme/shop/web", "-f", "-c", "app", "--tail", "-1", "--since", "90500ms")
	if err != nil || out != "web-1 app | listening\n" {
		t.Errorf("%v: %q", err, out)
	}
	if len(asked) != 1 || asked[0] != "GET "+webPath+"/logs?container=app&follow=true&since=91&tail=10000" {
		t.Errorf("it asked for %q", asked)
	}
	answers[webPath+"/logs"] = line + "event: end\ndata: {\"code\": \"conflict\", \"status\": 409, \"title\": \"x\", \"detail\": \"16 MiB were sent.\"}\n\n"
	if out, _, err = throughManager(t, Logs, answers, "acme/shop/web"); err == nil || !strings.Contains(err.Error(), "16 MiB were sent") || out == "" {
		t.Errorf("a stream that the manager ends: %v: %q", err, out)
	}
	for _, tail := range []string{"0", "10001"} {
		if _, asked, err = throughManager(t, Logs, answers, "acme/shop/web", "--tail", tail); err == nil || !strings.Contains(err.Error(), "--tail") || len(asked) > 0 {
			t.Errorf("--tail %s: %v, after %q", tail, err, asked)
		}
	}
}
