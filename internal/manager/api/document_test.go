package api

import (
	"bytes"
	"encoding/json"
	"flag"
	"net/http"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write docs/api/openapi.json")

// TestTheDocumentOfTheAPIIsInTheRepository: the client in api/client is made of it, and clients in other languages can be.
func TestTheDocumentOfTheAPIIsInTheRepository(t *testing.T) {
	const file = "../../../docs/api/openapi.json"
	answer := newManager(t).as("", "GET", "/openapi.json", "")
	if answer.Code != http.StatusOK {
		t.Fatalf("%d %s", answer.Code, answer.Body)
	}
	var served bytes.Buffer
	if err := json.Indent(&served, answer.Body.Bytes(), "", "  "); err != nil {
		t.Fatal(err)
	}
	served.WriteByte('\n')
	if *update {
		if err := os.WriteFile(file, served.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	written, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(written), served.String()); diff != "" {
		t.Errorf("run make generate (-file +served):\n%s", diff)
	}
}
