package stage

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// release is the name of the chart's release, of its Deployment, its Service and its service account.
const release = "kubeop"

// hookPort is the port of the push hook at the operator's Service.
const hookPort = ":9292"

// Install installs the operator by its chart, as a pod. It needs a real node. set are additional settings of the chart, as "name=value". The Git
// server keeps the address of the first installation's hook, so a later installation gets the same address.
func (s *Stage) Install(ctx context.Context, set ...string) error {
	s.inPods = true
	image, err := s.PushImage(ctx, "kubeop/operator:stage", s.bin.operator, s.bin.decrypt)
	if err != nil {
		return err
	}
	cut := strings.LastIndex(image, ":")
	hosts, err := s.hosts()
	if err != nil {
		return err
	}
	args := []string{"--wait", "--timeout", "3m"}
	for _, value := range append([]string{
		"image.repository=" + image[:cut], "image.tag=" + image[cut+1:], "gracefulTimeoutSeconds=30",
		"platform.url=" + s.GitURL() + "/platform.git", "platform.secretRef=" + platformSecret,
		"platform.hookSecretRef=" + platformHook, "platform.interval=30s", "plainRegistries={" + s.Cluster.Registry.Pods + "}",
		"service.clusterIP=" + strings.TrimSuffix(s.hookHost, hookPort),
		"allowedAddresses={" + strings.Join(hosts, ",") + "}",
	}, set...) {
		args = append(args, "--set", value)
	}
	if err := s.helmInstall(ctx, args...); err != nil {
		return fmt.Errorf("installing the operator: %w\n%s", err, s.explainPods(ctx))
	}
	service := &corev1.Service{}
	if err := s.Client.Get(ctx, client.ObjectKey{Namespace: Namespace, Name: release}, service); err != nil {
		return fmt.Errorf("reading the operator's Service: %w", err)
	}
	s.hookHost = service.Spec.ClusterIP + hookPort
	return nil
}

// hosts returns the host's address for pods, at which the Git server, the registry and servers of tests listen. It is an address of the node, so
// administrators must allow it for sources.
func (s *Stage) hosts() ([]string, error) {
	git, err := url.Parse(s.Cluster.Git.Pods)
	if err != nil {
		return nil, fmt.Errorf("reading where the Git server is: %w", err)
	}
	registry, _, err := net.SplitHostPort(s.Cluster.Registry.Pods)
	if err != nil {
		return nil, fmt.Errorf("reading where the registry is: %w", err)
	}
	return slices.Compact([]string{git.Hostname(), registry}), nil
}

func (s *Stage) helmInstall(ctx context.Context, args ...string) error {
	args = append([]string{
		"upgrade", "--install", release, filepath.Join(s.root, "charts", "kubeop"), "--namespace", Namespace, "--create-namespace",
	}, args...)
	_, err := s.Helm(ctx, args...)
	return err
}

// ApplyCRDs applies the chart's CustomResourceDefinitions as an administrator does, because Helm installs them only once.
func (s *Stage) ApplyCRDs(ctx context.Context) error {
	_, err := s.Kubectl(ctx, "apply", "--server-side", "--force-conflicts", "-f", filepath.Join(s.root, "charts", "kubeop", "crds"))
	return err
}

// KillOperator removes the operator's pods without a grace period, as when a node fails.
func (s *Stage) KillOperator(ctx context.Context) error {
	_, err := s.Kubectl(ctx, "delete", "pods", "--namespace", Namespace, "--selector", "app.kubernetes.io/name=kubeop",
		"--grace-period", "0", "--force", "--wait=false")
	return err
}

// ScaleOperator sets how many pods of the operator there are, and waits until there are.
func (s *Stage) ScaleOperator(ctx context.Context, replicas int) error {
	if _, err := s.Kubectl(ctx, "scale", "deployment/"+release, "--namespace", Namespace, fmt.Sprintf("--replicas=%d", replicas)); err != nil {
		return err
	}
	if replicas > 0 {
		_, err := s.Kubectl(ctx, "rollout", "status", "deployment/"+release, "--namespace", Namespace, "--timeout=120s")
		return err
	}
	_, err := s.Kubectl(ctx, "wait", "pods", "--namespace", Namespace, "--selector", "app.kubernetes.io/name=kubeop", "--for=delete", "--timeout=60s")
	return err
}

// OperatorLog returns the end of the operator's log, for the message of a failed test.
func (s *Stage) OperatorLog(ctx context.Context) string {
	return s.explain(ctx, "logs", "deployment/"+release, "--tail", "60")
}

// OperatorEnd returns how the operator's previous process ended.
func (s *Stage) OperatorEnd(ctx context.Context) string {
	return s.explainPods(ctx) + "\n" + s.explain(ctx, "logs", "deployment/"+release, "--tail", "60", "--previous")
}

// explainPods returns why the operator's pods do not start.
func (s *Stage) explainPods(ctx context.Context) string {
	return s.explain(ctx, "describe", "pods") + "\n" + s.OperatorLog(ctx)
}

// explain runs kubectl in the operator's namespace for the message of a failed test, even if the test's context has ended.
func (s *Stage) explain(ctx context.Context, args ...string) string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	out, err := s.Kubectl(ctx, append(args, "--namespace", Namespace)...)
	if err != nil {
		return err.Error()
	}
	return out
}
