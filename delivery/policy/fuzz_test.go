package policy

import (
	"errors"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/delivery/render/manifests"
)

// FuzzCheck: whatever can be parsed is judged, and each refusal is a Violation on a line of its own.
func FuzzCheck(f *testing.F) {
	for _, seed := range []string{
		clusterRole,
		`{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {externalIPs: x}}`,
		`{apiVersion: v1, kind: Secret, type: kubernetes.io/service-account-token, metadata: {name: a, annotations: {kubernetes.io/service-account.name: kubeop-deployer}}}`,
		`{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: a}, subjects: [1, {kind: Group, name: "system:masters"}]}`,
		`{apiVersion: v1, kind: Pod, metadata: {name: "a\nb", finalizers: [1], labels: {paas.kubeop.io/x: y}}, spec: {serviceAccountName: kubeop-x}}`,
		`{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {tolerations: [1, {key: 2}], affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [1, {namespaces: [3]}]}}, nodeName: 4, containers: []}}`,
		`{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: a, annotations: {a/b/c-snippet: 1, x-secret: "a\nb/c"}}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		objects, err := manifests.Folder(fstest.MapFS{"a.yaml": {Data: text}}, ".", budget.App{})
		if err != nil {
			return
		}
		err = Check(objects, Bounds{Namespace: namespace}, scope)
		if err == nil || errors.Is(err, errOffline) {
			return
		}
		refused := err.(interface{ Unwrap() []error }).Unwrap()
		if lines := strings.Count(err.Error(), "\n") + 1; lines != len(refused) {
			t.Errorf("%d violations on %d lines: %v", len(refused), lines, err)
		}
		var violation *Violation
		if !errors.As(err, &violation) {
			t.Errorf("%v is no Violation", err)
		}
	})
}
