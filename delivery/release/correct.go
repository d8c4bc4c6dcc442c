package release

import (
	"context"
	"errors"
	"fmt"

	"helm.sh/helm/v3/pkg/kube"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Correct puts back what was edited or deleted by hand, and makes no revision. Objects are those of the Outcome. It is
// Helm's own three-way merge with the release as both old and new: fields the chart does not set are left alone, and
// where nothing differs nothing is written. It blocks for a few requests per object, which Helm's client makes on no context.
func (e *Engine) Correct(ctx context.Context, req Request, deployed []*unstructured.Unstructured) error {
	if err := errors.Join(req.check(), ctx.Err()); err != nil {
		return err
	}
	slot := e.slot(req.key())
	slot.mu.Lock()
	defer slot.mu.Unlock()
	if slot.action != settled {
		return fmt.Errorf("%w: kubeop is %s it", ErrLocked, slot.action)
	}
	conn, err := e.dial(req)
	if err != nil {
		return err
	}
	client, ok := conn.kube.(kube.InterfaceThreeWayMerge)
	if !ok || len(deployed) == 0 {
		return nil
	}
	own := objects{client: conn.kube, release: req.key()}
	want := make([]*unstructured.Unstructured, len(deployed))
	for i, u := range deployed {
		want[i] = u.DeepCopy()
		own.claim(want[i])
	}
	return plain(correct(conn.kube, client, want), req.Sensitive)
}

// correct builds the list twice: Helm replaces the target's objects with the server's answers.
func correct(client kube.Interface, merge kube.InterfaceThreeWayMerge, want []*unstructured.Unstructured) (err error) {
	defer recovered("correcting the release", &err)
	docs := []document{{objects: want}}
	original, err := build(client, docs)
	if err != nil {
		return fmt.Errorf("reading the release: %w", err)
	}
	target, err := build(client, docs)
	if err != nil {
		return fmt.Errorf("reading the release: %w", err)
	}
	if _, err := merge.UpdateThreeWayMerge(original, target, false); err != nil {
		return fmt.Errorf("correcting the release: %w", err)
	}
	return nil
}
