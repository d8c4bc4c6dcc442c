package sqlite

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/kubeop/kubeop/internal/store"
)

// closes is the first argument of a process that closes months.
const closes = "close-months"

func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == closes {
		fmt.Fprintln(os.Stderr, closeMonths(os.Args[2], os.Args[3]))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// closeMonths adds an invoice of one tenant after the other until it is killed, and prints the number of each that was added.
func closeMonths(path, by string) error {
	s, err := Open(context.Background(), path)
	if err != nil {
		return err
	}
	for n := 0; ; n++ {
		is, err := s.AddInvoice(context.Background(), by+fmt.Sprint(n), "2026-10", func([]store.Invoice) (store.Invoice, error) {
			return store.Invoice{ID: fmt.Sprint(by, n), Body: make([]byte, 20_000)}, nil
		}, store.InvoiceRecord{Event: store.Event{At: time.Now(), Action: "closeInvoice"}, Message: func(is store.Invoice) (store.Message, error) {
			return store.Message{ID: fmt.Sprint(is.Number), Type: "invoice.closed", Tenant: is.Tenant, Object: fmt.Sprint("invoice/", is.Number), At: time.Now(), Body: []byte("{}")}, nil
		}})
		if err != nil {
			return err
		}
		fmt.Println(is.Number)
	}
}

// TestAManagerThatIsKilledWhileItClosesMonthsLeavesNoGap: each number that was answered is there, once, with its event and its message, and the next manager goes on after
// them.
func TestAManagerThatIsKilledWhileItClosesMonthsLeavesNoGap(t *testing.T) {
	path, last := filepath.Join(t.TempDir(), "manager.db"), int64(0)
	before := open(t, path)
	if err := before.CreateWebhook(t.Context(), store.Webhook{ID: "a", Types: []string{"invoice.*"}, Secret: store.Sealed{Kind: store.KindWebhookSecret, ID: "a", Data: []byte("x")}}, store.Event{}); err != nil {
		t.Fatal(err)
	}
	if err := before.Close(); err != nil {
		t.Fatal(err)
	}
	for kill := range 8 {
		process := exec.CommandContext(t.Context(), os.Args[0], closes, path, fmt.Sprint(kill, "/"))
		out, err := process.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := process.Start(); err != nil {
			t.Fatal(err)
		}
		said, answered := bufio.NewScanner(out), 0
		for said.Scan() {
			n, err := strconv.ParseInt(said.Text(), 10, 64)
			if err != nil || n <= last || n > last+2 { // One number may have been stored, and not answered.
				t.Fatalf("%v: after %d it says %q", err, last, said.Text())
			}
			if last, answered = n, answered+1; answered == 3*kill+1 {
				time.Sleep(time.Duration(kill) * 300 * time.Microsecond)
				if err := process.Process.Kill(); err != nil {
					t.Error(err)
				}
			}
		}
		_ = process.Wait() // It was killed.
		if answered == 0 {
			t.Fatal("the process said nothing")
		}
	}
	s := open(t, path)
	defer s.Close()
	all, err := s.ListInvoices(t.Context(), store.InvoiceFilter{}, 0, 10_000)
	if err != nil {
		t.Fatal(err)
	}
	for i, is := range all {
		if want := int64(len(all) - i); is.Number != want {
			t.Fatalf("there is the number %d, want %d", is.Number, want)
		}
	}
	messages, err := s.ListDeliveries(t.Context(), "a", "", 0, 10_000)
	if err != nil || len(messages) != len(all) {
		t.Fatalf("%v: %d invoices have %d messages", err, len(all), len(messages))
	}
	for i, m := range messages {
		if want := fmt.Sprint(len(messages) - i); m.Message.ID != want {
			t.Fatalf("there is a message about %s, want %s", m.Message.ID, want)
		}
	}
	events, err := s.ListEvents(t.Context(), "", 0, 10_000)
	if err != nil || len(events) != len(all)+1 || int64(len(all)) < last {
		t.Errorf("%v: %d invoices have %d events, and the last number that was answered is %d", err, len(all), len(events), last)
	}
}
