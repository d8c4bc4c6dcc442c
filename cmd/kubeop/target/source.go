package target

import (
	"context"
	"fmt"
	"iter"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Source is what objects of kubeop are read from: a cluster, or a manager.
type Source interface {
	Get(ctx context.Context, of Object) (client.Object, error)
	// List returns the objects of a kind in a namespace, or all.
	List(ctx context.Context, of Kind, namespace string) ([]client.Object, error)
	// Follow yields an object each time it changed after it was read, and nil when it was deleted. It may end at any time; then read the object again.
	Follow(ctx context.Context, of Object, read client.Object) iter.Seq2[client.Object, error]
	// Table returns the objects of a selection as rows, with the columns of kubectl get.
	Table(ctx context.Context, of Selection) (*metav1.Table, error)
	// FollowTable calls changed with each row that changed after the table was read. It may end at any time; then read the table again.
	FollowTable(ctx context.Context, of Selection, read *metav1.Table, changed func(row metav1.TableRow, deleted bool)) error
}

// Selection are objects of one kind.
type Selection struct {
	Kind Kind
	// Namespace of the objects; empty for all namespaces, or for a kind without one.
	Namespace string
	// Name of the only object; empty for all.
	Name string
}

// cluster reads from the API server, with the rights of the person.
type cluster struct {
	*Connection
	client.WithWatch
	*Tables
}

// Cluster returns the cluster of the kubeconfig.
func (c *Connection) Cluster() (Source, error) {
	reader, err := c.Client()
	if err != nil {
		return nil, err
	}
	tables, err := c.Tables()
	if err != nil {
		return nil, err
	}
	return &cluster{c, reader, tables}, nil
}

// Get implements Source.
func (c *cluster) Get(ctx context.Context, of Object) (client.Object, error) {
	return c.Connection.Get(ctx, c.WithWatch, of)
}

// List implements Source.
func (c *cluster) List(ctx context.Context, of Kind, namespace string) ([]client.Object, error) {
	list := of.NewList()
	if err := c.WithWatch.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing the %s: %w", of.Plural, err)
	}
	var all []client.Object
	err := meta.EachListItem(list, func(item runtime.Object) error {
		object, is := item.(client.Object)
		if !is {
			return fmt.Errorf("listing the %s: %T is no object", of.Plural, item)
		}
		all = append(all, object)
		return nil
	})
	return all, err
}

// Follow implements Source.
func (c *cluster) Follow(ctx context.Context, of Object, read client.Object) iter.Seq2[client.Object, error] {
	return func(yield func(client.Object, error) bool) {
		changes, err := c.WithWatch.Watch(ctx, of.Kind.NewList(), client.InNamespace(of.Key().Namespace), client.MatchingFields{"metadata.name": of.Key().Name},
			&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: read.GetResourceVersion()}})
		if apierrors.IsForbidden(err) {
			return // Who may not watch it reads it again.
		}
		if err != nil {
			yield(nil, fmt.Errorf("watching the %s: %w", of, err))
			return
		}
		defer changes.Stop()
		for more := true; more; {
			select {
			case <-ctx.Done():
				return
			case event, open := <-changes.ResultChan():
				// If it ends, reading the object again reports what is wrong.
				more = open && event.Type != watch.Error && yieldChange(event, yield)
			}
		}
	}
}

func yieldChange(event watch.Event, yield func(client.Object, error) bool) (more bool) {
	object, is := event.Object.(client.Object)
	switch {
	case event.Type == watch.Deleted:
		return yield(nil, nil)
	case is:
		return yield(object, nil)
	}
	return true // A bookmark.
}

// Table implements Source.
func (c *cluster) Table(ctx context.Context, of Selection) (*metav1.Table, error) {
	return c.Tables.Read(ctx, of)
}

// FollowTable implements Source. The API server ends a watch every few minutes, and when it does not have the version any more.
func (c *cluster) FollowTable(ctx context.Context, of Selection, read *metav1.Table, changed func(row metav1.TableRow, deleted bool)) error {
	err := c.Tables.Watch(ctx, of, read.ResourceVersion, changed)
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return nil
	}
	return err
}
