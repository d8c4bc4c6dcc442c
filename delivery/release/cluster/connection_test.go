package cluster

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/kubeop/kubeop/delivery/release/fault"
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
		if recorded := connection.Client.Faults.All(); (recorded != nil) != failed || failed && !fault.IsEnvironment(recorded) {
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
