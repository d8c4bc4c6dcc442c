package writes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/go-logr/logr"

	"github.com/kubeop/kubeop/internal/manager/access"
	"github.com/kubeop/kubeop/internal/manager/auth"
	"github.com/kubeop/kubeop/internal/manager/etag"
	"github.com/kubeop/kubeop/internal/manager/inflight"
	"github.com/kubeop/kubeop/internal/manager/live"
	"github.com/kubeop/kubeop/internal/manager/once"
	"github.com/kubeop/kubeop/internal/manager/problem"
	"github.com/kubeop/kubeop/internal/manager/progress"
	"github.com/kubeop/kubeop/internal/manager/request"
	"github.com/kubeop/kubeop/internal/store"
)

// Operations are the operations of this package.
type Operations struct {
	Repositories Repositories
	// Live knows which tenants exist.
	Live  *live.Operations
	Store store.Store
	Now   func() time.Time

	mu   sync.Mutex
	held *inflight.Limiter
}

// wanted has the parameters of an operation.
type wanted struct {
	Change
	// key is the Idempotency-Key, and commit the commit to follow.
	key, commit string
	// known is what the caller has of the file.
	known etag.Known
}

type (
	fileAnswer struct {
		Status int
		ETag   string `header:"ETag" doc:"It changes whenever the file does."`
		Body   File
	}
	commitAnswer struct{ Body progress.Report }
)

// verbs has the verb of each change in the table of access.
var verbs = map[string]access.Verb{Create: access.Create, Replace: access.Update, Patch: access.Update, Delete: access.Delete, Rollback: access.Update}

// Allowed returns nil if the caller may do something to an object. If the caller may not read the object, the answer is that it does not exist.
func (o *Operations) Allowed(ctx context.Context, verb access.Verb, of Object) error {
	grant := auth.Of(ctx).Grant
	if !grant.May(of.Resource(), verb, of.Tenant, of.Project) {
		seen := grant.May(of.Resource(), access.Read, of.Tenant, of.Project)
		if verb == access.Create && of.Resource() != access.Apps { // The object does not exist yet, so the caller has to see its parent.
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
	err := o.Live.Tenant(ctx, of.Tenant)
	if missing := new(problem.Problem); verb == access.Create && errors.As(err, &missing) && missing.Code == problem.NotFound {
		return problem.New(problem.NotFound, "The cluster has no tenant "+of.Tenant+". If its commit was just made, follow it until it is Healthy.")
	}
	return err
}

// OfPlatform reports whether the caller may change the platform repository. Callers who may change tenants may.
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
	sees := Sees{Platform: OfPlatform(ctx), Tenant: auth.Of(ctx).Grant.May(access.Tenants, access.Read, w.Of.Tenant, "")}
	report, err := o.Repositories.Progress(ctx, w.Of, w.commit, sees)
	if err != nil {
		return nil, err
	}
	return &commitAnswer{report}, nil
}

// write makes a change, and logs why it was refused. Each line of the log has the caller and the ID of the request.
func (o *Operations) write(ctx context.Context, w wanted) (Written, error) {
	written, err := o.attempt(ctx, w)
	var refused *problem.Problem
	if errors.As(err, &refused) && refused.Status < http.StatusInternalServerError {
		e := o.event(ctx, w.Change, Written{})
		at := ""
		if len(refused.Errors) > 0 {
			at = refused.Errors[0].Location
		}
		logr.FromContextOrDiscard(ctx).Info("Refusing a write", "action", e.Action, "object", e.Object, "status", refused.Status, "code", refused.Code, "why", refused.Detail, "at", at, "from", e.Address)
	}
	return written, err
}

func (o *Operations) attempt(ctx context.Context, w wanted) (Written, error) {
	if err := o.Allowed(ctx, verbs[w.How], w.Of); err != nil {
		return Written{}, err
	}
	if deeper(w.Spec, maxDepth) {
		return Written{}, problem.New(problem.Invalid, "The spec is nested too deeply.", problem.Fault{Location: "body.spec", Message: fmt.Sprintf("has more than %d levels", maxDepth)})
	}
	caller := auth.Of(ctx)
	w.OfPlatform, w.ID, w.Author = OfPlatform(ctx), request.ID(ctx), authorOf(caller)
	w.Allowed = func() error {
		limited, cancel := store.Detached(ctx)
		defer cancel()
		if refused := caller.Again(limited); refused != nil {
			return refused
		}
		return nil
	}
	switch {
	case w.DryRun:
		return o.made(ctx, w.Change)
	case w.key != "":
		return o.once(ctx, w)
	}
	w.Alone = func(written Written) { o.record(ctx, w.Change, written) }
	written, err := o.made(ctx, w.Change)
	if err == nil {
		o.record(ctx, w.Change, written)
	}
	return written, err
}

// record records a commit in the audit log. The answer does not depend on it: the commit is made, and names the caller and the request.
func (o *Operations) record(ctx context.Context, c Change, written Written) {
	if !written.Changed {
		return
	}
	limited, cancel := store.Detached(ctx)
	defer cancel()
	if err := o.Store.RecordEvent(limited, o.event(ctx, c, written)); err != nil {
		logr.FromContextOrDiscard(ctx).Error(err, "Recording a write", "commit", written.Commit)
	}
}

// made makes the change, and adds where to follow it.
func (o *Operations) made(ctx context.Context, c Change) (Written, error) {
	written, err := o.Repositories.Write(ctx, c)
	return c.completed(written), err
}

// completed returns a result with the ID of its request and the path at which to follow the commit. A dry run has no such path.
func (c Change) completed(written Written) Written {
	written.Request = c.ID
	if c.DryRun {
		return written
	}
	written.Follow = "/v1/" + string(c.Of.Resource()) + "/" + c.Of.Path() + "/commits/" + written.Commit
	return written
}

// event is the record of a write in the audit log.
func (o *Operations) event(ctx context.Context, c Change, w Written) store.Event {
	kind := string(c.Of.Resource())
	e := auth.Of(ctx).Event(ctx, o.Now().UTC(), c.How+map[access.Resource]string{access.Tenants: "Tenant", access.Projects: "Project", access.Apps: "App"}[c.Of.Resource()], kind[:len(kind)-1]+"/"+c.Of.Path())
	e.Tenant = c.Of.Tenant
	if w.Changed {
		e.Commit = w.Commit
	}
	return e
}

// authorOf returns the caller as the author of a commit, whose name may not be empty. It drops characters that are not printable, such as marks that
// reverse the direction of a text, because logs show the name beside other names.
func authorOf(caller auth.Caller) Person {
	printed := func(text string) string {
		return strings.TrimSpace(strings.Map(func(r rune) rune {
			if !unicode.IsPrint(r) {
				return -1
			}
			return r
		}, text))
	}
	name, email := caller.Author()
	return Person{Name: cmp.Or(printed(name), caller.Token.ID), Email: printed(email)}
}

// maxDepth is how many levels a spec may have. YAML indents each level, so without a limit the file could grow with the square of the body.
const maxDepth = 60

// deeper reports whether a value has more than that many levels.
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

// once makes a change only once for its Idempotency-Key. The ID of the commit is derived from the key, so the commit is found in the log of the
// repository even if its answer was lost.
func (o *Operations) once(ctx context.Context, w wanted) (Written, error) {
	parts := []any{w.How, w.Of, w.Spec}
	if w.To != "" {
		parts = append(parts, w.To)
	}
	var before Written
	begun, err := once.Begin(ctx, o.Store, once.Request{Key: once.Key{IdempotencyKey: w.key}, Caller: auth.Of(ctx).Token.ID, Of: parts, Now: store.Time(o.Now())}, &before)
	var refused *problem.Problem
	if errors.As(err, &refused) && refused.Code == problem.Unavailable {
		refused.Detail = "The store of the manager, which keeps Idempotency-Keys, does not answer. Nothing was written. Without the header, the request does not need it."
	}
	if err != nil || begun.Answered {
		return before, err
	}
	w.ID = "key-" + begun.ID
	settle := func(written Written, failed error) {
		event := store.Event{}
		if written.Changed {
			event = o.event(ctx, w.Change, written)
		}
		begun.Settle(ctx, written, event, failed)
	}
	w.Alone = func(written Written) { settle(w.completed(written), nil) }
	written, err := o.made(ctx, w.Change)
	settle(written, err)
	return written, err
}
