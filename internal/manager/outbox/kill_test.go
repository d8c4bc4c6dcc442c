package outbox

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kubeop/kubeop/internal/kms"
	"github.com/kubeop/kubeop/internal/store"
	"github.com/kubeop/kubeop/internal/store/sqlite"
)

// sends is the first argument of a process that sends, and does not record what it sent.
const sends = "send-and-record-nothing"

func TestMain(m *testing.M) {
	if len(os.Args) == 5 && os.Args[1] == sends {
		if err := sendOnly(os.Args[2], os.Args[3], os.Args[4]); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// sendOnly sends what is due of a store, prints that it was sent, and then waits to be killed instead of recording it.
func sendOnly(path, keys, now string) error {
	s, err := sqlite.Open(context.Background(), path)
	if err != nil {
		return err
	}
	at, err := time.Parse(time.RFC3339, now)
	if err != nil {
		return err
	}
	by := &Sender{
		Store: unrecorded{s}, Keys: func() (*kms.Keys, error) { return kms.Read(keys) }, Receivers: http.DefaultTransport, Now: func() time.Time { return at }, Jitter: func() float64 { return 0.5 },
	}
	return by.Run(context.Background())
}

// unrecorded is a store in which no attempt is recorded.
type unrecorded struct{ Store }

// FinishAttempt implements store.Outbox.
func (unrecorded) FinishAttempt(_ context.Context, o store.Outcome) error {
	fmt.Println("sent", o.Message.ID)
	select {}
}

// TestASenderThatIsKilledLosesNothing: if it is killed between sending and recording, the message is sent again with the same id, and the next one waits for it.
func TestASenderThatIsKilledLosesNothing(t *testing.T) {
	s := newStage(t)
	r := receive(t, always(http.StatusOK))
	secret := s.hook("h", "acme", r.URL)
	s.happens("acme", "app/acme/shop/web", "m1")
	s.happens("acme", "app/acme/shop/web", "m2")
	process := exec.CommandContext(t.Context(), os.Args[0], sends, s.path, s.keyFile, s.clock().Format(time.RFC3339))
	process.Stderr = os.Stderr
	out, err := process.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err := process.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = process.Wait() // It was killed.
	if err != nil || strings.TrimSpace(line) != "sent m1" {
		t.Fatalf("%v: the process said %q", err, line)
	}
	by := s.sender()
	s.run(by)
	if got := r.ids(); !slices.Equal(got, []string{"m1"}) {
		t.Fatalf("while it is claimed it got %q", got)
	}
	s.pass(claimed)
	s.run(by)
	if got := r.ids(); !slices.Equal(got, []string{"m1", "m1", "m2"}) {
		t.Errorf("it got %q", got)
	}
	for _, h := range r.headers {
		if !signedBy(h, secret) || !ownBy(h, secret) {
			t.Errorf("the message is %v", h)
		}
	}
}
