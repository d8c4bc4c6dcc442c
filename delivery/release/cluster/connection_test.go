package cluster

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"helm.sh/helm/v3/pkg/storage/driver"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/kubeop/kubeop/delivery/release/cause"
)

// TestALookupThatTheEnvironmentFailsIsRecorded: Helm takes the failure for an object that does not exist, and the chart would be rendered as if
// it did not. A lookup that finds nothing is no failure.
func TestALookupThatTheEnvironmentFailsIsRecorded(t *testing.T) {
	for answer, failed := range map[int]bool{
		http.StatusOK: false, http.StatusNotFound: false, http.StatusForbidden: false, http.StatusTooManyRequests: true, http.StatusServiceUnavailable: true,
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(answer) }))
		defer server.Close()
		connection, err := Connect(Options{User: &rest.Config{Host: server.URL}, Release: types.NamespacedName{Namespace: "shop", Name: "web"}})
		if err != nil {
			t.Fatal(err)
		}
		config, err := connection.Getter.ToRESTConfig()
		if err != nil {
			t.Fatal(err)
		}
		client, err := rest.HTTPClientFor(config)
		if err != nil {
			t.Fatal(err)
		}
		res, err := client.Get(server.URL + "/api/v1/namespaces/shop/secrets/web")
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if recorded := connection.Client.Faults.All(); (recorded != nil) != failed || failed && !cause.IsEnvironment(recorded) {
			t.Errorf("an answer of %d: recorded %v", answer, recorded)
		}
	}
}

// TestAConnectionIsOfItsNamespace: Helm reads the namespace of objects without one from there.
func TestAConnectionIsOfItsNamespace(t *testing.T) {
	connection, err := Connect(Options{User: &rest.Config{Host: "http://localhost"}, Release: types.NamespacedName{Namespace: "shop", Name: "web"}})
	if err != nil {
		t.Fatal(err)
	}
	if got, _, err := connection.Getter.(*getter).ToRawKubeConfigLoader().Namespace(); err != nil || got != "shop" || connection.Client.Namespace != "shop" {
		t.Errorf("got %s and %s, %v", got, connection.Client.Namespace, err)
	}
}

// TestHelmWorksWithTheConnectionsOwnClients, and asks the shared discovery for what the cluster serves.
func TestHelmWorksWithTheConnectionsOwnClients(t *testing.T) {
	discovery, mapper := &counting{}, failingMapper{}
	logged := ""
	connection, err := Connect(Options{
		User: &rest.Config{Host: "http://user"}, Operator: &rest.Config{Host: "http://operator", QPS: 5},
		Kinds: NewKinds(discovery, mapper), Log: func(format string, _ ...any) { logged += format },
	})
	if err != nil {
		t.Fatal(err)
	}
	records := driver.NewMemory()
	config, err := connection.Configuration(records)
	if err != nil {
		t.Fatal(err)
	}
	if config.Log("a line"); logged != "a line" {
		t.Errorf("logged %q", logged)
	}
	if config.RESTClientGetter != connection.Getter || config.Releases.Driver != driver.Driver(records) || config.KubeClient != any(connection.Client) ||
		config.Capabilities == nil || config.Capabilities.KubeVersion.Version != "v1.1" || config.HookOutputFunc("", "", "") != io.Discard {
		t.Errorf("got %+v", config)
	}
	if got, err := connection.Getter.ToDiscoveryClient(); err != nil || got != discovery {
		t.Errorf("the discovery is %v, %v", got, err)
	}
	if got, err := connection.Getter.ToRESTMapper(); err != nil || got != mapper {
		t.Errorf("the mapper is %v, %v", got, err)
	}
	operator, err := connection.Client.operator()
	if err != nil || operator.config.Host != "http://operator" || operator.config.QPS != -1 {
		t.Errorf("the operator's clients are %+v, %v", operator, err)
	}
}
