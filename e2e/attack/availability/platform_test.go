//go:build e2e

package availability

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	schedulingv1 "k8s.io/api/scheduling/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// pod is an App with one pod and additional fields of its spec.
func pod(more string) func(*site) files {
	return func(s *site) files {
		return s.declare("  type: Raw\n  raw:\n    manifests:\n    - apiVersion: v1\n      kind: Pod\n      metadata: {name: " + s.app() + "}\n      spec:\n" +
			"        containers: [{name: a, image: " + platform.Cluster.Registry.Host + "/hello:v1,\n" +
			"          securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}}]\n" +
			"        securityContext: {runAsNonRoot: true, runAsUser: 65532, seccompProfile: {type: RuntimeDefault}}\n        " + more + "\n")
	}
}

// administrators creates a PriorityClass for others.
func administrators(ctx context.Context, _ *site) error {
	class := &schedulingv1.PriorityClass{Value: 1_000_000}
	class.Name = "administrators"
	return client.IgnoreAlreadyExists(platform.Client.Create(ctx, class))
}

// slowBodies keeps calls of another tenant's push hook open, with a body of one byte each second.
func slowBodies(ctx context.Context, _ *site) error {
	hook, err := url.Parse(platform.HookURL("beta"))
	if err != nil {
		return err
	}
	var open []net.Conn
	defer func() {
		for _, c := range open {
			_ = c.Close()
		}
	}()
	for range 64 {
		c, err := net.Dial("tcp", hook.Host)
		if err != nil {
			return err
		}
		open = append(open, c)
		head := "POST " + hook.Path + " HTTP/1.1\r\nHost: kubeop\r\nContent-Length: 1000\r\nX-Signature: sha256=00\r\n\r\n"
		if _, err := c.Write([]byte(head)); err != nil {
			return err
		}
	}
	for ctx.Err() == nil {
		for _, c := range open {
			if _, err := c.Write([]byte("x")); err != nil && !errors.Is(err, net.ErrClosed) {
				continue // The operator may close it.
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
	return nil
}

// requested are attacks on the API server and on the operator's ports.
var requested = box{"the API server and the push hook", []attack{
	{name: "a kind in lower case, in many apps that retry each second", key: "service",
		wants: []want{{of: "App", name: "service-0", message: "did you mean Service?"}}, push: apps(number(50, 150), func(n int) string {
			const spec = "  {type: Raw, retryInterval: 1s, raw: {manifests: [{apiVersion: v1, kind: service, metadata: {name: s%d}, spec: {ports: [{port: 80}]}}]}}\n"
			return fmt.Sprintf(spec, n)
		})},
	{name: "a PriorityClass for administrators", key: "priority", ready: administrators, push: pod("priorityClassName: administrators"),
		wants: appReports("", "priorit")},
	{name: "a pod that takes 30 years to end", key: "grace", push: pod("terminationGracePeriodSeconds: 1000000000"),
		wants: appReports("", "terminationGracePeriodSeconds")},
	{name: "an expression about a Secret by its kind in lower case", key: "secret",
		wants: []want{{of: "App", reason: "InvalidExpression", message: "Secret"}, {of: "Repository", message: "apps/secret/"}},
		push: source("  type: Raw\n  dependsOn: [{apiVersion: v1, kind: secret, name: git, readyExpr: \"dep.data.password == 'x'\"}]\n" +
			"  raw: {manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}]}\n")},
	{name: "slow bodies at another tenant's push hook", key: "bodies", does: slowBodies},
	{name: "unknown kinds in many apps that retry each second", key: "unknown",
		wants: []want{{of: "App", name: "unknown-0", message: "Thing"}}, push: apps(number(30, 100), func(n int) string {
			return fmt.Sprintf("  {type: Raw, retryInterval: 1s, raw: {manifests: [{apiVersion: example%d.com/v1, kind: Thing, metadata: {name: t}}]}}\n", n)
		})},
	{name: "an app above the quota, retried each second", key: "quota", wants: appReports("", "quota"), push: func(s *site) files {
		var services strings.Builder
		for n := range 110 {
			fmt.Fprintf(&services, "    - {apiVersion: v1, kind: Service, metadata: {name: q%d}, spec: {ports: [{port: 80}]}}\n", n)
		}
		return s.declare("  type: Raw\n  retryInterval: 1s\n  raw:\n    manifests:\n" + services.String())
	}},
}}
