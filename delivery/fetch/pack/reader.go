package pack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/trials"
)

// ErrUnfit says that the world is at fault, not the pack: the process that reads it ended, say. The pack may be read the next time.
var ErrUnfit = errors.New("unpacking the commit")

// Ask answers a question of the process that reads a pack.
type Ask = func(ctx context.Context, question []byte) ([]byte, error)

// Reader reads packs: small ones, which takes milliseconds, at once, all others in a process of their own, one turn of the tenant each.
type Reader struct {
	// Evaluate runs the function Evaluate of this package in a process of its own, with so much processor time, and answers its questions
	// with what asks makes, once for each process that is given the input. An error with a method OverLimit says that the pack takes more
	// than it may; any other that the world is at fault. The end of ctx ends it. Nil: packs are read in this process, which is for tests.
	Evaluate func(ctx context.Context, input []byte, cpu time.Duration, asks func() Ask) ([]byte, error)
	// Turn calls the work that evaluates when it is the tenant's turn, and again when its place went to others meanwhile. Nil: at once.
	Turn func(ctx context.Context, tenant string, work func(context.Context) error) error
}

// Pack is one that was received.
type Pack struct {
	// Dir is the folder of the source, where it is noted that the pack is being read, or over a limit. What names what was asked for, such as a commit.
	Dir, What string
	// Tenant whose turn is taken.
	Tenant string
	Limits Limits
	io.ReaderAt
	Size int64
}

// Check returns an ErrTooLarge where a pack was over these limits before, or the operator ended again and again while it
// was read.
func Check(dir, what string, limits Limits) error {
	return refused(noted(dir).Check(trial, inputOf(what, limits)))
}

func noted(dir string) *trials.Trials { return trials.New(dir, "the commit's pack") }

// trial is what is noted in the folder of a source.
var trial = types.NamespacedName{Namespace: "unpacking", Name: "pack"}

// inputOf names a pack within limits: under others it is tried again.
func inputOf(what string, limits Limits) string { return fmt.Sprint(what, limits) }

func refused(err error) error {
	var why *trials.Refused
	if errors.As(err, &why) {
		return failure.New(failure.ErrTooLarge, "%s; this commit is not fetched again", why.Why)
	}
	return err
}

// Read checks a pack and names its objects. Errors: ErrTooLarge; ErrUnfit; any other says that the pack is damaged.
func (r *Reader) Read(ctx context.Context, p Pack, store Store) (*Contents, error) {
	from := io.NewSectionReader(p, 0, p.Size)
	contents, err := readSmall(from, p.Limits, store)
	if !errors.Is(err, errLarge) {
		return contents, err
	}
	if r.Evaluate == nil {
		return Read(interruptible{ctx: ctx, ReadSeeker: from}, p.Limits, store)
	}
	tried, input := noted(p.Dir), inputOf(p.What, p.Limits)
	if err := tried.Begin(trial, input); err != nil {
		return nil, refused(err)
	}
	contents, err = r.evaluate(ctx, p, store)
	why := ""
	if errors.Is(err, failure.ErrTooLarge) {
		why = err.Error()
	}
	return contents, errors.Join(err, tried.End(trial, input, why))
}

// overLimit is an error of Reader.Evaluate that says that the pack takes more than it may.
type overLimit interface {
	error
	OverLimit()
}

func (r *Reader) evaluate(ctx context.Context, p Pack, store Store) (*Contents, error) {
	input, err := json.Marshal(order{Limits: p.Limits, Size: p.Size})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnfit, err)
	}
	var answer []byte
	err = r.inTurn(ctx, p.Tenant, func(ctx context.Context) (err error) {
		answer, err = r.Evaluate(ctx, input, p.Limits.CPU(), func() Ask {
			told := answers{pack: p, store: store}
			return func(_ context.Context, question []byte) ([]byte, error) { return told.answer(question) }
		})
		return err
	})
	var over overLimit
	switch {
	case errors.As(err, &over):
		return nil, failure.New(failure.ErrTooLarge, "%s: take large files out of Git", over)
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrUnfit, err)
	}
	return contentsOf(answer, p.Size)
}

// inTurn is Reader.Turn, or does the work at once.
func (r *Reader) inTurn(ctx context.Context, tenant string, work func(context.Context) error) error {
	if r.Turn != nil {
		return r.Turn(ctx, tenant, work)
	}
	return work(ctx)
}

// interruptible ends reading when its context ends: to unpack hostile data can take long.
type interruptible struct {
	ctx context.Context
	io.ReadSeeker
}

// Read implements io.Reader.
func (i interruptible) Read(p []byte) (int, error) {
	if err := i.ctx.Err(); err != nil {
		return 0, err
	}
	return i.ReadSeeker.Read(p)
}
