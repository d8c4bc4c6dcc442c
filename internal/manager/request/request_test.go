package request

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/kubeop/kubeop/internal/manager/problem"
)

// follow serves a handler as the manager does, and returns what is logged.
func follow(t *testing.T, handler http.HandlerFunc) (*httptest.Server, *strings.Builder, *Follower) {
	t.Helper()
	var log strings.Builder
	f := NewFollower(funcr.NewJSON(func(line string) { log.WriteString(line + "\n") }, funcr.Options{}), prometheus.NewRegistry(), nil, problem.New(problem.Internal, "").Write)
	s := httptest.NewServer(f.Follow(func(*http.Request) string { return "/{route}" }, handler))
	t.Cleanup(s.Close)
	return s, &log, f
}

func TestTheManagerMakesTheIDAndACallersIsOnlyLogged(t *testing.T) {
	seen := map[string]bool{}
	s, log, _ := follow(t, func(_ http.ResponseWriter, r *http.Request) { seen[ID(r.Context())] = true })
	given := []string{"abc-1.2_3", "abc-1.2_3", "", "a b", `"}{"forged":"`, strings.Repeat("x", 65)}
	for _, theirs := range given {
		r, err := http.NewRequest("GET", s.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set(IDHeader, theirs)
		answer, err := s.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if id := answer.Header.Get(IDHeader); !seen[id] || id == theirs {
			t.Errorf("%q is answered by %q", theirs, id)
		}
	}
	if len(seen) != len(given) {
		t.Errorf("%d requests have %d ids", len(given), len(seen))
	}
	s.Close() // Waits until everything is logged.
	if n := strings.Count(log.String(), `"callerRequestId"`); n != 2 || strings.Count(log.String(), `"callerRequestId":"abc-1.2_3"`) != 2 || strings.Contains(log.String(), "forged") {
		t.Errorf("%d lines have an id of the caller:\n%s", n, log)
	}
}

func TestAPanicIsLoggedAndItsTextIsNotInTheAnswer(t *testing.T) {
	s, log, f := follow(t, func(http.ResponseWriter, *http.Request) { panic("the secret is 42") })
	answer, err := s.Client().Get(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var p problem.Problem
	if err := json.NewDecoder(answer.Body).Decode(&p); err != nil || p.Code != problem.Internal || answer.StatusCode != http.StatusInternalServerError {
		t.Fatalf("%d %v: %v", answer.StatusCode, p, err)
	}
	if p.RequestID != answer.Header.Get(IDHeader) || strings.Contains(p.Detail, "42") {
		t.Errorf("the answer is %+v", p)
	}
	s.Close()
	if !strings.Contains(log.String(), "the secret is 42") || !strings.Contains(log.String(), p.RequestID) {
		t.Errorf("the log has\n%s", log)
	}
	if n := testutil.CollectAndCount(f.duration); n != 1 {
		t.Errorf("%d series", n)
	}
}

func TestAnAnswerThatBeganIsCutOffByAPanic(t *testing.T) {
	s, _, _ := follow(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "half")
		_ = http.NewResponseController(w).Flush()
		panic("later")
	})
	answer, err := s.Client().Get(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if text, err := io.ReadAll(answer.Body); err == nil {
		t.Errorf("the client takes %q for the whole answer", text)
	}
}

// deaf is a client that takes nothing.
type deaf struct{ http.ResponseWriter }

func (deaf) Write([]byte) (int, error) { return 0, errors.New("i/o timeout") }

func TestAnAnswerThatNoClientReadsIsNoError(t *testing.T) {
	_, log, f := follow(t, nil)
	handler := f.Follow(func(*http.Request) string { return "/" }, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if _, err := io.WriteString(w, "a list"); err != nil {
			panic(err) // As huma does.
		}
	}))
	defer func() {
		if why, _ := recover().(error); !errors.Is(why, http.ErrAbortHandler) || strings.Contains(log.String(), "panic") {
			t.Errorf("%v; the log has\n%s", why, log)
		}
	}()
	handler.ServeHTTP(deaf{httptest.NewRecorder()}, httptest.NewRequest("GET", "/", nil))
	t.Error("the connection is not cut")
}

func TestInventedMethodsAddNoSeries(t *testing.T) {
	s, _, f := follow(t, func(http.ResponseWriter, *http.Request) {})
	for _, invented := range []string{"FOO", "BAR"} {
		r, err := http.NewRequest(invented, s.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := s.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
	}
	s.Close()
	if n := testutil.CollectAndCount(f.duration); n != 1 {
		t.Errorf("%d series", n)
	}
}
