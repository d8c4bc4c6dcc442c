package reach

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mattfenwick/cyclonus/pkg/matcher"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubeop/kubeop/cmd/kubeop/target"
	"github.com/kubeop/kubeop/internal/testenv/steptest"
)

const shopNamespace = "kubeop-acme-shop"

// TestAWorkloadStandsForOneOfItsPods: for one that runs and has an address, or for the pod that the workload would make.
func TestAWorkloadStandsForOneOfItsPods(t *testing.T) {
	named := metav1.ObjectMeta{Namespace: shopNamespace, Name: "web"}
	labels := map[string]string{"app": "web"}
	selector := &metav1.LabelSelector{MatchLabels: labels}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: map[string]string{"of": "template"}}}
	pod := func(name, ip string, ends bool, labels map[string]string) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: shopNamespace, Name: name, Labels: labels}, Status: corev1.PodStatus{PodIP: ip}}
		if ends {
			p.DeletionTimestamp, p.Finalizers = &metav1.Time{Time: metav1.Now().Time}, []string{"example.com/held"}
		}
		return p
	}
	workloads := map[string]client.Object{
		"Deployment":  &appsv1.Deployment{ObjectMeta: named, Spec: appsv1.DeploymentSpec{Selector: selector, Template: template}},
		"StatefulSet": &appsv1.StatefulSet{ObjectMeta: named, Spec: appsv1.StatefulSetSpec{Selector: selector, Template: template}},
		"DaemonSet":   &appsv1.DaemonSet{ObjectMeta: named, Spec: appsv1.DaemonSetSpec{Selector: selector, Template: template}},
	}
	for kind, workload := range workloads {
		for name, tc := range map[string]struct {
			pods []client.Object
			want string // its address, "template", or "none".
		}{
			"no pod":                   {nil, "template"},
			"one that runs":            {[]client.Object{pod("a", "10.0.0.1", false, labels)}, "10.0.0.1"},
			"one that has no address":  {[]client.Object{pod("a", "", false, labels), pod("b", "10.0.0.2", false, labels)}, "10.0.0.2"},
			"one that ends":            {[]client.Object{pod("a", "10.0.0.1", true, labels), pod("b", "10.0.0.2", false, labels)}, "10.0.0.2"},
			"all end":                  {[]client.Object{pod("a", "10.0.0.1", true, labels)}, "template"},
			"pods of another workload": {[]client.Object{pod("a", "10.0.0.1", false, map[string]string{"app": "api"})}, "template"},
			"a pod of the name":        {[]client.Object{pod("web", "10.0.0.3", false, nil)}, "10.0.0.3"},
		} {
			t.Run(kind+", "+name, func(t *testing.T) {
				f := &finder{reader: fake.NewClientBuilder().WithObjects(append(tc.pods, workload.DeepCopyObject().(client.Object))...).Build()}
				got, err := f.pod(t.Context(), client.ObjectKeyFromObject(workload))
				if err != nil {
					t.Fatal(err)
				}
				is := got.Status.PodIP
				if got.Annotations["of"] == "template" {
					is = "template"
				}
				if is != tc.want {
					t.Errorf("got %s, want %s", is, tc.want)
				}
			})
		}
	}
	f := &finder{reader: fake.NewClientBuilder().Build()}
	if got, err := f.pod(t.Context(), client.ObjectKey{Namespace: shopNamespace, Name: "web"}); got != nil || err != nil {
		t.Errorf("of nothing: %v, %v", got, err)
	}
}

// TestAnEndIsFoundOnlyIfEachAnswerOfTheClusterArrives, and has the address, the labels and the policies of its pod.
func TestAnEndIsFoundOnlyIfEachAnswerOfTheClusterArrives(t *testing.T) {
	labels := map[string]string{"app": "web"}
	inShop := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: shopNamespace, Name: name, Labels: labels}
	}
	api := fake.NewClientBuilder().WithObjects(
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: shopNamespace, Labels: map[string]string{"a": "b"}}},
		&appsv1.Deployment{ObjectMeta: inShop("web"), Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}}},
		&corev1.Pod{ObjectMeta: inShop("web-1"), Status: corev1.PodStatus{PodIP: "10.1.0.1"}},
		&networkingv1.NetworkPolicy{ObjectMeta: inShop("kubeop")},
	).Build()
	var found []*end
	if n := steptest.EachRequest(t, func(failing *steptest.Failing) (err error) {
		f := &finder{Connection: &target.Connection{Flags: genericclioptions.NewConfigFlags(false)}, reader: failing.Client(api)}
		found, err = f.find(t.Context(), "acme/shop/web")
		return err
	}); n != 5 || len(found) != 1 {
		t.Fatalf("%d requests find %d ends", n, len(found))
	}
	want := &matcher.TrafficPeer{IP: "10.1.0.1", Internal: &matcher.InternalPeer{Namespace: shopNamespace, NamespaceLabels: map[string]string{"a": "b"}, PodLabels: labels}}
	if diff := cmp.Diff(want, found[0].peer); diff != "" || len(found[0].policies) != 1 {
		t.Errorf("%d policies; -want +got:\n%s", len(found[0].policies), diff)
	}
	broken := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}}
	if _, err := (&finder{reader: api}).podOf(t.Context(), shopNamespace, broken, &corev1.PodTemplateSpec{}); err == nil {
		t.Error("a selector that cannot be read selects pods")
	}
}

// TestTheLabelsOfANamespaceThatMayNotBeRead are those that it must have.
func TestTheLabelsOfANamespaceThatMayNotBeRead(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "namespaces"}, shopNamespace, errors.New("no"))
	for name, tc := range map[string]struct {
		fails error
		want  map[string]string
		says  string
	}{
		"it may be read":     {nil, map[string]string{"a": "b"}, ""},
		"it may not":         {forbidden, map[string]string{"kubernetes.io/metadata.name": shopNamespace, "paas.kubeop.io/tenant": "acme", "paas.kubeop.io/project": "shop"}, ""},
		"the server is away": {errors.New("away"), nil, "reading namespace kubeop-acme-shop: away"},
	} {
		t.Run(name, func(t *testing.T) {
			namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: shopNamespace, Labels: map[string]string{"a": "b"}}}
			f := &finder{reader: fake.NewClientBuilder().WithObjects(namespace).WithInterceptorFuncs(interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
					if tc.fails != nil {
						return tc.fails
					}
					return c.Get(ctx, key, o, options...)
				},
			}).Build()}
			got, err := f.namespaceLabels(t.Context(), shopNamespace)
			if diff := cmp.Diff(tc.want, got); diff != "" || (err == nil) != (tc.says == "") || err != nil && err.Error() != tc.says {
				t.Errorf("%v; -want +got:\n%s", err, diff)
			}
		})
	}
}

// TestAConnectionHasThePortThatWasAskedForOrTheFirst of the pod, or 443, with the name that the pod gives it.
func TestAConnectionHasThePortThatWasAskedForOrTheFirst(t *testing.T) {
	const tcp, udp = corev1.ProtocolTCP, corev1.ProtocolUDP
	ports := []corev1.ContainerPort{{Name: "dns", ContainerPort: 53, Protocol: udp}, {Name: "http", ContainerPort: 80}, {Name: "quic", ContainerPort: 80, Protocol: udp}}
	for name, tc := range map[string]struct {
		ports    []corev1.ContainerPort
		number   int
		protocol corev1.Protocol
		want     port
	}{
		"the first":              {ports, 0, tcp, port{number: 53, protocol: udp, name: "dns"}},
		"the first, of TCP":      {ports[1:], 0, tcp, port{number: 80, protocol: tcp, name: "http"}},
		"none":                   {nil, 0, tcp, port{number: 443, protocol: tcp}},
		"one by number":          {ports, 80, tcp, port{number: 80, protocol: tcp, name: "http"}},
		"the same, of UDP":       {ports, 80, udp, port{number: 80, protocol: udp, name: "quic"}},
		"of another protocol":    {ports, 53, tcp, port{number: 53, protocol: tcp}},
		"of no protocol, by UDP": {ports[1:2], 80, udp, port{number: 80, protocol: udp}},
		"one that it has not":    {ports, 81, tcp, port{number: 81, protocol: tcp}},
		"a number, and no ports": {nil, 8080, udp, port{number: 8080, protocol: udp}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := (&end{ports: tc.ports}).at(tc.number, tc.protocol); got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}
