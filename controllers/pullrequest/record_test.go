package pullrequest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/git"
	"github.com/kubeop/kubeop/gitops/host"
	gitreport "github.com/kubeop/kubeop/gitops/report"
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

// TestAClosedPullRequestDropsOnlyItsOwnPlan: the number of another may begin with its number. An error of the list closes none.
func TestAClosedPullRequestDropsOnlyItsOwnPlan(t *testing.T) {
	open := []host.PullRequest{{Number: 12, Commit: "aaaa"}, {Number: 13, Commit: "bbbb", Fork: true}}
	for name, tc := range map[string]struct {
		err   error
		sent  []int
		plans []v1alpha1.PullRequestPlan
		left  []int
	}{
		"the list": {nil, []int{12}, []v1alpha1.PullRequestPlan{{Number: 12, Message: "1 to update"}, {Number: 13, Message: fromFork}}, []int{12}},
		"an error": {errors.New("away"), []int{1, 12}, []v1alpha1.PullRequestPlan{{Number: 1, Message: "1 to update"}, {Number: 12, Message: "1 to update"}}, []int{1, 12}},
	} {
		t.Run(name, func(t *testing.T) {
			clock := clocktesting.NewFakeClock(time.Unix(1000, 0))
			queue := gitreport.NewQueue(clock, nil)
			sent := make(chan int, 10)
			rec := &record{uid: "u", asked: map[int]string{}, tries: map[int]try{}, troubles: map[int]trouble{}}
			for _, number := range []int{1, 12} {
				rec.set(v1alpha1.PullRequestPlan{Number: number, Message: "1 to update"})
				rec.asked[number], rec.tries[number], rec.troubles[number] = "cccc", try{}, trouble{}
				if !queue.Put(gitreport.Message{
					Key: keyOf("u", number), Kind: gitreport.PullRequest, Host: fmt.Sprint(number), Done: func(error) {},
					Send: func(context.Context) error { sent <- number; return nil },
				}) {
					t.Fatal("there is no room")
				}
			}
			rec.listed(open, tc.err, queue)
			var got []int
			for range tc.sent {
				clock.Step(time.Minute)
				select {
				case number := <-sent:
					got = append(got, number)
				case <-time.After(20 * time.Second):
					t.Fatalf("sent are the plans of %v, want %v", got, tc.sent)
				}
			}
			slices.Sort(got)
			if !slices.Equal(got, tc.sent) {
				t.Errorf("sent are the plans of %v, want %v", got, tc.sent)
			}
			if diff := cmp.Diff(tc.plans, rec.plans); diff != "" || !rec.answered {
				t.Errorf("answered: %t; -want +got:\n%s", rec.answered, diff)
			}
			delete(rec.troubles, 0)
			for what, left := range map[string][]int{
				"asked for": slices.Sorted(maps.Keys(rec.asked)), "tried": slices.Sorted(maps.Keys(rec.tries)), "in trouble": slices.Sorted(maps.Keys(rec.troubles)),
			} {
				if !slices.Equal(left, tc.left) {
					t.Errorf("%s are %v, want %v", what, left, tc.left)
				}
			}
		})
	}
}

// TestARepositoryIsWokenForTheConditionOnlyIfItChanges: nobody knows after a start whether the status has it. While a plan is made, it stays.
func TestARepositoryIsWokenForTheConditionOnlyIfItChanges(t *testing.T) {
	woken := 0
	p := &Planner{Options: Options{Wake: func(types.NamespacedName) { woken++ }}}
	repository := &v1alpha1.Repository{ObjectMeta: metav1.ObjectMeta{Name: "acme", UID: "1"}, Spec: v1alpha1.RepositorySpec{Previews: v1alpha1.PreviewsPlan}}
	wakes := func(what string, want int, stays bool, change func(*record)) {
		t.Helper()
		woken = 0
		p.update(repository, change)
		if note, _ := p.StatusOf(repository, ""); woken != want || note.Stays != stays {
			t.Errorf("%s: woken %d times, want %d; the condition is %+v", what, woken, want, note)
		}
	}
	nothing := func(*record) {}
	p.StatusOf(repository, "")
	wakes("nothing is known", 0, true, nothing)
	wakes("the host answered", 1, false, func(rec *record) { rec.answered = true })
	wakes("the same again", 0, false, nothing)
	wakes("a plan is made", 0, true, func(rec *record) { rec.asked[1] = "c" })
	wakes("it is made", 0, false, func(rec *record) { delete(rec.asked, 1) })
	wakes("the host refuses", 1, false, func(rec *record) {
		rec.troubles[1] = trouble{err: failure.New(failure.ErrAuthentication, "no"), times: 9}
	})
	wakes("it refuses again", 0, false, nothing)
	wakes("it does not, while a plan is made", 0, true, func(rec *record) { delete(rec.troubles, 1); rec.asked[1] = "c" })
	wakes("all is well", 1, false, func(rec *record) { delete(rec.asked, 1) })
}
