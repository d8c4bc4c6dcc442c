package cluster

import (
	"os"
	"strings"
	"testing"
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
