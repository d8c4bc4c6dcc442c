package release

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	helm "helm.sh/helm/v3/pkg/release"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubeop/kubeop/delivery/differ"
	"github.com/kubeop/kubeop/delivery/mask"
	"github.com/kubeop/kubeop/delivery/release/cluster"
	"github.com/kubeop/kubeop/delivery/release/decide"
	"github.com/kubeop/kubeop/delivery/release/fault"
	"github.com/kubeop/kubeop/delivery/release/manifest"
	"github.com/kubeop/kubeop/delivery/release/records"
)

// Drift compares the suspects that are objects of the deployed revision with its manifest, and corrects them if correct is set: object by
// object, without a new revision. Only fields that the chart sets count, and only if the API server sees a difference: a dry-run shows what
// would change. Fields that Request.Ignore names, and those set through the scale subresource, do not count. Drift blocks for a few
// requests per suspect, and fails with ErrLocked while an action runs. It may return differences together with an error; the error is about
// the objects that could not be compared or corrected.
func (e *Engine) Drift(ctx context.Context, req Request, suspects []cluster.Ref, correct bool) ([]cluster.Difference, error) {
	if err := errors.Join(req.check(), ctx.Err()); err != nil {
		return nil, err
	}
	ignore, err := differ.ReadRules(req.Ignore)
	if err != nil {
		return nil, fault.Render(err)
	}
	slot := e.pool.Slot(req.key())
	slot.Lock()
	defer slot.Unlock()
	if slot.Busy() {
		return nil, fmt.Errorf("%w: kubeop is %s it", fault.ErrLocked, slot.Action().Name)
	}
	conn, err := e.dial(req)
	if err != nil {
		return nil, err
	}
	want, err := e.suspected(ctx, req, conn, suspects)
	if err != nil {
		return nil, fault.Brief(fault.Plain(err, mask.Of(req.Sensitive)))
	}
	conn.Client.Terms.App = decide.LabelValue(req.App.Name)
	found, err := conn.Client.Differences(ctx, want, cluster.Comparison{Ignore: ignore, Correct: correct, Sensitive: req.Sensitive})
	return found, fault.Brief(fault.Plain(err, mask.Of(req.Sensitive)))
}

// suspected returns the suspects as in the manifest of the deployed revision.
func (e *Engine) suspected(ctx context.Context, req Request, conn *cluster.Connection, suspects []cluster.Ref) ([]*unstructured.Unstructured, error) {
	s, err := e.index(ctx, req)
	if err != nil || s.Deployed() == nil {
		return nil, err
	}
	rel, err := e.payload(ctx, conn, req, s.Deployed().Number)
	if err != nil {
		return nil, err
	}
	if err := records.CheckGenuine(rel, req.App); err != nil {
		return nil, err
	}
	all, err := e.objects(&req, rel)
	if err != nil {
		return nil, err
	}
	asked := map[manifest.Identity]bool{}
	for _, ref := range suspects {
		asked[manifest.IdentityOf(ref.GroupKind(), cmp.Or(ref.Namespace, req.Namespace), ref.Name)] = true
	}
	return slices.DeleteFunc(all, func(u *unstructured.Unstructured) bool { return !asked[manifest.Identify(u, req.Namespace)] }), nil
}

// objects returns all objects of a revision.
func (e *Engine) objects(req *Request, rel *helm.Release) ([]*unstructured.Unstructured, error) {
	own, shared, err := cluster.OfRevision(e.opts.Mapper, rel, req.platform())
	return append(own, shared...), err
}
