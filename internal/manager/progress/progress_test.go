package progress

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

const (
	hash    = "0123456789012345678901234567890123456789"
	webFile = "projects/shop/apps/web/app.yaml"
)

func condition(kind string, status metav1.ConditionStatus, generation int64, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, ObservedGeneration: generation, Message: message}
}

// appOf is an app of generation 2 whose folder is that of a commit.
func appOf(commit string, conditions ...metav1.Condition) *v1alpha1.App {
	a := &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Name: "web", Generation: 2, Annotations: map[string]string{v1alpha1.RevisionAnnotation: "main@sha1:" + commit, v1alpha1.TreeAnnotation: "t2"}}}
	a.Status.Conditions, a.Status.ObservedTree, a.Status.LastAttemptedRevision = conditions, "t2", "main@sha1:"+commit
	return a
}

// TestTheProgressOfACommitFollowsItsObjects goes through the states, with what the Repository and the object say.
func TestTheProgressOfACommitFollowsItsObjects(t *testing.T) {
	ready := condition(v1alpha1.ReadyCondition, metav1.ConditionTrue, 2, "delivered")
	synced := condition(v1alpha1.SyncedCondition, metav1.ConditionTrue, 1, "")
	leaving := appOf(hash, ready)
	leaving.DeletionTimestamp = &metav1.Time{}
	older := appOf(hash, ready)
	older.Status.ObservedTree = "t1"
	refused := appOf("other", ready)
	refused.Status.Refused = &v1alpha1.Refused{Place: webFile + ":7:5", Problem: "unknown field spec.imag"}
	for name, c := range map[string]struct {
		unread, quiet bool
		status        v1alpha1.RepositoryStatus
		of            object
		want          Report
	}{
		"it was not read":     {unread: true, of: appOf("old", ready), want: Report{State: Pending, Message: "The operator has not read the commit yet."}},
		"a later one is held": {unread: true, status: v1alpha1.RepositoryStatus{HeldRevision: "main@sha1:f"}, of: appOf("old", ready), want: Report{State: Held, Message: "why"}},
		"a later one is held, and why is not for the caller": {unread: true, quiet: true, status: v1alpha1.RepositoryStatus{HeldRevision: "main@sha1:f"}, want: Report{State: Held, Message: "The repository holds its commits until a person confirms them."}},
		"its file is wrong": {status: v1alpha1.RepositoryStatus{Problems: []string{"projects/blog/project.yaml:1:1: other [x]", webFile + ":7:5: unknown field: spec.imag [unknown-field]"}}, of: appOf("old", ready),
			want: Report{State: Refused, Message: "The version of this commit, or of a later one, is not used.", Problems: []FileProblem{{webFile, 7, 5, "unknown field: spec.imag", "unknown-field"}}}},
		"a file beside it is wrong": {status: v1alpha1.RepositoryStatus{Problems: []string{"projects/shop/apps/web/Chart.yaml: too large [too-large]"}},
			want: Report{State: Refused, Message: "The version of this commit, or of a later one, is not used.", Problems: []FileProblem{{"projects/shop/apps/web/Chart.yaml", 0, 0, "too large", "too-large"}}}},
		"the object says what is wrong": {status: v1alpha1.RepositoryStatus{Problems: []string{"and 30 more"}}, of: refused,
			want: Report{State: Refused, Message: "The version of this commit, or of a later one, is not used.", Problems: []FileProblem{{webFile, 7, 5, "unknown field spec.imag", ""}}}},
		"a refusal that is over": {status: v1alpha1.RepositoryStatus{ReconcileStatus: conditions(synced)}, of: refused, want: Report{State: Healthy, Message: "delivered"}},
		"its deletion is held": {status: v1alpha1.RepositoryStatus{Held: []string{"App kubeop-acme-shop/web2: with 1 pod", "App kubeop-acme-shop/web: with 1 claim"}}, of: appOf("old", ready),
			want: Report{State: Held, Message: "Its deletion waits until a person confirms it with kubeop confirm repository acme: App kubeop-acme-shop/web: with 1 claim"}},
		"nothing is applied yet":                                {want: Report{State: Pending, Message: "The operator has not applied the commit yet. The repository says: why"}},
		"nothing is applied yet, and why is not for the caller": {quiet: true, want: Report{State: Pending, Message: "The operator has not applied the commit yet."}},
		"it is gone":                    {status: v1alpha1.RepositoryStatus{ReconcileStatus: conditions(synced)}, want: Report{State: Deleted}},
		"it is being deleted":           {status: v1alpha1.RepositoryStatus{ReconcileStatus: conditions(synced)}, of: leaving, want: Report{State: Pending, Message: "It is being deleted."}},
		"it is not applied yet":         {of: appOf("old", ready), want: Report{State: Pending, Message: "why"}},
		"it is applied before the rest": {of: appOf(hash, ready), want: Report{State: Healthy, Message: "delivered"}},
		"it was not looked at":          {status: v1alpha1.RepositoryStatus{ReconcileStatus: conditions(synced)}, of: appOf(hash, condition(v1alpha1.ReadyCondition, metav1.ConditionTrue, 1, "before")), want: Report{State: Applied}},
		"its files were not looked at":  {status: v1alpha1.RepositoryStatus{ReconcileStatus: conditions(synced)}, of: older, want: Report{State: Applied}},
		"it is on its way": {status: v1alpha1.RepositoryStatus{ReconcileStatus: conditions(synced)}, of: appOf(hash, condition(v1alpha1.ReadyCondition, metav1.ConditionFalse, 2, "1 of 2 pods")),
			want: Report{State: Applied, Message: "1 of 2 pods"}},
		"only a change can help": {status: v1alpha1.RepositoryStatus{ReconcileStatus: conditions(synced)},
			of:   appOf(hash, condition(v1alpha1.ReadyCondition, metav1.ConditionFalse, 2, "no such chart"), condition(v1alpha1.StalledCondition, metav1.ConditionTrue, 2, "")),
			want: Report{State: Failed, Message: "no such chart"}},
	} {
		t.Run(name, func(t *testing.T) {
			repository := &v1alpha1.Repository{ObjectMeta: metav1.ObjectMeta{Name: "acme"}, Status: c.status}
			repository.Status.Conditions = append(repository.Status.Conditions, condition(v1alpha1.ReadyCondition, metav1.ConditionFalse, 1, "why"))
			c.want.Commit = hash
			got := Of(Commit{Hash: hash, Reached: !c.unread, File: webFile, Object: "App kubeop-acme-shop/web", Quiet: c.quiet}, repository, c.of)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func conditions(all ...metav1.Condition) v1alpha1.ReconcileStatus {
	return v1alpha1.ReconcileStatus{Conditions: all}
}
