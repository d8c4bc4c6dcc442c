// Package jobs creates the Jobs that run the hooks of apps, and reads their results. A Job's name contains a digest of what it runs for, so
// that it is created once, however often it is requested.
package jobs

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/condition"
	"github.com/kubeop/kubeop/delivery/digest"
	"github.com/kubeop/kubeop/delivery/render/workload"
)

// Kind is the kind of the objects that run hooks.
var Kind = batchv1.SchemeGroupVersion.WithKind("Job")

// The phases of hooks, as status.hooks names them.
const (
	Pre  = "pre"
	Post = "post"
)

const (
	// maxName is the maximum length of a Job's name, which its pods carry in a label.
	maxName = 63
	// grace is how much longer a Job may take than its pod. If the Job runs out of time, Kubernetes deletes its pod with the log. So the
	// limit of the Job is only for pods that no node runs.
	grace = 15 * time.Second
	// revisionVariable is the environment variable that names the revision.
	revisionVariable = "KUBEOP_REVISION"
)

// Run is one run of a hook.
type Run struct {
	App   *v1alpha1.App
	Phase string
	Hook  *v1alpha1.Hook
	// Image is the image of an Image App, for hooks that name no image.
	Image string
	// PullSecrets are those with the credentials of Registries in the App's namespace. The pod of an Image App's hook names that of its
	// image, because it may have an account of its own. Kubernetes adds those of the default account to the pods of other hooks.
	PullSecrets []v1alpha1.PullSecret
	// Input identifies what the hook runs for; see InputOf and Sealed. Former identified the same for an earlier version, with the Secrets of
	// Registries.
	Input, Former string
	// Seal is the Seal of the input.
	Seal digest.Seal
	// Revision is the name of the revision for people.
	Revision string
}

// InputOf identifies what a hook runs for: a digest of what is delivered, and the hook itself.
func InputOf(delivered, phase string, hook *v1alpha1.Hook) (string, error) {
	text, err := json.Marshal(hook)
	if err != nil {
		return "", fmt.Errorf("encoding hook %s: %w", hook.Name, err)
	}
	return sum(delivered, phase, string(text))[:16], nil
}

// Sealed returns an input as statuses and Jobs record it, because what is delivered may contain Secrets. An input that an earlier version
// recorded without a seal is sealed, too.
func Sealed(input string, seal digest.Seal) string {
	first, again, repeated := strings.Cut(input, ".")
	if first = seal.Short(first); repeated {
		return first + "." + again
	}
	return first
}

// Present returns an input that a status or a Job recorded as this version records it.
func (r *Run) Present(recorded string) string {
	sealed := Sealed(recorded, r.Seal)
	first, again, repeated := strings.Cut(sealed, ".")
	if r.Former == "" || first != r.Former {
		return sealed
	}
	present, _, _ := strings.Cut(r.Input, ".")
	if repeated {
		return present + "." + again
	}
	return present
}

// Again returns the input for another run of the same input, which an annotation requested.
func Again(input, word string) string { return input + "." + sum(word)[:8] }

// Digest returns the digest of anything that can be encoded as JSON.
func Digest(delivered any) (string, error) {
	text, err := json.Marshal(delivered)
	if err != nil {
		return "", fmt.Errorf("encoding what is delivered: %w", err)
	}
	return sum(string(text)), nil
}

func sum(parts ...string) string {
	all := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(all[:])
}

// String names the hook as messages do: "pre hook migrate".
func (r *Run) String() string { return r.Phase + " hook " + r.Hook.Name }

// Label is the value of the label HookLabel.
func (r *Run) Label() string { return r.Phase + "-" + r.Hook.Name }

// Name of the Job: "<app>-<hook>-<digest>", cut to the maximum length.
func (r *Run) Name() string {
	tail := "-" + sum(r.App.Name, r.Phase, r.Hook.Name, r.Input)[:8]
	head := r.App.Name + "-" + r.Hook.Name
	return strings.TrimRight(head[:min(len(head), maxName-len(tail))], "-") + tail
}

// Job returns the Job without kubeop's own labels and annotations; Mark sets them after the Job was checked.
func (r *Run) Job() (*unstructured.Unstructured, error) {
	source := &v1alpha1.ImageSource{Env: r.environment(), EnvFrom: r.Hook.EnvFrom, Command: r.Hook.Command, Args: r.Hook.Args}
	var registries []v1alpha1.PullSecret
	if own := r.App.Spec.Image; own != nil {
		registries = r.PullSecrets
		source.PullSecrets, source.ImagePullPolicy = own.PullSecrets, own.ImagePullPolicy
		if r.Hook.Image == "" {
			runAsApp(source, own)
		}
	}
	if source.Reference = cmp.Or(r.Hook.Image, r.Image); source.Reference == "" {
		return nil, fmt.Errorf("%s has no image: set it in app.yaml, unless the app is of type Image", r)
	}
	pod := workload.Pod(r.Hook.Name, source, registries)
	timeout := r.Timeout()
	pod.ActiveDeadlineSeconds = seconds(timeout)
	job := &batchv1.Job{
		TypeMeta: metav1.TypeMeta{APIVersion: Kind.GroupVersion().String(), Kind: Kind.Kind},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: r.App.Namespace, Name: r.Name(),
			// Kubernetes deletes the Job with the app.
			OwnerReferences: []metav1.OwnerReference{{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.AppKind, Name: r.App.Name, UID: r.App.UID}},
		},
		Spec: batchv1.JobSpec{
			// A pod that was evicted or drained is not replaced either: a migration that was cut in half may not be safe to repeat.
			BackoffLimit: new(int32(0)), ActiveDeadlineSeconds: seconds(timeout + grace),
			Template: corev1.PodTemplateSpec{Spec: pod},
		},
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(job)
	if err != nil {
		return nil, fmt.Errorf("encoding the Job of %s: %w", r, err)
	}
	delete(content, "status")
	return &unstructured.Unstructured{Object: content}, nil
}

// runAsApp lets a hook run the image of an Image App as the App's pods run it. Affinity to pods is left out: a hook that must not be beside the
// App's pods may have no node.
func runAsApp(hook, app *v1alpha1.ImageSource) {
	hook.Security, hook.Resources = app.Security, app.Resources
	hook.ServiceAccountName, hook.AutomountServiceAccountToken = app.ServiceAccountName, app.AutomountServiceAccountToken
	hook.NodeSelector, hook.Tolerations = app.NodeSelector, app.Tolerations
	if app.Affinity != nil {
		hook.Affinity = &corev1.Affinity{NodeAffinity: app.Affinity.NodeAffinity}
	}
}

// environment returns the hook's environment variables. The revision replaces a variable of the same name.
func (r *Run) environment() []corev1.EnvVar {
	env := []corev1.EnvVar{{Name: revisionVariable, Value: r.Revision}}
	for _, e := range r.Hook.Env {
		if e.Name != revisionVariable {
			env = append(env, e)
		}
	}
	return env
}

// Timeout is how long the pod may run.
func (r *Run) Timeout() time.Duration {
	if r.Hook.Timeout != nil {
		return r.Hook.Timeout.Duration
	}
	return r.App.Spec.Within()
}

func seconds(d time.Duration) *int64 {
	return new(int64((d + time.Second - 1) / time.Second))
}

// Mark sets the labels and annotations by which Is recognizes the Job.
func (r *Run) Mark(job *unstructured.Unstructured) {
	labels := job.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[v1alpha1.HookLabel] = r.Label()
	job.SetLabels(labels)
	job.SetAnnotations(map[string]string{v1alpha1.HookInputAnnotation: r.Input})
}

// Is reports whether a Job belongs to this run. An earlier version used another digest in the name and the input, see Present.
func (r *Run) Is(job *unstructured.Unstructured) bool {
	made := *r
	made.Input = job.GetAnnotations()[v1alpha1.HookInputAnnotation]
	return r.Present(made.Input) == r.Input && job.GetName() == made.Name() &&
		job.GetLabels()[v1alpha1.HookLabel] == r.Label() && job.GetLabels()[v1alpha1.AppLabel] == r.App.Name
}

// OutOfTime reports whether a Job failed because no pod of it ended in time. A pod that runs has a shorter limit and reports itself how it
// ended; in this case, the pod and its log are gone.
func OutOfTime(job *unstructured.Unstructured) bool {
	c, _ := condition.True(job, string(batchv1.JobFailed))
	return c.Reason == batchv1.JobReasonDeadlineExceeded
}

// ImageOf returns the image of the first container in the objects, which for an Image App is the delivered image.
func ImageOf(objects []*unstructured.Unstructured) string {
	for _, o := range objects {
		path := workload.PodPath(o, "containers")
		if path == nil {
			continue // Without a path the error would be formatted with the whole object.
		}
		containers, _, _ := unstructured.NestedSlice(o.Object, path...)
		if len(containers) == 0 {
			continue
		}
		first, _ := containers[0].(map[string]any)
		if image, _ := first["image"].(string); image != "" {
			return image
		}
	}
	return ""
}
