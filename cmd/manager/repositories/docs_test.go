package repositories

import (
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestTheExamplesOfThePageRun: each command of docs/api/writing.md is answered below 400, and makes the commit that the page says.
func TestTheExamplesOfThePageRun(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Fatal("curl is missing: apt-get install curl")
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "api", "writing.md"))
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllSubmatch(page, -1)
	if len(blocks) != 3 {
		t.Fatalf("the page has %d examples", len(blocks))
	}
	s := newStage(t)
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	token := s.holder("ci", "tenant:acme:edit")
	run := func(script string, environment ...string) string {
		t.Helper()
		command := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", "curl() { command curl -sS --fail-with-body \"$@\"; }\n"+script) //nolint:gosec // The page is ours.
		command.Dir = t.TempDir()
		command.Env = append(os.Environ(), append(environment, "URL="+server.URL, "TOKEN="+token)...)
		out, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return string(out)
	}
	changes, deletion, _ := strings.Cut(string(blocks[0][1]), "curl -X DELETE")
	run(changes)
	if got := run(string(blocks[1][1])); !strings.Contains(got, `"plan":`) {
		t.Errorf("the plan is %s", got)
	}
	run("curl -X DELETE" + deletion)
	if got := s.acme.bare("log", "--format=%s", "main"); got != "Delete app acme/shop/api\nChange app acme/shop/api\nChange app acme/shop/api\nCreate app acme/shop/api\nfirst" {
		t.Errorf("the commits are\n%s", got)
	}
	if got := run(string(blocks[2][1]), "COMMIT="+s.acme.bare("rev-parse", "main")); !strings.Contains(got, `"state":"Pending"`) {
		t.Errorf("the commit is %s", got)
	}
}
