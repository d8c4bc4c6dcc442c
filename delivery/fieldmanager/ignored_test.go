package fieldmanager

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

func manifestOf(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := json.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestIgnoredFieldsAreCutOutOfAManifest(t *testing.T) {
	const web = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"shop","labels":{"a":"b","paas.kubeop.io/app":"web"}},` +
		`"spec":{"paused":true,"template":{"spec":{"containers":[{"name":"a","image":"x"},{"name":"b","image":"y"}]}}}}`
	containers := func(path ...string) []string {
		return append([]string{"spec", "template", "spec", "containers"}, path...)
	}
	for name, c := range map[string]struct {
		ignored [][]string
		want    string
	}{
		"nothing": {nil, web},
		"a field": {[][]string{{"spec", "paused"}}, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"shop","labels":{"a":"b","paas.kubeop.io/app":"web"}},` +
			`"spec":{"template":{"spec":{"containers":[{"name":"a","image":"x"},{"name":"b","image":"y"}]}}}}`},
		"a field of the last item of a list, and of the first": {[][]string{containers("1", "image"), containers("0", "name")}, `{"apiVersion":"apps/v1","kind":"Deployment",` +
			`"metadata":{"name":"web","namespace":"shop","labels":{"a":"b","paas.kubeop.io/app":"web"}},"spec":{"paused":true,"template":{"spec":{"containers":[{"image":"x"},{"name":"b"}]}}}}`},
		"what is not there": {[][]string{containers("2", "image"), containers("-1", "image"), containers("x", "image"), {"spec", "paused", "x"}, {"status", "x"}}, web},
		"an item of a list": {[][]string{containers("0")}, web},
		"another label": {[][]string{{"metadata", "labels", "a"}}, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"shop","labels":{"paas.kubeop.io/app":"web"}},` +
			`"spec":{"paused":true,"template":{"spec":{"containers":[{"name":"a","image":"x"},{"name":"b","image":"y"}]}}}}`},
		"what identifies the object and its owner": {[][]string{{"metadata"}, {"kind"}, {"apiVersion"}, {"spec"}},
			`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"shop","labels":{"paas.kubeop.io/app":"web"}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			o := manifestOf(t, web)
			got := Unmanaged{Ignored: c.ignored, Manifest: o}.Without(o)
			if diff := cmp.Diff(manifestOf(t, c.want).Object, got.Object); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if diff := cmp.Diff(manifestOf(t, web).Object, o.Object); diff != "" {
				t.Errorf("the manifest itself (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReplicasAreCutOutOfAManifest(t *testing.T) {
	const scaled = `{"kind":"Deployment","spec":{"paused":true,"replicas":2}}`
	for name, c := range map[string]struct{ manifest, want string }{
		"replicas":    {scaled, `{"kind":"Deployment","spec":{"paused":true}}`},
		"no replicas": {`{"kind":"Deployment","spec":{"paused":true}}`, `{"kind":"Deployment","spec":{"paused":true}}`},
		"no spec":     {`{"kind":"ConfigMap","data":{"replicas":"2"}}`, `{"kind":"ConfigMap","data":{"replicas":"2"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			o := manifestOf(t, c.manifest)
			if diff := cmp.Diff(manifestOf(t, c.want).Object, Unmanaged{Replicas: true}.Without(o).Object); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if diff := cmp.Diff(manifestOf(t, c.manifest).Object, o.Object); diff != "" {
				t.Errorf("the manifest itself (-want +got):\n%s", diff)
			}
		})
	}
	if o := manifestOf(t, scaled); (Unmanaged{}).Without(o) != o {
		t.Error("a manifest without unmanaged fields is copied")
	}
}

func TestIgnoredFieldsAreReleased(t *testing.T) {
	const manifest = `{"spec":{"paused":true,"ports":[{"port":80,"protocol":"TCP","name":"web"},{"port":443,"protocol":"TCP"}]}}`
	const ports = `{"f:spec":{"f:ports":{"k:{\"port\":443,\"protocol\":\"TCP\"}":{".":{},"f:name":{}},"k:{\"port\":80,\"protocol\":\"TCP\"}":{"f:name":{}}}}}`
	for name, c := range map[string]struct {
		path         []string
		fields, want string
		released     bool
	}{
		"a field among others":             {[]string{"spec", "paused"}, `{"f:spec":{"f:paused":{},"f:replicas":{}}}`, `{"f:spec":{"f:replicas":{}}}`, true},
		"the only field":                   {[]string{"spec", "paused"}, `{"f:spec":{"f:paused":{}}}`, `{}`, true},
		"a field that is not owned":        {[]string{"spec", "paused"}, `{"f:spec":{"f:replicas":{}}}`, `{"f:spec":{"f:replicas":{}}}`, false},
		"a field of nothing that is owned": {[]string{"status", "x"}, `{"f:spec":{"f:replicas":{}}}`, `{"f:spec":{"f:replicas":{}}}`, false},
		"the only field of an item":        {[]string{"spec", "ports", "0", "name"}, ports, `{"f:spec":{"f:ports":{"k:{\"port\":443,\"protocol\":\"TCP\"}":{".":{},"f:name":{}}}}}`, true},
		"a field of another item": {[]string{"spec", "ports", "1", "name"}, ports,
			`{"f:spec":{"f:ports":{"k:{\"port\":443,\"protocol\":\"TCP\"}":{".":{}},"k:{\"port\":80,\"protocol\":\"TCP\"}":{"f:name":{}}}}}`, true},
		"an item of a list":               {[]string{"spec", "ports", "0"}, ports, ports, false},
		"an item that is not there":       {[]string{"spec", "ports", "2", "name"}, ports, ports, false},
		"an item before the first":        {[]string{"spec", "ports", "-1", "name"}, ports, ports, false},
		"an item without an index":        {[]string{"spec", "ports", "x", "name"}, ports, ports, false},
		"an item that others own":         {[]string{"spec", "ports", "0", "name"}, `{"f:spec":{"f:ports":{"k:{\"port\":81}":{"f:name":{}}}}}`, `{"f:spec":{"f:ports":{"k:{\"port\":81}":{"f:name":{}}}}}`, false},
		"keys that cannot be decoded":     {[]string{"spec", "ports", "0", "name"}, `{"f:spec":{"f:ports":{"k:port":{"f:name":{}}}}}`, `{"f:spec":{"f:ports":{"k:port":{"f:name":{}}}}}`, false},
		"an item of a list without names": {[]string{"spec", "ports", "0", "name"}, `{"f:spec":{"f:ports":{"k:{}":{"f:name":{}}}}}`, `{"f:spec":{"f:ports":{"k:{}":{"f:name":{}}}}}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			entry := metav1.ManagedFieldsEntry{Manager: v1alpha1.FieldManager, Operation: metav1.ManagedFieldsOperationApply, FieldsV1: metav1.NewFieldsV1(c.fields)}
			unmanaged := Unmanaged{Ignored: [][]string{{"not", "there"}, c.path, {"neither"}}, Manifest: manifestOf(t, manifest)}
			if got := unmanaged.Release(&entry); got != c.released {
				t.Errorf("released is %t, want %t", got, c.released)
			}
			if diff := cmp.Diff(manifestOf(t, c.want).Object, manifestOf(t, string(entry.FieldsV1.GetRawBytes())).Object); diff != "" {
				t.Errorf("fields (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCertManagerInjectsCABundlesWhereAnnotationsSay(t *testing.T) {
	for name, c := range map[string]struct {
		version, annotation string
		want                bool
	}{
		"a webhook":                  {"admissionregistration.k8s.io/v1", "cert-manager.io/inject-ca-from", true},
		"from the API server":        {"apiregistration.k8s.io/v1", "cert-manager.io/inject-apiserver-ca", true},
		"another annotation":         {"admissionregistration.k8s.io/v1", "cert-manager.io/issuer", false},
		"a kind without CA bundles":  {"v1", "cert-manager.io/inject-ca-from", false},
		"a kind of another operator": {"example.com/v1", "cert-manager.io/inject-ca-from", false},
	} {
		t.Run(name, func(t *testing.T) {
			o := &unstructured.Unstructured{}
			o.SetAPIVersion(c.version)
			o.SetAnnotations(map[string]string{c.annotation: "web/web"})
			if got := InjectsCABundles(o); got != c.want {
				t.Errorf("got %t, want %t", got, c.want)
			}
		})
	}
}

func TestAnIgnoredFieldOfAListInAListIsReleased(t *testing.T) {
	const manifest = `{"spec":{"paused":true,"containers":[{"name":"a","env":[{"name":"x","value":"1"},{"name":"y","value":"2"}]}]}}`
	item := func(fields string) string {
		return `{"f:spec":{` + fields + `"f:containers":{"k:{\"name\":\"a\"}":{".":{},"f:env":{"k:{\"name\":\"y\"}":{`
	}
	entry := metav1.ManagedFieldsEntry{Manager: v1alpha1.FieldManager, Operation: metav1.ManagedFieldsOperationApply, FieldsV1: metav1.NewFieldsV1(item(`"f:paused":{},`) + `".":{},"f:value":{}}}}}}}`)}
	// An item itself is not released: the indexes of the following ones would change.
	ignored := [][]string{{"spec", "containers", "0", "env", "1", "value"}, {"spec", "containers", "0", "env", "1"}, {"spec", "paused"}}
	if !(Unmanaged{Ignored: ignored, Manifest: manifestOf(t, manifest)}).Release(&entry) {
		t.Error("nothing is released")
	}
	if diff := cmp.Diff(item("")+`".":{}}}}}}}`, string(entry.FieldsV1.GetRawBytes())); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
}
