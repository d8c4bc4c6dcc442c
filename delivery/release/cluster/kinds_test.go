package cluster

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
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
	// noVersion and noKinds are the errors of the two questions.
	noVersion, noKinds error
}

func (c *counting) ServerVersion() (*version.Info, error) {
	if c.noVersion != nil {
		return nil, c.noVersion
	}
	c.asked++
	return &version.Info{Major: "1", Minor: fmt.Sprint(c.asked), GitVersion: "v1." + fmt.Sprint(c.asked)}, nil
}

func (c *counting) ServerGroupsAndResources() ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
	group := metav1.APIGroup{Name: "example.com", Versions: []metav1.GroupVersionForDiscovery{{GroupVersion: fmt.Sprintf("example.com/v%d", c.asked)}}}
	return []*metav1.APIGroup{&group}, nil, c.noKinds
}

func (c *counting) Invalidate() { c.invalidated++ }

// resettable is a mapper that counts how often it was reset.
type resettable struct {
	meta.ResettableRESTMapper
	resets int
}

func (m *resettable) Reset() { m.resets++ }

// TestChartsSeeKindsThatCameAfterARefresh, and the cluster is asked only then.
func TestChartsSeeKindsThatCameAfterARefresh(t *testing.T) {
	cluster, mapper := &counting{}, &resettable{}
	kinds := NewKinds(cluster, mapper)
	for pass := range 3 {
		for range 2 {
			caps, err := kinds.Capabilities()
			if err != nil {
				t.Fatal(err)
			}
			if want := fmt.Sprintf("example.com/v%d", pass+1); !caps.APIVersions.Has(want) || caps.KubeVersion.Minor != fmt.Sprint(pass+1) || caps.KubeVersion.Major != "1" ||
				caps.KubeVersion.Version != "v1."+fmt.Sprint(pass+1) || caps.HelmVersion.Version != helmVersion || cluster.asked != pass+1 {
				t.Errorf("after %d refreshes: %v of %s, asked %d times", pass, caps.APIVersions, caps.KubeVersion.Version, cluster.asked)
			}
		}
		if kinds.Refresh(); cluster.invalidated != pass+1 || mapper.resets != pass+1 {
			t.Errorf("the discovery was invalidated %d times and the mapper %d times, want %d", cluster.invalidated, mapper.resets, pass+1)
		}
	}
}

// TestACapabilityThatCannotBeAskedForIsAnError that says which, and the next use asks again.
func TestACapabilityThatCannotBeAskedForIsAnError(t *testing.T) {
	away := errors.New("no API server")
	for says, cluster := range map[string]*counting{
		"asking for the cluster's version: no API server": {noVersion: away},
		"asking for the cluster's APIs: ":                 {noKinds: away},
	} {
		kinds := NewKinds(cluster, nil)
		if _, err := kinds.Capabilities(); !errors.Is(err, away) || !strings.HasPrefix(err.Error(), says) {
			t.Errorf("got %v, want %q", err, says)
		}
		cluster.noVersion, cluster.noKinds = nil, nil
		if _, err := kinds.Capabilities(); err != nil {
			t.Errorf("%s: later it is still an error: %v", says, err)
		}
	}
}
