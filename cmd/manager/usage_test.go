package main

import (
	"encoding/json"
	"fmt"
	"math/bits"
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/internal/config"
	"github.com/kubeop/kubeop/internal/fence"
	"github.com/kubeop/kubeop/internal/manager/usage"
	"github.com/kubeop/kubeop/internal/meter"
	"github.com/kubeop/kubeop/internal/testenv"
)

// faster is how much faster the clocks of the test run.
const faster = 40

// fastClocks begins at noon of a day, and runs faster.
func fastClocks() func() fence.Instant {
	began := time.Now()
	noon := began.UTC().Truncate(24 * time.Hour).Add(12 * time.Hour)
	return func() fence.Instant {
		passed := faster * time.Since(began)
		return fence.Instant{Wall: noon.Add(passed), Running: passed}
	}
}

// usageCluster makes a project of each of two tenants, with an App, a pod, a claim and a load balancer, and returns the pods.
func usageCluster(t *testing.T, admin client.Client) (pods []*corev1.Pod) {
	t.Helper()
	for i, tenant := range []string{"acme", "beta"} {
		home, project := v1alpha1.HomeNamespace(tenant), v1alpha1.ProjectNamespace(tenant, "metered")
		of := metav1.ObjectMeta{Namespace: project, Name: "web", Labels: map[string]string{v1alpha1.AppLabel: "web"}}
		requests := corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(int64(250+1000*i), resource.DecimalSI), corev1.ResourceMemory: resource.MustParse("64Mi")}
		pod := &corev1.Pod{ObjectMeta: of, Spec: corev1.PodSpec{NodeName: "nowhere", Containers: []corev1.Container{{Name: "app", Image: "registry.example.com/web:1", Resources: corev1.ResourceRequirements{Requests: requests}}}}}
		class := "fast"
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: of, Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: &class, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}}}
		claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
		service := &corev1.Service{ObjectMeta: of, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{{Port: 80}}}}
		for _, o := range []client.Object{
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: home}}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: project}}, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: "default"}},
			&v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: tenant}}, &v1alpha1.Project{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: "metered"}},
			&v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: "web"}, Spec: v1alpha1.AppSpec{Type: v1alpha1.AppHelm, Helm: &v1alpha1.HelmSource{Path: "chart"}}}, pod, claim, service,
		} {
			if err := admin.Create(t.Context(), o); err != nil && !apierrors.IsAlreadyExists(err) {
				t.Fatal(err)
			}
		}
		pod.Status.Phase = corev1.PodRunning
		claim.Status = corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound, Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("2Gi")}}
		service.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.1"}}
		for _, o := range []client.Object{pod, claim, service} {
			if err := admin.Status().Update(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		}
		pods = append(pods, pod)
	}
	return pods
}

// minutes returns in how many minutes a group was measured, in all.
func (m *logsOf) minutes(group meter.Group) (n int64) {
	m.Helper()
	covered, err := m.store.ListCovered(m.Context(), time.Now().Add(-48*time.Hour), time.Now().Add(48*time.Hour))
	if err != nil {
		m.Fatal(err)
	}
	for _, c := range covered {
		if c.Group == group && c.Cluster == "east" {
			n += int64(bits.OnesCount64(c.Minutes))
		}
	}
	return n
}

// TestUsageOfAClusterIsMeasured by the rights of the manager's service account, from pods, claims and Services of a real API server, and answered to those who may read it.
func TestUsageOfAClusterIsMeasured(t *testing.T) {
	plane := testenv.Start(t)
	if _, err := plane.InstallChart(t.Context(), "manager.enabled=true", "manager.plainHTTP=true", "manager.usage.enabled=true", "manager.usage.cluster=east"); err != nil {
		t.Fatal(err)
	}
	admin := adminOf(t, plane)
	pods := usageCluster(t, admin)
	c := &config.Manager{APIAddr: "127.0.0.1:0", HealthAddr: "127.0.0.1:0", GracefulTimeout: time.Minute, RequestsPerSecond: 1000, Burst: 1000, DataDir: t.TempDir(), Storage: config.Storage{UsageCluster: "east"}}
	served, err := listen(t.Context(), c, accountOf(t, plane))
	if err != nil {
		t.Fatal(err)
	}
	served.sampler.Clocks, served.sampler.Tick = fastClocks(), time.Second/faster
	serveUntilTheEnd(t, served)
	m := &logsOf{t, served}
	wait := func(more int64) {
		t.Helper()
		for until, end := m.minutes(meter.OfPods)+more, time.Now().Add(2*time.Minute); m.minutes(meter.OfPods) < until; time.Sleep(50 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("only %d minutes are measured", m.minutes(meter.OfPods))
			}
		}
	}
	wait(3)
	if err := served.sampler.Check(t.Context()); err != nil {
		t.Error(err)
	}
	viewer, day := m.holder("viewer", "project:acme/metered:view"), time.Now().UTC().Truncate(24*time.Hour)
	query := fmt.Sprintf("/v1/usage?step=day&from=%s&until=%s", day.Format(time.RFC3339), day.Add(48*time.Hour).Format(time.RFC3339))
	read := func(secret string) usage.Page {
		t.Helper()
		var page usage.Page
		if err := json.Unmarshal([]byte(m.read(secret, query, http.StatusOK)), &page); err != nil {
			t.Fatal(err)
		}
		return page
	}
	// More is measured meanwhile, so the amounts are compared with each other.
	page := read(viewer)
	if len(page.Items) != 1 || page.Items[0].Tenant != "acme" || page.Items[0].Project != "metered" || page.Items[0].App != "web" || page.Items[0].Cluster != "east" {
		t.Fatalf("%+v", page)
	}
	amounts := meter.Amounts{}
	for _, a := range page.Items[0].Meters {
		if amounts[a.Name], err = meter.ParseAmount(a.Amount); err != nil {
			t.Fatal(err)
		}
	}
	minutes := amounts[meter.Pods].UnscaledBig().Int64() / 60
	want := fmt.Sprintf("cpu.requested=%d loadbalancers=%d memory.requested=%d pods=%d storage/fast=%d", 15*minutes, 60*minutes, 60*minutes<<26, 60*minutes, 60*minutes<<31)
	if got := amounts.String(); minutes < 3 || got != want {
		t.Errorf("in %d minutes it used %s, want %s", minutes, got, want)
	}
	if len(page.Gaps) == 0 || len(read(m.holder("root", "admin")).Items) != 2 {
		t.Errorf("the gaps are %v", page.Gaps)
	}
	// A pod that is gone uses nothing any more, in minutes that are measured.
	if err := admin.Delete(t.Context(), pods[0], client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	wait(4)
	before := read(viewer).Items[0].Meters[0].Amount
	wait(2)
	if after := read(viewer).Items[0].Meters[0]; after.Name != meter.CPURequested || after.Amount != before {
		t.Errorf("after the pod was deleted it used %s, and then %s of %s", before, after.Amount, after.Name)
	}
}
