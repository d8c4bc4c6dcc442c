package reach

import (
	"context"
	"errors"
	"io"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kubeop/kubeop/cmd/kubeop/call"
	"github.com/kubeop/kubeop/cmd/kubeop/exit"
	"github.com/kubeop/kubeop/cmd/kubeop/output"
	"github.com/kubeop/kubeop/internal/testenv/memory"
	"github.com/kubeop/kubeop/internal/testenv/terminal"
)

func TestCheckSaysWhichSideRefuses(t *testing.T) {
	const shop, billing = "kubeop-acme-shop", "kubeop-acme-billing"
	namespace := func(name string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelMetadataName: name}}}
	}
	labels := map[string]string{"app": "api"}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "a", Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}}}},
	}}
	api := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: billing, Name: "api"}, Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template,
	}}
	running := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "web-1", Labels: map[string]string{"app": "web"}}, Status: corev1.PodStatus{PodIP: "10.1.0.1"}}
	host := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "agent"}, Spec: corev1.PodSpec{HostNetwork: true}, Status: corev1.PodStatus{PodIP: "10.0.0.1"}}
	ours := policyOf(t, "kubeop", isolated)
	theirs := policyOf(t, "kubeop", `{podSelector: {}, policyTypes: [Ingress, Egress], ingress: [{from: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: kubeop-acme-shop}}}], ports: [{port: http}]}]}`)
	theirs.Namespace = billing
	s := memory.Serve(t, namespace(shop), namespace(billing), api, running, host, &ours, &theirs)
	run := func(out io.Writer, args string) error {
		streams := genericiooptions.NewTestIOStreamsDiscard()
		calling := call.New(streams, clocktesting.NewFakeClock(time.Time{}))
		calling.Flags.KubeConfig, calling.Out = &s.Kubeconfig, out
		k := &check{Call: calling, find: &finder{Connection: calling.Connection, lookup: func(_ context.Context, host string) ([]netip.Addr, error) {
			if host == "gone.example.com" {
				return nil, errors.New("no such host")
			}
			allowed, refused := netip.MustParseAddr("203.0.113.1"), netip.MustParseAddr("198.51.100.1")
			if host == "refused-first.example.com" {
				return []netip.Addr{refused, allowed}, nil
			}
			return []netip.Addr{allowed, refused}, nil
		}}}
		command := checkCommand(k)
		command.SilenceUsage, command.SilenceErrors = true, true
		command.SetArgs(strings.Fields(args))
		return command.ExecuteContext(t.Context())
	}
	for name, c := range map[string]struct {
		args string
		code int
		want []string
	}{
		"egress refuses": {"acme/shop/web-1 acme/billing/api", exit.Differences, []string{
			"acme/shop/web-1 to acme/billing/api at TCP 8080: refused",
			"Egress of acme/shop/web-1 refused no rule allows it of NetworkPolicy kubeop-acme-shop/kubeop",
			"Ingress of acme/billing/api allowed NetworkPolicy kubeop-acme-billing/kubeop: spec.ingress[0]",
		}},
		"another port": {"acme/shop/web-1 acme/billing/api --port 9090", exit.Differences, []string{"at TCP 9090: refused", "Ingress of acme/billing/api refused no rule allows it of NetworkPolicy kubeop-acme-billing/kubeop"}},
		"to an address": {"acme/shop/web-1 203.0.113.1 --port 8000", exit.OK, []string{
			"acme/shop/web-1 to 203.0.113.1 at TCP 8000: allowed", "NetworkPolicy kubeop-acme-shop/kubeop: spec.egress[2]", "Ingress of 203.0.113.1 allowed no NetworkPolicy is about it"}},
		"to an address, without a port": {"acme/shop/web-1 203.0.113.1", exit.Differences, []string{"at TCP 443: refused"}},
		"to a host of which one address is refused": {"acme/shop/web-1 api.example.com --port 8000", exit.Differences, []string{
			"to api.example.com (203.0.113.1) at TCP 8000: allowed", "to api.example.com (198.51.100.1) at TCP 8000: refused"}},
		"to one whose first address is refused": {"acme/shop/web-1 refused-first.example.com --port 8000", exit.Differences, []string{
			"to refused-first.example.com (198.51.100.1) at TCP 8000: refused", "to refused-first.example.com (203.0.113.1) at TCP 8000: allowed"}},
		"by SCTP":                               {"acme/shop/web-1 acme/billing/api --protocol sctp --port 8080", exit.Differences, []string{"at SCTP 8080: refused"}},
		"from a pod in the network of its node": {"acme/shop/agent acme/billing/api", exit.Differences, []string{"Egress of acme/shop/agent allowed no NetworkPolicy is about it"}},
		"no such workload":                      {"acme/shop/none acme/billing/api", exit.Failure, []string{"namespace kubeop-acme-shop has no pod, Deployment, StatefulSet or DaemonSet named none"}},
		"no project":                            {"web api", exit.Failure, []string{"does not say which"}},
		"no host":                               {"acme/shop/web-1 gone.example.com", exit.Failure, []string{"gone.example.com", "no such host"}},
		"no protocol":                           {"acme/shop/web-1 acme/billing/api --protocol icmp", exit.Failure, []string{`--protocol is "icmp": give TCP, UDP or SCTP`}},
		"the last port":                         {"acme/shop/web-1 acme/billing/api --port 65535", exit.Differences, []string{"at TCP 65535: refused"}},
		"another protocol":                      {"acme/shop/web-1 acme/billing/api --protocol udp --port 8080", exit.Differences, []string{"at UDP 8080: refused"}},
		"a negative port":                       {"acme/shop/web-1 acme/billing/api --port=-1", exit.Failure, []string{"--port is -1: give a number from 1 to 65535"}},
		"no port":                               {"acme/shop/web-1 acme/billing/api --port 65536", exit.Failure, []string{"--port is 65536"}},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			err := run(&out, c.args)
			text := strings.Join(strings.Fields(out.String()), " ")
			if err != nil {
				text += err.Error()
			}
			if exit.Code(err) != c.code {
				t.Errorf("ended with %d, want %d: %v", exit.Code(err), c.code, err)
			}
			for _, want := range c.want {
				if !strings.Contains(text, want) {
					t.Errorf("got %q, want %q in it", text, want)
				}
			}
		})
	}
	// A script must not take an answer that cannot be written for a refusal.
	from, full := io.Pipe()
	if err := from.CloseWithError(syscall.ENOSPC); err != nil {
		t.Fatal(err)
	}
	if err := run(full, "acme/shop/web-1 acme/billing/api"); !errors.Is(err, syscall.ENOSPC) || exit.Code(err) == exit.Differences {
		t.Errorf("there is no space for the answer: %v", err)
	}
}

func TestTheVerdictHasItsColour(t *testing.T) {
	k := &check{Call: &call.Call{Paint: output.PaintFor(terminal.Open(t))}}
	if got := terminal.Coloured(k.word(true) + k.word(false)); !slices.Equal(got, []string{"green allowed", "red refused"}) {
		t.Errorf("got %q", got)
	}
}
