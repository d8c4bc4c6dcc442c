package controllers

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

const leadsOut = ", type: ExternalName, externalName: orders.db.example"

// TestPoliciesListWhereServicesLead: what a Policy lists of external names and external IPs is allowed, to apps and to everybody else, until it is taken out of the list.
// What a Service has already stays.
func TestPoliciesListWhereServicesLead(t *testing.T) {
	n, bot := limited(t, "leading")
	try := func(name, fields string) func() error {
		text := strings.Replace(fmt.Sprintf(service, fields), "name: x", "name: "+name, 1)
		return func() error { return bot.Create(t.Context(), n.object(n.namespace(), text), client.DryRunAll) }
	}
	files := shopFiles("shop", "web")
	for path, text := range rawApp(strings.Replace(fmt.Sprintf(service, leadsOut), "name: x", "name: orders", 1)) {
		files["projects/shop/apps/orders/"+path] = strings.Replace(text, "\n  name: bad\n", "\n  name: orders\n", 1)
	}
	n.push(files)
	app := n.app("shop", "orders")
	n.states(app, v1alpha1.AllowedCondition, metav1.ConditionFalse, "Service/orders is of type ExternalName", "to list its domain in services.externalNames of a Policy")
	n.denied(try("a", leadsOut), "ExternalService: Service/a is of type ExternalName")
	n.denied(try("b", ", externalIPs: [192.0.2.17]"), "ExternalService: Service/b has spec.externalIPs")
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: n.namespace()}}
	if err := n.admin.Patch(t.Context(), ns, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"paas.kubeop.io/external-ips":"192.0.2.0/24"}}}`))); err != nil {
		t.Fatal(err)
	}
	n.eventually(func() error {
		if err := n.admin.Get(t.Context(), client.ObjectKeyFromObject(ns), ns); err != nil {
			return err
		}
		if value, there := ns.Annotations["paas.kubeop.io/external-ips"]; value != "" || !there {
			return fmt.Errorf("what an administrator wrote to the namespace holds: %q, there: %t", value, there)
		}
		return nil
	})
	n.denied(try("b", ", externalIPs: [192.0.2.17]"), "ExternalService: Service/b has spec.externalIPs")

	lists := setting("lists", func(s *v1alpha1.PolicySpec) {
		s.Services = &v1alpha1.ServiceRules{ExternalNames: []string{"db.example"}, ExternalIPs: []string{"192.0.2.16/28"}}
	})
	strict := setting("strict", func(s *v1alpha1.PolicySpec) {
		s.Services = &v1alpha1.ServiceRules{ExternalIPs: []string{"192.0.2.16/30"}}
	})
	n.under(lists, strict)
	n.ready(app)
	n.passes(try("a", leadsOut))
	n.passes(try("b", ", externalIPs: [192.0.2.17]"))
	n.denied(try("c", ", type: ExternalName, externalName: db.example.evil.example"), "Service/c")
	n.denied(try("d", ", externalIPs: [192.0.2.20]"), "Services: Service/d has the external IP 192.0.2.20", "spec.services.externalIPs of policy leading-strict")
	n.denied(try("e", ", externalIPs: [192.0.2.40]"), "Service/e")

	n.resets("lists", func(s *v1alpha1.PolicySpec) { s.Services = nil })
	n.denied(try("a", leadsOut), "ExternalService: Service/a is of type ExternalName")
	n.states(app, v1alpha1.AllowedCondition, metav1.ConditionFalse, "Service/orders is of type ExternalName")
	n.passes(func() error {
		return bot.Patch(t.Context(), n.object(n.namespace(), strings.Replace(fmt.Sprintf(service, ""), "name: x", "name: orders", 1)),
			client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"example.org/a":"b"}}}`)), client.DryRunAll)
	})
}

// TestPortsOfNodesAreThoseOfThePolicies: also of load balancers, and also those that the API server chooses, which are others first. Who may
// write Services in the whole cluster, as a Gateway's controller, leaves the ports of load balancers to the API server.
func TestPortsOfNodesAreThoseOfThePolicies(t *testing.T) {
	n, bot := limited(t, "porting")
	const balancer = "{apiVersion: v1, kind: Service, metadata: {name: %s}, spec: {type: LoadBalancer, %s}}"
	try := func(by client.Client, name, fields string) func() error {
		return func() error {
			return by.Create(t.Context(), n.object(n.namespace(), fmt.Sprintf(balancer, name, fields)), client.DryRunAll)
		}
	}
	allowed := func(try func() error) func() error {
		return func() error {
			if err := try(); err == nil || !strings.Contains(err.Error(), "exceeded quota") {
				return errors.Join(errors.New("the quota of the project, which comes after the policies, does not refuse it"), err)
			}
			return nil
		}
	}
	n.under(setting("ports", func(s *v1alpha1.PolicySpec) {
		s.Services = &v1alpha1.ServiceRules{NodePorts: []v1alpha1.NodePortRange{{Port: 30010, EndPort: 30019}}}
	}))
	const where = "; allowed are: 30010-30019. Name one in the Service. See spec.services.nodePorts of policy porting-ports"
	n.denied(try(bot, "a", "ports: [{port: 80}]"), "Services: Service/a has the node port ", where)
	n.denied(try(bot, "b", "ports: [{port: 80, nodePort: 31000}]"), "Services: Service/b has the node port 31000"+where)
	n.denied(try(bot, "c", "externalTrafficPolicy: Local, healthCheckNodePort: 31001, ports: [{port: 80, nodePort: 30010}]"), "Services: Service/c has the node port 31001"+where)
	n.passes(allowed(try(bot, "d", "ports: [{port: 80, nodePort: 30010}]")))
	n.passes(allowed(try(bot, "e", "allocateLoadBalancerNodePorts: false, ports: [{port: 80}]")))
	n.passes(allowed(try(n.admin, "f", "ports: [{port: 80}]")))
}
