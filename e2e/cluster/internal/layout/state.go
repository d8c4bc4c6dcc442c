package layout

import (
	"encoding/json"
	"fmt"
	"os"
	"time"
)

// State is the content of cluster.json. It has what tests and scripts need to use a cluster, and what `down` needs to remove it if its
// supervisor was killed. Only the owner may read the file, because it contains the Git administrator's password.
type State struct {
	// Name identifies the cluster on this machine. It is part of the names of network devices and cgroups.
	Name string `json:"name"`
	// Dir is the absolute cluster directory.
	Dir string `json:"dir"`
	// Phase is starting, ready, failed or stopping.
	Phase Phase `json:"phase"`
	// Version is the Kubernetes version.
	Version string `json:"version"`
	// StartedAt is when `up` began. ReadySeconds is how long it took until all components answered.
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
	// LogsDir has one log file per component. AuditLog is the path of the API server's audit log, or "" if it is off.
	LogsDir  string `json:"logsDir"`
	AuditLog string `json:"auditLog,omitempty"`

	Node     Node      `json:"node"`
	Registry *Registry `json:"registry,omitempty"`
	Git      *Git      `json:"git,omitempty"`
}

// Phase is the phase of a cluster's life.
type Phase string

// The phases of a cluster.
const (
	Starting Phase = "starting"
	Ready    Phase = "ready"
	Failed   Phase = "failed"
	Stopping Phase = "stopping"
)

// Process identifies a process, also if its PID is used again.
type Process struct {
	PID int `json:"pid"`
	// Start is the start time of the process in clock ticks since boot, or 0 if the system does not report it.
	Start uint64 `json:"start,omitempty"`
	// Restarts is how often the supervisor has restarted it.
	Restarts int `json:"restarts,omitempty"`
}

// NodeKind is the kind of node that runs pods.
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
	// Why is the reason for this kind, in plain words.
	Why string `json:"why"`
	// Name is the name of the Node object.
	Name string `json:"name,omitempty"`
	// Address is the node's address. HostAddress is the host's address for the node and its pods.
	Address     string `json:"address,omitempty"`
	HostAddress string `json:"hostAddress,omitempty"`
	// PodCIDR and ServiceCIDR are routed from the host to a real node.
	PodCIDR     string `json:"podCIDR,omitempty"`
	ServiceCIDR string `json:"serviceCIDR,omitempty"`
	// DNS is the address of the cluster's DNS service.
	DNS string `json:"dns,omitempty"`
	// Link is the network device on the host. Cgroup is the path of the cgroup below each hierarchy.
	Link   string `json:"link,omitempty"`
	Cgroup string `json:"cgroup,omitempty"`
}

// Registry is the registry for images and charts, over plain HTTP and without credentials.
type Registry struct {
	// Host is host:port for the host and for image references. Pods is host:port for pods.
	Host string `json:"host"`
	Pods string `json:"pods,omitempty"`
}

// Git is the Git server. The URL of a repository is Host or Pods + "/" + repository + ".git".
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

// Write replaces the state atomically.
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
