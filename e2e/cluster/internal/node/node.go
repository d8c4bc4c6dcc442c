// Package node creates a real node: containerd, kubelet and kube-proxy in their own namespaces, which a link connects to the host. All that a
// node creates on a machine (processes, mounts, devices, rules) belongs to these namespaces, and vanishes when their init process ends.
package node

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/kubeop/kubeop/e2e/cluster/internal/image"
	"github.com/kubeop/kubeop/e2e/cluster/internal/layout"
	"github.com/kubeop/kubeop/e2e/cluster/internal/network"
	"github.com/kubeop/kubeop/e2e/cluster/internal/supervise"
)

// Name is the name of the Node object, and the host name for its processes.
const Name = "node"

// Node is one real node.
type Node struct {
	Dir layout.Dir
	// Binary is the multi-call binary.
	Binary string
	// Cluster is the cluster's name, which is part of the names of its device and cgroups.
	Cluster string
	Plan    network.Plan
	// APIPort and RegistryPort are the ports of the API server and the registry on the host's end of the link.
	APIPort, RegistryPort int
	// Tools are the programs that are not in the binary.
	Tools Tools
}

// Tools are the paths of the programs that a node needs from the host.
type Tools struct {
	Containerd, Ctr, CNI string
}

// The paths inside the node's mount namespace. Mounts hide the host's /run, /tmp, /var/lib and /var/log. So the programs use their usual paths,
// which are short enough for sockets, and write nothing outside of the cluster directory.
const (
	insideDir    = "/run/cluster"     // the cluster directory
	insideBinary = "/run/bin/cluster" // the multi-call binary
	socket       = "/run/containerd/containerd.sock"
)

// Lines that the supervisor sends to the node's init, which waits for them.
const (
	Connected = "connected" // the link exists
	APIReady  = "api-ready" // the API server answers
)

// Link returns the name of the host's end of the link. Device names have at most 15 characters.
func Link(cluster string) string { return "ko-" + strings.TrimPrefix(cluster, "kubeop-") }

// Cgroup returns the path of the node's cgroups below the root of each hierarchy.
func Cgroup(cluster string) string { return "/" + cluster }

// Write writes the configuration of the node's programs, and the sandbox image, below the cluster directory.
func (n Node) Write() error {
	registry := fmt.Sprintf("%s:%d", n.Plan.Host, n.RegistryPort)
	snapshotter := "overlayfs"
	if onOverlay(string(n.Dir)) {
		snapshotter = "native" // an overlay cannot be on top of the overlay of a container's files
	}
	files := map[string]string{
		"containerd.toml":                     containerdConfig(n.Tools.CNI, snapshotter),
		"cni/10-pods.conflist":                cniConfig(n.Plan),
		"kubelet.yaml":                        kubeletConfig(n.Plan, Cgroup(n.Cluster)),
		"kube-proxy.yaml":                     proxyConfig(n.Plan),
		"resolv.conf":                         "nameserver " + n.Plan.DNS().String() + "\n",
		"dns.yaml":                            dnsManifest(n.Plan),
		"certs.d/" + registry + "/hosts.toml": registryHosts(registry),
		fmt.Sprintf("certs.d/127.0.0.1:%d/hosts.toml", n.RegistryPort): registryHosts(registry),
	}
	for name, text := range files {
		path := n.Dir.Path("node", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return fmt.Errorf("making the node's directory: %w", err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return fmt.Errorf("writing the node's configuration: %w", err)
		}
	}
	for _, name := range []string{"run", "var-lib", "var-log"} {
		if err := os.MkdirAll(n.Dir.Path("node", name), 0o755); err != nil {
			return fmt.Errorf("making the node's directory: %w", err)
		}
	}
	if err := image.WritePause(n.Dir.Path("node", "pause.tar")); err != nil {
		return err
	}
	data, err := json.Marshal(n)
	if err != nil {
		return fmt.Errorf("encoding the node: %w", err)
	}
	return os.WriteFile(n.Dir.Path("node", "node.json"), data, 0o600)
}

// Program returns the node's init. It reads the lines above from stdin.
func (n Node) Program(stdin *os.File) supervise.Program {
	return supervise.Program{
		Name: "node", Path: n.Binary, Args: []string{"cluster", "node", "--dir", string(n.Dir)},
		Dir: "/", Log: n.Dir.Log("node"), Stdin: stdin,
		Attr: attributes(),
	}
}

// load reads the node that Write wrote.
func load(dir layout.Dir) (Node, error) {
	var n Node
	data, err := os.ReadFile(dir.Path("node", "node.json"))
	if err != nil {
		return n, fmt.Errorf("reading the node: %w", err)
	}
	if err := json.Unmarshal(data, &n); err != nil {
		return n, fmt.Errorf("parsing the node: %w", err)
	}
	return n, nil
}
