package pullrequest

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/fetch/git"
	"github.com/kubeop/kubeop/gitops/host"
)

// TestAPlanThatWasOvertakenIsNotRecorded: the pull request was closed, or has a newer commit, while the plan was written.
func TestAPlanThatWasOvertakenIsNotRecorded(t *testing.T) {
	for name, tc := range map[string]struct {
		asked map[int]string
		err   error
		want  []v1alpha1.PullRequestPlan
		left  int // how many commits are asked for afterwards
	}{
		"the newest commit": {map[int]string{7: "aaaa", 8: "cccc"}, nil, []v1alpha1.PullRequestPlan{{Number: 7, Revision: "one@sha1:aaaa", Message: "1 to update"}}, 1},
		"a newer commit":    {map[int]string{7: "bbbb"}, nil, nil, 1},
		"closed":            {map[int]string{}, nil, nil, 0},
		"a failed attempt":  {map[int]string{7: "aaaa"}, errors.New("away"), nil, 1},
	} {
		rec := &record{asked: tc.asked, tries: map[int]try{7: {}}, troubles: map[int]trouble{}}
		j := &job{of: host.PullRequest{Number: 7, Commit: "aaaa"}, commit: git.Commit{Hash: "aaaa", Revision: "one@sha1:aaaa"}}
		rec.written(j, Comment{Summary: "1 to update"}, tc.err)
		if diff := cmp.Diff(tc.want, rec.plans); diff != "" || len(rec.asked) != tc.left {
			t.Errorf("%s: %v are asked for; the plans (-want +got):\n%s", name, rec.asked, diff)
		}
		if _, tried := rec.tries[7]; tried != (tc.want == nil) {
			t.Errorf("%s: the attempts are kept: %t", name, tried)
		}
	}
}
