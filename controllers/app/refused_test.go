package app

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/refusal"
)

// TestTheStatusKeepsTheRefusedVersion until it is known that the current version is not refused.
func TestTheStatusKeepsTheRefusedVersion(t *testing.T) {
	app := &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-a-b", Name: "web", Labels: map[string]string{v1alpha1.RepositoryLabel: "a"}}}
	r := newReconciler(t, app)
	want := &v1alpha1.Refused{Revision: "main@sha1:1", Place: "app.yaml:7", Problem: "unknown field"}
	expect := func(when string, want *v1alpha1.Refused) {
		t.Helper()
		s := r.newScope(app)
		s.Record()
		if diff := cmp.Diff(want, app.Status.Refused); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
		if got := s.Heading(); (got != "") != (want != nil) {
			t.Errorf("%s the heading is %q", when, got)
		}
	}
	expect("before anything was refused", nil)
	unit := refusal.Unit{Kind: v1alpha1.AppKind, ObjectKey: client.ObjectKeyFromObject(app)}
	r.wakes.refusals.Set("a", map[refusal.Unit]refusal.Refusal{unit: {Revision: want.Revision, Place: want.Place, Problem: want.Problem}})
	expect("refused", want)
	r.wakes.refusals = &refusal.Index{}
	expect("after a restart", want)
	r.wakes.refusals.Set("a", nil)
	expect("corrected", nil)
}
