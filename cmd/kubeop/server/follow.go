package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kube "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/client"
	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/cmd/kubeop/target"
)

// change is what became of an object of a list. object is nil when it was deleted.
type change struct {
	name   string
	object kube.Object
}

// Follow implements target.Source.
func (s *source) Follow(ctx context.Context, of target.Object, _ kube.Object) iter.Seq2[kube.Object, error] {
	selection := target.Selection{Kind: of.Kind, Namespace: of.Key().Namespace, Name: of.Key().Name}
	return func(yield func(kube.Object, error) bool) {
		for c, err := range s.changes(ctx, selection, []string{selection.Name}) {
			if err != nil {
				err = fmt.Errorf("following the %s: %w", of, err)
			}
			if !yield(c.object, err) || err != nil {
				return
			}
		}
	}
}

// FollowTable implements target.Source.
func (s *source) FollowTable(ctx context.Context, of target.Selection, read *metav1.Table, changed func(row metav1.TableRow, deleted bool)) error {
	columns, err := s.columnsOf(of.Kind)
	if err != nil {
		return err
	}
	rows := map[string]metav1.TableRow{}
	for _, row := range read.Rows {
		about := metav1.PartialObjectMetadata{}
		if err := json.Unmarshal(row.Object.Raw, &about); err != nil {
			return fmt.Errorf("reading a row: %w", err)
		}
		rows[about.Name] = row
	}
	for c, err := range s.changes(ctx, of, slices.Collect(maps.Keys(rows))) {
		switch {
		case err != nil:
			return fmt.Errorf("following the %s: %w", of.Kind.Plural, err)
		case c.object == nil:
			changed(rows[c.name], true)
			delete(rows, c.name)
		default:
			row, err := columns.Row(c.object, s.clock.Now())
			if err != nil {
				return err
			}
			rows[c.name] = row
			changed(row, false)
		}
	}
	return nil
}

// changes yields the objects of a selection as they are, and then each change. What is known, and is not there any more, was deleted. It ends when the stream ends, or is
// cut.
func (s *source) changes(ctx context.Context, of target.Selection, known []string) iter.Seq2[change, error] {
	return func(yield func(change, error) bool) {
		events, read, err := s.events(ctx, of)
		if err != nil {
			yield(change{}, err)
			return
		}
		f := &followed{known: map[string]bool{}, read: read, yield: func(c change) bool { return of.Name != "" && c.name != of.Name || yield(c, nil) }}
		for _, name := range known {
			f.known[name] = true
		}
		for e, err := range events {
			if errors.Is(err, client.ErrCut) {
				return
			}
			more := err == nil
			if more {
				more, err = f.event(e)
			}
			if err != nil {
				yield(change{}, s.explained(err))
			}
			if !more {
				return
			}
		}
	}
}

// followed is what is known of a list that is followed.
type followed struct {
	known map[string]bool
	// missing are the known ones about which no event came since the list began anew.
	missing map[string]bool
	read    func([]byte) (kube.Object, error)
	yield   func(change) bool
}

// event takes an event, and reports whether to go on.
func (f *followed) event(e client.StreamEvent) (more bool, err error) {
	switch e.Kind {
	case "resync":
		f.missing = maps.Clone(f.known)
	case "put":
		object, err := f.read(e.Data)
		if err != nil {
			return false, fmt.Errorf("reading an event: %w", err)
		}
		f.known[object.GetName()] = true
		delete(f.missing, object.GetName())
		return f.yield(change{object.GetName(), object}), nil
	case "delete":
		var about struct{ Name string }
		if err := json.Unmarshal(e.Data, &about); err != nil {
			return false, fmt.Errorf("reading an event: %w", err)
		}
		return f.deleted(about.Name), nil
	case "synced":
		for _, name := range slices.Sorted(maps.Keys(f.missing)) {
			if !f.deleted(name) {
				return false, nil
			}
		}
		f.missing = nil
	}
	return true, nil
}

func (f *followed) deleted(name string) (more bool) {
	if !f.known[name] {
		return true
	}
	delete(f.known, name)
	delete(f.missing, name)
	return f.yield(change{name: name})
}

// events opens the stream of the list that a selection is in. read reads its items.
func (s *source) events(ctx context.Context, of target.Selection) (stream iter.Seq2[client.StreamEvent, error], read func([]byte) (kube.Object, error), err error) {
	tenant, project := placeOf(of)
	switch {
	case of.Kind.Name == v1alpha1.TenantKind:
		return s.api.ListTenantsEvents(ctx, client.ListTenantsParams{}), reader(tenantOf), nil
	case of.Namespace == "":
		return nil, nil, &target.Explained{Text: fmt.Sprintf("the management API at %s sends the changes of one list at a time: name the tenant with --tenant", s.url)}
	case of.Kind.Name == v1alpha1.ProjectKind:
		return s.api.ListProjectsEvents(ctx, tenant, client.ListProjectsParams{}), reader(projectOf), nil
	case of.Kind.Name == v1alpha1.AppKind:
		return s.api.ListAppsEvents(ctx, tenant, project, client.ListAppsParams{}), reader(appOf), nil
	}
	return nil, nil, s.unserved(of.Kind)
}

func reader[T any](convert func(T) kube.Object) func([]byte) (kube.Object, error) {
	return func(text []byte) (kube.Object, error) {
		var item T
		if err := json.Unmarshal(text, &item); err != nil {
			return nil, err
		}
		return convert(item), nil
	}
}
