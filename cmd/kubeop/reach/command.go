// Package reach says whether a pod may connect to another one, or to a host, by the NetworkPolicies of the cluster, and which rule decides.
package reach

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"github.com/kubeop/kubeop/cmd/kubeop/call"
	"github.com/kubeop/kubeop/cmd/kubeop/exit"
	"github.com/kubeop/kubeop/cmd/kubeop/target"
)

// check computes whether connections are allowed.
type check struct {
	*call.Call
	find     *finder
	port     int
	protocol string
}

// Net returns the command net.
func Net(c *call.Call) *cobra.Command {
	command := &cobra.Command{
		Use:   "net",
		Short: "See which connections are allowed",
		Long:  `See which connections of pods the NetworkPolicies of the cluster allow.`,
		Example: `  # From one app to another
  kubeop net check acme/shop/web acme/billing/api

  # To a host outside of the cluster
  kubeop net check acme/shop/web api.example.com`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	command.AddCommand(checkCommand(&check{Call: c, find: &finder{Connection: c.Connection, lookup: resolver}}))
	return command
}

func checkCommand(k *check) *cobra.Command {
	command := &cobra.Command{
		Use:   "check FROM TO",
		Short: "Say whether one pod may connect to another, and which rule decides",
		Long: `Say whether FROM may connect to TO, and which NetworkPolicy or ClusterNetworkPolicy and rule decide on each side. Each is a pod, Deployment, StatefulSet or DaemonSet as
TENANT/PROJECT/NAME, or a host or an IP address outside of the cluster; of a workload one pod is judged. A host is looked up where the command runs.

The answer is computed from the NetworkPolicies and the ClusterNetworkPolicies of the tier Admin in the cluster, and nothing is sent to the pods. Whether the network plugin
enforces them, and policies of other tiers and kinds, such as those of the plugin itself, are not known to it. The output names rules that it cannot compute. Without --port it
is about the first port of TO's containers, and port 443 of a host. The exit code is 2 if the connection is refused.`,
		Example: `  # From one app to another, which needs network.allowFrom in the other's project.yaml
  kubeop net check acme/shop/web acme/billing/api --port 8080

  # To the outside, which needs egress of the Tenant or of a Policy
  kubeop net check acme/shop/web api.example.com`,
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: k.CompleteObject(target.App),
		RunE:              func(cmd *cobra.Command, args []string) error { return k.run(cmd.Context(), args[0], args[1]) },
	}
	command.Flags().IntVar(&k.port, "port", 0, "port of TO (default: its first one)")
	command.Flags().StringVar(&k.protocol, "protocol", string(corev1.ProtocolTCP), "TCP, UDP or SCTP")
	return command
}

func (k *check) run(ctx context.Context, from, to string) error {
	protocol := corev1.Protocol(strings.ToUpper(k.protocol))
	switch protocol {
	case corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP:
	default:
		return fmt.Errorf("--protocol is %q: give TCP, UDP or SCTP", k.protocol)
	}
	if k.port < 0 || k.port > 65535 {
		return fmt.Errorf("--port is %d: give a number from 1 to 65535", k.port)
	}
	reader, err := k.Client()
	if err != nil {
		return err
	}
	k.find.reader = reader
	sources, err := k.find.find(ctx, from)
	if err != nil {
		return err
	}
	targets, err := k.find.find(ctx, to)
	if err != nil {
		return err
	}
	admin, err := readTier(ctx, reader)
	if err != nil {
		return err
	}
	page, refused := k.Page(), false
	for _, a := range sources {
		for _, b := range targets {
			at := b.at(k.port, protocol)
			egress := admin.egress(a.peer, b.peer, at, egressOf(a.policies, a.peer, b.peer, at))
			ingress := admin.ingress(a.peer, b.peer, at, ingressOf(b.policies, a.peer, b.peer, at))
			allowed := egress.allowed && ingress.allowed
			refused = refused || !allowed
			page.Title("%s to %s at %s: %s", a.name, b.name, at, k.word(allowed))
			page.Line("Egress of "+a.name, k.word(egress.allowed), egress.why)
			page.Line("Ingress of "+b.name, k.word(ingress.allowed), ingress.why)
			page.Field("Not computed", admin.leftOut())
		}
	}
	if err := page.End(); err != nil || !refused {
		return err
	}
	return &exit.Error{Code: exit.Differences, Err: exit.ErrSaid}
}

func (k *check) word(allowed bool) string {
	if allowed {
		return k.Paint.Green("allowed")
	}
	return k.Paint.Red("refused")
}
