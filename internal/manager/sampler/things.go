package sampler

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"
	"k8s.io/component-helpers/storage/volume"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/internal/manager/tally"
	"github.com/kubeop/kubeop/internal/meter"
)

// The resources from which usage is measured.
const (
	pods     = "pods"
	claims   = "persistentvolumeclaims"
	services = "services"
	apps     = "apps"
	// metrics cannot be watched, so they are requested regularly.
	metrics = "metrics"
)

// needs has the resources from which each group of meters is measured. Every group needs the Apps, to find the owner of an object.
var needs = map[meter.Group][]string{
	meter.OfPods: {pods, apps}, meter.OfMetrics: {metrics, pods, apps}, meter.OfVolumes: {claims, apps}, meter.OfServices: {services, apps}, meter.OfObjects: {apps},
}

// followed returns the kinds that are watched.
func followed() []client.Object {
	return []client.Object{&v1alpha1.App{}, &corev1.Pod{}, &corev1.PersistentVolumeClaim{}, &corev1.Service{}}
}

// measurable reports whether a namespace belongs to a tenant. Only objects in such namespaces are measured.
func measurable(namespace string) bool {
	tenant := v1alpha1.TenantOf(namespace)
	return tenant != "" && tenant != v1alpha1.PlatformTenant
}

// ownerOf returns the owner of an app's objects in a measurable namespace.
func ownerOf(namespace, app string) tally.Owner {
	tenant := v1alpha1.TenantOf(namespace)
	return tally.Owner{Tenant: tenant, Project: strings.TrimPrefix(namespace, v1alpha1.ProjectNamespace(tenant, "")), App: app}
}

// slim drops all fields of an object that are not measured. Of an object outside of projects it keeps only the name.
func slim(object any) (any, error) {
	o, is := object.(client.Object)
	if !is {
		return object, nil
	}
	ours, labels := measurable(o.GetNamespace()), map[string]string{}
	if app, has := o.GetLabels()[v1alpha1.AppLabel]; has && ours {
		labels[v1alpha1.AppLabel] = app
	}
	switch o := object.(type) {
	case *corev1.Pod:
		slimPod(o, ours)
	case *corev1.PersistentVolumeClaim:
		slimClaim(o, ours)
	case *corev1.Service:
		slimService(o, ours)
	case *v1alpha1.App:
		n := len(o.Status.Inventory.Entries)
		o.Spec, o.Status = v1alpha1.AppSpec{}, v1alpha1.AppStatus{}
		o.Status.Inventory.Entries = make([]v1alpha1.InventoryEntry, n)
	}
	o.SetLabels(labels)
	o.SetAnnotations(nil)
	o.SetManagedFields(nil)
	o.SetOwnerReferences(nil)
	o.SetFinalizers(nil)
	return o, nil
}

// slimClaim keeps the class that Kubernetes takes, which is that of an annotation before that of the field: both are the tenant's.
func slimClaim(claim *corev1.PersistentVolumeClaim, ours bool) {
	was, class := *claim, volume.GetPersistentVolumeClaimClass(claim)
	claim.Spec, claim.Status = corev1.PersistentVolumeClaimSpec{}, corev1.PersistentVolumeClaimStatus{}
	if ours {
		claim.Spec.StorageClassName = &class
		claim.Status.Phase, claim.Status.Capacity = was.Status.Phase, was.Status.Capacity
	}
}

func slimService(service *corev1.Service, ours bool) {
	was := *service
	service.Spec, service.Status = corev1.ServiceSpec{}, corev1.ServiceStatus{}
	if ours {
		service.Spec.Type, service.Status.LoadBalancer = was.Spec.Type, was.Status.LoadBalancer
	}
}

// slimPod replaces the containers of a pod by one that requests what the scheduler reserves for the pod: the sum of its containers and sidecars, or its
// largest init container if that is more, and the overhead.
func slimPod(pod *corev1.Pod, ours bool) {
	was := pod.DeepCopy()
	pod.Spec, pod.Status = corev1.PodSpec{}, corev1.PodStatus{}
	if !ours {
		return
	}
	pod.Spec.NodeName, pod.Status.Phase = was.Spec.NodeName, was.Status.Phase
	requests := resource.PodRequests(was, resource.PodResourcesOptions{UseStatusResources: true})
	pod.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: requests}}}
}

// ratesOf returns the rates of an object that slim has reduced, and their group.
func ratesOf(object client.Object) (meter.Group, []tally.Rate) {
	switch o := object.(type) {
	case *corev1.Pod:
		return meter.OfPods, podRates(o)
	case *corev1.PersistentVolumeClaim:
		return meter.OfVolumes, claimRates(o)
	case *corev1.Service:
		// A load balancer without an address does not exist yet.
		if o.Spec.Type == corev1.ServiceTypeLoadBalancer && len(o.Status.LoadBalancer.Ingress) > 0 {
			return meter.OfServices, []tally.Rate{{Meter: meter.LoadBalancers, Value: 1}}
		}
		return meter.OfServices, nil
	case *v1alpha1.App:
		return meter.OfObjects, []tally.Rate{{Meter: meter.Objects, Value: int64(len(o.Status.Inventory.Entries))}}
	}
	return "", nil
}

// podRates returns the rates of a pod. A pod uses something from when it is scheduled to a node until it has ended or is deleted.
func podRates(pod *corev1.Pod) []tally.Rate {
	if pod.Spec.NodeName == "" || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed || len(pod.Spec.Containers) == 0 {
		return nil
	}
	requests := pod.Spec.Containers[0].Resources.Requests
	return []tally.Rate{
		{Meter: meter.CPURequested, Value: nanos(requests[corev1.ResourceCPU])}, {Meter: meter.MemoryRequested, Value: units(requests[corev1.ResourceMemory])}, {Meter: meter.Pods, Value: 1},
	}
}

// claimRates returns the rates of a bound claim: the capacity of its volume, which may be more than the claim requests.
func claimRates(claim *corev1.PersistentVolumeClaim) []tally.Rate {
	capacity, has := claim.Status.Capacity[corev1.ResourceStorage]
	if claim.Status.Phase != corev1.ClaimBound || !has {
		return nil
	}
	class := ""
	if claim.Spec.StorageClassName != nil {
		class = *claim.Spec.StorageClassName
	}
	return []tally.Rate{{Meter: meter.StorageOf(class), Value: units(capacity)}}
}
