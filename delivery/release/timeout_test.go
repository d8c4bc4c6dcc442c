package release

import (
	"io"
	"testing"
	"time"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/kube"
	"helm.sh/helm/v3/pkg/kube/fake"
	"helm.sh/helm/v3/pkg/storage"
	"helm.sh/helm/v3/pkg/storage/driver"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubeop/kubeop/delivery/release/cluster"
	"github.com/kubeop/kubeop/delivery/release/manifest"
)

// waits remembers how long hooks may take.
type waits struct {
	fake.PrintingKubeClient
	hook time.Duration
}

func (w *waits) WatchUntilReady(_ kube.ResourceList, timeout time.Duration) error {
	w.hook = timeout
	return nil
}

// TestAnActionHasItsOwnTimeout, or else that of the app, and messages name the field that sets it.
func TestAnActionHasItsOwnTimeout(t *testing.T) {
	minute := &metav1.Duration{Duration: time.Minute}
	for name, tc := range map[string]struct {
		install, upgrade                   *metav1.Duration
		wantInstall, wantUpgrade           time.Duration
		wantInstallField, wantUpgradeField string
	}{
		"neither has one":     {nil, nil, time.Hour, time.Hour, "spec.timeout", "spec.timeout"},
		"the install has one": {minute, nil, time.Minute, time.Hour, "spec.helm.install.timeout", "spec.timeout"},
		"the upgrade has one": {nil, minute, time.Hour, time.Minute, "spec.timeout", "spec.helm.upgrade.timeout"},
	} {
		t.Run(name, func(t *testing.T) {
			hook := &chart.Chart{Metadata: &chart.Metadata{APIVersion: chart.APIVersionV2, Name: "web", Version: "1.0.0"}, Templates: []*chart.File{{
				Name: "templates/hook.yaml", Data: []byte("apiVersion: v1\nkind: Pod\nmetadata: {name: a, annotations: {helm.sh/hook: 'pre-install,pre-upgrade'}}\n"),
			}}}
			client := &waits{PrintingKubeClient: fake.PrintingKubeClient{Out: io.Discard, LogOutput: io.Discard}}
			p := &pass{request: Request{Name: "web", Namespace: "team", Timeout: time.Hour}}
			p.request.Actions.Install.Timeout, p.request.Actions.Upgrade.Timeout = tc.install, tc.upgrade
			s := &session{
				pass: p, conn: &cluster.Connection{Client: &cluster.Client{}},
				gate:   manifest.NewGate(func([]*unstructured.Unstructured) error { return nil }, nil, nil, nil),
				config: &action.Configuration{Releases: storage.Init(driver.NewMemory()), KubeClient: client, Capabilities: chartutil.DefaultCapabilities, Log: func(string, ...any) {}},
			}
			if _, err := s.install(hook); err != nil {
				t.Fatal(err)
			}
			if field := s.conn.Client.Terms.TimeoutField; client.hook != tc.wantInstall || field != tc.wantInstallField {
				t.Errorf("the install may take %s by %s, want %s by %s", client.hook, field, tc.wantInstall, tc.wantInstallField)
			}
			if _, err := s.upgrade(hook); err != nil {
				t.Fatal(err)
			}
			if field := s.conn.Client.Terms.TimeoutField; client.hook != tc.wantUpgrade || field != tc.wantUpgradeField {
				t.Errorf("the upgrade may take %s by %s, want %s by %s", client.hook, field, tc.wantUpgrade, tc.wantUpgradeField)
			}
		})
	}
}
