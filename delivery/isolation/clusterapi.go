package isolation

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// The part of policy.networking.k8s.io/v1alpha2 that kubeop writes, and whose effect it can compute. The API has separate types for the two directions,
// and for the ports of each protocol; these are one type each, because they have the same fields.
type (
	// ClusterPolicySpec is the spec of a ClusterNetworkPolicy.
	ClusterPolicySpec struct {
		// Tier is Admin or Baseline. Within a tier policies of a lower Priority come first, from 0 to 1000.
		Tier     string        `json:"tier"`
		Priority int32         `json:"priority"`
		Subject  ClusterPeer   `json:"subject"`
		Ingress  []ClusterRule `json:"ingress"`
		Egress   []ClusterRule `json:"egress"`
	}
	// ClusterRule decides about the connections with its peers; the first rule that a connection matches counts. Without Protocols it is about all ports.
	ClusterRule struct {
		Name      string            `json:"name"`
		Action    string            `json:"action"`
		From      []ClusterPeer     `json:"from,omitempty"`
		To        []ClusterPeer     `json:"to,omitempty"`
		Protocols []ClusterProtocol `json:"protocols,omitempty"`
	}
	// ClusterPeer is one of its fields: the pods of namespaces, some pods of them, or ranges of addresses. One without any is about something else.
	ClusterPeer struct {
		Namespaces *metav1.LabelSelector `json:"namespaces,omitempty"`
		Pods       *ClusterPods          `json:"pods,omitempty"`
		Networks   []string              `json:"networks,omitempty"`
	}
	// ClusterPods are pods by their own labels and those of their namespaces.
	ClusterPods struct {
		NamespaceSelector metav1.LabelSelector `json:"namespaceSelector"`
		PodSelector       metav1.LabelSelector `json:"podSelector"`
	}
	// ClusterProtocol is one of its fields.
	ClusterProtocol struct {
		TCP   *ClusterPorts `json:"tcp,omitempty"`
		UDP   *ClusterPorts `json:"udp,omitempty"`
		SCTP  *ClusterPorts `json:"sctp,omitempty"`
		Named string        `json:"destinationNamedPort,omitempty"`
	}
	// ClusterPorts are the ports of a protocol, all for nil.
	ClusterPorts struct {
		Destination *ClusterPort `json:"destinationPort,omitempty"`
	}
	// ClusterPort is a port, or a range of them.
	ClusterPort struct {
		Number int32             `json:"number,omitempty"`
		Range  *ClusterPortRange `json:"range,omitempty"`
	}
	// ClusterPortRange has both of its ends.
	ClusterPortRange struct {
		Start int32 `json:"start"`
		End   int32 `json:"end"`
	}
)
