package webhooksign

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// snippet returns what docs/api/webhooks.md has in a language, the last one.
func snippet(t *testing.T, language string) string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "api", "webhooks.md"))
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllSubmatch(page, -1)
	if len(found) == 0 {
		t.Fatalf("the page has no example in %s", language)
	}
	return string(found[len(found)-1][1])
}

// messages are what a receiver with the secret takes, and what it does not.
func messages(t *testing.T, secret string) map[string]struct {
	header http.Header
	body   string
	taken  bool
} {
	t.Helper()
	const body = `{"type":"app.failed","data":{"message":"é 100%"}}`
	sign := func(at time.Time, secrets ...string) http.Header {
		header := http.Header{}
		if err := (Message{ID: "msg_1", At: at, Body: []byte(body)}).Sign(header, secrets...); err != nil {
			t.Fatal(err)
		}
		return header
	}
	now := time.Now()
	another := sign(now, secret)
	another.Set(HeaderID, "msg_2")
	return map[string]struct {
		header http.Header
		body   string
		taken  bool
	}{
		"signed by the secret":         {sign(now, secret), body, true},
		"signed by a new one, too":     {sign(now, NewSecret(), secret), body, true},
		"signed by another one":        {sign(now, NewSecret()), body, false},
		"with another body":            {sign(now, secret), body + " ", false},
		"with another id":              {another, body, false},
		"sent again after ten minutes": {sign(now.Add(-10*time.Minute), secret), body, false},
		"signed for a time in future":  {sign(now.Add(10*time.Minute), secret), body, false},
		"without signature":            {http.Header{HeaderID: {"msg_1"}}, body, false},
	}
}

// TestTheReceiversOfThePageVerify runs them, and sends messages to them.
func TestTheReceiversOfThePageVerify(t *testing.T) {
	for language, extension := range map[string]string{"go": ".go", "python": ".py"} {
		t.Run(language, func(t *testing.T) {
			code := snippet(t, language)
			file := filepath.Join(t.TempDir(), "receiver"+extension)
			if err := os.WriteFile(file, []byte(code), 0o600); err != nil {
				t.Fatal(err)
			}
			secret, address := NewSecret(), free(t)
			command := exec.CommandContext(t.Context(), "python3", file)
			if language == "go" { // `go run` would leave its program behind.
				program := filepath.Join(filepath.Dir(file), "receiver")
				if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, file).CombinedOutput(); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
				command = exec.CommandContext(t.Context(), program)
			}
			command.Env = append(os.Environ(), "SECRET="+secret, "ADDRESS="+address)
			var out bytes.Buffer
			command.Stdout, command.Stderr = &out, &out
			if err := command.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				_ = command.Process.Kill()
				_ = command.Wait()
			})
			listening(t, address)
			for name, m := range messages(t, secret) {
				request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+address+"/", strings.NewReader(m.body))
				if err != nil {
					t.Fatal(err)
				}
				request.Header = m.header
				answer, err := http.DefaultClient.Do(request)
				if err != nil {
					t.Fatal(err)
				}
				_, _ = io.Copy(io.Discard, answer.Body)
				answer.Body.Close()
				if taken := answer.StatusCode == http.StatusNoContent; taken != m.taken {
					t.Errorf("a message %s is answered by %d", name, answer.StatusCode)
				}
			}
		})
	}
}

func TestTheShellOfThePageVerifies(t *testing.T) {
	code, secret := snippet(t, "sh"), NewSecret()
	for name, m := range messages(t, secret) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "body"), []byte(m.body), 0o600); err != nil {
			t.Fatal(err)
		}
		command := exec.CommandContext(t.Context(), "sh", "-c", "set -e\n"+code) //nolint:gosec // The page is ours.
		command.Dir = dir
		command.Env = append(os.Environ(), "SECRET="+secret, "ID="+m.header.Get(HeaderID), "TIMESTAMP="+m.header.Get(HeaderTimestamp), "SIGNATURE="+m.header.Get(HeaderSignature))
		if out, err := command.CombinedOutput(); (err == nil) != m.taken {
			t.Errorf("a message %s: %v: %s", name, err, out)
		}
	}
}

func free(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

func listening(t *testing.T, address string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if conn, err := net.Dial("tcp", address); err == nil {
			conn.Close()
			return
		}
		if time.Now().After(end) {
			t.Fatal("it does not listen")
		}
	}
}
