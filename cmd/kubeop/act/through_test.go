package act

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
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

func TestAManagerMakesTheCommitOfARollback(t *testing.T) {
	const (
		path  = "/v1/apps/acme/shop/web"
		first = "1a2b3c4d00000000000000000000000000000000"
		made  = "4f0c2d0000000000000000000000000000000000"
	)
	answers := map[string]string{
		path + "/history":  `{"items": [{"revision": "x", "commit": "` + first + `", "started": "2026-11-29T11:00:00Z", "result": "Succeeded"}, {"revision": "x", "commit": "` + made + `", "started": "2026-11-29T11:00:00Z", "result": "Failed"}]}`,
		path + "/rollback": `{"commit": "` + made + `", "changed": true, "repository": "acme", "file": "projects/shop/apps/web/app.yaml", "request": "r"}`,
	}
	for name, c := range map[string]struct {
		commit string
		want   []string
	}{
		"to what worked":             {"", []string{"POST " + path + "/rollback {}"}},
		"to a commit":                {first, []string{"POST " + path + `/rollback {"to":"` + first + `"}`}},
		"to the beginning of a hash": {"1a2b", []string{"GET " + path + "/history", "POST " + path + `/rollback {"to":"` + first + `"}`}},
	} {
		t.Run(name, func(t *testing.T) {
			args := []string{"acme/shop/web", "--push"}
			if c.commit != "" {
				args = append(args, c.commit)
			}
			out, asked, err := throughManager(t, Rollback, answers, args...)
			if err != nil || !strings.Contains(out, "Committed 4f0c2d00 to the repository acme") || !strings.Contains(out, "kubeop wait acme/shop/web") {
				t.Errorf("%v: %s", err, out)
			}
			if diff := cmp.Diff(c.want, asked); diff != "" {
				t.Errorf("-want +asked:\n%s", diff)
			}
		})
	}
	for name, c := range map[string]struct{ args, want string }{
		"without --push":        {"acme/shop/web", "add --push"},
		"a commit that is none": {"acme/shop/web ffff --push", "0 commits of the history begin with ffff"},
		"an app that is none":   {"acme/shop/none --push", "rolling the app acme/shop/none back"},
	} {
		t.Run(name, func(t *testing.T) {
			if out, _, err := throughManager(t, Rollback, answers, strings.Fields(c.args)...); err == nil || !strings.Contains(err.Error(), c.want) || out != "" {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	answers[path+"/rollback"] = strings.Replace(answers[path+"/rollback"], "true", "false", 1)
	if _, _, err := throughManager(t, Rollback, answers, "acme/shop/web", "--push"); err == nil || !strings.Contains(err.Error(), "is already so") {
		t.Errorf("what is so already: %v", err)
	}
}
