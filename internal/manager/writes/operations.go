package writes

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/go-logr/logr"

	"github.com/kubeop/kubeop/internal/manager/access"
	"github.com/kubeop/kubeop/internal/manager/auth"
	"github.com/kubeop/kubeop/internal/manager/live"
	"github.com/kubeop/kubeop/internal/manager/problem"
	"github.com/kubeop/kubeop/internal/manager/progress"
	"github.com/kubeop/kubeop/internal/manager/request"
	"github.com/kubeop/kubeop/internal/store"
)

// Operations are those of this package.
type Operations struct {
	Repositories Repositories
	// Live says which tenants there are.
	Live  *live.Operations
	Store store.Store
	Now   func() time.Time
}

// wanted is what an operation is about.
type wanted struct {
	Change
	// key is the Idempotency-Key, and commit the one to follow.
	key, commit string
	// known is what the caller has of the file.
	known live.Known
}

type (
	fileAnswer struct {
		Status int
		ETag   string `header:"ETag" doc:"It changes whenever the file does."`
		Body   File
	}
	commitAnswer struct{ Body progress.Report }
)

// verbs are what a caller needs in the table of access.
var verbs = map[string]access.Verb{Create: access.Create, Replace: access.Update, Patch: access.Update, Delete: access.Delete, Rollback: access.Update}

// Allowed returns nil if the caller may do something to an object. What the caller may not read is not there for it.
func (o *Operations) Allowed(ctx context.Context, verb access.Verb, of Object) error {
	grant := auth.Of(ctx).Grant
	if !grant.May(of.Resource(), verb, of.Tenant, of.Project) {
		seen := grant.May(of.Resource(), access.Read, of.Tenant, of.Project)
		if verb == access.Create && of.Resource() != access.Apps { // What is to be created need not be seen, but where.
			seen = of.Resource() == access.Tenants || grant.Knows(of.Tenant)
		}
		if seen {
			return problem.New(problem.Forbidden, "")
		}
		return problem.New(problem.NotFound, "")
	}
	if of.Resource() == access.Tenants {
		return o.Live.Read(ctx)
	}
	return o.Live.Tenant(ctx, of.Tenant)
}

// OfPlatform reports whether the caller may change the platform repository: who may change tenants.
func OfPlatform(ctx context.Context) bool {
	return auth.Of(ctx).Grant.May(access.Tenants, access.Update, "", "")
}

func (o *Operations) file(ctx context.Context, w wanted) (*fileAnswer, error) {
	if err := o.Allowed(ctx, access.Update, w.Of); err != nil {
		return nil, err
	}
	file, err := o.Repositories.File(ctx, w.Of, OfPlatform(ctx))
	if err != nil {
		return nil, err
	}
	answer := &fileAnswer{Status: http.StatusOK, ETag: file.ETag, Body: file}
	if w.known.Has(file.ETag) {
		answer.Status = http.StatusNotModified // It has no body.
	}
	return answer, nil
}

func (o *Operations) commit(ctx context.Context, w wanted) (*commitAnswer, error) {
	if err := o.Allowed(ctx, access.Read, w.Of); err != nil {
		return nil, err
	}
	report, err := o.Repositories.Progress(ctx, w.Of, w.commit, OfPlatform(ctx))
	if err != nil {
		return nil, err
	}
	return &commitAnswer{report}, nil
}

func (o *Operations) write(ctx context.Context, w wanted) (Written, error) {
	if err := o.Allowed(ctx, verbs[w.How], w.Of); err != nil {
		return Written{}, err
	}
	if deeper(w.Spec, maxDepth) {
		return Written{}, problem.New(problem.Invalid, "The spec is nested too deeply.", problem.Fault{Location: "body.spec", Message: fmt.Sprintf("has more than %d levels", maxDepth)})
	}
	w.OfPlatform, w.ID, w.Author = OfPlatform(ctx), request.ID(ctx), authorOf(auth.Of(ctx))
	switch {
	case w.DryRun:
		return o.made(ctx, w.Change)
	case w.key != "":
		return o.once(ctx, w)
	}
	written, err := o.made(ctx, w.Change)
	if err != nil || !written.Changed {
		return written, err
	}
	// The commit is made, and has the caller and the request in it. So its answer does not depend on the store.
	if err := o.Store.RecordEvent(ctx, o.event(ctx, w.Change, written)); err != nil {
		logr.FromContextOrDiscard(ctx).Error(err, "Recording a write", "commit", written.Commit)
	}
	return written, nil
}

// made makes the change, and says where to follow it.
func (o *Operations) made(ctx context.Context, c Change) (Written, error) {
	written, err := o.Repositories.Write(ctx, c)
	written.Request = c.ID
	if c.DryRun {
		return written, err
	}
	written.Follow = "/v1/" + string(c.Of.Resource()) + "/" + c.Of.Path() + "/commits/" + written.Commit
	return written, err
}

// event is the record of a write.
func (o *Operations) event(ctx context.Context, c Change, w Written) store.Event {
	kind := string(c.Of.Resource())
	e := auth.Of(ctx).Event(ctx, o.Now().UTC(), c.How+map[access.Resource]string{access.Tenants: "Tenant", access.Projects: "Project", access.Apps: "App"}[c.Of.Resource()], kind[:len(kind)-1]+"/"+c.Of.Path())
	e.Tenant = c.Of.Tenant
	if w.Changed {
		e.Commit = w.Commit
	}
	return e
}

// authorOf names the caller in Git, whose commits need a name.
func authorOf(caller auth.Caller) Person {
	name, email := caller.Author()
	return Person{Name: name, Email: email}
}

// maxDepth is how many levels a spec may have. The text of each level is indented, so it would become as large as the square of the body.
const maxDepth = 60

// deeper reports whether a value has more levels.
func deeper(value any, levels int) bool {
	if levels < 0 {
		return true
	}
	switch value := value.(type) {
	case map[string]any:
		for _, inner := range value {
			if deeper(inner, levels-1) {
				return true
			}
		}
	case []any:
		for _, inner := range value {
			if deeper(inner, levels-1) {
				return true
			}
		}
	}
	return false
}

// once makes a change once for its Idempotency-Key. The ID of the commit is made of the key, so a commit is found in the log of the repository whose answer was lost.
func (o *Operations) once(ctx context.Context, w wanted) (Written, error) {
	caller, now := auth.Of(ctx).Token.ID, o.Now().UTC().Truncate(time.Microsecond)
	parts := []any{w.How, w.Of, w.Spec}
	if w.To != "" {
		parts = append(parts, w.To)
	}
	text, err := json.Marshal(parts)
	if err != nil {
		return Written{}, err
	}
	hash := sha256.Sum256(text)
	kept, err := o.Store.BeginRequest(ctx, store.Request{Caller: caller, Key: w.key, Hash: hash[:], Created: now, Expires: now.Add(keyLife)})
	switch {
	case err != nil:
		refused := problem.FromStore(ctx, err)
		if refused.Code == problem.Unavailable {
			refused.Detail = "The store of the manager, which keeps Idempotency-Keys, does not answer. Nothing was written. Without the header, the request does not need it."
		}
		return Written{}, refused
	case string(kept.Hash) != string(hash[:]):
		return Written{}, problem.New(problem.Invalid, "The Idempotency-Key was used for another request. Nothing was written.", problem.Fault{Location: "header.Idempotency-Key", Message: "was used with another body or path"})
	case kept.Answer != nil:
		var before Written
		return before, json.Unmarshal(kept.Answer, &before)
	}
	id := sha256.Sum256(append([]byte(caller+"\x00"+w.key+"\x00"), hash[:]...))
	w.ID = "key-" + hex.EncodeToString(id[:16])
	written, err := o.made(ctx, w.Change)
	o.settle(ctx, w, kept, written, err)
	return written, err
}

// settle keeps the answer of a request, or forgets the request if it was refused. What fails here changes nothing for the caller: a request that is sent again finds its commit.
func (o *Operations) settle(ctx context.Context, w wanted, kept store.Request, written Written, failed error) {
	var err error
	var refused *problem.Problem
	switch {
	case failed == nil:
		if kept.Answer, err = json.Marshal(written); err == nil {
			err = o.Store.FinishRequest(ctx, kept, o.event(ctx, w.Change, written))
		}
	case errors.As(failed, &refused) && refused.Status < http.StatusInternalServerError:
		err = o.Store.ForgetRequest(ctx, kept)
	}
	if err != nil {
		logr.FromContextOrDiscard(ctx).Error(err, "Keeping the answer for an Idempotency-Key", "commit", written.Commit)
	}
}
