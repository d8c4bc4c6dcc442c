package version

import (
	"encoding/json"
	"net/http/httptest"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTheHandlerAnswersWithTheBuild(t *testing.T) {
	answer := httptest.NewRecorder()
	Handler().ServeHTTP(answer, httptest.NewRequest("GET", "/version", nil))
	var got map[string]string
	if err := json.Unmarshal(answer.Body.Bytes(), &got); err != nil || answer.Header().Get("Content-Type") != "application/json" {
		t.Fatalf("%v: %s", err, answer.Body)
	}
	want := map[string]string{"service": "kubeop-operator", "version": Version, "commit": Commit, "go": runtime.Version()}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
