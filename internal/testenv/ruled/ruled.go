// Package ruled reads cases of objects that rules of Policies allow or refuse.
package ruled

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// Group are the policies of a project, and objects in it.
type Group struct {
	// Policies are sorted by name.
	Policies []v1alpha1.Policy
	// Signed are images, as Guardrails have them, by the names of the policies by which they were verified.
	Signed map[string][]string
	Cases  []Case
}

// Case is an object and what refuses it.
type Case struct {
	Name   string
	Object *unstructured.Unstructured
	// Refused are "<policy>: <field>" of the rules that refuse the object; none if it is allowed.
	Refused []string
}

// written is a case as the file has it: fields of one object besides kind, labels, annotations and refused.
type written struct {
	Kind, Claim, IngressAnnotation, Gateway string

	Host                *string
	Service, Ingress    map[string]any
	Route, Listeners    []any
	Labels, Annotations map[string]string
	Refused             []string
	ofPod
	ofTemplate
}

// ofTemplate are the fields of a case about a template.
type ofTemplate struct {
	// Template is the class of a claim of a StatefulSet; OldClass is one in an annotation of the template of a claim.
	Template, OldClass string
	// Attributes is the VolumeAttributesClass of a claim or of a template of one.
	Attributes string
	// Marked is an annotation of the template of a claim, or of the pods if there is none.
	Marked string
}

// ofPod are the fields of a case about a pod.
type ofPod struct {
	Image, Pull, InitImage, ImageVolume, Ephemeral, Runtime, Priority string

	Nodes       map[string]any
	HostUsers   *bool
	Tolerations []any
}

// Read reads a file of cases.
func Read(t testing.TB, file string) []Group {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var groups []struct {
		Policies map[string]v1alpha1.PolicySpec
		Signed   map[string][]string
		Cases    []map[string]any
	}
	if err := yaml.UnmarshalStrict(text, &groups); err != nil {
		t.Fatal(err)
	}
	var all []Group
	for _, g := range groups {
		group := Group{Signed: g.Signed}
		for _, name := range slices.Sorted(maps.Keys(g.Policies)) {
			group.Policies = append(group.Policies, v1alpha1.Policy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: g.Policies[name]})
		}
		for _, fields := range g.Cases {
			group.Cases = append(group.Cases, caseOf(t, fields))
		}
		all = append(all, group)
	}
	return all
}

func caseOf(t testing.TB, fields map[string]any) Case {
	t.Helper()
	text, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	var w written
	if err := yaml.UnmarshalStrict(text, &w); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	delete(fields, "refused")
	name, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	c := Case{Name: string(name), Object: w.object(), Refused: w.Refused}
	if w.Labels != nil {
		c.Object.SetLabels(w.Labels)
	}
	if w.Annotations != nil {
		c.Object.SetAnnotations(w.Annotations)
	}
	return c
}

// object returns the object that a case is short for.
func (w *written) object() *unstructured.Unstructured {
	switch {
	case w.Service != nil:
		if w.Service["ports"] == nil {
			w.Service["ports"] = []any{map[string]any{"port": int64(80)}}
		}
		return object("v1", "Service", nil, w.Service)
	case w.Host != nil, w.Ingress != nil, w.IngressAnnotation != "":
		return w.ingress()
	case w.Route != nil:
		return object("gateway.networking.k8s.io/v1", "HTTPRoute", nil, map[string]any{"hostnames": w.Route})
	case w.Kind == "ListenerSet":
		set := w.gateway()
		set.SetKind(w.Kind)
		return set
	case w.Gateway != "" || w.Listeners != nil:
		return w.gateway()
	case w.Template != "":
		set := w.workload("StatefulSet")
		set.Object["spec"].(map[string]any)["volumeClaimTemplates"] = []any{w.claimTemplate(w.Template)}
		return set
	case w.Kind == "" && w.Image == "" && w.InitImage == "" && w.ImageVolume == "" && w.Ephemeral == "" && w.Runtime == "" && w.Priority == "":
		return object("v1", "PersistentVolumeClaim", nil, w.claim(w.Claim))
	}
	return w.workload(cmp.Or(w.Kind, "Pod"))
}

// ingress returns an Ingress with the host, the spec or the class annotation of a case.
func (w *written) ingress() *unstructured.Unstructured {
	var annotations map[string]any
	rule := map[string]any{"host": "a.example.com"}
	switch {
	case w.Ingress != nil:
		return object("networking.k8s.io/v1", "Ingress", nil, w.Ingress)
	case w.IngressAnnotation != "":
		annotations = map[string]any{"kubernetes.io/ingress.class": w.IngressAnnotation}
	default:
		rule = map[string]any{"http": map[string]any{"paths": []any{map[string]any{"path": "/", "pathType": "Prefix", "backend": backend()}}}}
		if *w.Host != "" {
			rule["host"] = *w.Host
		}
	}
	return object("networking.k8s.io/v1", "Ingress", annotations, map[string]any{"rules": []any{rule}})
}

// gateway returns a Gateway with the class or with the listeners of a case.
func (w *written) gateway() *unstructured.Unstructured {
	if w.Listeners == nil {
		w.Listeners = []any{map[string]any{"protocol": "HTTP", "hostname": "a.example.com"}}
	}
	for i, l := range w.Listeners {
		listener := l.(map[string]any)
		listener["name"], listener["port"] = fmt.Sprint("l", i), int64(80+i)
	}
	return object("gateway.networking.k8s.io/v1", "Gateway", nil, map[string]any{"gatewayClassName": cmp.Or(w.Gateway, "x"), "listeners": w.Listeners})
}

func backend() map[string]any {
	return map[string]any{"service": map[string]any{"name": "a", "port": map[string]any{"number": int64(80)}}}
}

func (w *written) claim(class string) map[string]any {
	spec := map[string]any{"accessModes": []any{"ReadWriteOnce"}, "resources": map[string]any{"requests": map[string]any{"storage": "1Gi"}}}
	if class != "" {
		spec["storageClassName"] = class
	}
	if w.Attributes != "" {
		spec["volumeAttributesClassName"] = w.Attributes
	}
	return spec
}

// claimTemplate returns a template of a claim with a class, "" for none.
func (w *written) claimTemplate(class string) map[string]any {
	metadata := map[string]any{"name": "data"}
	if w.Marked != "" {
		metadata["annotations"] = map[string]any{w.Marked: "x"}
	}
	if w.OldClass != "" {
		metadata["annotations"] = map[string]any{"volume.beta.kubernetes.io/storage-class": w.OldClass}
	}
	return map[string]any{"metadata": metadata, "spec": w.claim(class)}
}

func object(apiVersion, kind string, annotations, spec map[string]any) *unstructured.Unstructured {
	metadata := map[string]any{"name": "x"}
	if annotations != nil {
		metadata["annotations"] = annotations
	}
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": metadata, "spec": spec}}
}

// workload returns an object of a kind that has a pod.
func (w *written) workload(kind string) *unstructured.Unstructured {
	pod := w.pod()
	labels := map[string]any{"x": "x"}
	template := map[string]any{"metadata": map[string]any{"labels": labels}, "spec": pod}
	if w.Marked != "" && w.Ephemeral == "" && w.Template == "" {
		template["metadata"].(map[string]any)["annotations"] = map[string]any{w.Marked: "x"}
	}
	spec := map[string]any{"template": template}
	switch kind {
	case "Pod":
		return object("v1", kind, nil, pod)
	case "PodTemplate":
		o := object("v1", kind, nil, nil)
		delete(o.Object, "spec")
		o.Object["template"] = template
		return o
	case "ReplicationController":
		spec["selector"] = labels
		return object("v1", kind, nil, spec)
	case "Job":
		pod["restartPolicy"] = "Never"
		return object("batch/v1", kind, nil, spec)
	case "CronJob":
		pod["restartPolicy"] = "Never"
		return object("batch/v1", kind, nil, map[string]any{"schedule": "0 0 * * *", "jobTemplate": map[string]any{"spec": spec}})
	}
	spec["selector"] = map[string]any{"matchLabels": labels}
	if kind == "StatefulSet" {
		spec["serviceName"] = "x"
	}
	return object("apps/v1", kind, nil, spec)
}

// pod returns a pod's spec, which satisfies the Pod Security level restricted.
func (w *written) pod() map[string]any {
	container := func(name, image string) map[string]any {
		return map[string]any{"name": name, "image": image, "securityContext": map[string]any{
			"allowPrivilegeEscalation": false, "capabilities": map[string]any{"drop": []any{"ALL"}}, "runAsNonRoot": true,
			"seccompProfile": map[string]any{"type": "RuntimeDefault"},
		}}
	}
	pod := map[string]any{"containers": []any{container("a", cmp.Or(w.Image, "nginx"))}}
	if w.Nodes != nil {
		pod["nodeSelector"] = w.Nodes
	}
	if w.HostUsers != nil {
		pod["hostUsers"] = *w.HostUsers
	}
	if w.Tolerations != nil {
		pod["tolerations"] = w.Tolerations
	}
	if w.Pull != "" {
		pod["containers"].([]any)[0].(map[string]any)["imagePullPolicy"] = w.Pull
	}
	if w.InitImage != "" {
		pod["initContainers"] = []any{container("i", w.InitImage)}
	}
	if w.Runtime != "" {
		pod["runtimeClassName"] = w.Runtime
	}
	if w.Priority != "" {
		pod["priorityClassName"] = w.Priority
	}
	if w.ImageVolume != "" {
		pod["volumes"] = []any{map[string]any{"name": "v", "image": map[string]any{"reference": w.ImageVolume}}}
	}
	if w.Ephemeral != "" {
		template := w.claimTemplate(w.Ephemeral)
		delete(template["metadata"].(map[string]any), "name")
		pod["volumes"] = []any{map[string]any{"name": "v", "ephemeral": map[string]any{"volumeClaimTemplate": template}}}
	}
	return pod
}
