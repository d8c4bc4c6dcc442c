// Package rollback says to which commit an app can be brought back, and what the commit says that does it.
package rollback

import (
	"errors"
	"fmt"
	"strings"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// Newest returns the hash of the commit with the newest version of an app that the operator has read: the refused one, or the applied one.
func Newest(app *v1alpha1.App) string {
	if refused := app.Status.Refused; refused != nil {
		return HashOf(refused.Revision)
	}
	return HashOf(app.Annotations[v1alpha1.RevisionAnnotation])
}

// To returns the commit to which an app goes back: the wanted one, or the newest other than the newest version that was delivered successfully. name
// is that of the app in errors.
func To(app *v1alpha1.App, name, wanted string) (string, error) {
	if app.Spec.Git != nil || app.Spec.Helm != nil && app.Spec.Helm.Git != nil {
		return "", fmt.Errorf("the content of the %s is in another Git repository: revert the commit there, or change the ref in app.yaml", name)
	}
	if branch := app.Annotations[v1alpha1.BranchAnnotation]; branch != "" {
		return "", fmt.Errorf("the %s is one of a preview: git revert its commit in the branch %s, and push", name, branch)
	}
	if wanted != "" {
		return wanted, nil
	}
	for i := range app.Status.Deliveries {
		d := &app.Status.Deliveries[i]
		if d.Result == v1alpha1.DeliverySucceeded && d.Commit != "" && d.Commit != Newest(app) {
			return d.Commit, nil
		}
	}
	return "", errors.New("no earlier delivery of the " + name + " succeeded; name a commit")
}

// Message returns the title and the body of the commit that restores the folder of an app.
func Message(app, folder, back string) (title, body string) {
	return "Roll back " + app + " to " + Short(back), "Restore " + folder + " as it was at commit " + back + "."
}

// HashOf returns the hash of a revision "branch@sha1:<commit>".
func HashOf(revision string) string {
	_, hash, _ := strings.Cut(revision, ":")
	return hash
}

// Short shortens a hash.
func Short(commit string) string { return commit[:min(8, len(commit))] }
