package workload

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/inventory"
)

// configDigest is the annotation of a pod template that changes with the config files, so that the pods are replaced. Helm charts commonly
// use this name; policy would refuse a name of kubeop's own.
const configDigest = "checksum/config"

// defaultCPU is the target of an autoscaler that names none, in percent. It is also the API server's default, but kubeop's API documents
// it.
const defaultCPU = 80

// workload returns the object that creates the pods, and those that scale and protect them.
func (i *image) workload() []runtime.Object {
	switch {
	case i.Schedule != "":
		return []runtime.Object{i.cronJob()}
	case i.Job != nil:
		return []runtime.Object{i.job()}
	}
	objects := []runtime.Object{i.deployment()}
	if i.Autoscale != nil {
		objects = append(objects, i.autoscaler())
	}
	if i.fewest() > 1 {
		objects = append(objects, i.budget())
	}
	return objects
}

func (i *image) deployment() *appsv1.Deployment {
	d := &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: i.meta(""),
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labelsOf(i.app)},
			Strategy: i.strategy(),
			Template: i.template(""),
		},
	}
	d.Labels = i.versioned()
	if i.Autoscale == nil {
		replicas := i.fewest()
		d.Spec.Replicas = &replicas
	}
	return d
}

// strategy returns the app's own strategy. Without one, if a volume can be mounted only once, the old pod is stopped before the new one
// starts.
func (i *image) strategy() appsv1.DeploymentStrategy {
	switch {
	case i.Strategy == nil && i.exclusive() == nil:
		return rolling(nil, nil)
	case i.Strategy == nil || i.Strategy.Type == string(appsv1.RecreateDeploymentStrategyType):
		return appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
	}
	return rolling(i.Strategy.MaxSurge, i.Strategy.MaxUnavailable)
}

// rolling sets Kubernetes' defaults explicitly. A default that the API server sets has no field manager. It would stay when the app gets a
// volume later, and a Deployment of type Recreate must not have it.
func rolling(surge, unavailable *intstr.IntOrString) appsv1.DeploymentStrategy {
	quarter := intstr.FromString("25%")
	return appsv1.DeploymentStrategy{
		Type: appsv1.RollingUpdateDeploymentStrategyType,
		RollingUpdate: &appsv1.RollingUpdateDeployment{
			MaxSurge: cmp.Or(surge, &quarter), MaxUnavailable: cmp.Or(unavailable, &quarter),
		},
	}
}

func (i *image) template(restart corev1.RestartPolicy) corev1.PodTemplateSpec {
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: i.versioned()}, Spec: i.podSpec()}
	template.Spec.RestartPolicy = restart
	if i.config.digest != "" {
		template.Annotations = map[string]string{configDigest: i.config.digest}
	}
	return template
}

func (i *image) autoscaler() *autoscalingv2.HorizontalPodAutoscaler {
	cpu := i.Autoscale.CPU
	if cpu == nil && i.Autoscale.Memory == nil {
		percent := int32(defaultCPU)
		cpu = &percent
	}
	h := &autoscalingv2.HorizontalPodAutoscaler{
		TypeMeta:   metav1.TypeMeta{APIVersion: "autoscaling/v2", Kind: "HorizontalPodAutoscaler"},
		ObjectMeta: i.meta(""),
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: i.app.Name},
			MinReplicas:    i.Autoscale.Min,
			MaxReplicas:    i.Autoscale.Max,
		},
	}
	for _, aim := range []struct {
		of      corev1.ResourceName
		percent *int32
	}{{corev1.ResourceCPU, cpu}, {corev1.ResourceMemory, i.Autoscale.Memory}} {
		if aim.percent == nil {
			continue
		}
		h.Spec.Metrics = append(h.Spec.Metrics, autoscalingv2.MetricSpec{
			Type: autoscalingv2.ResourceMetricSourceType,
			Resource: &autoscalingv2.ResourceMetricSource{Name: aim.of, Target: autoscalingv2.MetricTarget{
				Type: autoscalingv2.UtilizationMetricType, AverageUtilization: aim.percent,
			}},
		})
	}
	return h
}

// budget allows draining a node, one pod at a time. Pods that are not ready do not serve, so they must not block it.
func (i *image) budget() *policyv1.PodDisruptionBudget {
	one, always := intstr.FromInt32(1), policyv1.AlwaysAllow
	return &policyv1.PodDisruptionBudget{
		TypeMeta:   metav1.TypeMeta{APIVersion: "policy/v1", Kind: "PodDisruptionBudget"},
		ObjectMeta: i.meta(""),
		Spec: policyv1.PodDisruptionBudgetSpec{
			MaxUnavailable:             &one,
			Selector:                   &metav1.LabelSelector{MatchLabels: labelsOf(i.app)},
			UnhealthyPodEvictionPolicy: &always,
		},
	}
}

// cronJob leaves the history limits to the API server: three Jobs that succeeded, one that failed.
func (i *image) cronJob() *batchv1.CronJob {
	c := &batchv1.CronJob{
		TypeMeta:   metav1.TypeMeta{APIVersion: "batch/v1", Kind: "CronJob"},
		ObjectMeta: i.meta(""),
		Spec: batchv1.CronJobSpec{
			Schedule:          i.Schedule,
			ConcurrencyPolicy: batchv1.ForbidConcurrent,
			JobTemplate:       batchv1.JobTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: i.versioned()}, Spec: i.jobSpec()},
		},
	}
	c.Labels = i.versioned()
	if i.TimeZone != "" {
		c.Spec.TimeZone = &i.TimeZone
	}
	if i.Job != nil && i.Job.ConcurrencyPolicy != "" {
		c.Spec.ConcurrencyPolicy = batchv1.ConcurrencyPolicy(i.Job.ConcurrencyPolicy)
	}
	return c
}

func (i *image) job() *batchv1.Job {
	j := &batchv1.Job{TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"}, ObjectMeta: i.meta(""), Spec: i.jobSpec()}
	j.Labels = i.versioned()
	return j
}

// jobSpec replaces a failed pod instead of restarting its container, so that the logs of each attempt are kept.
func (i *image) jobSpec() batchv1.JobSpec {
	job := i.Job
	if job == nil {
		job = &v1alpha1.ImageJob{}
	}
	return batchv1.JobSpec{
		BackoffLimit:          job.BackoffLimit,
		ActiveDeadlineSeconds: job.ActiveDeadlineSeconds,
		Template:              i.template(corev1.RestartPolicyNever),
	}
}

// NameJob adds the beginning of the spec's digest to the name of the Job among the objects of an app, after patches changed it. A Job cannot
// be changed, so another spec makes another Job, which runs, and the old one leaves the source. If the rendering here changes, all Jobs run
// once more. The Secrets of Registries are not part of the digest. An earlier version had them in it: a recorded Job keeps that name while
// it has the same ones.
func NameJob(app *v1alpha1.App, objects []*unstructured.Unstructured) {
	for i, o := range WithoutRegistries(app, objects) {
		if o.GetKind() != "Job" {
			continue
		}
		name, former := nameOf(app, o), nameOf(app, objects[i])
		id := inventory.ObjectID{Namespace: app.Namespace, Name: former, Group: jobs.Group, Kind: jobs.Kind}.String()
		if slices.ContainsFunc(app.Status.Inventory.Entries, func(e v1alpha1.InventoryEntry) bool { return e.ID == id }) {
			name = former
		}
		objects[i].SetName(name)
	}
}

func nameOf(app *v1alpha1.App, job *unstructured.Unstructured) string {
	// What was converted can be encoded, with sorted keys.
	spec, _ := json.Marshal(job.Object["spec"])
	digest := sha256.Sum256(spec)
	return app.Name + "-" + hex.EncodeToString(digest[:4])
}
