package release

import (
	"context"
	"fmt"

	helm "helm.sh/helm/v3/pkg/release"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/kubeop/kubeop/delivery/mask"
	"github.com/kubeop/kubeop/delivery/release/cluster"
	"github.com/kubeop/kubeop/delivery/release/decide"
	"github.com/kubeop/kubeop/delivery/release/records"
)

// connect makes a connection of the request's user. It makes no request.
func (e *Engine) connect(req Request) (*cluster.Connection, error) {
	conn, err := cluster.Connect(cluster.Options{
		User: e.impersonated(req), Operator: e.opts.Config, Kinds: e.kinds, Release: req.key(), App: decide.LabelValue(req.App.Name),
		Platform: req.platform(), Explain: e.explainer(req), Owned: req.Policy.Owned, Log: e.logf,
	})
	if err != nil {
		return nil, fmt.Errorf("connecting as %s: %w", req.User, err)
	}
	return conn, nil
}

// records opens the records of a release.
func (e *Engine) records(conn *cluster.Connection, req Request, memory *records.Memo) records.Store {
	return records.NewStore(conn.Secrets, req.key(), memory, e.opts.Now)
}

// explainer explains why objects of the request are not ready; nil when Options.Explain is.
func (e *Engine) explainer(req Request) func(context.Context, *unstructured.Unstructured) string {
	if e.opts.Explain == nil {
		return nil
	}
	hide := mask.Of(req.Sensitive)
	return func(ctx context.Context, u *unstructured.Unstructured) string {
		return e.opts.Explain(ctx, req.Namespace, hide, u)
	}
}

// impersonated returns the configuration of a client that acts as the request's user, through the fence of the action if there is one.
func (e *Engine) impersonated(req Request) *rest.Config {
	config := rest.CopyConfig(e.opts.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: req.User}
	config.QPS = -1
	if req.fence != nil {
		config.Wrap(req.fence.Wrap)
	}
	return config
}

// Refresh makes the next action read discovery, the mapper and the capabilities anew. Call it when kinds were added or removed:
// CustomResourceDefinitions or APIServices changed. It makes no request.
func (e *Engine) Refresh() { e.kinds.Refresh() }

func (e *Engine) logf(format string, args ...any) {
	if log := e.opts.Log.V(1); log.Enabled() {
		log.Info("Helm", "says", fmt.Sprintf(format, args...))
	}
}

// index returns the release's history from the metadata of its records, corrected by what this process wrote itself just now. It costs no
// request when Options.Records is set.
func (e *Engine) index(ctx context.Context, req Request) (decide.State, error) {
	read := e.opts.Records
	if read == nil {
		read = records.Lister(e.impersonated(req))
	}
	seen, err := read(ctx, req.Namespace, req.Name)
	if err != nil {
		return nil, fmt.Errorf("reading the records of release %s: %w", req.Name, err)
	}
	return decide.StateOf(req.Name, e.pool.Slot(req.key()).Memory.records.Correct(seen, e.opts.Now())), nil
}

// payload reads one revision and caches nothing of it.
func (e *Engine) payload(ctx context.Context, conn *cluster.Connection, req Request, number int) (*helm.Release, error) {
	rel, _, err := e.records(conn, req, &records.Memo{}).Read(ctx, number)
	return rel, err
}
