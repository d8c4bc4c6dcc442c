package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubeop/kubeop/internal/meter"
	"github.com/kubeop/kubeop/internal/store"
)

// atOnce runs do many times at once, in turns on two managers' stores.
func atOnce(times int, stores [2]store.Store, do func(i int, s store.Store)) {
	var all sync.WaitGroup
	for i := range times {
		all.Go(func() { do(i, stores[i%2]) })
	}
	all.Wait()
}

// inRounds is atOnce, many times one after the other. The lock of an SQLite file has no order among programs, so a manager whose writers never paused could keep
// those of the other one from writing for longer than a write may take. In truth, one manager has the file.
func inRounds(rounds, times int, stores [2]store.Store, do func(round, i int, s store.Store)) {
	for round := range rounds {
		atOnce(times, stores, func(i int, s store.Store) { do(round, i, s) })
	}
}

// managers are the tests with two managers on one store.
var managers = map[string]func(*testing.T, [2]store.Store){
	"of many who claim a code one gets it":                oneClaims,
	"a tenant gets no more tokens from several":           limitAmongManagers,
	"of requests with one key the first is kept":          oneRequest,
	"a request that is forgotten may begin anew":          forgottenMeanwhile,
	"of keys that sign one is added":                      oneSigningKey,
	"a revocation is recorded once":                       oneRevocation,
	"whoever reads events on after an ID misses none":     eventsInOrder,
	"one leads, and then the other":                       oneLeads,
	"an answer is kept once, with its event":              oneAnswer,
	"what is removed by several at once is removed":       sweptAtOnce,
	"many senders claim messages, each once and in order": manyClaim,
	"of two who measure a minute one counts":              measuredAtOnce,
	"writers at the same time lose nothing, nor deadlock": manyWriters,
	"of two who close a month one makes its invoice":      closedAtOnce,
	"of two who alert one does":                           alertedAtOnce,
}

func oneClaims(t *testing.T, both [2]store.Store) {
	if err := both[0].OfferSetup(t.Context(), []byte("code"), now, now.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	var got atomic.Int32
	atOnce(16, both, func(i int, s store.Store) {
		err := s.ClaimSetup(t.Context(), []byte("code"), tokenOf("", fmt.Sprint(i)), eventOf("", "claim"))
		if err == nil {
			got.Add(1)
		} else if !errors.Is(err, store.ErrAdministrated) {
			t.Error(err)
		}
	})
	if got.Load() != 1 {
		t.Errorf("%d claimed the code", got.Load())
	}
}

func limitAmongManagers(t *testing.T, both [2]store.Store) {
	for i := range store.MaxTokensOfTenant - 3 {
		create(t, both[0], "acme", fmt.Sprint(i))
	}
	var got atomic.Int32
	atOnce(16, both, func(i int, s store.Store) {
		id := fmt.Sprint("more", i)
		err := s.CreateToken(t.Context(), tokenOf("acme", id), eventOf("acme", id))
		if err == nil {
			got.Add(1)
		} else if !errors.Is(err, store.ErrTooMany) {
			t.Error(err)
		}
	})
	if got.Load() != 3 {
		t.Errorf("%d got a token, and there was room for 3", got.Load())
	}
}

func oneRequest(t *testing.T, both [2]store.Store) {
	kept := make([]store.Request, 16)
	atOnce(len(kept), both, func(i int, s store.Store) {
		var err error
		if kept[i], err = s.BeginRequest(t.Context(), store.Request{Caller: "a", Key: "k", Hash: fmt.Append(nil, i), Created: now, Expires: now.Add(time.Hour)}); err != nil {
			t.Error(err)
		}
	})
	for _, other := range kept[1:] {
		if diff := cmp.Diff(kept[0], other); diff != "" {
			t.Errorf("-one got +another got:\n%s", diff)
		}
	}
}

// forgottenMeanwhile: one request ends while others with its key begin.
func forgottenMeanwhile(t *testing.T, both [2]store.Store) {
	inRounds(40, 8, both, func(_, i int, s store.Store) {
		r := store.Request{Caller: "a", Key: "k", Hash: fmt.Append(nil, i), Created: now, Expires: now.Add(time.Hour)}
		kept, err := s.BeginRequest(t.Context(), r)
		if err == nil && len(kept.Hash) == 1 {
			err = s.ForgetRequest(t.Context(), kept)
		}
		if err != nil || len(kept.Hash) != 1 {
			t.Errorf("%v: kept is %+v", err, kept)
		}
	})
}

func oneAnswer(t *testing.T, both [2]store.Store) {
	r := store.Request{Caller: "a", Key: "k", Hash: []byte("h"), Created: now, Expires: now.Add(time.Hour), Answer: []byte("yes")}
	if _, err := both[0].BeginRequest(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	atOnce(8, both, func(_ int, s store.Store) {
		if err := s.FinishRequest(t.Context(), r, eventOf("acme", "app")); err != nil {
			t.Error(err)
		}
	})
	if got := objects(t, both[1], "acme"); len(got) != 1 {
		t.Errorf("recorded are %q", got)
	}
}

func oneSigningKey(t *testing.T, both [2]store.Store) {
	var got atomic.Int32
	atOnce(8, both, func(i int, s store.Store) {
		added, err := s.AddSigningKey(t.Context(), signingKey(fmt.Sprint(i), 0, time.Hour))
		if err != nil {
			t.Error(err)
		}
		if added {
			got.Add(1)
		}
	})
	if all := keysOf(t, both[1]); got.Load() != 1 || len(all) != 1 {
		t.Errorf("%d were added, and there are %d", got.Load(), len(all))
	}
}

func oneRevocation(t *testing.T, both [2]store.Store) {
	create(t, both[0], "acme", "a")
	atOnce(8, both, func(_ int, s store.Store) {
		if err := s.RevokeToken(t.Context(), "", "a", store.Event{At: now, Action: "revokeToken", Object: "a"}); err != nil {
			t.Error(err)
		}
	})
	if diff := cmp.Diff([]string{"revokeToken a", "createToken a"}, objects(t, both[1], "acme")); diff != "" {
		t.Errorf("-want +events:\n%s", diff)
	}
}

// eventsInOrder: an ID that is less than one that was read before may not turn up later. The writers have no other lock in common.
func eventsInOrder(t *testing.T, both [2]store.Store) {
	written := make(chan struct{})
	go func() {
		defer close(written)
		inRounds(100, 8, both, func(round, i int, s store.Store) {
			if err := s.RecordEvent(t.Context(), eventOf(fmt.Sprint(i), fmt.Sprint(round))); err != nil {
				t.Error(err)
			}
		})
	}()
	seen, last := map[int64]bool{}, int64(0)
	for done := false; !done; {
		select {
		case <-written:
			done = true
		default:
		}
		all, err := both[0].ListEvents(t.Context(), "", 0, 1000)
		if err != nil {
			t.Fatal(err)
		}
		last = inOrder(t, all, seen, last)
	}
	if len(seen) != 800 {
		t.Errorf("%d events were read", len(seen))
	}
}

// inOrder adds the IDs of events to those that were seen, of which last was the greatest, and returns the greatest.
func inOrder(t *testing.T, all []store.Event, seen map[int64]bool, last int64) int64 {
	t.Helper()
	greatest := last
	for _, e := range all {
		if e.ID <= last && !seen[e.ID] {
			t.Errorf("%d turned up after %d", e.ID, last)
		}
		seen[e.ID], greatest = true, max(greatest, e.ID)
	}
	return greatest
}

func sweptAtOnce(t *testing.T, both [2]store.Store) {
	for i := range 300 {
		id := fmt.Sprint("gone", i)
		if err := both[0].CreateToken(t.Context(), tokenOf("acme", id), eventOf("acme", "token/"+id)); err != nil {
			t.Fatal(err)
		}
	}
	atOnce(4, both, func(_ int, s store.Store) {
		if err := s.Sweep(t.Context(), now.Add(40*day)); err != nil {
			t.Error(err)
		}
	})
	if got := objects(t, both[0], ""); len(got) > 0 {
		t.Errorf("there are %d events", len(got))
	}
}

// oneLeads: the lead goes on when the leader's work ends. Both managers of a file always lead, because there is only one in truth; one and the same never leads twice.
func oneLeads(t *testing.T, both [2]store.Store) {
	leading, end := make(chan struct{}), make(chan struct{})
	var first sync.WaitGroup
	first.Go(func() {
		led, err := both[0].Lead(t.Context(), "work", func(context.Context) error {
			close(leading)
			<-end
			return errors.New("it failed")
		})
		if !led || err == nil || err.Error() != "it failed" {
			t.Errorf("the first one: %t, %v", led, err)
		}
	})
	<-leading
	if led, err := both[0].Lead(t.Context(), "work", func(context.Context) error { return nil }); led || err != nil {
		t.Errorf("it leads twice: %v", err)
	}
	if led, err := both[0].Lead(t.Context(), "other work", func(context.Context) error { return nil }); !led || err != nil {
		t.Errorf("in other work: %t, %v", led, err)
	}
	close(end)
	first.Wait()
	for i, s := range both {
		if led, err := s.Lead(t.Context(), "work", func(context.Context) error { return nil }); !led || err != nil {
			t.Errorf("after it ended %d: %t, %v", i, led, err)
		}
	}
}

// manyWriters: each has a tenant of its own, so they meet only where all write, and in the sweep.
func manyWriters(t *testing.T, both [2]store.Store) {
	inRounds(10, 8, both, func(round, i int, s store.Store) {
		tenant, id := fmt.Sprint("tenant", i), fmt.Sprintf("%d-%d", i, round)
		written := s.CreateToken(t.Context(), tokenOf(tenant, id), eventOf(tenant, id))
		revoked := s.RevokeToken(t.Context(), tenant, id, store.Event{At: now, Action: "revokeToken", Object: id})
		r := store.Request{Caller: id, Key: "k", Hash: []byte("h"), Created: now, Expires: now.Add(time.Hour), Answer: []byte("yes")}
		_, begun := s.BeginRequest(t.Context(), r)
		finished := s.FinishRequest(t.Context(), r, store.Event{At: now, Action: "answer", Object: id, Tenant: tenant})
		if err := errors.Join(written, revoked, begun, finished, s.Sweep(t.Context(), now)); err != nil {
			t.Error(err)
		}
	})
	recorded := sorted(objects(t, both[1], ""))
	for i := 1; i < len(recorded); i++ {
		if recorded[i] == recorded[i-1] {
			t.Errorf("%s is recorded twice", recorded[i])
		}
	}
	if len(recorded) != 240 {
		t.Errorf("%d writes are recorded", len(recorded))
	}
}

// measuredAtOnce: two managers that both take themselves for the leader, and callers meanwhile.
func measuredAtOnce(t *testing.T, both [2]store.Store) {
	const times = 60
	var others sync.WaitGroup
	others.Go(func() {
		for i := range 20 {
			used := store.Used{Place: at("acme/shop/web/local"), Hour: hour, Amounts: store.Amounts{"gpu": meter.Of(big.NewInt(int64(i)), 0)}}
			if _, err := both[i%2].SetUsage(t.Context(), []store.Used{used}, []store.Event{eventOf("acme", "usage")}); err != nil {
				t.Error(err)
			}
		}
	})
	atOnce(2*times, both, func(i int, s store.Store) {
		m := store.Minute{Cluster: "local", Begin: hour.Add(time.Duration(i/2) * time.Minute), Groups: []meter.Group{meter.OfPods}, Used: map[store.Place]store.Amounts{
			at("acme/shop/web/local"): {meter.Pods: meter.Of(big.NewInt(15), 1)}, at(fmt.Sprintf("acme/shop/app%d/local", i/20)): {meter.Pods: meter.Of(big.NewInt(1), 0)},
		}}
		if err := s.AddMinute(t.Context(), m); err != nil {
			t.Error(err)
		}
	})
	others.Wait()
	got := usageOf(t, both[0], store.UsageQuery{})
	if len(got) != 7 || got[0] != "acme/shop/app0/local 12:00 pods=10" || got[6] != "acme/shop/web/local 12:00 gpu=19 pods=90" {
		t.Errorf("%q", got)
	}
	if diff := cmp.Diff([]string{"local pods 12:00 fffffffffffffff"}, coveredOf(t, both[1])); diff != "" {
		t.Errorf("-want +covered:\n%s", diff)
	}
}

// closedAtOnce: two managers that close the same months, some of them in vain, leave one invoice of each, with one message, and numbers without gaps.
func closedAtOnce(t *testing.T, both [2]store.Store) {
	addWebhookOf(t, both[0], store.TenantRef{Name: "acme", UID: "uid"}, "a", now)
	const months = 12
	var failed atomic.Int32
	var of [months][8]atomic.Int64
	atOnce(months*8, both, func(i int, s store.Store) {
		month, try := i%months, i/months
		var is store.Invoice
		var err error
		if try == 3 { // It ends after the number was given.
			_, err = s.AddInvoice(t.Context(), "acme", fmt.Sprintf("2025-%02d", month+1), func([]store.Invoice) (store.Invoice, error) {
				is := invoiceOf(fmt.Sprint("broken", i))
				is.Body = nil
				return is, nil
			}, with(store.Event{At: now}))
			if err != nil {
				failed.Add(1)
			}
			return
		}
		if is, err = closeMonth(t, s, "acme", fmt.Sprintf("2026-%02d", month+1), fmt.Sprint(i)); err != nil {
			t.Error(err)
		}
		of[month][try].Store(is.Number)
	})
	if failed.Load() != months {
		t.Errorf("%d of %d failed", failed.Load(), months)
	}
	var got []int64
	for month := range of {
		first := of[month][0].Load()
		for try := range of[month] {
			if n := of[month][try].Load(); try != 3 && n != first {
				t.Errorf("the month %d has the invoices %d and %d", month+1, first, n)
			}
		}
		got = append(got, first)
	}
	slices.Sort(got)
	for i, n := range got {
		if n != int64(i+1) {
			t.Fatalf("the numbers are %v", got)
		}
	}
	if all := numbers(t, both[0], store.InvoiceFilter{}); len(all) != months {
		t.Errorf("there are %v", all)
	}
	messages := messagesOf(t, both[1], "a")
	slices.Sort(messages)
	if len(messages) != months || len(slices.Compact(messages)) != months {
		t.Errorf("there are the messages %q", messages)
	}
}

// alertedAtOnce: of each alert there is one message.
func alertedAtOnce(t *testing.T, both [2]store.Store) {
	addWebhookOf(t, both[0], store.TenantRef{Name: "acme", UID: "uid"}, "a", now)
	atOnce(32, both, func(i int, s store.Store) {
		m := messageOf("budget/acme", fmt.Sprint(i))
		m.TenantUID = "uid"
		if _, err := s.RecordAlert(t.Context(), fmt.Sprint("uid/", i/2%4), m); err != nil {
			t.Error(err)
		}
	})
	if got := messagesOf(t, both[1], "a"); len(got) != 4 {
		t.Errorf("the messages are %q", got)
	}
}
