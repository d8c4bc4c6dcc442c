package repository

import (
	"strings"
	"testing"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/usage"
	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/internal/testenv/steptest"
)

// freeze sets the window of the tenant: from the next hour, for that long.
func (b *fixture) freeze(duration time.Duration) {
	b.t.Helper()
	tenant := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "acme"}}
	if err := b.Client.Get(b.t.Context(), client.ObjectKeyFromObject(tenant), tenant); err != nil {
		if !apierrors.IsNotFound(err) {
			b.t.Fatal(err)
		}
		if err := b.Client.Create(b.t.Context(), tenant); err != nil {
			b.t.Fatal(err)
		}
	}
	tenant.Spec.Freeze = []v1alpha1.FreezeWindow{{
		Name: "weekend", Start: b.clock.Now().UTC().Add(time.Hour).Format("4 15 2 1 *"), Duration: metav1.Duration{Duration: duration}, Message: "nobody is at work",
	}}
	b.update(tenant)
}

// wantFrozen takes a pass, in which the commit waits and another content stays in force.
func (b *fixture) wantFrozen(content, revision, until string) {
	b.t.Helper()
	got, err := b.pass()
	if end := steptest.Outcome(b.t, err); got != content || !strings.HasPrefix(end, "later steps run; waits Frozen: "+revision+" waits until "+until+` by freeze weekend ("nobody is at work")`) ||
		!strings.Contains(end, "paas.kubeop.io/confirm-freeze="+v1alpha1.CommitOf(revision)) {
		b.t.Errorf("in force is %q, want %q; the outcome is %s", got, content, end)
	}
	status := &b.repository.Status
	if status.HeldRevision != revision || status.HeldUntil == nil || status.HeldUntil.UTC().Format("2006-01-02 15:04 MST") != until {
		b.t.Errorf("the status holds %q until %v", status.HeldRevision, status.HeldUntil)
	}
}

// TestACommitWaitsForTheEndOfAFreeze: the newest one is applied then. Each pass is an hour after the last.
func TestACommitWaitsForTheEndOfAFreeze(t *testing.T) {
	b := newFixture(t)
	b.clock.SetTime(time.Date(2026, 11, 27, 17, 0, 0, 0, time.UTC))
	b.want("1")
	b.freeze(6 * time.Hour)
	const until = "2026-11-28 01:00 UTC"
	second := b.pushOn("2", 1)
	b.wantFrozen("1", second, until)
	b.restart()
	b.wantFrozen("1", second, until)
	third := b.pushOn("3", 1)
	b.lose()
	b.wantFrozen("1", third, until)
	b.confirmFreeze(v1alpha1.CommitOf(second)) // It is not the newest.
	b.wantFrozen("1", third, until)
	b.clock.Step(2 * time.Hour)
	b.want("3")
	if s := &b.repository.Status; s.HeldRevision != "" || s.HeldUntil != nil || s.LastAttemptedRevision != third {
		t.Errorf("the status is %+v", s)
	}
}

func (b *fixture) confirmFreeze(value string) {
	b.t.Helper()
	before := b.repository.DeepCopy()
	b.repository.Annotations = map[string]string{v1alpha1.ConfirmFreezeAnnotation: value}
	if err := b.Client.Patch(b.t.Context(), b.repository, client.MergeFrom(before)); err != nil {
		b.t.Fatal(err)
	}
}

// TestAConfirmationEndsTheWaitOfOneCommit and of no other. What descends from nothing needs its own confirmation, too.
func TestAConfirmationEndsTheWaitOfOneCommit(t *testing.T) {
	b := newFixture(t)
	b.want("1")
	b.freeze(48 * time.Hour)
	until := b.clock.Now().UTC().Add(time.Hour).Truncate(time.Minute).Add(48 * time.Hour).Format("2006-01-02 15:04 MST")
	second := b.pushOn("2", 1)
	b.wantFrozen("1", second, until)
	b.confirmFreeze(v1alpha1.CommitOf(second))
	b.want("2")
	if said, there := b.repository.Annotations[v1alpha1.ConfirmFreezeAnnotation]; there {
		t.Errorf("the confirmation is still there: %s", said)
	}
	third := b.pushOn("3", 1)
	b.wantFrozen("2", third, until)
	foreign, _ := b.push("foreign")
	b.want("2", foreign+" does not descend")
	if held := b.repository.Status.HeldUntil; held != nil {
		t.Errorf("a rewritten history is held until %s", held)
	}
	b.annotate(v1alpha1.CommitOf(foreign))
	b.wantFrozen("2", foreign, until)
	if b.repository.Annotations[v1alpha1.ConfirmHistoryAnnotation] == "" {
		t.Error("the confirmation of the history was used, and the commit still waits")
	}
	before := b.repository.DeepCopy()
	b.repository.Annotations[v1alpha1.ConfirmFreezeAnnotation] = foreign
	if err := b.Client.Patch(t.Context(), b.repository, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	b.want("foreign")
	b.want("foreign")
	if left := b.repository.Annotations; len(left) != 0 {
		t.Errorf("the confirmations are still there: %v", left)
	}
}

// TestAFreezeDoesNotHoldChangesOfAdministrators, nor the first commit.
func TestAFreezeDoesNotHoldChangesOfAdministrators(t *testing.T) {
	for name, change := range map[string]func(*v1alpha1.Repository){
		"the first commit": func(o *v1alpha1.Repository) { o.Status = v1alpha1.RepositoryStatus{} },
		"another ref":      func(o *v1alpha1.Repository) { o.Spec.Ref = &sourcev1.GitRepositoryRef{Branch: "main"} },
		"the platform's":   func(o *v1alpha1.Repository) { o.Spec.Tenant = "" },
	} {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t)
			b.want("1")
			b.freeze(48 * time.Hour)
			b.pushOn("2", 1)
			b.repository.Generation++
			change(b.repository)
			b.update(b.repository)
			b.want("2")
		})
	}
}

// TestAFreezeThatCannotBeEvaluatedHolds: it was not written by Git, which is checked.
func TestAFreezeThatCannotBeEvaluatedHolds(t *testing.T) {
	b := newFixture(t)
	b.want("1")
	b.freeze(time.Hour)
	tenant := &v1alpha1.Tenant{}
	if err := b.Client.Get(t.Context(), client.ObjectKey{Name: "acme"}, tenant); err != nil {
		t.Fatal(err)
	}
	tenant.Spec.Freeze[0].TimeZone = "Mars/Olympus"
	b.update(tenant)
	revision := b.pushOn("2", 1)
	b.want("1", revision+" is held", "the freeze window weekend of the tenant cannot be evaluated: timeZone \"Mars/Olympus\" is not the name of a time zone", "an administrator of the cluster may correct spec.freeze in tenant.yaml; ", "confirm-freeze=")
	b.confirmFreeze(revision)
	b.want("2")
}

// TestTheFilesOfACommitThatWaitsAreReadOnce, so that people can correct them before the end of the freeze.
func TestTheFilesOfACommitThatWaitsAreReadOnce(t *testing.T) {
	b := newFixture(t)
	b.want("1")
	b.freeze(48 * time.Hour)
	second := b.pushOn("2", 1)
	var err error
	if b.Tree, err = reader(); err != nil {
		t.Fatal(err)
	}
	b.Usage, b.progress = &usage.Counter{Reader: b.Client, Limits: budget.Default()}, newProgress()
	for range 2 {
		_, err := b.pass()
		if end := steptest.Outcome(t, err); !strings.Contains(end, second+" waits until ") || !strings.Contains(end, `, and is applied then, with 1 problem, the first of which is: kubeop.yaml: there is no kubeop.yaml`) {
			t.Errorf("the outcome is %s", end)
		}
	}
	if b.progress.reviewed.revision != second {
		t.Errorf("reviewed is %+v", b.progress.reviewed)
	}
	b.progress.reviewed.problems = ", as read before"
	if _, err := b.pass(); !strings.Contains(steptest.Outcome(t, err), ", as read before") {
		t.Errorf("the files are read again: %v", err)
	}
	third := b.pushOn("3", 1)
	if _, err := b.pass(); !strings.Contains(steptest.Outcome(t, err), third+" waits until ") || b.progress.reviewed.revision != third {
		t.Errorf("a newer commit is not read: %v", err)
	}
	b.repository.Spec.Path = "none"
	b.progress.reviewed = reviewed{}
	b.update(b.repository)
	if _, err := b.pass(); !strings.Contains(steptest.Outcome(t, err), "spec.path in "+third) {
		t.Errorf("a path that is not in the commit: %v", err)
	}
}

// administrators freezes the tenant, or ends that.
func (b *fixture) administrators(frozen bool) {
	b.t.Helper()
	tenant := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "acme"}}
	if err := b.Client.Get(b.t.Context(), client.ObjectKeyFromObject(tenant), tenant); err != nil {
		if !apierrors.IsNotFound(err) {
			b.t.Fatal(err)
		}
		if err := b.Client.Create(b.t.Context(), tenant); err != nil {
			b.t.Fatal(err)
		}
	}
	tenant.Spec.Frozen = frozen
	b.update(tenant)
}

// TestAFrozenTenantHoldsEveryCommit: the first one and those after a change of the ref, too, and no confirmation counts.
func TestAFrozenTenantHoldsEveryCommit(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*v1alpha1.Repository)
		stays  string
		// afterLoss is what stays when the disk is lost, too: what another ref brought is not known to be at the remote.
		afterLoss string
	}{
		"the next commit":  {func(*v1alpha1.Repository) {}, "1", "1"},
		"the first commit": {func(o *v1alpha1.Repository) { o.Status = v1alpha1.RepositoryStatus{} }, "", ""},
		"another ref":      {func(o *v1alpha1.Repository) { o.Spec.Ref = &sourcev1.GitRepositoryRef{Branch: "main"} }, "1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t)
			b.want("1")
			b.administrators(true)
			second := b.pushOn("2", 1)
			b.repository.Generation++
			tc.change(b.repository)
			b.update(b.repository)
			b.confirmFreeze(v1alpha1.CommitOf(second))
			for _, when := range []string{"at once", "after a restart", "after the loss of the disk"} {
				stays := tc.stays
				if when == "after the loss of the disk" {
					stays = tc.afterLoss
					b.lose()
				}
				got, err := b.pass()
				end := steptest.Outcome(b.t, err)
				if got != stays || !strings.HasPrefix(end, "later steps run; waits Frozen: "+second+" waits: tenant acme is frozen, and the newest commit is applied when that ends") ||
					!strings.Contains(end, "removes spec.frozen from tenant.yaml") || strings.Contains(end, "confirm-freeze") {
					t.Errorf("%s: in force is %q, want %q; the outcome is %s", when, got, stays, end)
				}
				if s := &b.repository.Status; s.HeldRevision != second || s.HeldUntil != nil {
					t.Errorf("%s: the status holds %q until %v", when, s.HeldRevision, s.HeldUntil)
				}
				b.restart()
			}
			b.administrators(false)
			b.want("2")
			if held := b.repository.Status.HeldRevision; held != "" {
				t.Errorf("afterwards, %s is held", held)
			}
		})
	}
}
