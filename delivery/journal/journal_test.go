package journal

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// cluster is an API server of which the writes can be counted and made to fail.
type cluster struct {
	client.Client
	writes atomic.Int32
	// hold is closed to let writes go on; nil lets them.
	hold chan struct{}
	fail atomic.Pointer[error]
	// late holds the write that was given up, if lose was set, to arrive when it is called.
	lose atomic.Bool
	late func() error
}

func newCluster() *cluster {
	c := &cluster{}
	write := func() error {
		c.writes.Add(1)
		if c.hold != nil {
			<-c.hold
		}
		if err := c.fail.Load(); err != nil {
			return *err
		}
		return nil
	}
	c.Client = fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(ctx context.Context, w client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if err := write(); err != nil {
				return err
			}
			if c.lose.CompareAndSwap(true, false) {
				c.late = func() error { return w.Patch(context.Background(), o, p, opts...) }
				return context.DeadlineExceeded
			}
			return w.Patch(ctx, o, p, opts...)
		},
	}).Build()
	return c
}

// journal is that of a process that has just begun.
func (c *cluster) journal() *Journal { return New(c, "kubeop-system", time.Now) }

func entries(names ...string) []v1alpha1.InventoryEntry {
	var all []v1alpha1.InventoryEntry
	for _, name := range names {
		all = append(all, v1alpha1.InventoryEntry{ID: "a_" + name + "__ConfigMap", Version: "v1"})
	}
	return all
}

// found fails the test unless a process that begins now finds these entries of the owner.
func (c *cluster) found(t *testing.T, owner types.UID, want []v1alpha1.InventoryEntry) {
	t.Helper()
	got, err := c.journal().Of(t.Context(), owner)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("of %s: %v (-want +got)\n%s", owner, err, diff)
	}
}

func record(t *testing.T, j *Journal, owner types.UID, names ...string) {
	t.Helper()
	if err := j.Record(t.Context(), owner, entries(names...)); err != nil {
		t.Fatal(err)
	}
}

// TestAJournalThatCannotBeReadIsNotEmpty: what an earlier process recorded would be forgotten.
func TestAJournalThatCannotBeReadIsNotEmpty(t *testing.T) {
	c := newCluster()
	record(t, c.journal(), "1", "one")
	away, reads := errors.New("the API server is away"), 0
	j := New(interceptor.NewClient(c.Client.(client.WithWatch), interceptor.Funcs{
		Get: func(ctx context.Context, w client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if reads++; reads < 3 {
				return away
			}
			return w.Get(ctx, key, o, opts...)
		},
	}), "kubeop-system", time.Now)
	if got, err := j.Of(t.Context(), "1"); !errors.Is(err, away) || len(got) > 0 {
		t.Errorf("got %v, %v", got, err)
	}
	if err := j.Record(t.Context(), "1", entries("two")); !errors.Is(err, away) {
		t.Errorf("got %v", err)
	}
	got, err := j.Of(t.Context(), "1")
	if diff := cmp.Diff(entries("one"), got); diff != "" || err != nil {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
}

func TestTheJournalOutlivesTheProcess(t *testing.T) {
	c := newCluster()
	c.found(t, "1", nil)
	j := c.journal()
	record(t, j, "1", "x", "y")
	c.found(t, "1", entries("x", "y"))
	record(t, j, "2", "z")
	record(t, j, "1", "y", "w")
	c.found(t, "1", entries("w", "x", "y"))
	c.found(t, "2", entries("z"))
	// The next process goes on.
	next := c.journal()
	record(t, next, "1", "v")
	c.found(t, "1", entries("v", "w", "x", "y"))
}

// TestNamesMayHoldAnything: those of RBAC objects do.
func TestNamesMayHoldAnything(t *testing.T) {
	c := newCluster()
	record(t, c.journal(), "1", "my role", "of\ntwo lines", `"quoted"`)
	c.found(t, "1", entries(`"quoted"`, "my role", "of\ntwo lines"))
}

func TestConcurrentRecordsShareWrites(t *testing.T) {
	c := newCluster()
	j := c.journal()
	var all sync.WaitGroup
	for i := range 200 {
		all.Go(func() { record(t, j, types.UID(fmt.Sprint(i)), "x") })
	}
	all.Wait()
	if n := c.writes.Load(); n > 3 {
		t.Errorf("%d writes", n)
	}
	for i := range 200 {
		c.found(t, types.UID(fmt.Sprint(i)), entries("x"))
	}
}

// TestAnEntryIsWrittenAtOnceAndARemovalWaits for other writes to join: nobody waits for a removal.
func TestAnEntryIsWrittenAtOnceAndARemovalWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		j := c.journal()
		began := time.Now()
		record(t, j, "1", "x")
		if took := time.Since(began); took != 0 {
			t.Errorf("the first entry took %s", took)
		}
		record(t, j, "2", "y")
		if took := time.Since(began); took != pace {
			t.Errorf("the second entry was written after %s, want %s", took, pace)
		}
		j.Forget("1")
		time.Sleep(linger - time.Millisecond)
		synctest.Wait()
		if n := c.writes.Load(); n != 2 {
			t.Errorf("%d writes before the removal is due, want 2", n)
		}
		time.Sleep(2 * time.Millisecond)
		synctest.Wait()
		if n := c.writes.Load(); n != 3 {
			t.Errorf("%d writes after the removal is due, want 3", n)
		}
		j.Forget("2")
		asked := time.Now()
		record(t, j, "3", "z") // It takes the removal along.
		if took := time.Since(asked); took > pace || c.writes.Load() != 4 {
			t.Errorf("an entry after a removal took %s and %d writes", took, c.writes.Load()-3)
		}
		c.found(t, "2", nil)
	})
}

func TestForgottenEntriesAreRemovedByTheNextWrite(t *testing.T) {
	c := newCluster()
	j := c.journal()
	record(t, j, "1", "x")
	record(t, j, "2", "y")
	j.Forget("1")
	j.Forget("nobody")
	record(t, j, "3", "z")
	c.found(t, "1", nil)
	c.found(t, "2", entries("y"))
	writes := c.writes.Load()
	j.Forget("2")
	j.Forget("3")
	time.Sleep(linger + 500*time.Millisecond)
	c.found(t, "2", nil)
	c.found(t, "3", nil)
	if n := c.writes.Load() - writes; n != 1 {
		t.Errorf("%d writes, want one for both", n)
	}
}

// TestForgottenAndRecordedWhileAWriteLasts has the last word count, whatever is under way.
func TestForgottenAndRecordedWhileAWriteLasts(t *testing.T) {
	c := newCluster()
	j := c.journal()
	record(t, j, "1", "x")
	c.hold = make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() { record(t, j, "2", "y") })
	for c.writes.Load() < 2 {
		time.Sleep(time.Millisecond)
	}
	j.Forget("1")
	j.Forget("2")
	all.Go(func() { record(t, j, "1", "z") })
	time.Sleep(10 * time.Millisecond)
	close(c.hold)
	all.Wait()
	c.found(t, "1", entries("z"))
	c.found(t, "2", nil)
}

func TestAFailedWriteIsReportedAndRepeated(t *testing.T) {
	c := newCluster()
	j := c.journal()
	away := errors.New("the API server is away")
	c.fail.Store(&away)
	if err := j.Record(t.Context(), "1", entries("x")); !errors.Is(err, away) {
		t.Errorf("got %v", err)
	}
	c.found(t, "1", nil)
	c.fail.Store(nil)
	record(t, j, "2", "y")
	c.found(t, "1", entries("x"))
	c.found(t, "2", entries("y"))
}

// TestAFailedWriteIsRepeatedThoughNothingElseIsWritten: an entry that was lost would leave its object behind, and a removal would come back.
func TestAFailedWriteIsRepeatedThoughNothingElseIsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		j := c.journal()
		record(t, j, "1", "x")
		record(t, j, "2", "y")
		away := errors.New("the API server is away")
		c.fail.Store(&away)
		j.Forget("1")
		if err := j.Record(t.Context(), "3", entries("z")); !errors.Is(err, away) {
			t.Errorf("got %v", err)
		}
		c.fail.Store(nil)
		time.Sleep(linger + pace)
		synctest.Wait()
		c.found(t, "1", nil)
		c.found(t, "2", entries("y"))
		c.found(t, "3", entries("z"))
	})
}

// TestAWriteThatWasGivenUpArrivesLate has it arrive after the next one, or before it.
func TestAWriteThatWasGivenUpArrivesLate(t *testing.T) {
	c := newCluster()
	j := c.journal()
	record(t, j, "1", "x")
	giveUp := func() {
		t.Helper()
		c.lose.Store(true)
		if err := j.Record(t.Context(), "1", entries("y")); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("got %v", err)
		}
	}
	giveUp()
	j.Forget("1")
	record(t, j, "2", "z")
	if err := c.late(); !apierrors.IsConflict(err) {
		t.Errorf("the late write: %v", err)
	}
	c.found(t, "1", nil)

	record(t, j, "1", "x")
	giveUp()
	if err := c.late(); err != nil {
		t.Fatal(err)
	}
	record(t, j, "2", "w")
	c.found(t, "1", entries("x", "y"))
	c.found(t, "2", entries("w", "z"))
	// Whoever else writes is no reason to lose anything either.
	touched := &corev1.ConfigMap{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "kubeop-system", Name: Name}, touched); err != nil {
		t.Fatal(err)
	}
	touched.Labels = map[string]string{"touched": "yes"}
	if err := c.Update(t.Context(), touched); err != nil {
		t.Fatal(err)
	}
	record(t, j, "3", "v")
	c.found(t, "3", entries("v"))
}

func TestACancelledCallerDoesNotWait(t *testing.T) {
	c := newCluster()
	c.hold = make(chan struct{})
	defer close(c.hold)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := c.journal().Record(ctx, "1", entries("x")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

func TestADeletedJournalIsWrittenCompletely(t *testing.T) {
	c := newCluster()
	j := c.journal()
	record(t, j, "1", "x")
	if err := c.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-system", Name: Name}}); err != nil {
		t.Fatal(err)
	}
	record(t, j, "2", "y")
	c.found(t, "1", entries("x"))
	c.found(t, "2", entries("y"))
}

func TestTooManyEntriesAreRefused(t *testing.T) {
	c := newCluster()
	j := c.journal()
	var many []string
	for i := range maxEntries {
		many = append(many, fmt.Sprintf("%03d", i))
	}
	record(t, j, "1", many...)
	if err := j.Record(t.Context(), "1", entries("one more")); !errors.Is(err, ErrFull) {
		t.Errorf("got %v", err)
	}
	c.found(t, "1", entries(many...))
	long := entries(string(make([]byte, 200)))
	var refused error
	for i := 0; refused == nil && i < maxSize/200; i++ {
		_, refused = j.add(t.Context(), types.UID(fmt.Sprintf("owner %d", i)), long)
	}
	if !errors.Is(refused, ErrFull) || j.size > maxSize {
		t.Errorf("%d bytes are held; the last was answered %v", j.size, refused)
	}
}

// TestAShortFailureOfTheAPIServerIsRetriedAtOnce, because many callers wait for one write. A lasting one is reported.
func TestAShortFailureOfTheAPIServerIsRetriedAtOnce(t *testing.T) {
	kind := schema.GroupResource{Resource: "configmaps"}
	for name, tc := range map[string]struct {
		err  error
		want bool
	}{
		"an internal error":    {apierrors.NewInternalError(errors.New("etcd has no leader")), true},
		"no answer in time":    {apierrors.NewServerTimeout(kind, "patch", 1), true},
		"a timeout":            {apierrors.NewTimeoutError("too slow", 1), true},
		"too many requests":    {apierrors.NewTooManyRequests("later", 1), true},
		"created by another":   {apierrors.NewAlreadyExists(kind, Name), true},
		"written by another":   {apierrors.NewConflict(kind, Name, errors.New("changed")), true},
		"a refused connection": {syscall.ECONNREFUSED, true},
		"a reset connection":   {syscall.ECONNRESET, true},
		"a missing right":      {apierrors.NewForbidden(kind, Name, errors.New("no")), false},
		"an invalid object":    {apierrors.NewBadRequest("no"), false},
		"given up":             {context.DeadlineExceeded, false},
	} {
		if got := passing(tc.err); got != tc.want {
			t.Errorf("%s: retried at once: %t", name, got)
		}
	}
}
