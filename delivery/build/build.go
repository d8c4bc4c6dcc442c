package build

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeop/kubeop/delivery/apart"
	"github.com/kubeop/kubeop/delivery/decrypt/service"
	"github.com/kubeop/kubeop/delivery/message"
	"github.com/kubeop/kubeop/delivery/trials"
)

// Builder builds the objects of sources in sandboxed processes.
type Builder struct {
	// Apart runs the processes.
	Apart apart.Runner
	// Services connects to key services, for sources with a Secret that has credentials for them. Required if there are keys.
	Services service.Client
	// Now returns the time. Required if there are keys.
	Now func() time.Time
	// Trials record the sources that exceeded a limit: they are not evaluated again before they change. Required.
	Trials *trials.Trials
	Log    logr.Logger

	memos memos
}

// Request is one build.
type Request struct {
	App    types.NamespacedName
	Tenant string
	Source Source
	// Input is a digest of the app's UID and of everything in the Source except its files, and Identity identifies the version of the
	// files.
	Input, Identity string
	// Retry evaluates a source again although it exceeded a limit, or its result is cached.
	Retry bool
	// Reads returns a record of the parts of the files that a build read. Same reports whether those parts are the same in the present
	// files. So two versions that differ only in other files share a build. With nil, only versions with the same Identity share one.
	Reads func() (string, error)
	Same  func(reads string) bool
}

// Build makes the objects of a Source that Source.Small does not make. Its errors are those of Folder, manifests.Raw, substitute.Variables
// and decrypt, and about exceeded limits. Only an ErrUnfit is not about the source. Build does not evaluate an app's source again while it
// is unchanged.
func (b *Builder) Build(ctx context.Context, req Request) (Made, error) {
	if !req.Retry {
		answer, reads, err := b.memos.get(&req)
		if answer != nil || err != nil {
			return known(answer, reads, err)
		}
	}
	input, err := b.input(&req)
	if err == nil && req.Retry {
		err = b.Trials.End(req.App, input, "")
	}
	if err == nil {
		err = b.Trials.Begin(req.App, input)
	}
	if err != nil {
		return Made{}, unfit(err)
	}
	made, err := b.evaluate(ctx, &req)
	why := ""
	if errors.As(err, new(apart.OverLimit)) {
		why = err.Error()
		if req.Reads != nil {
			reads, failed := req.Reads()
			if failed != nil {
				return Made{}, unfit(errors.Join(failed, b.Trials.End(req.App, input, why)))
			}
			input = req.Input + readsSign + reads
		}
	}
	if err := b.Trials.End(req.App, input, why); err != nil {
		return Made{}, unfit(err)
	}
	return made, err
}

// known returns a cached result.
func known(answer []byte, reads string, err error) (Made, error) {
	if err != nil {
		return Made{}, unfit(err)
	}
	made, err := (&answers{}).made(answer)
	made.Reads = reads
	return made, err
}

// remember caches an answer. It does not cache errors of files or variables, which may not occur the next time. It also does not cache
// confidential answers, which may hold decrypted values or values of Secrets: these must not stay in memory longer than needed.
func (b *Builder) remember(req *Request, answering *answers, answer []byte) {
	if len(answering.kept) > 0 || req.Source.confidential() {
		return
	}
	reads := ""
	if req.Reads != nil {
		var err error
		if reads, err = req.Reads(); err != nil {
			return // The source will be evaluated again. If the error lasts, that build fails.
		}
	}
	if err := b.memos.put(req, answer, reads); err != nil {
		b.Log.Error(err, "Remembering what an app was built to", "app", req.App.String())
	}
}

// Forget drops the cached result of a deleted app.
func (b *Builder) Forget(app types.NamespacedName) {
	b.memos.forget(app)
	if err := b.Trials.End(app, "", ""); err != nil {
		b.Log.Error(err, "Forgetting what an app was built from", "app", app.String())
	}
}

// readsSign separates Request.Input from the record of the files that were read.
const readsSign = " read "

// input identifies the request for Trials. It returns the recorded input if the files that were read then are unchanged.
func (b *Builder) input(req *Request) (string, error) {
	noted, err := b.Trials.Last(req.App)
	if err != nil {
		return "", err
	}
	if reads, ok := strings.CutPrefix(noted, req.Input+readsSign); ok && req.Same != nil && req.Same(reads) {
		return noted, nil
	}
	return req.Input + " of " + req.Identity, nil
}

// evaluate evaluates a source in another process, and reads the resulting objects.
func (b *Builder) evaluate(ctx context.Context, req *Request) (Made, error) {
	var answering *answers
	var answer []byte
	err := b.Apart.InTurn(ctx, req.Tenant, func(ctx context.Context) error {
		began := &answers{files: req.Source.Files} // An attempt that was preempted does not count.
		name := Function
		if keys := req.Source.Keys; keys != nil {
			name, began.service = Decrypts, service.NewProxy(b.Services, keys.Data, b.Now).Do
		}
		answering = began
		input, err := message.Write(orderOf(&req.Source, began.keep))
		if err == nil {
			answer, err = b.Apart.Do(ctx, apart.Call{Name: name, Function: Evaluate, Tenant: req.Tenant, Input: [][]byte{input}, Questions: Questions, NewHandler: func() apart.Handler {
				answering = began.again()
				return answering.answer
			}})
		}
		return err
	})
	var over apart.OverLimit
	switch {
	case errors.As(err, &over):
		return Made{}, fmt.Errorf("%w; it is not tried again before the app or its source changes", over)
	case err != nil:
		return Made{}, unfit(err)
	}
	made, err := answering.made(answer)
	if !errors.Is(err, ErrUnfit) {
		b.remember(req, answering, answer)
	}
	return made, err
}
