package plan

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
	"github.com/kubeop/kubeop/cmd/kubeop/exit"
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

func TestAManagerAnswersHowFilesDiffer(t *testing.T) {
	const path = "/v1/apps/acme/shop/web/diff"
	diff := func(c *call.Call) *cobra.Command { return Diff(c, nil) }
	answers := map[string]string{path: `{"from": "a", "to": "b", "more": true, "files": [
		{"path": "projects/shop/apps/web/app.yaml", "change": "changed", "patch": "--- a/x\n+++ b/x\n"}, {"path": "projects/shop/apps/web/key.yaml", "change": "added", "omitted": "it is a Secret"}]}`}
	out, asked, err := throughManager(t, diff, answers, "acme/shop/web", "--revision", "a..b")
	if want := "--- a/x\n+++ b/x\nprojects/shop/apps/web/key.yaml is added, and not shown: it is a Secret\nMore files differ.\n"; exit.Code(err) != exit.Differences || out != want {
		t.Errorf("%v: %s", err, out)
	}
	if len(asked) != 1 || asked[0] != "GET "+path+"?from=a&to=b" {
		t.Errorf("it asked for %q", asked)
	}
	if out, asked, err = throughManager(t, diff, answers, "acme/shop/web", "--revision", "a", "-o", "json"); exit.Code(err) != exit.Differences || !strings.Contains(out, `"omitted": "it is a Secret"`) || asked[0] != "GET "+path+"?from=a" {
		t.Errorf("%v: %s after %q", err, out, asked)
	}
	answers[path] = `{"from": "a", "to": "b", "files": []}`
	if out, _, err = throughManager(t, diff, answers, "acme/shop/web", "--revision", "a"); err != nil || out != "No differences.\n" {
		t.Errorf("%v: %s", err, out)
	}
	for name, args := range map[string][]string{"no commit": {}, "a format of plans": {"--revision", "a", "-o", "markdown"}} {
		t.Run(name, func(t *testing.T) {
			if _, asked, err := throughManager(t, diff, answers, append(args, "acme/shop/web")...); exit.Code(err) != exit.Failure || len(asked) > 0 {
				t.Errorf("%v, after %q", err, asked)
			}
		})
	}
}
