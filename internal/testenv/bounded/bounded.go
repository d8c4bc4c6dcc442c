// Package bounded reads cases of objects that the rules for all tenants allow or refuse.
package bounded

import (
	"os"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// Case is an object and what refuses it.
type Case struct {
	// Name is the kind and the field. Rule is the name of the rule that is tried.
	Name, Rule string
	Object     *unstructured.Unstructured
	// Refused is how the message goes on after the kind and the name of the object; "" if it is allowed.
	Refused string
	// Unserved: the API server does not know the kind. Dropped: it leaves the field out when it stores the object.
	Unserved, Dropped bool
}

// Tenant is what the Tenant allows in all cases, and what its policies list of external names and addresses.
type Tenant struct {
	Taints             []string `json:"taints"`
	IngressAnnotations []string `json:"ingressAnnotations"`
	CSIDrivers         []string `json:"csiDrivers"`
	PriorityClasses    []string `json:"priorityClasses"`
	ExternalNames      []string `json:"externalNames"`
	ExternalIPs        []string `json:"externalIPs"`

	MaxTerminationGracePeriod metav1.Duration `json:"maxTerminationGracePeriod"`
}

// group is an entry of the file: each field of Cases is tried in each object of In, and Rule decides about all of them.
type group struct {
	Rule  string   `json:"rule"`
	In    []string `json:"in"`
	Cases []struct {
		Field   string `json:"field"`
		Refused string `json:"refused,omitempty"`
		// Dropped are the objects in which the API server drops the field.
		Dropped []string `json:"dropped,omitempty"`
	} `json:"cases"`
}

const (
	secure  = "securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}, runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}"
	podOf   = "containers: [{name: a, image: a, " + secure + "}]"
	claim   = "{accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}, FIELD}"
	selects = "selector: {matchLabels: {x: z}}"
	named   = "metadata: {name: x}"
	marked  = "metadata: {labels: {x: z, FIELD}}"
	rbacV1  = "apiVersion: rbac.authorization.k8s.io/v1"
	serves  = "pathType: ImplementationSpecific, backend: {service: {name: a, port: {number: 80}}}"
	roleOf  = "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: little}"
)

// objects have a place FIELD. In names of them, "Marked" is about labels.
var objects = map[string]string{
	"Pod":         "{apiVersion: v1, kind: Pod, " + named + ", spec: {" + podOf + ", FIELD}}",
	"Deployment":  "{apiVersion: apps/v1, kind: Deployment, " + named + ", spec: {" + selects + ", template: {metadata: {labels: {x: z}}, spec: {" + podOf + ", FIELD}}}}",
	"CronJob":     "{apiVersion: batch/v1, kind: CronJob, " + named + ", spec: {schedule: '0 0 1 1 *', jobTemplate: {spec: {template: {spec: {restartPolicy: Never, " + podOf + ", FIELD}}}}}}",
	"Rollout":     "{apiVersion: example.com/v1, kind: Rollout, " + named + ", spec: {template: {spec: {" + podOf + ", FIELD}}}}",
	"Claim":       "{apiVersion: v1, kind: PersistentVolumeClaim, " + named + ", spec: " + claim + "}",
	"StatefulSet": "{apiVersion: apps/v1, kind: StatefulSet, " + named + ", spec: {serviceName: x, " + selects + ", template: {metadata: {labels: {x: z}}, spec: {" + podOf + "}}, volumeClaimTemplates: [{metadata: {name: a}, spec: " + strings.Replace(claim, ", FIELD", "", 1) + "}, {metadata: {name: b}, spec: " + claim + "}]}}",
	"PodClaim":    "{apiVersion: v1, kind: Pod, " + named + ", spec: {" + podOf + ", volumes: [{name: v, ephemeral: {volumeClaimTemplate: {spec: " + claim + "}}}]}}",
	"Database":    "{apiVersion: example.com/v1, kind: Database, " + named + ", spec: {storage: {volumeClaimTemplate: {spec: " + claim + "}}}}",
	"Budget":      "{apiVersion: policy/v1, kind: PodDisruptionBudget, " + named + ", spec: {" + selects + ", FIELD}}",
	"Endpoints":   "{apiVersion: v1, kind: Endpoints, metadata: {FIELD}, subsets: [{addresses: [{ip: 10.9.9.9}], ports: [{port: 80}]}]}",
	"Slice":       "{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {FIELD}, addressType: IPv4, endpoints: [{addresses: [10.9.9.9]}]}",
	"Replicas":    "{apiVersion: v1, kind: ReplicationController, " + named + ", spec: {selector: {x: z}, template: {metadata: {labels: {x: z}}, spec: {" + podOf + ", FIELD}}}}",
	"Revision":    "{apiVersion: apps/v1, kind: ControllerRevision, " + named + ", revision: 1, FIELD}",
	"Service":     "{apiVersion: v1, kind: Service, " + named + ", spec: {ports: [{port: 80}], FIELD}}",
	"Annotated":   "{apiVersion: v1, kind: Service, metadata: {name: x, annotations: {FIELD}}, spec: {ports: [{port: 80}]}}",
	"Routed":      "{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: x, annotations: {FIELD}}, spec: {hostnames: [" + Host + "]}}",
	"Gateway":     "{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, " + named + ", spec: {gatewayClassName: x, listeners: [{name: a, port: 80, protocol: HTTP, hostname: " + Host + "}], FIELD}}",
	"Provided":    "{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, " + named + ", spec: {gatewayClassName: x, listeners: [{name: a, port: 80, protocol: HTTP, hostname: " + Host + "}], infrastructure: {annotations: {FIELD}}}}",
	"Subjects":    "{" + rbacV1 + ", kind: RoleBinding, " + named + ", " + roleOf + ", subjects: [FIELD]}",
	"Token":       "{apiVersion: v1, kind: Secret, type: kubernetes.io/service-account-token, metadata: {name: x, annotations: {FIELD}}}",
	"Account":     "{apiVersion: v1, kind: ServiceAccount, metadata: {FIELD}}",
	"Role":        "{" + rbacV1 + ", kind: Role, metadata: {FIELD}}",
	"RoleBinding": "{" + rbacV1 + ", kind: RoleBinding, metadata: {FIELD}, " + roleOf + "}",
	"ConfigMap":   "{apiVersion: v1, kind: ConfigMap, metadata: {FIELD}}",
	"Path":        "{apiVersion: networking.k8s.io/v1, kind: Ingress, " + named + ", spec: {rules: [{host: " + Host + "}, {host: " + Host + ", http: {paths: [{path: /, " + serves + "}, {FIELD, " + serves + "}]}}]}}",
	"Match":       "{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, " + named + ", spec: {hostnames: [" + Host + "], rules: [{}, {matches: [{path: {value: /}}, {FIELD}]}]}}",
	"Method":      "{apiVersion: gateway.networking.k8s.io/v1, kind: GRPCRoute, " + named + ", spec: {hostnames: [" + Host + "], rules: [{}, {matches: [{method: {service: a.b}}, {FIELD}]}]}}",
	"Ingress":     "{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: x, annotations: {FIELD}}, spec: {rules: [{host: " + Host + "}]}}",

	"Marked":            "{apiVersion: v1, kind: ConfigMap, metadata: {name: x, labels: {x: z, FIELD}}}",
	"MarkedDeployment":  "{apiVersion: apps/v1, kind: Deployment, " + named + ", spec: {" + selects + ", template: {" + marked + ", spec: {" + podOf + "}}}}",
	"MarkedReplicas":    "{apiVersion: v1, kind: ReplicationController, " + named + ", spec: {selector: {x: z}, template: {" + marked + ", spec: {" + podOf + "}}}}",
	"MarkedCronJob":     "{apiVersion: batch/v1, kind: CronJob, " + named + ", spec: {schedule: '0 0 1 1 *', jobTemplate: {" + marked + ", spec: {template: {spec: {restartPolicy: Never, " + podOf + "}}}}}}",
	"MarkedJobs":        "{apiVersion: batch/v1, kind: CronJob, " + named + ", spec: {schedule: '0 0 1 1 *', jobTemplate: {spec: {template: {" + marked + ", spec: {restartPolicy: Never, " + podOf + "}}}}}}",
	"MarkedStatefulSet": "{apiVersion: apps/v1, kind: StatefulSet, " + named + ", spec: {serviceName: x, " + selects + ", template: {metadata: {labels: {x: z}}, spec: {" + podOf + "}}, volumeClaimTemplates: [{metadata: {name: a, labels: {FIELD}}, spec: " + strings.Replace(claim, ", FIELD", "", 1) + "}]}}",
	"MarkedPod":         "{apiVersion: v1, kind: Pod, " + named + ", spec: {" + podOf + ", volumes: [{name: v, ephemeral: {volumeClaimTemplate: {metadata: {labels: {FIELD}}, spec: " + strings.Replace(claim, ", FIELD", "", 1) + "}}}]}}",
}

// Host is the host name of Ingresses.
const Host = "web.bounded.example"

// Read reads a file of cases for a namespace.
func Read(t testing.TB, file, namespace string) (Tenant, []Case) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var content struct {
		Tenant Tenant  `json:"tenant"`
		Groups []group `json:"groups"`
	}
	if err := yaml.UnmarshalStrict([]byte(strings.ReplaceAll(string(text), "NAMESPACE", namespace)), &content); err != nil {
		t.Fatal(err)
	}
	var all []Case
	for _, g := range content.Groups {
		for _, one := range g.Cases {
			for _, in := range g.In {
				c := Case{Name: in + " with " + one.Field, Rule: g.Rule, Object: objectOf(t, in, one.Field), Refused: one.Refused, Dropped: slices.Contains(one.Dropped, in)}
				c.Unserved = strings.HasPrefix(c.Object.GetAPIVersion(), "example.com/")
				all = append(all, c)
			}
		}
	}
	return content.Tenant, all
}

// objectOf returns an object with a field, which is YAML.
func objectOf(t testing.TB, in, field string) *unstructured.Unstructured {
	t.Helper()
	text, ok := objects[in]
	if !ok {
		t.Fatalf("there is no object %s", in)
	}
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(strings.ReplaceAll(text, "FIELD", field)), &o.Object); err != nil {
		t.Fatalf("%v in %s of %s", err, field, in)
	}
	return o
}
