package controllers

import (
	"context"
	"fmt"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// TestRightsInANamespaceAllowNoWritesOfTheControlPlane tries, as an account and a person with every right in a project's namespace, what only Kubernetes and the
// platform write, and then the same as these.
func TestRightsInANamespaceAllowNoWritesOfTheControlPlane(t *testing.T) {
	n, bot := limited(t, "planes")
	n.reserve("web.planes.example")
	made := func(text string) client.Object {
		o := n.object(n.namespace(), text)
		n.create(o)
		return o
	}
	pod := made("{apiVersion: v1, kind: Pod, metadata: {name: x, labels: {x: z}}, spec: {" + podSpec + "}}")
	service := made("{apiVersion: v1, kind: Service, metadata: {name: x}, spec: {selector: {x: z}, ports: [{port: 80}]}}")
	ingress := made("{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: x}, spec: {rules: [{host: web.planes.example}]}}")
	deployer := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: n.namespace(), Name: v1alpha1.Deployer}}
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: n.namespace(), Name: "kubeop"}}
	status := func(o client.Object, patch string) func(context.Context, client.Client) error {
		return func(ctx context.Context, by client.Client) error {
			return by.SubResource("status").Patch(ctx, o.DeepCopyObject().(client.Object), merging(patch), client.DryRunAll)
		}
	}
	create := func(text string) func(context.Context, client.Client) error {
		return func(ctx context.Context, by client.Client) error {
			return by.Create(ctx, n.object(n.namespace(), text), client.DryRunAll)
		}
	}
	requests := map[string]struct {
		do func(context.Context, client.Client) error
		// want is what is refused. by is who makes the request otherwise: administrators by default, nobody if it is "-".
		want, by string
	}{
		"a token": {do: func(ctx context.Context, by client.Client) error {
			return by.SubResource("token").Create(ctx, deployer.DeepCopy(), &authenticationv1.TokenRequest{}, client.DryRunAll)
		}, want: "PlatformToken: TokenRequest/kubeop-deployer requests a token of service account kubeop-deployer", by: "system:node:a"},
		"a binding": {do: func(ctx context.Context, by client.Client) error {
			return by.SubResource("binding").Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: n.namespace(), Name: "x"}}, &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: "a"}}, client.DryRunAll)
		}, want: "ControlPlane: pods/binding x is refused", by: "system:kube-scheduler"},
		"a binding by its kind":       {create("{apiVersion: v1, kind: Binding, metadata: {name: x}, target: {kind: Node, name: a}}"), "ControlPlane: bindings x is refused", "system:kube-scheduler"},
		"Endpoints":                   {create("{apiVersion: v1, kind: Endpoints, metadata: {name: other}}"), "Endpoints: Endpoints/other is refused", "system:serviceaccount:kube-system:endpoint-controller"},
		"an EndpointSlice":            {create("{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: other}, addressType: IPv4, endpoints: []}"), "Endpoints: EndpointSlice/other is refused", ""},
		"the status of a pod":         {status(pod, `{"status":{"podIP":"10.0.0.9","podIPs":[{"ip":"10.0.0.9"}]}}`), "ControlPlane: pods/status x is refused", "system:node:a"},
		"a label of a pod":            {status(pod, `{"metadata":{"labels":{"paas.kubeop.io/tenant":"other"}}}`), "ControlPlane: pods/status x is refused", "-"},
		"an annotation of a Service":  {status(service, `{"metadata":{"annotations":{"external-dns.alpha.kubernetes.io/hostname":"www.example.com"}}}`), "ControlPlane: services/status x is refused", "-"},
		"an annotation of an Ingress": {status(ingress, `{"metadata":{"annotations":{"nginx.ingress.kubernetes.io/server-snippet":"a"}}}`), "ControlPlane: ingresses/status x is refused", "-"},
		"the status of a quota":       {status(quota, `{"status":{"hard":{"pods":"9999"}}}`), "ControlPlane: resourcequotas/status kubeop is refused", ""},
		"labels of the namespace": {do: func(ctx context.Context, by client.Client) error {
			return by.Patch(ctx, namespace(n.namespace()), merging(unlabelled), client.DryRunAll)
		}, want: "PlatformObject: Namespace/" + n.namespace()},
		"its status": {status(namespace(n.namespace()), unlabelled), "PlatformObject: Namespace/" + n.namespace(), "system:serviceaccount:kube-system:namespace-controller"},
		"an annotation that it may be deleted": {do: func(ctx context.Context, by client.Client) error {
			return by.Patch(ctx, namespace(n.namespace()), annotated(v1alpha1.AllowDeletionAnnotation, n.namespace()+"/with-data"), client.DryRunAll)
		}, want: "PlatformObject: Namespace/" + n.namespace()},
	}
	sibling := n.sibling()
	for name, r := range requests {
		t.Run(name, func(t *testing.T) {
			for _, by := range []client.Client{bot, n.as("jane-of-planes"), sibling} {
				n.denied(func() error { return r.do(t.Context(), by) }, r.want)
			}
			if r.by == "-" {
				return
			}
			by := n.admin
			if r.by != "" {
				by = n.masterful(r.by)
			}
			if err := r.do(t.Context(), by); err != nil {
				t.Errorf("by %q: %v", r.by, err)
			}
		})
	}
	n.writesEndpoints(requests["Endpoints"].do, bot, sibling)
	n.denied(func() error { return requests["an EndpointSlice"].do(t.Context(), bot) }, "Endpoints: EndpointSlice/other is refused")
	controller := n.cloudController()
	for _, name := range []string{"a binding", "the status of a pod", "an annotation of a Service"} {
		n.eventually(func() error { return requests[name].do(t.Context(), controller) })
	}
	n.denied(func() error { return requests["the status of a quota"].do(t.Context(), controller) }, "ControlPlane: resourcequotas/status kubeop is refused")
	n.eventually(func() error { // Kubernetes' own controllers write them on.
		slices := &discoveryv1.EndpointSliceList{}
		err := n.admin.List(t.Context(), slices, client.InNamespace(n.namespace()), client.MatchingLabels{discoveryv1.LabelServiceName: service.GetName()})
		if err == nil && len(slices.Items) == 0 {
			err = fmt.Errorf("Service %s has no EndpointSlice", service.GetName())
		}
		return err
	})
}

// unlabelled takes a namespace away from the policies that select it.
const unlabelled = `{"metadata":{"labels":{"paas.kubeop.io/tenant":null,"paas.kubeop.io/guardrails":null}}}`

// writesEndpoints checks that an account that the Tenant lists may write Endpoints, and that nobody else may.
func (n *team) writesEndpoints(write func(context.Context, client.Client) error, bot, sibling client.Client) {
	n.t.Helper()
	refused := func(by client.Client) {
		n.denied(func() error { return write(n.t.Context(), by) }, "Endpoints: Endpoints/other is refused")
	}
	n.tenanted(func(s *v1alpha1.TenantSpec) { s.EndpointsWriters = []string{"other/bot", "shop/bot"} })
	n.eventually(func() error { return write(n.t.Context(), bot) })
	refused(sibling)
	refused(n.as("jane-of-planes"))
	n.tenanted(func(s *v1alpha1.TenantSpec) { s.EndpointsWriters = []string{"other/bot", "shop/bo", "shop/bot2"} })
	refused(bot)
}

// sibling is an account of another project of the tenant with every right in the project's namespace. Nobody but the operator can give it that.
func (n *team) sibling() client.Client {
	n.t.Helper()
	user := "system:serviceaccount:" + v1alpha1.ProjectNamespace(n.name, "other") + ":bot"
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: n.namespace(), Name: "sibling"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, Name: user, APIGroup: rbacv1.GroupName}}}
	if err := n.masterful(operatorAccount).Create(n.t.Context(), binding); err != nil {
		n.t.Fatal(err)
	}
	return n.as(user)
}

// cloudController is a user who has some rights in the whole cluster, as the controllers of cloud providers have, and every right in the project's namespace.
func (n *team) cloudController() client.Client {
	n.t.Helper()
	const user = "cloud-controller-of-planes"
	subjects := []rbacv1.Subject{{Kind: rbacv1.UserKind, Name: user, APIGroup: rbacv1.GroupName}}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"pods/binding"}, Verbs: []string{"create"}},
		{APIGroups: []string{""}, Resources: []string{"pods/status", "services/status"}, Verbs: []string{"patch"}},
	}}
	for _, o := range []client.Object{
		role, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: user}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user}, Subjects: subjects},
		&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: n.namespace(), Name: user}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"}, Subjects: subjects},
	} {
		n.create(o)
	}
	return n.as(user)
}

// TestCloudControllersAddressServices: a controller with the right in the whole cluster says which address a Service takes, and creates Services without a class of load
// balancers. The deployer, an account of the tenant and a person, each with every right in the namespace only, may not. Of what else such a controller writes all is judged.
func TestCloudControllersAddressServices(t *testing.T) {
	n, bot := limited(t, "clouds")
	n.under(v1alpha1.Policy{ObjectMeta: metav1.ObjectMeta{Name: "inside"}, Spec: v1alpha1.PolicySpec{
		PolicyRules: v1alpha1.PolicyRules{Services: &v1alpha1.ServiceRules{LoadBalancerClasses: []string{"internal.example.com/lb"}}},
	}})
	service := n.object(n.namespace(), "{apiVersion: v1, kind: Service, metadata: {name: x}, spec: {ports: [{port: 80}]}}")
	n.create(service)
	patch := func(text string) func(client.Client) error {
		return func(by client.Client) error {
			return by.Patch(t.Context(), service.DeepCopyObject().(client.Object), merging(text), client.DryRunAll)
		}
	}
	create := func(text string) func(client.Client) error {
		return func(by client.Client) error {
			err := by.Create(t.Context(), n.object(n.namespace(), "{apiVersion: v1, kind: Service, metadata: {name: made}, spec: {ports: [{port: 80}], "+text+"}}"), client.DryRunAll)
			if err != nil && strings.Contains(err.Error(), "exceeded quota: kubeop") {
				return nil // Every policy allows it.
			}
			return err
		}
	}
	deployer := n.as("system:serviceaccount:" + n.namespace() + ":" + v1alpha1.Deployer)
	controller := n.everywhere("system:serviceaccount:kube-system:cloud-of-clouds")
	tries := map[string]struct {
		do   func(client.Client) error
		want string
	}{
		"an address":                       {patch(`{"spec":{"loadBalancerIP":"192.0.2.7"}}`), "ExternalService: Service/x has spec.loadBalancerIP"},
		"an address of kube-vip":           {patch(`{"metadata":{"annotations":{"kube-vip.io/loadbalancerIPs":"192.0.2.7"}}}`), "IngressAnnotation: Service/x has the annotation kube-vip.io/loadbalancerIPs"},
		"a load balancer of DigitalOcean":  {patch(`{"metadata":{"annotations":{"kubernetes.digitalocean.com/load-balancer-id":"a"}}}`), "IngressAnnotation: Service/x has the annotation kubernetes.digitalocean.com/load-balancer-id"},
		"a load balancer without a class":  {create("type: LoadBalancer"), "Services: Service/made names no loadBalancerClass"},
		"a load balancer with its address": {create("type: LoadBalancer, loadBalancerClass: internal.example.com/lb, loadBalancerIP: 192.0.2.7"), "ExternalService: Service/made has spec.loadBalancerIP"},
	}
	for name, try := range tries {
		t.Run(name, func(t *testing.T) {
			for _, by := range []client.Client{bot, n.as("jane-of-clouds"), deployer} {
				n.denied(func() error { return try.do(by) }, try.want)
			}
			n.eventually(func() error { return try.do(controller) })
		})
	}
	n.denied(func() error { return create("type: LoadBalancer, loadBalancerClass: example.com/other")(controller) }, "Services: Service/made has loadBalancerClass example.com/other")
	n.denied(func() error { return patch(`{"spec":{"externalIPs":["192.0.2.7"]}}`)(controller) }, "ExternalService: Service/x has spec.externalIPs")
	n.denied(func() error {
		return patch(`{"metadata":{"annotations":{"haproxy.org/backend-config-snippet":"a"}}}`)(controller)
	}, "IngressAnnotation: Service/x has the annotation haproxy.org/backend-config-snippet")
}

// everywhere is a user who may create and update Services in the whole cluster, as the controllers of clouds and of Gateways may.
func (n *team) everywhere(user string) client.Client {
	n.t.Helper()
	name := "services-of-" + n.name
	n.create(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"services"}, Verbs: []string{"create", "patch", "update"}}}})
	n.create(&rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, Name: user, APIGroup: rbacv1.GroupName}},
	})
	return n.as(user)
}
