package node

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"time"

	"github.com/kubeop/kubeop/e2e/cluster/internal/image"
	"github.com/kubeop/kubeop/e2e/cluster/internal/layout"
	"github.com/kubeop/kubeop/e2e/cluster/internal/network"
)

// dnsManifest is CoreDNS under the names and labels it has everywhere, since network policies refer to them. Its pods
// run the multi-call binary from the node, so no image has to be made of it.
func dnsManifest(plan network.Plan) string {
	return strings.NewReplacer("$IMAGE", image.PauseName, "$ADDRESS", plan.DNS().String(), "$BINARY", insideBinary).
		Replace(`apiVersion: v1
kind: ServiceAccount
metadata: {name: coredns, namespace: kube-system}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: system:coredns}
rules:
- {apiGroups: [""], resources: [endpoints, services, pods, namespaces], verbs: [list, watch]}
- {apiGroups: [discovery.k8s.io], resources: [endpointslices], verbs: [list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: system:coredns}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: system:coredns}
subjects:
- {kind: ServiceAccount, name: coredns, namespace: kube-system}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: coredns, namespace: kube-system}
data:
  Corefile: |
    .:53 {
        errors
        health
        ready
        kubernetes cluster.local in-addr.arpa ip6.arpa {
            pods insecure
            ttl 5
        }
        cache 5
    }
---
apiVersion: v1
kind: Service
metadata:
  name: kube-dns
  namespace: kube-system
  labels: {k8s-app: kube-dns, kubernetes.io/name: CoreDNS}
spec:
  clusterIP: $ADDRESS
  selector: {k8s-app: kube-dns}
  ports:
  - {name: dns, port: 53, protocol: UDP}
  - {name: dns-tcp, port: 53, protocol: TCP}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: coredns, namespace: kube-system, labels: {k8s-app: kube-dns}}
spec:
  selector: {matchLabels: {k8s-app: kube-dns}}
  template:
    metadata: {labels: {k8s-app: kube-dns}}
    spec:
      serviceAccountName: coredns
      priorityClassName: system-cluster-critical
      dnsPolicy: Default
      terminationGracePeriodSeconds: 0
      tolerations: [{operator: Exists}]
      containers:
      - name: coredns
        image: $IMAGE
        imagePullPolicy: Never
        command: [/bin/coredns, -conf, /etc/coredns/Corefile]
        ports:
        - {name: dns, containerPort: 53, protocol: UDP}
        - {name: dns-tcp, containerPort: 53, protocol: TCP}
        readinessProbe: {httpGet: {path: /ready, port: 8181}, periodSeconds: 1}
        securityContext:
          runAsUser: 0
          allowPrivilegeEscalation: false
          readOnlyRootFilesystem: true
          capabilities: {drop: [ALL], add: [NET_BIND_SERVICE]}
        volumeMounts:
        - {name: binary, mountPath: /bin/coredns, readOnly: true}
        - {name: config, mountPath: /etc/coredns, readOnly: true}
      volumes:
      - {name: binary, hostPath: {path: $BINARY, type: File}}
      - {name: config, configMap: {name: coredns}}
`)
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

// WaitForDNS returns when the cluster's DNS answers the host with the address of the API server.
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

// State describes the node in cluster.json.
func (n Node) State(why string) layout.Node {
	return layout.Node{
		Kind: layout.Real, Why: why, Name: Name, Address: n.Plan.Node.String(), HostAddress: n.Plan.Host.String(),
		PodCIDR: n.Plan.Pods.String(), ServiceCIDR: n.Plan.Services.String(), DNS: n.Plan.DNS().String(),
		Link: Link(n.Cluster), Cgroup: Cgroup(n.Cluster),
	}
}
