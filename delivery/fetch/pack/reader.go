package pack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeop/kubeop/delivery/apart"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/trials"
)

// ErrUnfit is wrapped by errors that are not about the pack, for example because the process that reads it was killed. A retry may succeed.
var ErrUnfit = errors.New("unpacking the commit")

// Reader reads packs. It reads a small pack, which takes milliseconds, in this process, and any other pack in a sandboxed process when it
// is the tenant's turn.
type Reader struct{ Apart apart.Runner }

// Pack is a received pack.
type Pack struct {
	// Dir is the folder of the source, in which Trials record that the pack is being read, or exceeded a limit. What names the requested
	// object, such as a commit.
	Dir, What string
	// Tenant is the tenant for whom the pack is read.
	Tenant string
	Limits Limits
	io.ReaderAt
	Size int64
}

// Check returns an ErrTooLarge if a pack exceeded these limits before, or if the operator ended repeatedly while reading it.
func Check(dir, what string, limits Limits) error {
	return refused(noted(dir).Check(trial, inputOf(what, limits)))
}

func noted(dir string) *trials.Trials { return trials.New(dir, "the commit's pack") }

// trial is the name under which the folder of a source records a trial.
var trial = types.NamespacedName{Namespace: "unpacking", Name: "pack"}

// inputOf identifies a pack and its limits: under other limits it is read again.
func inputOf(what string, limits Limits) string { return fmt.Sprint(what, limits) }

func refused(err error) error {
	var why *trials.Refused
	if errors.As(err, &why) {
		return failure.New(failure.ErrTooLarge, "%s; this commit is not fetched again", why.Why)
	}
	return err
}

// Read checks a pack and computes the names of its objects. Errors: ErrTooLarge; ErrUnfit; any other error means that the pack is damaged.
func (r *Reader) Read(ctx context.Context, p Pack, store Store) (*Contents, error) {
	from := io.NewSectionReader(p, 0, p.Size)
	contents, err := readSmall(from, p.Limits, store)
	if !errors.Is(err, errLarge) {
		return contents, err
	}
	if r.Apart.Run == nil {
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

func (r *Reader) evaluate(ctx context.Context, p Pack, store Store) (*Contents, error) {
	input, err := json.Marshal(order{Limits: p.Limits, Size: p.Size})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnfit, err)
	}
	var answer []byte
	err = r.Apart.InTurn(ctx, p.Tenant, func(ctx context.Context) (err error) {
		answer, err = r.Apart.Do(ctx, apart.Call{
			Name: Function, Function: Evaluate, Tenant: p.Tenant, Input: [][]byte{input}, CPU: p.Limits.CPU(), Questions: Questions, NewHandler: func() apart.Handler {
				replies := answers{pack: p, store: store}
				return func(_ context.Context, question []byte) ([]byte, error) { return replies.answer(question) }
			},
		})
		return err
	})
	var over apart.OverLimit
	switch {
	case errors.As(err, &over):
		return nil, failure.New(failure.ErrTooLarge, "%s: take large files out of Git", over)
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrUnfit, err)
	}
	return contentsOf(answer, p.Size)
}

// interruptible ends reading when its context ends, because reading a hostile pack can take long.
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
