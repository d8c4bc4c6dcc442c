package controllers

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// servesHost are objects of the Gateway API, each with a host, by the names of their apps.
func servesHost() map[string]string {
	const (
		route    = "{apiVersion: gateway.networking.k8s.io/%s, kind: %s, metadata: {name: %s}, spec: {hostnames: [%[3]s.gateways.example]}}"
		listener = "{apiVersion: %s, kind: %s, metadata: {name: %s}, spec: {gatewayClassName: x, listeners: [{name: a, port: 80, protocol: HTTP, hostname: %[3]s.gateways.example}]}}"
	)
	return map[string]string{
		"http": fmt.Sprintf(route, "v1", "HTTPRoute", "http"), "grpc": fmt.Sprintf(route, "v1", "GRPCRoute", "grpc"), "tls": fmt.Sprintf(route, "v1alpha2", "TLSRoute", "tls"),
		"gateway":   fmt.Sprintf(listener, "gateway.networking.k8s.io/v1", "Gateway", "gateway"),
		"listeners": fmt.Sprintf(listener, "gateway.networking.k8s.io/v1", "ListenerSet", "listeners"),
		"earlier":   fmt.Sprintf(listener, "gateway.networking.x-k8s.io/v1alpha1", "XListenerSet", "earlier"),
	}
}

// TestHostsOfTheGatewayAPIAreOfOneTenant: the hosts of routes and of listeners of an app are claimed. Another tenant's app with the same
// host is refused, and so is its deployer by the API server. The hosts are free when the app is gone.
func TestHostsOfTheGatewayAPIAreOfOneTenant(t *testing.T) {
	t.Parallel()
	one, two := teamOf(t, "gateone"), teamOf(t, "gatetwo")
	for _, n := range []*team{one, two} {
		n.push(shopFiles("shop", "first"))
		n.ready(n.app("shop", "first"))
		n.lets("gateways", "listenersets", "xlistenersets", "grpcroutes", "tlsroutes")
	}
	one.serveRoutes()
	var all []string
	hosts := map[string]string{}
	for name, object := range servesHost() {
		all = append(all, object)
		for path, text := range rawApp(object) {
			hosts["projects/shop/apps/"+name+"/"+path] = strings.Replace(text, "\n  name: bad\n", "\n  name: "+name+"\n", 1)
		}
	}
	one.push(map[string]string{"projects/shop/apps/bad/app.yaml": rawApp(all...)["app.yaml"]})
	one.until(one.app("shop", "bad"), v1alpha1.AppliedCondition, metav1.ConditionTrue, "")
	for name := range servesHost() {
		one.heldBy(name+".gateways.example", "gateone/shop")
	}

	two.push(hosts)
	deployer := two.as("system:serviceaccount:" + two.namespace() + ":" + v1alpha1.Deployer)
	for name, text := range servesHost() {
		object := two.object(two.namespace(), text)
		says := object.GetKind() + "/" + name + " has the host " + name + ".gateways.example, which "
		two.states(two.app("shop", name), v1alpha1.AllowedCondition, metav1.ConditionFalse, says+"another tenant has")
		two.denied(func() error { return deployer.Create(t.Context(), object.DeepCopy(), client.DryRunAll) }, "Hostnames: "+says+"is not among the host names that this project has")
	}
	two.silentAbout("gateone")

	one.push(map[string]string{"projects/shop/apps/bad": "-"})
	for name := range servesHost() {
		two.until(two.app("shop", name), v1alpha1.AppliedCondition, metav1.ConditionTrue, "")
		two.heldBy(name+".gateways.example", "gatetwo/shop")
	}
}
