package node

import (
	"context"
	_ "embed" // the manifest
	"fmt"
	"net"
	"os/exec"
	"strings"
	"time"

	"github.com/kubeop/kubeop/e2e/cluster/internal/image"
	"github.com/kubeop/kubeop/e2e/cluster/internal/layout"
	"github.com/kubeop/kubeop/e2e/cluster/internal/network"
)

// coreDNS is the manifest of CoreDNS. It has the usual names and labels, because network policies refer to them. Its pods run the multi-call
// binary from the node, so they need no image of CoreDNS.
//
//go:embed coredns.yaml
var coreDNS string

// dnsManifest returns the manifest with the values of this cluster.
func dnsManifest(plan network.Plan) string {
	return strings.NewReplacer("$IMAGE", image.PauseName, "$ADDRESS", plan.DNS().String(), "$BINARY", insideBinary).
		Replace(coreDNS)
}

// InstallDNS creates the cluster's DNS.
func (n Node) InstallDNS(ctx context.Context) error {
	command := exec.CommandContext(ctx, n.Binary, "kubectl", "--kubeconfig="+n.Dir.Kubeconfig(), "create",
		"--validate=false", "--filename="+n.Dir.Path("node", "dns.yaml"))
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("creating the cluster's DNS: %w: %s", err, out)
	}
	return nil
}

// WaitForDNS waits until the cluster's DNS answers the host with the address of the API server.
func WaitForDNS(ctx context.Context, plan network.Plan) error {
	resolver := net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", net.JoinHostPort(plan.DNS().String(), "53"))
	}}
	for {
		once, cancel := context.WithTimeout(ctx, 250*time.Millisecond)
		_, err := resolver.LookupHost(once, "kubernetes.default.svc.cluster.local.")
		cancel()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for the cluster's DNS: %w", err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// State returns the node's description for cluster.json.
func (n Node) State(why string) layout.Node {
	return layout.Node{
		Kind: layout.Real, Why: why, Name: Name, Address: n.Plan.Node.String(), HostAddress: n.Plan.Host.String(),
		PodCIDR: n.Plan.Pods.String(), ServiceCIDR: n.Plan.Services.String(), DNS: n.Plan.DNS().String(),
		Link: Link(n.Cluster), Cgroup: Cgroup(n.Cluster),
	}
}
