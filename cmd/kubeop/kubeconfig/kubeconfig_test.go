package kubeconfig

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kubeop/kubeop/cmd/kubeop/call"
)

// manager answers as a manager does. Each of its tokens is valid for an hour.
type manager struct {
	*httptest.Server
	t       *testing.T
	clock   *clocktesting.FakeClock
	folder  string
	deleted bool
	// given is how many tokens it gave.
	given int
	// id is that of the next kubeconfig.
	id string
	// asked are the requests: method, path, and the role and the ttl of the body.
	asked []string
	one   sync.Mutex
}

func newManager(t *testing.T) *manager {
	t.Helper()
	m := &manager{t: t, clock: clocktesting.NewFakeClock(time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)), folder: filepath.Join(t.TempDir(), "kept"), id: "a"}
	m.Server = httptest.NewServer(http.HandlerFunc(m.answer))
	t.Cleanup(m.Close)
	t.Setenv("KUBEOP_TOKEN", "kubeop_x")
	return m
}

func (m *manager) answer(w http.ResponseWriter, r *http.Request) {
	m.one.Lock()
	defer m.one.Unlock()
	var body struct{ Role, TTL string }
	if r.ContentLength > 0 {
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			m.t.Error(err)
		}
	}
	m.asked = append(m.asked, strings.TrimSpace(r.Method+" "+r.URL.String()+" "+body.Role+" "+body.TTL))
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.URL.Path == "/v1/kubeconfig":
		_, _ = fmt.Fprintf(w, `{"contexts": [%s], "kubeconfig": "kind: Config\n"}`, map[bool]string{true: "", false: `"acme/shop"`}[r.URL.Query().Get("role") == "admin"])
	case strings.HasSuffix(r.URL.Path, "/token") && m.deleted:
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusNotFound)
		_, _ = fmt.Fprint(w, `{"type": "urn:kubeop:problem:not-found", "title": "x", "status": 404, "code": "not-found"}`)
	case r.Method == http.MethodDelete:
		w.WriteHeader(http.StatusNoContent)
	default:
		m.given++
		w.WriteHeader(http.StatusCreated)
		_, _ = fmt.Fprintf(w, `{"id": %[4]q, "tenant": "acme", "project": "shop", "role": "edit", "created": %[1]q, "createdBy": "x", "expires": %[2]q, "token": "secret %[3]d", "kubeconfig": ""}`,
			m.clock.Now().Format(time.RFC3339), m.clock.Now().Add(time.Hour).Format(time.RFC3339), m.given, m.id)
	}
}

// run runs a command, and returns what it wrote.
func (m *manager) run(of func(*call.Call) *cobra.Command, args ...string) (string, error) {
	m.t.Helper()
	var out bytes.Buffer
	c := call.New(genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: io.Discard}, m.clock)
	command := of(c)
	c.AddFlags(command.Flags())
	command.SilenceErrors, command.SilenceUsage = true, true
	command.SetArgs(append(args, "--server", m.URL))
	err := command.ExecuteContext(m.t.Context())
	return out.String(), err
}

// token runs the command token, and returns the token and when it is said to end.
func (m *manager) token(args ...string) string {
	m.t.Helper()
	out, err := m.run(Token, append([]string{"acme/shop", "--role", "edit", "--cache", m.folder}, args...)...)
	if err != nil {
		m.t.Fatal(err)
	}
	var credential struct {
		APIVersion, Kind string
		Status           struct {
			Token               string
			ExpirationTimestamp time.Time
		}
	}
	if err := json.Unmarshal([]byte(out), &credential); err != nil {
		m.t.Fatalf("%v: %s", err, out)
	}
	if credential.APIVersion != "client.authentication.k8s.io/v1" || credential.Kind != "ExecCredential" || !credential.Status.ExpirationTimestamp.After(m.clock.Now()) {
		m.t.Errorf("it writes %s", out)
	}
	return credential.Status.Token
}

// TestATokenIsUsedUntilItEnds: the file has it for the next call, which gets another one a minute before it ends.
func TestATokenIsUsedUntilItEnds(t *testing.T) {
	m := newManager(t)
	const all = "POST /v1/projects/acme/shop/kubeconfigs"
	for _, step := range []struct {
		name   string
		after  time.Duration
		args   []string
		before func()
		asked  string // "": nothing.
	}{
		{"the first one", 0, nil, nil, all + " edit 1h"},
		{"again", time.Minute, nil, nil, ""},
		{"with a quarter of its life left, and a moment", 43*time.Minute + 59*time.Second, nil, nil, ""},
		{"with a quarter left", time.Second, nil, nil, all + "/a/token"},
		{"a minute before the end of that one", 59 * time.Minute, nil, nil, all + "/a/token"},
		{"another life", 0, []string{"--ttl", "2h"}, nil, all + " edit 2h"},
		{"the first life again", 0, nil, nil, ""},
		{"another identity", 0, nil, func() { t.Setenv("KUBEOP_TOKEN", "kubeop_y") }, all + " edit 1h"},
		{"after its end", 2 * time.Hour, nil, nil, all + " edit 1h"},
		{"others may read it", 0, nil, func() { m.chmod(0o644) }, all + " edit 1h"},
		{"it is not whole", 0, nil, func() { m.truncate() }, all + " edit 1h"},
	} {
		if step.before != nil {
			step.before()
		}
		m.clock.Step(step.after)
		m.asked = nil
		if token := m.token(step.args...); !strings.HasPrefix(token, "secret ") {
			t.Errorf("%s: the token is %q", step.name, token)
		}
		if got := strings.Join(m.asked, ", "); got != step.asked {
			t.Errorf("%s: the manager is asked %q, want %q", step.name, got, step.asked)
		}
	}
	m.clock.Step(50 * time.Minute)
	m.deleted, m.asked = true, nil
	m.token()
	if diff := cmp.Diff([]string{all + "/a/token", all + " edit 1h"}, m.asked); diff != "" {
		t.Errorf("once it was deleted (-want +got):\n%s", diff)
	}
	if about, err := os.Stat(m.folder); err != nil || about.Mode().Perm() != 0o700 {
		t.Errorf("%v %v", err, about.Mode())
	}
}

// TestAFreshTokenReplacesTheOneBefore, which is revoked.
func TestAFreshTokenReplacesTheOneBefore(t *testing.T) {
	m := newManager(t)
	m.token()
	m.id, m.asked = "b", nil
	m.token("--fresh")
	const all = "/v1/projects/acme/shop/kubeconfigs"
	if diff := cmp.Diff([]string{"POST " + all + " edit 1h", "DELETE " + all + "/a"}, m.asked); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestCallsAtOnceGetOneToken: each would be a kubeconfig of its own, of which there may be few.
func TestCallsAtOnceGetOneToken(t *testing.T) {
	m := newManager(t)
	var calls sync.WaitGroup
	for range 10 {
		calls.Go(func() {
			if out, err := m.run(Token, "acme/shop", "--role", "edit", "--cache", m.folder); err != nil || !strings.Contains(out, `"secret 1"`) {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	calls.Wait()
	if m.given != 1 {
		t.Errorf("the manager gave %d tokens", m.given)
	}
}

// TestATokenIsGivenThoughItCannotBeKept, and the one that is kept while the manager does not answer.
func TestATokenIsGivenThoughItCannotBeKept(t *testing.T) {
	m := newManager(t)
	if err := os.WriteFile(m.folder, nil, 0o600); err != nil { // It is no folder.
		t.Fatal(err)
	}
	if token := m.token(); token != "secret 1" {
		t.Errorf("the token is %q", token)
	}
	if err := os.Remove(m.folder); err != nil {
		t.Fatal(err)
	}
	first := m.token()
	m.clock.Step(50 * time.Minute)
	m.Close()
	if again := m.token(); again != first {
		t.Errorf("while the manager is away: %q", again)
	}
	m.clock.Step(9 * time.Minute)
	if _, err := m.run(Token, "acme/shop", "--role", "edit", "--cache", m.folder); err == nil {
		t.Error("a token that ends in a minute is used")
	}
}

func (m *manager) files() []string {
	m.t.Helper()
	all, err := filepath.Glob(filepath.Join(m.folder, "*"))
	if err != nil || len(all) == 0 {
		m.t.Fatal(err, all)
	}
	return all
}

// chmod has others read the files, which only their owner may until then.
func (m *manager) chmod(mode os.FileMode) {
	for _, path := range m.files() {
		if about, err := os.Stat(path); err != nil || about.Mode().Perm() != 0o600 {
			m.t.Errorf("%s: %v %v", path, err, about.Mode())
		}
		if err := os.Chmod(path, mode); err != nil {
			m.t.Fatal(err)
		}
	}
}

func (m *manager) truncate() {
	for _, path := range m.files() {
		if err := os.Truncate(path, 20); err != nil {
			m.t.Fatal(err)
		}
	}
}

// TestAPersonKeepsItsToken when its ID token is renewed, and a program with another JWT does not get it.
func TestAPersonKeepsItsToken(t *testing.T) {
	const (
		ann   = "e30.eyJpc3MiOiJodHRwczovL2EiLCJzdWIiOiJhbm4iLCJqdGkiOiIxIn0." // {"iss":"https://a","sub":"ann","jti":"1"}
		later = "e30.eyJpc3MiOiJodHRwczovL2EiLCJzdWIiOiJhbm4iLCJqdGkiOiIyIn0." // The same with the jti 2.
		other = "e30.eyJpc3MiOiJodHRwczovL2IiLCJzdWIiOiJhbm4iLCJqdGkiOiIxIn0." // Of the issuer https://b.
		one   = "e30.eyJzdWIiOiJwcm9qZWN0OmFjbWUvc2hvcDp2aWV3In0."             // {"sub":"project:acme/shop:view"}
	)
	if identity(ann+"x") != identity(later+"y") {
		t.Error("a person is another one with the next ID token")
	}
	all := []string{identity(ann), identity(other), identity(one + "x"), identity(one + "y"), identity("kubeop_x"), identity("kubeop_y"), identity("a.b.c")}
	slices.Sort(all)
	if len(slices.Compact(all)) != 7 {
		t.Errorf("some are the same: %q", all)
	}
}

func TestTheFileIsWritten(t *testing.T) {
	m := newManager(t)
	out, err := m.run(Write, "--tenant", "acme", "--role", "view")
	if err != nil || out != "kind: Config\n" || m.asked[0] != "GET /v1/kubeconfig?role=view&tenant=acme" {
		t.Errorf("%v: %q, asked by %q", err, out, m.asked)
	}
	if _, err := m.run(Write, "--role", "admin"); err == nil || !strings.Contains(err.Error(), "there is no project") {
		t.Errorf("without a project: %v", err)
	}
}

func TestAManagerIsNeeded(t *testing.T) {
	c := call.New(genericiooptions.NewTestIOStreamsDiscard(), clocktesting.NewFakeClock(time.Time{}))
	command := Token(c)
	command.SilenceErrors, command.SilenceUsage = true, true
	command.SetArgs([]string{"acme/shop"})
	if err := command.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), "KUBEOP_SERVER") {
		t.Error(err)
	}
}
