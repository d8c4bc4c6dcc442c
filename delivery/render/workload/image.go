// Package workload makes the objects of an app of type Image: the workload, the objects that expose it, and the objects that it mounts.
package workload

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// Settings are the inputs of rendering an image besides the app's spec.
type Settings struct {
	// Files are the app's folder, for spec.image.configFiles. Nil where the app has none.
	Files fs.FS
	// Reference is the image that the image policy selected; "" renders spec.image.reference.
	Reference string
	// PullSecrets are Secrets with credentials of registries. A pod names those of the registries of its images.
	PullSecrets []v1alpha1.PullSecret
	// Gateway serves the hosts; with the zero value, an Ingress does.
	Gateway Gateway
	// IngressClass is the class of Ingresses of apps that name none; "" leaves the class to the cluster.
	IngressClass string
}

// image holds the state of rendering an app of type Image.
type image struct {
	*v1alpha1.ImageSource
	app      *v1alpha1.App
	settings Settings
	config   configFiles
}

// Render returns the objects of an app of type Image: a Deployment, or with schedule a CronJob, or with job a Job; with ports a Service;
// with hosts an Ingress, or HTTPRoutes if the platform has a Gateway; the objects for config files and volumes; and the objects that scale
// and protect several replicas. docs/image.md lists which field makes what. delivery/own sets the namespace.
//
// Render does not apply spec.image.patches. A Job gets its final name from NameJob.
//
// Fields that the API server fills in are left out, except those whose values kubeop must keep: the replicas, and the fields for Pod
// Security "restricted" (see podSpec).
func Render(app *v1alpha1.App, settings Settings) ([]*unstructured.Unstructured, error) {
	if app.Spec.Image == nil {
		return nil, errors.New("spec.image is missing")
	}
	i := &image{ImageSource: app.Spec.Image, app: app, settings: settings}
	if err := i.check(); err != nil {
		return nil, err
	}
	config, err := readConfigFiles(i.ConfigFiles, settings.Files)
	if err != nil {
		return nil, err
	}
	i.config = config
	typed := i.claims()
	if len(i.ConfigFiles) > 0 {
		typed = append(typed, i.configMap())
	}
	typed = append(typed, i.workload()...)
	if len(i.Ports) > 0 {
		typed = append(typed, i.service())
	}
	objects := make([]*unstructured.Unstructured, 0, len(typed)+1)
	for _, o := range append(typed, i.ingress()...) {
		object, err := plain(o)
		if err != nil {
			return nil, err
		}
		objects = append(objects, object)
	}
	return append(objects, i.routes()...), nil
}

// plain converts a typed object, without the empty fields that typed objects always have.
func plain(o runtime.Object) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, fmt.Errorf("converting the %s: %w", o.GetObjectKind().GroupVersionKind().Kind, err)
	}
	delete(content, "status")
	dropEmpty(content)
	return &unstructured.Unstructured{Object: content}, nil
}

// meaningful are the fields for which an empty mapping has a meaning: a volume, and selectors of everything.
var meaningful = []string{"emptyDir", "labelSelector", "namespaceSelector"}

// dropEmpty removes empty mappings without a meaning.
func dropEmpty(value any) {
	switch value := value.(type) {
	case map[string]any:
		for key, inner := range value {
			dropEmpty(inner)
			if mapping, ok := inner.(map[string]any); inner == nil || ok && len(mapping) == 0 && !slices.Contains(meaningful, key) {
				delete(value, key)
			}
		}
	case []any:
		for _, inner := range value {
			dropEmpty(inner)
		}
	}
}
