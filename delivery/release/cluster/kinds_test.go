package cluster

import (
	"fmt"
	"os"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"
)

func TestChartsSeeTheHelmVersionOfGoMod(t *testing.T) {
	mod, err := os.ReadFile("../../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(mod), "\n\thelm.sh/helm/v3 "+helmVersion+"\n") {
		t.Errorf("go.mod has another version of Helm than %s", helmVersion)
	}
}

// counting is a discovery whose version and kinds are asked for.
type counting struct {
	discovery.CachedDiscoveryInterface
	asked, invalidated int
}

func (c *counting) ServerVersion() (*version.Info, error) {
	c.asked++
	return &version.Info{Major: "1", Minor: fmt.Sprint(c.asked), GitVersion: "v1." + fmt.Sprint(c.asked)}, nil
}

func (c *counting) ServerGroupsAndResources() ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
	group := metav1.APIGroup{Name: "example.com", Versions: []metav1.GroupVersionForDiscovery{{GroupVersion: fmt.Sprintf("example.com/v%d", c.asked)}}}
	return []*metav1.APIGroup{&group}, nil, nil
}

func (c *counting) Invalidate() { c.invalidated++ }

// TestChartsSeeKindsThatCameAfterARefresh, and the cluster is asked only then.
func TestChartsSeeKindsThatCameAfterARefresh(t *testing.T) {
	cluster := &counting{}
	kinds := NewKinds(cluster, nil)
	for pass := range 3 {
		for range 2 {
			caps, err := kinds.Capabilities()
			if err != nil {
				t.Fatal(err)
			}
			if want := fmt.Sprintf("example.com/v%d", pass+1); !caps.APIVersions.Has(want) || caps.KubeVersion.Minor != fmt.Sprint(pass+1) || cluster.asked != pass+1 {
				t.Errorf("after %d refreshes: %v of %s, asked %d times", pass, caps.APIVersions, caps.KubeVersion.Version, cluster.asked)
			}
		}
		if kinds.Refresh(); cluster.invalidated != pass+1 {
			t.Errorf("the discovery was invalidated %d times, want %d", cluster.invalidated, pass+1)
		}
	}
}
