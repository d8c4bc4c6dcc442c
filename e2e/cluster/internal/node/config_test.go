package node

import (
	"encoding/json"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/kubeop/kubeop/e2e/cluster/internal/network"
)

func TestTheConfigurationsOfANodeAreValid(t *testing.T) {
	plan := network.Default()
	var kubelet, proxy map[string]any
	if err := yaml.UnmarshalStrict([]byte(kubeletConfig(plan, "/kubeop-abc")), &kubelet); err != nil {
		t.Errorf("kubelet: %v", err)
	}
	if kubelet["cgroupRoot"] != "/kubeop-abc" || kubelet["failCgroupV1"] != false {
		t.Errorf("kubelet: %v", kubelet)
	}
	if err := yaml.UnmarshalStrict([]byte(proxyConfig(plan)), &proxy); err != nil {
		t.Errorf("kube-proxy: %v", err)
	}
	var cni struct{ Plugins []struct{ Type string } }
	if err := json.Unmarshal([]byte(cniConfig(plan)), &cni); err != nil || cni.Plugins[0].Type != "ptp" {
		t.Errorf("CNI: %v, %v", cni, err)
	}
	for _, document := range strings.Split(dnsManifest(plan), "\n---\n") {
		if err := yaml.UnmarshalStrict([]byte(document), &map[string]any{}); err != nil {
			t.Errorf("DNS: %v in\n%s", err, document)
		}
	}
}

func TestLinkNameFitsTheKernel(t *testing.T) {
	if name := Link("kubeop-abcdef"); len(name) > 15 {
		t.Errorf("%s is longer than a device name may be", name)
	}
}
