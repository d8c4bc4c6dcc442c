package rollback

import (
	"strings"
	"testing"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

const (
	current = "1a2b3c4d5e6f7a8b9c0d1a2b3c4d5e6f7a8b9c0d"
	later   = "2a2b3c4d5e6f7a8b9c0d1a2b3c4d5e6f7a8b9c0d"
)

// TestRollbackGoesToTheLastCommitThatSucceededBeforeTheCurrentOne, unless one is named.
func TestRollbackGoesToTheLastCommitThatSucceededBeforeTheCurrentOne(t *testing.T) {
	record := func(commit, result string) v1alpha1.DeliveryRecord {
		return v1alpha1.DeliveryRecord{Commit: commit, Result: result}
	}
	ok, bad := v1alpha1.DeliverySucceeded, v1alpha1.DeliveryFailed
	refuse := func(a *v1alpha1.App) { a.Status.Refused = &v1alpha1.Refused{Revision: "main@sha1:" + later} }
	for name, tc := range map[string]struct {
		deliveries  []v1alpha1.DeliveryRecord
		wanted      string
		change      func(*v1alpha1.App)
		want, fails string
	}{
		"the last that succeeded":                    {deliveries: []v1alpha1.DeliveryRecord{record(current, bad), record("b", bad), record("c", ok), record("d", ok)}, want: "c"},
		"the current one":                            {deliveries: []v1alpha1.DeliveryRecord{record(current, ok), record("b", ok)}, want: "b"},
		"without a commit":                           {deliveries: []v1alpha1.DeliveryRecord{record("", ok), record("b", ok)}, want: "b"},
		"the current one, as a newer one is refused": {deliveries: []v1alpha1.DeliveryRecord{record(current, ok), record("b", ok)}, change: refuse, want: current},
		"before a failed one, as a newer is refused": {deliveries: []v1alpha1.DeliveryRecord{record(current, bad), record("b", ok)}, change: refuse, want: "b"},
		"none succeeded":                             {deliveries: []v1alpha1.DeliveryRecord{record(current, ok), record("b", bad)}, fails: "no earlier delivery of the app acme/shop/web succeeded; name a commit"},
		"a named one":                                {deliveries: []v1alpha1.DeliveryRecord{record("b", ok)}, wanted: "x", want: "x"},
		"content of another Git":                     {wanted: "x", change: func(a *v1alpha1.App) { a.Spec.Git = &v1alpha1.GitSource{} }, fails: "is in another Git repository"},
		"a chart of another Git": {wanted: "x", change: func(a *v1alpha1.App) {
			a.Spec.Helm = &v1alpha1.HelmSource{Git: &v1alpha1.ChartGitSource{}}
		}, fails: "is in another Git repository"},
		"of a preview": {wanted: "x", change: func(a *v1alpha1.App) {
			a.Annotations = map[string]string{v1alpha1.BranchAnnotation: "feature/x"}
		}, fails: "is one of a preview: git revert its commit in the branch feature/x"},
		"a chart of a repository": {wanted: "x", change: func(a *v1alpha1.App) { a.Spec.Helm = &v1alpha1.HelmSource{Repository: "https://charts.example.com"} }, want: "x"},
	} {
		t.Run(name, func(t *testing.T) {
			app := &v1alpha1.App{}
			app.Annotations = map[string]string{v1alpha1.RevisionAnnotation: "main@sha1:" + current}
			app.Status.Deliveries = tc.deliveries
			if tc.change != nil {
				tc.change(app)
			}
			got, err := To(app, "app acme/shop/web", tc.wanted)
			if got != tc.want || (err != nil) != (tc.fails != "") || err != nil && !strings.Contains(err.Error(), tc.fails) {
				t.Errorf("got %q, %v, want %q, %q", got, err, tc.want, tc.fails)
			}
		})
	}
}

func TestTheMessageNamesTheAppAndTheCommit(t *testing.T) {
	title, body := Message("acme/shop/web", "projects/shop/apps/web", current)
	if title != "Roll back acme/shop/web to 1a2b3c4d" || body != "Restore projects/shop/apps/web as it was at commit "+current+"." {
		t.Errorf("%q %q", title, body)
	}
}
