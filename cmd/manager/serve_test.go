package main

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"

	"github.com/kubeop/kubeop/internal/config"
	"github.com/kubeop/kubeop/internal/manager/live"
)

// TestWhatRuns: what the settings have, until when, and what ends the manager.
func TestWhatRuns(t *testing.T) {
	ends := map[end]string{atStop: "until it stops", afterDrain: "until it is drained", afterAPI: "until the API ended"}
	needs := map[need]string{vital: ", and the manager with it", optional: ""}
	all := []string{
		"API until it is drained, and the manager with it",
		"probes and metrics until the API ended, and the manager with it",
		"caches of the cluster until the API ended, and the manager with it",
		"certificate of the API until the API ended, and the manager with it",
		"sweep of what was fetched until the API ended",
		"sweep of the store until the API ended, led as sweep",
		"changes for webhooks until it stops, led as webhooks",
		"messages to webhooks until it stops",
		"usage of apps until the API ended, led as usage",
		"keys that sign JWTs until the API ended",
		"keys of issuers until the API ended",
	}
	least := append(append(append([]string{}, all[:3]...), all[4:6]...), all[9:]...)
	for name, c := range map[string]struct {
		manager *manager
		want    []string
	}{
		"all":   {&manager{services: &services{cluster: &live.Cluster{}, hooks: &hooks{}}, certificates: &certwatcher.CertWatcher{}, config: &config.Manager{Storage: config.Storage{UsageCluster: "local"}}}, all},
		"least": {&manager{services: &services{cluster: &live.Cluster{}}, config: &config.Manager{}}, least},
	} {
		var got []string
		for _, p := range c.manager.parts() {
			if p.run != nil {
				text := fmt.Sprintf("%s %s%s", p.name, ends[p.end], needs[p.need])
				if p.lead != "" {
					text += ", led as " + p.lead
				}
				got = append(got, text)
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s, -want +got:\n%s", name, diff)
		}
	}
}
