package layout

import (
	"encoding/json"
	"fmt"
	"os"
	"time"
)

// State is cluster.json: everything a test or a script needs to use a cluster, and everything `down` needs to remove
// it when its supervisor was killed. The file is readable by its owner only; it holds the Git administrator's password.
type State struct {
	// Name identifies the cluster among those of this machine; network devices and cgroups carry it.
	Name string `json:"name"`
	// Dir is the absolute cluster directory.
	Dir string `json:"dir"`
	// Phase is starting, ready, failed or stopping.
	Phase Phase `json:"phase"`
	// Version is the Kubernetes version.
	Version string `json:"version"`
	// StartedAt is when `up` began, ReadySeconds how long it took until everything answered.
	StartedAt    time.Time `json:"startedAt"`
	ReadySeconds float64   `json:"readySeconds,omitempty"`
	// Supervisor is the process that keeps the others running.
	Supervisor Process `json:"supervisor"`
	// Components are the running processes by component name.
	Components map[string]Process `json:"components,omitempty"`

	// Kubeconfig is the path of the administrator's kubeconfig.
	Kubeconfig string `json:"kubeconfig"`
	// APIServer is the URL of the API server on the host.
	APIServer string `json:"apiServer"`
	// CAFile is the certificate authority that signed the API server's certificate.
	CAFile string `json:"caFile"`
	// LogsDir holds one log file per component; AuditLog is the API server's audit log when it was asked for.
	LogsDir  string `json:"logsDir"`
	AuditLog string `json:"auditLog,omitempty"`

	Node     Node      `json:"node"`
	Registry *Registry `json:"registry,omitempty"`
	Git      *Git      `json:"git,omitempty"`
}

// Phase is where a cluster is in its life.
type Phase string

// The phases of a cluster.
const (
	Starting Phase = "starting"
	Ready    Phase = "ready"
	Failed   Phase = "failed"
	Stopping Phase = "stopping"
)

// Process names one process beyond reuse of its number.
type Process struct {
	PID int `json:"pid"`
	// Start is the kernel's start time of the process in clock ticks since boot; 0 where the system has no such thing.
	Start uint64 `json:"start,omitempty"`
	// Restarts counts how often the supervisor had to start it again.
	Restarts int `json:"restarts,omitempty"`
}

// NodeKind is what runs pods.
type NodeKind string

// The kinds of node.
const (
	Real      NodeKind = "real"
	Simulated NodeKind = "simulated"
	None      NodeKind = "none"
)

// Node describes what runs the pods.
type Node struct {
	Kind NodeKind `json:"kind"`
	// Why says in plain words why the node is of this kind.
	Why string `json:"why"`
	// Name is the name of the Node object.
	Name string `json:"name,omitempty"`
	// Address is the node's address; HostAddress is where the node and its pods reach the host.
	Address     string `json:"address,omitempty"`
	HostAddress string `json:"hostAddress,omitempty"`
	// PodCIDR and ServiceCIDR are routed from the host to a real node.
	PodCIDR     string `json:"podCIDR,omitempty"`
	ServiceCIDR string `json:"serviceCIDR,omitempty"`
	// DNS is the address of the cluster's DNS service.
	DNS string `json:"dns,omitempty"`
	// Link is the network device on the host; Cgroup the control group below each hierarchy.
	Link   string `json:"link,omitempty"`
	Cgroup string `json:"cgroup,omitempty"`
}

// Registry is the container and chart registry, plain HTTP and without credentials.
type Registry struct {
	// Host is host:port as seen from the host, and in image references; Pods the same as seen from pods.
	Host string `json:"host"`
	Pods string `json:"pods,omitempty"`
}

// Git is the Git server. Clone URLs are Host or Pods + "/" + repository + ".git".
type Git struct {
	Host string `json:"host"`
	Pods string `json:"pods,omitempty"`
	// AdminUser may read and write every repository.
	AdminUser     string `json:"adminUser"`
	AdminPassword string `json:"adminPassword"`
}

// Read returns the state of the cluster in the directory.
func (d Dir) Read() (*State, error) {
	data, err := os.ReadFile(d.State())
	if err != nil {
		return nil, fmt.Errorf("reading the cluster's state: %w", err)
	}
	state := &State{}
	if err := json.Unmarshal(data, state); err != nil {
		return nil, fmt.Errorf("parsing %s: %w", d.State(), err)
	}
	return state, nil
}

// Write replaces the state in one step, so that a reader never sees half of it.
func (d Dir) Write(state *State) error {
	data, err := json.MarshalIndent(state, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the cluster's state: %w", err)
	}
	next := d.State() + ".next"
	if err := os.WriteFile(next, append(data, '\n'), 0o600); err != nil {
		return fmt.Errorf("writing the cluster's state: %w", err)
	}
	if err := os.Rename(next, d.State()); err != nil {
		return fmt.Errorf("replacing the cluster's state: %w", err)
	}
	return nil
}
