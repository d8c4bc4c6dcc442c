package node

import (
	"fmt"

	"github.com/kubeop/kubeop/e2e/cluster/internal/image"
	"github.com/kubeop/kubeop/e2e/cluster/internal/network"
)

// containerdConfig is for containerd 1.6 to 2.x. With restrict_oom_score_adj runc does not request a lower score than its parent's, which some
// hosts refuse even to root.
func containerdConfig(cniDir, snapshotter string) string {
	return fmt.Sprintf(`version = 2
root = "/var/lib/containerd"
state = "/run/containerd"

[grpc]
  address = %q

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = %q
  restrict_oom_score_adj = true

[plugins."io.containerd.grpc.v1.cri".cni]
  bin_dir = %q
  conf_dir = %q

[plugins."io.containerd.grpc.v1.cri".containerd]
  snapshotter = %q

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
  SystemdCgroup = false

[plugins."io.containerd.grpc.v1.cri".registry]
  config_path = %q
`, socket, image.PauseName, cniDir, insideDir+"/node/cni", snapshotter, insideDir+"/node/certs.d")
}

// registryHosts redirects pulls from one registry name to the address of the cluster's registry for the node.
func registryHosts(address string) string {
	return fmt.Sprintf(`server = "http://%s"

[host."http://%[1]s"]
  capabilities = ["pull", "resolve"]
`, address)
}

// cniConfig gives every pod a point-to-point link. Without a bridge, all traffic between pods is routed, so connection tracking sees both
// directions, as Services require.
func cniConfig(plan network.Plan) string {
	return fmt.Sprintf(`{
  "cniVersion": "0.4.0",
  "name": "pods",
  "plugins": [{
    "type": "ptp",
    "ipMasq": false,
    "ipam": {
      "type": "host-local",
      "ranges": [[{"subnet": %q, "gateway": %q}]],
      "routes": [{"dst": "0.0.0.0/0"}]
    }
  }]
}
`, plan.Pods, plan.Gateway())
}

// kubeletConfig limits the kubelet's effect on the host: its cgroups are below the cluster's, and it evicts pods only if the host's disk is
// completely full.
func kubeletConfig(plan network.Plan, cgroup string) string {
	return fmt.Sprintf(`apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication:
  anonymous: {enabled: false}
  webhook: {enabled: true}
  x509: {clientCAFile: %[1]s/pki/ca.crt}
authorization: {mode: Webhook}
tlsCertFile: %[1]s/pki/kubelet.crt
tlsPrivateKeyFile: %[1]s/pki/kubelet.key
address: %[2]s
containerRuntimeEndpoint: unix://%[3]s
clusterDomain: cluster.local
clusterDNS: [%[4]s]
resolvConf: %[1]s/node/resolv.conf
cgroupDriver: cgroupfs
cgroupRoot: %[5]s
failCgroupV1: false
failSwapOn: false
enforceNodeAllocatable: []
makeIPTablesUtilChains: false
volumePluginDir: /var/lib/kubelet/volumeplugins
evictionHard: {memory.available: 100Mi, nodefs.available: 1%%, imagefs.available: 1%%, nodefs.inodesFree: 1%%}
imageGCHighThresholdPercent: 100
maxPods: 500
serializeImagePulls: false
nodeStatusUpdateFrequency: 5s
shutdownGracePeriod: 0s
`, insideDir, plan.Node, socket, plan.DNS(), cgroup)
}

// proxyConfig does not change the size of the connection tracking table, because it belongs to the whole host.
func proxyConfig(plan network.Plan) string {
	return fmt.Sprintf(`apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: nftables
clientConnection: {kubeconfig: %s/config/kube-proxy.kubeconfig}
hostnameOverride: %s
clusterCIDR: %s
detectLocalMode: ClusterCIDR
conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
nftables: {minSyncPeriod: 100ms}
`, insideDir, Name, plan.Pods)
}
