package fence

import (
	"context"
	"errors"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
)

// ending returns a fence, and the reasons for which it ended its process.
func ending(now func() Instant) (*Fence, *[]error) {
	var why []error
	f := New("home/lease", valid, now, func(err error) { why = append(why, err) })
	return f, &why
}

// TestALeaderWaitsForAnAnswer: while renewals get no answer it writes nothing. Afterwards it continues if the lease is still its own.
func TestALeaderWaitsForAnAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		meanwhile func(*record)
		want      string
	}{
		"none took it":           {meanwhile: func(*record) {}},
		"another took it":        {meanwhile: func(r *record) { r.kept = held("them", 4) }, want: "leader election lost: them holds the lease home/lease"},
		"another gave it back":   {meanwhile: func(r *record) { r.kept = held("", 4) }, want: "leader election lost: nobody holds the lease home/lease"},
		"it was taken back once": {meanwhile: func(r *record) { r.kept = held("us", 5) }, want: "leader election lost: others held the lease home/lease meanwhile"},
	} {
		t.Run(name, func(t *testing.T) {
			clocks, kept := newClocks(), &record{}
			f, why := ending(clocks.now)
			lock := f.Lock(kept, duration)
			if err := lock.Update(t.Context(), held("us", 3)); err != nil {
				t.Fatal(err)
			}
			kept.before = func() error { return context.DeadlineExceeded }
			for range 60 {
				clocks.pass(time.Minute, time.Minute)
				if err := lock.Update(t.Context(), held("us", 3)); !errors.Is(err, context.DeadlineExceeded) || err.Error() != "context deadline exceeded" {
					t.Fatalf("without an answer: %v", err)
				}
				if err := f.Check(); !errors.Is(err, ErrFenced) || err.Error() != "this operator does not hold the lease home/lease for certain: its last renewal got no answer" {
					t.Fatalf("a write without an answer: %v", err)
				}
			}
			if len(*why) > 0 {
				t.Fatalf("without an answer it ended: %v", *why)
			}
			kept.before = nil
			c.meanwhile(kept)
			record, _, err := lock.Get(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			err = lock.Update(t.Context(), held("us", record.LeaderTransitions))
			if c.want == "" {
				if err != nil || f.Check() != nil || len(*why) > 0 {
					t.Errorf("renewing: %v; a write: %v; ended: %v", err, f.Check(), *why)
				}
				return
			}
			if err == nil || f.Check() == nil || len(*why) != 1 || !errors.Is((*why)[0], ErrLost) || (*why)[0].Error() != c.want {
				t.Errorf("renewing: %v; a write: %v; ended: %v, want %q", err, f.Check(), *why, c.want)
			}
		})
	}
}

// TestNothingIsWrittenAfterARenewalWithoutAnswer: not even while the lease is valid, because the API server may return with another database.
func TestNothingIsWrittenAfterARenewalWithoutAnswer(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "leases"}, "lease", nil)
	for name, c := range map[string]struct {
		err    error
		fenced bool
	}{
		"refused as of an older version": {err: conflict},
		"no answer":                      {err: context.DeadlineExceeded, fenced: true},
		"away":                           {err: apierrors.NewServiceUnavailable("away"), fenced: true},
	} {
		t.Run(name, func(t *testing.T) {
			kept := &record{}
			f, why := ending(newClocks().now)
			lock := f.Lock(kept, duration)
			if err := lock.Update(t.Context(), held("us", 3)); err != nil {
				t.Fatal(err)
			}
			kept.before = func() error { return c.err }
			if err := lock.Update(t.Context(), held("us", 3)); !errors.Is(err, c.err) {
				t.Fatal(err)
			}
			if err := f.Check(); errors.Is(err, ErrFenced) != c.fenced {
				t.Errorf("a write: %v, want fenced %t", err, c.fenced)
			}
			kept.before = nil
			if err := lock.Update(t.Context(), held("us", 3)); err != nil || f.Check() != nil || len(*why) > 0 {
				t.Errorf("then: %v; a write: %v; ended: %v", err, f.Check(), *why)
			}
		})
	}
}

func TestALeaseThatIsGoneIsLost(t *testing.T) {
	f, why := ending(newClocks().now)
	lock := f.Lock(&record{}, duration)
	if err := lock.Update(t.Context(), held("us", 3)); err != nil {
		t.Fatal(err)
	}
	if err := lock.Create(t.Context(), held("us", 0)); !errors.Is(err, ErrFenced) || err.Error() != "this operator does not hold the lease home/lease: it may not make the lease anew" || len(*why) != 1 || !errors.Is((*why)[0], ErrLost) {
		t.Errorf("got %v, ended: %v", err, *why)
	}
}

// TestTheHolderIsGivenTime: a standby that got no answer does not take the lease, because the holder could not renew it either.
func TestTheHolderIsGivenTime(t *testing.T) {
	clocks, kept := newClocks(), &record{kept: held("them", 3)}
	f, why := ending(clocks.now)
	lock := f.Lock(kept, duration)
	take := func() error {
		if _, _, err := lock.Get(t.Context()); err != nil {
			t.Fatal(err)
		}
		return lock.Update(t.Context(), held("us", 4))
	}
	kept.before = func() error { return context.DeadlineExceeded }
	if err := take(); !errors.Is(err, context.DeadlineExceeded) || err.Error() != "context deadline exceeded" {
		t.Fatalf("without an answer: %v", err)
	}
	kept.before = nil
	clocks.pass(time.Hour, duration-1) // The wall clock does not count, because it may be set.
	if err := take(); !errors.Is(err, ErrFenced) || err.Error() != "this operator does not hold the lease home/lease: it may not take the lease of them, which could not renew it while the API server did not answer" || kept.kept != held("them", 3) {
		t.Errorf("right after: %v, the lease is %+v", err, kept.kept)
	}
	clocks.pass(0, 1)
	if err := take(); err != nil || kept.kept.HolderIdentity != "us" || kept.kept.LeaseDurationSeconds != 15 {
		t.Errorf("a lease's time after: %v, the lease is %+v", err, kept.kept)
	}
	if len(*why) > 0 {
		t.Errorf("it ended: %v", *why)
	}
}

// answers is an API server that returns the lease with these versions in turn, or an error for "".
type answers struct {
	coordinationv1client.LeaseInterface
	versions []string
}

func (a *answers) Leases(string) coordinationv1client.LeaseInterface { return a }

func (a *answers) next() (*coordinationv1.Lease, error) {
	version := a.versions[0]
	a.versions = a.versions[1:]
	if version == "" {
		return nil, apierrors.NewConflict(schema.GroupResource{Resource: "leases"}, "lease", nil)
	}
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{ResourceVersion: version}}, nil
}

func (a *answers) Get(context.Context, string, metav1.GetOptions) (*coordinationv1.Lease, error) {
	return a.next()
}

func (a *answers) Create(context.Context, *coordinationv1.Lease, metav1.CreateOptions) (*coordinationv1.Lease, error) {
	return a.next()
}

func (a *answers) Update(context.Context, *coordinationv1.Lease, metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	return a.next()
}

func TestALeaseOfAnOlderVersionEndsTheProcess(t *testing.T) {
	for name, c := range map[string]struct {
		versions []string
		back     bool
	}{
		"goes on":                       {versions: []string{"7", "8", "8", "99", "100"}},
		"conflicts":                     {versions: []string{"7", "", "8"}},
		"went back":                     {versions: []string{"8", "7"}, back: true},
		"has fewer digits":              {versions: []string{"100", "99"}, back: true},
		"went back while it was busy":   {versions: []string{"100", "", "99", "101"}, back: true},
		"has versions of another kind":  {versions: []string{"b", "a"}},
		"has versions of kinds by turn": {versions: []string{"8", "x", "9"}},
	} {
		t.Run(name, func(t *testing.T) {
			f, why := ending(newClocks().now)
			if err := f.Lock(&record{}, duration).Update(t.Context(), held("us", 0)); err != nil {
				t.Fatal(err)
			}
			api := &answers{versions: c.versions}
			leases := f.Leases(api).Leases("home")
			for i := 0; len(api.versions) > 0; i++ {
				switch i % 3 {
				case 0:
					_, _ = leases.Get(t.Context(), "lease", metav1.GetOptions{})
				case 1:
					_, _ = leases.Update(t.Context(), nil, metav1.UpdateOptions{})
				default:
					_, _ = leases.Create(t.Context(), nil, metav1.CreateOptions{})
				}
			}
			if c.back != (len(*why) == 1 && errors.Is((*why)[0], ErrWentBack)) || !c.back && len(*why) > 0 {
				t.Errorf("ended: %v", *why)
			}
			if err := f.Check(); c.back != errors.Is(err, ErrFenced) {
				t.Errorf("a write: %v", err)
			}
		})
	}
}

func TestAVersionThatCannotBeComparedHidesNoOlderOne(t *testing.T) {
	f := newFence(newClocks().now)
	for _, version := range []string{"5", "unclear", "5", "6"} {
		if err := f.see(version); err != nil {
			t.Errorf("%s: %v", version, err)
		}
	}
	if err := f.see("unclear"); err != nil {
		t.Errorf("it cannot be compared: %v", err)
	}
	if err := f.see("4"); !errors.Is(err, ErrWentBack) || err.Error() != "the cluster went back in time: the lease home/lease is at resourceVersion 4 and was at 6: Kubernetes was restored from a backup; ending, so that everything is read anew" {
		t.Errorf("an older version: %v", err)
	}
}
