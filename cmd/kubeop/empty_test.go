package main

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/discovery"

	"github.com/kubeop/kubeop/controllers/plan"
)

// TestTheEmptyClusterServesWhatAnAPIServerServes: kubeop validate looks kinds up in a list of its own, without the
// APIServices, which no app may have. Those of kubeop have no stable version; controllers/plan compares them with the CustomResourceDefinitions.
func TestTheEmptyClusterServesWhatAnAPIServerServes(t *testing.T) {
	config, err := plan.Empty()
	if err != nil {
		t.Fatal(err)
	}
	empty, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	real, err := discovery.NewDiscoveryClientForConfig(env.Config)
	if err != nil {
		t.Fatal(err)
	}
	want, got := resources(t, real), resources(t, empty)
	for name, is := range want {
		if !strings.HasPrefix(name, "apiregistration.k8s.io") && got[name] != is {
			t.Errorf("%s is %q, want %q", name, got[name], is)
		}
	}
	for name, is := range got {
		if want[name] == "" {
			t.Errorf("%s (%s) is served, and by no API server", name, is)
		}
	}
}

// resources returns the scope and the kind of each resource that is served in a stable version, by version and name.
func resources(t *testing.T, client discovery.DiscoveryInterface) map[string]string {
	t.Helper()
	_, lists, err := client.ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, list := range lists {
		for _, r := range list.APIResources {
			stable := !strings.Contains(list.GroupVersion, "alpha") && !strings.Contains(list.GroupVersion, "beta")
			if stable && !strings.Contains(r.Name, "/") && slices.Contains(r.Verbs, "get") {
				all[list.GroupVersion+" "+r.Name] = map[bool]string{true: "namespaced ", false: "cluster-scoped "}[r.Namespaced] + r.Kind
			}
		}
	}
	return all
}
