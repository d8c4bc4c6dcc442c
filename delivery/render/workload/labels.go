package workload

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// Labels of the objects made for an image, as Kubernetes recommends them:
// https://kubernetes.io/docs/concepts/overview/working-with-objects/common-labels/
const (
	nameLabel      = "app.kubernetes.io/name"
	managedByLabel = "app.kubernetes.io/managed-by"
	versionLabel   = "app.kubernetes.io/version"
)

func (i *image) reference() string {
	if i.settings.Reference != "" {
		return i.settings.Reference
	}
	return i.Reference
}

// meta returns the metadata of an object: its name is the app's name, followed by a suffix.
func (i *image) meta(suffix string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: i.app.Name + suffix, Labels: labelsOf(i.app)}
}

// labelsOf returns the labels that select the app's pods. A Deployment's selector can never be changed, so it must contain only labels that
// never change: no version, no tenant, no project.
func labelsOf(app *v1alpha1.App) map[string]string {
	return map[string]string{nameLabel: app.Name, managedByLabel: "kubeop"}
}

// versioned returns the labels with the image's version. They must not be used as a selector.
func (i *image) versioned() map[string]string {
	labels := labelsOf(i.app)
	if version := versionOf(i.reference()); version != "" {
		labels[versionLabel] = version
	}
	return labels
}

// versionOf returns the tag of an image, or "" if it has none or the tag is no valid label.
func versionOf(reference string) string {
	name, _, _ := strings.Cut(reference, "@")
	_, tag, _ := strings.Cut(name[strings.LastIndex(name, "/")+1:], ":")
	if len(validation.IsValidLabelValue(tag)) > 0 {
		return ""
	}
	return tag
}
