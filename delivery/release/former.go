package release

import (
	"context"
	"fmt"

	helm "helm.sh/helm/v3/pkg/release"

	"github.com/kubeop/kubeop/delivery/release/decide"
)

// former names the app's releases of other names than the request's. It leaves out those that are uninstalled and of which only the history
// is kept.
func (e *Engine) former(ctx context.Context, req Request) ([]string, error) {
	if e.opts.Releases == nil {
		return nil, nil
	}
	names, err := e.opts.Releases(ctx, req.Namespace, decide.LabelValue(req.App.Name))
	if err != nil {
		return nil, fmt.Errorf("looking for former releases of app %s: %w", req.App.Name, err)
	}
	var out []string
	for _, name := range names {
		if name == req.Name {
			continue
		}
		former, err := e.isFormer(ctx, req.named(name))
		if err != nil {
			return nil, err
		}
		if former {
			out = append(out, name)
		}
	}
	return out, nil
}

// isFormer reports whether a release is the app's and is not completely removed yet. Helm's labels alone do not prove that, because Helm
// copies them to revisions that people make. The answer is not known while this process uninstalls the release.
func (e *Engine) isFormer(ctx context.Context, req Request) (bool, error) {
	s, err := e.index(ctx, req)
	if err != nil {
		return false, err
	}
	last := s.Last()
	if last == nil {
		return true, nil
	}
	if !last.Ours || last.App != decide.LabelValue(req.App.Name) {
		return false, nil
	}
	if !req.Actions.Uninstall.KeepHistory || last.Status != helm.StatusUninstalled {
		return true, nil
	}
	slot := e.pool.Slot(req.key())
	slot.Lock()
	defer slot.Unlock()
	return slot.Busy() || slot.Memory.last.Act == decide.Uninstall, nil
}

// named returns the request for another release of the app.
func (r *Request) named(name string) Request {
	other := *r
	other.Name = name
	if name != r.Name {
		other.Recorded = Recorded{}
	}
	return other
}
