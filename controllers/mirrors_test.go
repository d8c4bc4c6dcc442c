package controllers

import (
	"encoding/base64"
	"net"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// TestAppsComeFromAMirror of a registry that is down, with the credentials of the mirror's own Registry and never with those of the host. Without
// the mirror, apps say that the host does not answer.
func TestAppsComeFromAMirror(t *testing.T) {
	l := newLocked(t)
	n := newTeam(t, "mirrored")
	mirror, down := l.Listener.Addr().String(), unused(t)
	l.publish("1.0.0", "of-the-mirror")
	n.source("mirror", mirror, "of-the-mirror")
	n.source("upstream", down, "of-the-upstream")
	upstream, own := registryFor("upstream", down, n.name), registryFor("mirror", mirror, n.name)
	upstream.Spec.Insecure, own.Spec.Insecure = true, true
	for _, registry := range []*v1alpha1.Registry{upstream, own} {
		n.create(registry)
		t.Cleanup(func() { _ = n.admin.Delete(t.Context(), registry) })
	}
	n.push(appsOf(down, ""))
	n.until(n.app("shop", "artifact"), v1alpha1.SourceReadyCondition, metav1.ConditionFalse, v1alpha1.FetchFailedReason)

	n.edit(upstream, `{"spec":{"mirror":"`+mirror+`"}}`)
	l.delivered(n, "1.0.0")
	n.silent("of-the-mirror", "of-the-upstream", base64.StdEncoding.EncodeToString([]byte("robot:of-the-mirror")))

	l.publish("1.1.0", "changed")
	n.source("mirror", mirror, "changed")
	n.copyHas("mirror", mirror, "changed")
	for _, app := range []string{"chart", "artifact", "image"} {
		n.reconcile(n.app("shop", app))
	}
	l.delivered(n, "1.1.0")

	gone := unused(t)
	n.edit(upstream, `{"spec":{"mirror":"`+gone+`"}}`)
	artifact := n.app("shop", "artifact")
	n.reconcile(artifact)
	message := n.until(artifact, v1alpha1.SourceReadyCondition, metav1.ConditionFalse, v1alpha1.FetchFailedReason)
	if !strings.Contains(message, down+" gives no answer") || !strings.Contains(message, "; its mirror "+gone+" was asked first: ") {
		t.Errorf("the message is %q", message)
	}
}

// unused is an address at which nothing listens.
func unused(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}
