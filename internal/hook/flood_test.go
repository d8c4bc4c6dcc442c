package hook

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// serving starts a server on loopback and returns its address.
func serving(t *testing.T, s *Server) string {
	t.Helper()
	var err error
	if s.Listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the server ended with %v", err)
		}
	})
	return s.Listener.Addr().String()
}

// TestAConnectionServesOneCall: idle connections would use up the places of other callers.
func TestAConnectionServesOneCall(t *testing.T) {
	s := newServer(t)
	answer, err := http.Post("http://"+serving(t, s)+"/hook/none", "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if !answer.Close {
		t.Error("the server keeps the connection open")
	}
}

// text returns the bytes of a call. length is the announced length of the body, and may be more than is sent.
func text(path, signature, body string, length int) []byte {
	header := ""
	if signature != "" {
		header = "X-Signature: " + signature + "\r\n"
	}
	return fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: hook\r\n%sContent-Length: %d\r\n\r\n%s", path, header, length, body)
}

// send makes a call on its own connection from the address, and returns the status code.
func send(from, to string, call []byte) (int, error) {
	conn, err := dial(from, to)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		return 0, err
	}
	if _, err := conn.Write(call); err != nil {
		return 0, err
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	_, err = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode, err
}

func dial(from, to string) (net.Conn, error) {
	return (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}).Dial("tcp", to)
}

// TestSlowCallersDelayNoOther: anonymous callers, from one address and from many, keep more bodies and connections open than the limits. Genuine
// calls are still answered at once, also for the repository that the others name.
func TestSlowCallersDelayNoOther(t *testing.T) {
	s := newServer(t)
	s.Clock = clock.RealClock{}
	at := serving(t, s)
	genuine := text("/hook/acme", sign([]byte(body), []byte(key)), body, len(body))
	wrong := strings.Repeat("00", 32)
	slow := map[string][]byte{
		"bodies for the repository":  text("/hook/acme", wrong, "{", 1<<20),
		"bodies for no repository":   text("/hook/none", wrong, "{", 1<<20),
		"bodies without a signature": text("/hook/acme", "", "{", 1<<20),
		"headers":                    []byte("POST /hook/acme HTTP/1.1\r\nHost: hook\r\nX-Sig"),
		"nothing":                    nil,
	}
	for name, call := range slow {
		for _, from := range []int{1, 4} {
			t.Run(fmt.Sprintf("%s from %d addresses", name, from), func(t *testing.T) {
				for i := range 2 * perAddress {
					conn, err := dial(fmt.Sprintf("127.0.0.%d", 2+i%from), at)
					if err != nil {
						t.Skip("loopback has one address only:", err)
					}
					defer conn.Close()
					if _, err := conn.Write(call); err != nil && from > 1 {
						t.Fatal(err)
					}
				}
				began := time.Now()
				code, err := send("127.0.0.1", at, genuine)
				if took := time.Since(began); err != nil || code != http.StatusAccepted || took > time.Second {
					t.Errorf("a genuine call is answered %d, %v, after %s", code, err, took)
				}
				if code, err := send("127.0.0.2", at, genuine); err != nil || code != http.StatusAccepted {
					t.Errorf("one from an address of theirs is answered %d, %v", code, err)
				}
			})
		}
	}
}

// TestACallWithAReplacedBodyIsAnswered sends a body for so long that newer ones replace it.
func TestACallWithAReplacedBodyIsAnswered(t *testing.T) {
	s := newServer(t)
	s.Clock = clock.RealClock{}
	at := serving(t, s)
	first, err := dial("127.0.0.1", at)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	begun := text("/hook/acme", sign([]byte(body), []byte(key)), body[:5], len(body))
	if _, err := first.Write(begun); err != nil {
		t.Fatal(err)
	}
	time.Sleep(100 * time.Millisecond) // So that this one is the oldest.
	for range perRepository {
		conn, err := dial("127.0.0.1", at)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := conn.Write(begun); err != nil {
			t.Fatal(err)
		}
	}
	if err := first.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(first), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	why, _ := io.ReadAll(answer.Body)
	if answer.StatusCode != http.StatusServiceUnavailable || !bytes.Contains(why, []byte("polling will find the push")) {
		t.Errorf("it is answered %d, %q", answer.StatusCode, why)
	}
}

// TestAnAnsweredCallKeepsNoPlace: more calls than there are places are answered while a body is sent, and do not replace it.
func TestAnAnsweredCallKeepsNoPlace(t *testing.T) {
	s := newServer(t)
	s.Clock = clock.RealClock{}
	at := serving(t, s)
	slow, err := dial("127.0.0.1", at)
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Close()
	if _, err := slow.Write(text("/hook/acme", sign([]byte(body), []byte(key)), body[:5], len(body))); err != nil {
		t.Fatal(err)
	}
	time.Sleep(100 * time.Millisecond) // So that this one is the oldest.
	for i := range perRepository + 1 {
		signature, want := sign([]byte(body), []byte(key)), http.StatusAccepted
		if i%2 == 0 {
			signature, want = strings.Repeat("00", 32), http.StatusUnauthorized
		}
		if code, err := send("127.0.0.1", at, text("/hook/acme", signature, body, len(body))); err != nil || code != want {
			t.Fatalf("call %d is answered %d, %v", i, code, err)
		}
	}
	if _, err := io.WriteString(slow, body[5:]); err != nil {
		t.Fatal(err)
	}
	if err := slow.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(slow), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusAccepted {
		t.Errorf("the slow call is answered %d", answer.StatusCode)
	}
}

// TestARejectedCallKeepsNoConnection: the rest of its body does not arrive, and the server closes the connection before the time of a call ends.
func TestARejectedCallKeepsNoConnection(t *testing.T) {
	s := newServer(t)
	s.Clock = clock.RealClock{}
	conn, err := dial("127.0.0.1", serving(t, s))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write(text("/hook/acme", "", "{", 1<<10)); err != nil {
		t.Fatal(err)
	}
	if err := conn.SetReadDeadline(time.Now().Add(callTime / 2)); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(conn) // It ends when the server closes the connection.
	if err != nil || !bytes.HasPrefix(answer, []byte("HTTP/1.1 401 ")) {
		t.Errorf("the connection ended with %v, after %q", err, answer)
	}
}

// TestAFloodDelaysAKeyedCallByLessThanASecond makes 5,000 calls a second for two seconds: a third without a signature, a third with a
// wrong one for many repositories, and a third that is genuine for another repository. Meanwhile, each call for acme takes less than a second
// until the Repository is annotated.
func TestAFloodDelaysAKeyedCallByLessThanASecond(t *testing.T) {
	const rate, seconds, workers = 5000, 2, 50
	s := newServer(t)
	s.Clock = clock.RealClock{}
	flooded := &v1alpha1.Repository{
		ObjectMeta: metav1.ObjectMeta{Name: "flooded"},
		Spec:       v1alpha1.RepositorySpec{HookSecretRef: &v1alpha1.LocalSecretReference{Name: "acme-hook"}},
	}
	if err := s.Client.Create(t.Context(), flooded); err != nil {
		t.Fatal(err)
	}
	to := &patched{Client: s.Client}
	s.Client = to
	at, mac := serving(t, s), sign([]byte(body), []byte(key))
	var done, wrong atomic.Int64
	var flood sync.WaitGroup
	began := time.Now()
	for w := range workers {
		flood.Go(func() {
			for i := range rate * seconds / workers {
				time.Sleep(time.Until(began.Add(time.Duration(i) * time.Second * workers / rate)))
				call, want := text("/hook/flooded", mac, body, len(body)), http.StatusAccepted
				switch i % 3 {
				case 0:
					call, want = text("/hook/flooded", "", body, len(body)), http.StatusUnauthorized
				case 1:
					call, want = text(fmt.Sprintf("/hook/r%d-%d", w, i), mac, body, len(body)), http.StatusUnauthorized
				}
				if code, err := send("127.0.0.1", at, call); err != nil || code != want {
					wrong.Add(1)
				}
				done.Add(1)
			}
		})
	}
	var slowest time.Duration
	calls := 0
	for ; done.Load() < rate*seconds; time.Sleep(20 * time.Millisecond) {
		sent := time.Now()
		code, err := send("127.0.0.1", at, text("/hook/acme", mac, body, len(body)))
		if err != nil || code != http.StatusAccepted {
			t.Fatalf("a keyed call is answered %d, %v", code, err)
		}
		for ; !markedSince(t, s, sent); time.Sleep(time.Millisecond) {
			if time.Since(sent) > 2*time.Second {
				t.Fatal("the Repository is not annotated within 2 seconds of a keyed call")
			}
		}
		slowest, calls = max(slowest, time.Since(sent)), calls+1
	}
	flood.Wait()
	marks := to.len()
	t.Logf("%d calls in %s, %d of them not answered as they should be; %d keyed calls beside them, the slowest took %s; %d marks", done.Load(),
		time.Since(began).Round(time.Millisecond), wrong.Load(), calls, slowest.Round(time.Millisecond), marks)
	if slowest > time.Second {
		t.Errorf("a keyed call took %s", slowest)
	}
	if n := wrong.Load(); n > 0 {
		t.Errorf("%d calls of the flood are not answered as they should be", n)
	}
	if limit := 2 * int(time.Since(began)/markPause+2); marks > limit {
		t.Errorf("%d requests to the API server for two repositories, want at most %d", marks, limit)
	}
}

// markedSince reports whether acme was annotated since that time.
func markedSince(t *testing.T, s *Server, since time.Time) bool {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, requestedAt(t, s))
	return err == nil && !at.Before(since)
}
