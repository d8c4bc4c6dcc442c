package main

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// hookPod must succeed before Helm creates other objects of the release. The test makes it succeed.
const hookPod = `apiVersion: v1
kind: Pod
metadata:
  name: before
  annotations: {helm.sh/hook: pre-install}
spec:
  restartPolicy: Never
  securityContext: {runAsNonRoot: true, runAsUser: 65532, seccompProfile: {type: RuntimeDefault}}
  containers:
  - name: before
    image: example.com/before:v1
    resources: {limits: {cpu: 10m, memory: 16Mi}}
    securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
`

// TestAStopLetsARunningHelmActionEnd stops the operator while a hook runs. The operator ends only after the hook and its release, which is then
// deployed and not pending.
func TestAStopLetsARunningHelmActionEnd(t *testing.T) {
	k := newKilled(t, "stopped")
	k.repo.Push(map[string]string{
		"kubeop.yaml": "layout: v1\n", "projects/shop/project.yaml": projectFile,
		"projects/shop/apps/helm/app.yaml":                  fmt.Sprintf(app, "helm", "{type: Helm, helm: {path: chart}}"),
		"projects/shop/apps/helm/chart/Chart.yaml":          chart,
		"projects/shop/apps/helm/chart/templates/all.yaml":  fmt.Sprintf(many, objects, 0),
		"projects/shop/apps/helm/chart/templates/hook.yaml": hookPod,
	})
	operator := k.start()
	pod := &corev1.Pod{}
	k.eventually("the hook runs", func() error {
		return k.Get(t.Context(), client.ObjectKey{Namespace: k.namespace, Name: "before"}, pod)
	})
	if err := operator.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- operator.Wait() }()
	select {
	case err := <-ended:
		t.Fatalf("the operator ended while the hook was running: %v", err)
	case <-time.After(2 * time.Second):
	}
	pod.Status.Phase = corev1.PodSucceeded
	if err := k.Status().Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("the operator ended with %v", err)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("the operator did not end after the hook")
	}
	k.deployedOnce()
	if err := k.holds("helm", 0, objects); err != nil {
		t.Error(err)
	}
}

// TestAWrongSettingIsNamed starts the operator with settings it cannot use.
func TestAWrongSettingIsNamed(t *testing.T) {
	for setting, want := range map[string]string{
		"LOG_LEVEL=loud":        `LOG_LEVEL is "loud"; it may be debug, info or error`,
		"KUBECONFIG=/nowhere":   "finding the cluster",
		"HOOK_ADDR=256.0.0.1:1": "HOOK_ADDR 256.0.0.1:1",
	} {
		t.Run(setting, func(t *testing.T) {
			k := &killed{t: t, kubeconfig: adminKubeconfig(t)}
			operator := k.command(setting)
			out, err := operator.CombinedOutput()
			if err == nil || !strings.Contains(string(out), want) {
				t.Errorf("it ended with %v and logged %s, want %q", err, out, want)
			}
		})
	}
}
