package pack

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubeop/kubeop/delivery/apart"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/limit"
	"github.com/kubeop/kubeop/delivery/trials"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

// processes runs calls in this process, unless it has an error for them.
type processes struct {
	err   error
	calls []apart.Call
	turns []string
}

func (p *processes) reader() *Reader {
	return &Reader{Apart: apart.Runner{
		Run: func(ctx context.Context, call apart.Call) ([]byte, error) {
			p.calls = append(p.calls, call)
			if p.err != nil {
				return nil, p.err
			}
			return apart.Runner{}.Do(ctx, call)
		},
		Turn: func(ctx context.Context, tenant string, work func(context.Context) error) error {
			p.turns = append(p.turns, tenant)
			return work(ctx)
		},
	}}
}

var wide = Limits{Objects: 100, Inflated: 2 * limit.GiB, Object: 2 * limit.MiB, Oversized: limit.GiB, Chain: 2 * limit.MiB, Base: limit.MiB, Bases: limit.MiB}

func received(t *testing.T, pack []byte) Pack {
	t.Helper()
	return Pack{Dir: t.TempDir(), What: "commit 1", Tenant: "acme", Limits: wide, ReaderAt: bytes.NewReader(pack), Size: int64(len(pack))}
}

// largePack is not small, and builds on the store.
func largePack(t *testing.T) []byte {
	t.Helper()
	return packWith(blob(t, strings.Repeat("x", limit.MiB+1)), toName(t, blobName("base"), suffixed("base", "d")))
}

type overCPU struct{ error }

func (overCPU) OverLimit() {}

func TestASmallPackNeedsNoProcess(t *testing.T) {
	p := &processes{}
	got, err := p.reader().Read(t.Context(), received(t, packWith(blob(t, "a"))), oneObject{})
	if err != nil || len(got.Objects) != 1 || len(p.calls)+len(p.turns) != 0 {
		t.Errorf("%v, %v; %d calls, %d turns", got, err, len(p.calls), len(p.turns))
	}
}

func TestALargePackIsReadInAProcessInATurnOfTheTenant(t *testing.T) {
	p, pack := &processes{}, largePack(t)
	got, err := p.reader().Read(t.Context(), received(t, pack), oneObject{[]byte("base")})
	if err != nil {
		t.Fatal(err)
	}
	want, err := Read(bytes.NewReader(pack), wide, oneObject{[]byte("base")})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"acme"}, p.turns); diff != "" {
		t.Errorf("turns: %s", diff)
	}
	if call := p.calls[0]; call.Name != Function || call.Tenant != "acme" || call.CPU != wide.CPU() || call.Questions != Questions {
		t.Errorf("called %s of %s with %s and %d questions", call.Name, call.Tenant, call.CPU, call.Questions)
	}
}

func TestAPackThatTakesTooMuchIsNotReadAgain(t *testing.T) {
	p := &processes{err: overCPU{errors.New("it takes more than 20 s of processor time")}}
	at := received(t, largePack(t))
	read := func() error {
		_, err := p.reader().Read(t.Context(), at, oneObject{[]byte("base")})
		return err
	}
	const why = "it takes more than 20 s of processor time: take large files out of Git"
	sources.WantError(t, read(), failure.ErrTooLarge, why)
	sources.WantError(t, read(), failure.ErrTooLarge, why)
	sources.WantError(t, read(), failure.ErrTooLarge, "this commit is not fetched again")
	if len(p.calls) != 1 {
		t.Errorf("it was read %d times, want 1", len(p.calls))
	}
	sources.WantError(t, Check(at.Dir, at.What, at.Limits), failure.ErrTooLarge, why)
	more := at.Limits
	more.Inflated++
	for name, err := range map[string]error{
		"other limits": Check(at.Dir, at.What, more), "another commit": Check(at.Dir, "commit 2", at.Limits), "another source": Check(t.TempDir(), at.What, at.Limits),
	} {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAPackOverALimitThatItsProcessFoundIsNotReadAgain(t *testing.T) {
	p, at := &processes{}, received(t, largePack(t))
	at.Limits.Inflated = limit.MiB
	_, err := p.reader().Read(t.Context(), at, oneObject{[]byte("base")})
	sources.WantError(t, err, failure.ErrTooLarge, "inflate to, together, is larger than the limit of 1 MiB")
	sources.WantError(t, Check(at.Dir, at.What, at.Limits), failure.ErrTooLarge, "inflate to, together")
}

func TestAFaultOfTheProcessDoesNotCountForThePack(t *testing.T) {
	p := &processes{err: errors.New("the process was killed")}
	at := received(t, largePack(t))
	for range trials.MaxLost + 1 {
		_, err := p.reader().Read(t.Context(), at, oneObject{})
		sources.WantError(t, err, ErrUnfit, "the process was killed")
		if errors.Is(err, failure.ErrTooLarge) {
			t.Fatalf("got %v", err)
		}
	}
	if err := Check(at.Dir, at.What, at.Limits); err != nil {
		t.Errorf("it is not tried again: %v", err)
	}
}

func TestAPackDuringWhichTheOperatorEndsIsTriedAFewTimes(t *testing.T) {
	at := received(t, nil)
	for lost := range trials.MaxLost {
		if err := Check(at.Dir, at.What, at.Limits); err != nil {
			t.Fatalf("after %d ends: %v", lost, err)
		}
		if err := noted(at.Dir).Begin(trial, inputOf(at.What, at.Limits)); err != nil {
			t.Fatal(err)
		}
	}
	sources.WantError(t, Check(at.Dir, at.What, at.Limits), failure.ErrTooLarge, "this commit is not fetched again")
}

func TestReadingHereEndsWithItsContext(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	end()
	_, err := (&Reader{}).Read(ctx, received(t, largePack(t)), oneObject{[]byte("base")})
	sources.WantError(t, err, context.Canceled, "")
	if got, err := (&Reader{}).Read(t.Context(), received(t, largePack(t)), oneObject{[]byte("base")}); err != nil || len(got.Objects) != 2 {
		t.Errorf("%v, %v", got, err)
	}
}
