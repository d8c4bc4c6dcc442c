package controllers

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/internal/digestkey"
	"github.com/kubeop/kubeop/internal/testenv"
)

// TestStatusesHoldNoPlainDigest: with a plain digest, a reader of the status could test guesses of a Secret's content. The key is recreated when
// somebody deletes it.
func TestStatusesHoldNoPlainDigest(t *testing.T) {
	n := newTeam(t, "sealed")
	files := shopFiles("shop", "web")
	files["projects/shop/apps/chart/app.yaml"] = "apiVersion: paas.kubeop.io/v1alpha1\nkind: App\nmetadata: {name: chart}\n" +
		"spec: {type: Helm, helm: {path: chart, values: {greeting: hello}}}\n"
	files["projects/shop/apps/chart/chart/Chart.yaml"] = "apiVersion: v2\nname: chart\nversion: 1.0.0\n"
	files["projects/shop/apps/chart/chart/templates/all.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: chart}\ndata: {greeting: {{ .Values.greeting }}}\n"
	n.push(files)
	web, chart := n.app("shop", "web"), n.app("shop", "chart")
	n.ready(web, chart)
	for _, e := range web.Status.Inventory.Entries {
		if !strings.HasPrefix(e.Digest, "h") {
			t.Errorf("the status shows the plain digest of %s: %s", e.ID, e.Digest)
		}
	}
	if len(web.Status.Inventory.Entries) == 0 || len(chart.Status.History) == 0 {
		t.Fatalf("the statuses have no digests: %+v, %+v", web.Status, chart.Status)
	}
	digests := map[string]string{"the deployed revision": chart.Status.Release.Content}
	for _, h := range chart.Status.History {
		digests["values"], digests[fmt.Sprint("revision ", h.Revision)] = h.ValuesDigest, h.Digest
	}
	for of, digest := range digests {
		if !strings.HasPrefix(digest, "hmac-sha256:") {
			t.Errorf("the status shows the plain digest of %s: %s", of, digest)
		}
	}
	key := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: testenv.Namespace, Name: digestkey.Name}}
	if err := n.admin.Get(t.Context(), client.ObjectKeyFromObject(key), key); err != nil {
		t.Fatal(err)
	}
	before := key.DeepCopy()
	n.delete(key)
	n.eventually(func() error {
		if err := n.admin.Get(t.Context(), client.ObjectKeyFromObject(key), key); err != nil {
			return err
		}
		was, _ := json.Marshal(before.Data)
		if is, _ := json.Marshal(key.Data); string(was) != string(is) {
			t.Error("the recreated key differs from the deleted one")
		}
		return nil
	})
}
