//go:build e2e

package accidents

import (
	"context"
	"encoding/json"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/e2e/stage"
)

// backup contains objects as a backup tool saves them: without UIDs, owners, field managers and statuses.
type backup []*unstructured.Unstructured

// backUp saves the objects that "kubectl get" returns.
func (s *subject) backUp(get string) backup {
	s.t.Helper()
	out, err := platform.Kubectl(s.t.Context(), words(s.expand("get "+get+" --output json"))...)
	s.must(err)
	var list struct{ Items []map[string]any }
	s.must(json.Unmarshal([]byte(out), &list))
	var saved backup
	for _, content := range list.Items {
		o := &unstructured.Unstructured{Object: content}
		for _, field := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "ownerReferences"} {
			unstructured.RemoveNestedField(content, "metadata", field)
		}
		delete(content, "status")
		annotations := o.GetAnnotations()
		for _, mark := range []string{"pv.kubernetes.io/bind-completed", "pv.kubernetes.io/bound-by-controller", v1alpha1.AllowDeletionAnnotation, v1alpha1.VolumesRetainedAnnotation} {
			delete(annotations, mark)
		}
		o.SetAnnotations(annotations)
		saved = append(saved, o)
	}
	if len(saved) == 0 {
		s.t.Fatalf("there is nothing to back up: %s", get)
	}
	return saved
}

// backupTool is the user that restores. Admission lets it set kubeop's labels.
const backupTool = "backup-tool"

// restore creates the objects that do not exist. The API server takes a moment until it judges by restored Guardrails.
func (s *subject) restore(saved backup) {
	s.t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", platform.Cluster.Kubeconfig)
	s.must(err)
	config.Impersonate = rest.ImpersonationConfig{UserName: backupTool, Groups: []string{"system:masters"}}
	tool, err := client.New(config, client.Options{})
	s.must(err)
	for _, o := range saved {
		s.must(stage.Until(s.t.Context(), 20*time.Second, "restoring "+o.GetKind()+"/"+o.GetName(), func(ctx context.Context) error {
			return client.IgnoreAlreadyExists(tool.Create(ctx, o.DeepCopy(), client.FieldOwner(backupTool)))
		}))
	}
}

// lose deletes objects without any reaction: it sets the annotation that allows the deletion and removes finalizers.
func (s *subject) lose(saved backup) {
	s.t.Helper()
	for _, o := range saved {
		change, err := json.Marshal(map[string]any{"metadata": map[string]any{
			"finalizers": nil, "annotations": map[string]string{v1alpha1.AllowDeletionAnnotation: o.GetName()}}})
		s.must(err)
		gone := o.DeepCopy()
		s.must(platform.Client.Patch(s.t.Context(), gone, client.RawPatch("application/merge-patch+json", change)))
		s.must(platform.Client.Delete(s.t.Context(), gone))
	}
}

// release makes a volume available to a new claim with the name of the old one.
func (s *subject) release(volume string) {
	kubectl(`patch pv ` + volume + ` --type=merge -p {"spec":{"claimRef":{"uid":null,"resourceVersion":null}}}`)(s)
}

// operatorDown stops the operator, and operatorUp starts it.
func operatorDown(s *subject) {
	kubectl("scale deployment kubeop -n " + stage.Namespace + " --replicas=0")(s)
	kubectl("wait pods -n " + stage.Namespace + " -l app.kubernetes.io/name=kubeop --for=delete --timeout=60s")(s)
}

func operatorUp(s *subject) {
	kubectl("scale deployment kubeop -n " + stage.Namespace + " --replicas=1")(s)
	operatorReady(s)
}
