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

// hookPort is the port of the hook at the operator's Service.
const hookPort = ":9292"

// Install installs the operator by its chart as a container, which needs a node that runs pods. set adds settings of
// the chart, as "name=value". The Git server keeps the address of the first installation's hook, so a later one gets the same.
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

// hosts are the addresses of the Git server and the registry as pods reach them, and where tests serve more. They are the node's, to
// which sources do not lead unless an administrator allows it.
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

// ApplyCRDs applies the chart's definitions as an administrator does: Helm installs them once and never again.
func (s *Stage) ApplyCRDs(ctx context.Context) error {
	_, err := s.Kubectl(ctx, "apply", "--server-side", "--force-conflicts", "-f", filepath.Join(s.root, "charts", "kubeop", "crds"))
	return err
}

// KillOperator removes the operator's pods without letting them finish, as a node that dies does.
func (s *Stage) KillOperator(ctx context.Context) error {
	_, err := s.Kubectl(ctx, "delete", "pods", "--namespace", Namespace, "--selector", "app.kubernetes.io/name=kubeop",
		"--grace-period", "0", "--force", "--wait=false")
	return err
}

// OperatorLog returns the end of the operator's log, for the message of a failed test.
func (s *Stage) OperatorLog(ctx context.Context) string {
	return s.explain(ctx, "logs", "deployment/"+release, "--tail", "60")
}

// OperatorEnd shows how the operator's process before this one ended.
func (s *Stage) OperatorEnd(ctx context.Context) string {
	return s.explainPods(ctx) + "\n" + s.explain(ctx, "logs", "deployment/"+release, "--tail", "60", "--previous")
}

// explainPods shows what holds up the operator's pods.
func (s *Stage) explainPods(ctx context.Context) string {
	return s.explain(ctx, "describe", "pods") + "\n" + s.OperatorLog(ctx)
}

// explain runs kubectl in the operator's namespace for the message of a failed test, also where the test has no time left.
func (s *Stage) explain(ctx context.Context, args ...string) string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	out, err := s.Kubectl(ctx, append(args, "--namespace", Namespace)...)
	if err != nil {
		return err.Error()
	}
	return out
}
