package app

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/fetch"
	"github.com/kubeop/kubeop/delivery/own"
	"github.com/kubeop/kubeop/delivery/release"
)

// scope holds the facts of one Reconcile.
type scope struct {
	app *v1alpha1.App
	// owner and client are set by resolve: whose the app is, and the deployer's client.
	owner  own.Owner
	client client.Client
	// folder, commit, chart and revision are set by fetch: the app's own folder where the spec refers to it, the commit of
	// a Git app, the chart of a Helm app, and what they are together.
	folder   *fetch.Folder
	commit   fetch.Commit
	chart    release.Chart
	revision string
	// objects and values are set by render; values only for a Helm app, whose objects are set by release.
	objects []*unstructured.Unstructured
	values  map[string]any
	// sensitive are the contents of the Secrets that values were taken from; no message may show them.
	sensitive []string
	// inventory, applied and info are set by apply and release; applied once the revision is in the cluster as a whole.
	inventory v1alpha1.Inventory
	applied   bool
	info      *release.Info
	// unhealthySince is set by health.
	unhealthySince *metav1.Time
}

func newScope(app *v1alpha1.App) *scope {
	return &scope{
		app:            app,
		inventory:      app.Status.Inventory,
		unhealthySince: app.Status.UnhealthySince,
	}
}

// Record writes the facts into the status.
func (s *scope) Record() {
	status := &s.app.Status
	status.Inventory = s.inventory
	status.UnhealthySince = s.unhealthySince
	if s.revision != "" {
		status.LastAttemptedRevision = s.revision
	}
	if s.applied {
		status.LastAppliedRevision = s.revision
	}
	if s.info != nil {
		status.Release = &v1alpha1.ReleaseStatus{
			Name: s.info.Name, Revision: s.info.Revision, Status: s.info.Status, Chart: s.info.Chart, AppVersion: s.info.AppVersion,
		}
	}
}

// Summary is Ready's message.
func (s *scope) Summary() string {
	if s.info != nil {
		return fmt.Sprintf("Release %s, revision %d of chart %s, is healthy", s.info.Name, s.info.Revision, s.info.Chart)
	}
	return fmt.Sprintf("Applied revision %s: %d objects, healthy", s.revision, len(s.inventory.Entries))
}
