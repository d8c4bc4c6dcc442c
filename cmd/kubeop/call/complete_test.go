package call

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/cmd/kubeop/target"
	"github.com/kubeop/kubeop/internal/testenv/memory"
)

// TestCompletionOffersTheNamesThatMayFollow: kinds and names that may follow, by what was written before. Files never do.
func TestCompletionOffersTheNamesThatMayFollow(t *testing.T) {
	created := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	in := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: name, Namespace: namespace, CreationTimestamp: created}
	}
	s := memory.Serve(t, &v1alpha1.Tenant{ObjectMeta: in("", "acme")}, &v1alpha1.Project{ObjectMeta: in(v1alpha1.HomeNamespace("acme"), "shop")},
		&v1alpha1.App{ObjectMeta: in(v1alpha1.ProjectNamespace("acme", "shop"), "web")})
	streams, _, _, _ := genericiooptions.NewTestIOStreams()
	c := New(streams, clocktesting.NewFakeClock(created.Time))
	c.Flags.KubeConfig = &s.Kubeconfig
	one, two := c.CompleteObject(target.App), c.CompleteObject(target.App, target.Project)
	for name, tc := range map[string]struct {
		complete        Completion
		tenant, project string
		args            []string
		want            []string
	}{
		"kinds":                   {c.CompleteKindThenNames, "", "", nil, []string{"apps", "projects", "tenants", "policies", "registries", "pricelists", "clusters", "repositories"}},
		"names of a kind":         {c.CompleteKindThenNames, "", "", []string{"projects"}, []string{"acme/shop"}},
		"of no kind":              {c.CompleteKindThenNames, "", "", []string{"bananas"}, nil},
		"apps of a tenant":        {c.CompleteKindThenNames, "acme", "", []string{"apps"}, []string{"shop/web"}},
		"apps of a project":       {c.CompleteKindThenNames, "acme", "shop", []string{"apps"}, []string{"web"}},
		"projects of a tenant":    {c.CompleteKindThenNames, "acme", "", []string{"project"}, []string{"shop"}},
		"of another tenant":       {c.CompleteKindThenNames, "rival", "", []string{"projects"}, nil},
		"an app":                  {one, "acme", "", nil, []string{"shop/web"}},
		"nothing after an app":    {one, "acme", "", []string{"app"}, nil},
		"an app or another kind":  {two, "acme", "", nil, []string{"shop/web", "app", "project"}},
		"a name after its kind":   {two, "acme", "", []string{"project"}, []string{"shop"}},
		"nothing after that name": {two, "acme", "", []string{"project", "shop"}, nil},
	} {
		c.Tenant, c.Project = tc.tenant, tc.project
		command := &cobra.Command{}
		command.SetContext(t.Context())
		got, directive := tc.complete(command, tc.args, "")
		if diff := cmp.Diff(tc.want, got); diff != "" || directive != cobra.ShellCompDirectiveNoFileComp {
			t.Errorf("%s: directive %d, -want +got:\n%s", name, directive, diff)
		}
	}
}
