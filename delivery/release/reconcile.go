package release

import (
	"context"
	"errors"
	"fmt"

	"helm.sh/helm/v3/pkg/storage"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Reconcile reads how the release is and, if it is not as requested, starts what brings it there. It never waits for an
// action. An error means that nothing could be found out or nothing may be done now (ErrLocked, ErrTaken, ErrDraining,
// *Terminating, an API error); it is worth another try later. A failed attempt is no error but Outcome.Failed.
func (e *Engine) Reconcile(ctx context.Context, req Request) (Outcome, error) {
	if err := req.check(); err != nil {
		return Outcome{}, err
	}
	digest, err := req.digest()
	if err != nil {
		return Outcome{Failed: masked(err, req.Sensitive)}, nil
	}
	slot := e.slot(req.key())
	slot.mu.Lock()
	defer slot.mu.Unlock()
	if slot.action != settled {
		return Outcome{Running: true, Action: string(slot.action)}, nil
	}
	p := &pass{engine: e, slot: slot, request: req, want: e.want(req, digest, slot.last)}
	if p.conn, err = e.dial(req); err != nil {
		return Outcome{}, err
	}
	return p.run(ctx)
}

func (e *Engine) want(req Request, digest string, last attempt) want {
	return want{
		app:         labelValue(req.App.Name),
		digest:      digest,
		holder:      e.opts.Holder,
		holderAlive: e.opts.HolderAlive,
		now:         e.opts.Now(),
		timeout:     req.timeout(),
		retry:       req.Retry,
		last:        last,
	}
}

// pass is one look at a release whose slot is free.
type pass struct {
	engine  *Engine
	slot    *slot
	request Request
	want    want
	conn    *connection
}

func (p *pass) store(ctx context.Context) *storage.Storage {
	return storage.Init(&records{Driver: p.conn.secrets(ctx)})
}

func (p *pass) run(ctx context.Context) (Outcome, error) {
	store := p.store(ctx)
	s, err := read(store, p.request.Name)
	if err != nil {
		return Outcome{}, err
	}
	d := next(s, p.want)
	if d.act == unlock {
		if err := interrupted(store, s.last()); err != nil {
			return Outcome{}, err
		}
		d = next(s, p.want)
	}
	switch d.act {
	case settled, failed:
		return p.report(s, d)
	case locked:
		return Outcome{}, fmt.Errorf("%w: %s", ErrLocked, d.why)
	case taken:
		return Outcome{}, &belongs{release: p.request.Name, app: d.why}
	case uninstall:
		return p.start(ctx, job{act: uninstall, digest: p.want.digest, run: p.uninstall})
	case vacate:
		if err := p.vacated(s); err != nil {
			return Outcome{}, err
		}
		// The next install is a first one, with nothing of the old release to adopt.
		if err := p.purge(ctx, s); err != nil {
			return Outcome{}, err
		}
		d.act = install
	}
	return p.start(ctx, job{act: d.act, digest: p.want.digest, run: p.deliver(d)})
}

func (p *pass) start(ctx context.Context, j job) (Outcome, error) {
	if err := p.engine.start(ctx, p.slot, p.request.App, j); err != nil {
		return Outcome{}, err
	}
	return Outcome{Running: true, Action: string(j.act)}, nil
}

func (p *pass) deliver(d decision) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		s, err := p.engine.open(ctx, p.request, p.want.digest, d.attempts+1)
		if err != nil {
			return false, err
		}
		history, err := s.history()
		if err != nil {
			return false, err
		}
		// It may have waited for a worker; if the world has changed, the next pass decides anew.
		if next(history, p.want).act != d.act {
			return false, nil
		}
		return s.deliver(d.act)
	}
}

// report tells what storage says.
func (p *pass) report(s state, d decision) (Outcome, error) {
	out := Outcome{Release: s.info(), Attempts: d.attempts, RetryAt: d.until}
	var err error
	if out.Objects, err = deployedObjects(s, p.request.Namespace); err != nil {
		return Outcome{}, err
	}
	if d.act != failed {
		return out, nil
	}
	// What this process remembers has its class; storage has only the text.
	if out.Failed = p.want.last.err; out.Failed == nil || p.want.last.digest != p.want.digest {
		out.Failed = plain(errors.New(s.last().why), p.request.Sensitive)
	}
	return out, nil
}

func deployedObjects(s state, namespace string) ([]*unstructured.Unstructured, error) {
	deployed := s.deployed()
	if deployed == nil {
		return nil, nil
	}
	docs, err := parse(deployed.record.Manifest)
	if err != nil {
		return nil, fmt.Errorf("reading revision %d: %w", deployed.number, err)
	}
	out := objectsOf(docs)
	for _, u := range out {
		if u.GetNamespace() == "" {
			u.SetNamespace(namespace)
		}
	}
	return out, nil
}
