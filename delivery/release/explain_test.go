package release

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/action"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/delivery/health"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

// explain explains objects as the operator does.
func (t *team) explain(ctx context.Context, _ string, mask func(string) string, o *unstructured.Unstructured) string {
	reader, err := client.New(env.Config, client.Options{})
	if err != nil {
		return err.Error()
	}
	return health.Explainer{Client: reader, Mask: mask}.Explain(ctx, o).Why
}

func TestAFailedHookExplainsItsObject(t *testing.T) {
	tm := newTeam(t)
	c := tm.cluster()
	list, err := c.Build(bytes.NewBufferString(strings.ReplaceAll(stuck, "EVENT", "pre-install")), true)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Create(list); err != nil {
		t.Fatal(err)
	}
	c.Explain = func(_ context.Context, _ *unstructured.Unstructured) string {
		return "no node has room"
	}
	err = c.WatchUntilReady(list, 200*time.Millisecond)
	if err == nil || err.Error() != "hook Job/stuck has not ended after 200ms: no node has room" {
		t.Errorf("got %v", err)
	}
}

func TestWarningsAreReported(t *testing.T) {
	tm := newTeam(t)
	r := tm.request(sources.ChartFolder(map[string]string{"templates/a.yaml": configMap + "date: Hunter22\nHunter22: 1\n"}))
	r.Sensitive = []string{"Hunter22"}
	out := tm.deploy(r)
	if diff := cmp.Diff([]string{`warning of the API server: unknown field "***"`, `warning of the API server: unknown field "date"`}, slices.Sorted(slices.Values(out.Log))); diff != "" {
		t.Error(diff)
	}
	r.Recorded.Revision, r.Recorded.Content = out.Deployed.Revision, out.Deployed.Content
	if again := tm.deploy(r); len(again.Log) > 0 {
		t.Errorf("logged again: %q", again.Log)
	}
}

func TestARevisionByHandIsNotReplacedByAHeldInput(t *testing.T) {
	tm := newTeam(t)
	tm.deploy(tm.good("blue"))
	bad := tm.broken()
	bad.Actions.Remediation.Retries = new(int32)
	if out := tm.settleProven(bad); !out.Retry.Held || out.Why != "" {
		t.Fatalf("got %+v", out)
	}
	tm.catchUp()
	again := action.NewRollback(tm.helm().config)
	again.Version = 1
	if err := again.Run("web"); err != nil {
		t.Fatal(err)
	}
	tm.catchUp()
	out := tm.settle(bad)
	if !out.Retry.Held || out.Failed == nil || !strings.Contains(out.Why, "was made by hand") || !strings.HasSuffix(out.Why, "; this input is held and not returned to") {
		t.Errorf("got %+v", out)
	}
}
