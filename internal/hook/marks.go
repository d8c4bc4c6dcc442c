package hook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

const (
	// markPause is the time between two changes of one Repository.
	markPause = 200 * time.Millisecond
	// markTime limits each change.
	markTime = 5 * time.Second
	// maxMarks is the maximum number of a Repository's sources that wait to be annotated.
	maxMarks = 64
)

// errManySources means that more than maxMarks sources wait.
var errManySources = errors.New("pushes to too many sources wait to be passed on")

// marks lets the leader reconcile a Repository by setting an annotation. The first call does so at once. Calls within markPause of a change
// are combined into the next change, because one reconciliation finds all their pushes. Safe for concurrent use.
type marks struct {
	client client.Client
	clock  clock.WithDelayedExecution
	log    logr.Logger

	mu sync.Mutex
	// waiting are the sources to annotate next, by recently changed Repository. "" is the Repository itself.
	waiting map[string][]string
}

// add annotates a Repository for a push to it or to a source of its tenant. Nil means that it is annotated, or will be shortly.
func (m *marks) add(ctx context.Context, repository, source string) error {
	if waits, err := m.wait(repository, source); waits || err != nil {
		return err
	}
	// A caller that disconnected has pushed nevertheless.
	err := m.write(context.WithoutCancel(ctx), repository, source)
	m.clock.AfterFunc(markPause, func() { go m.next(repository) })
	return err
}

// wait adds to the next change, if the Repository was annotated less than markPause ago.
func (m *marks) wait(repository, source string) (waits bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	next, busy := m.waiting[repository]
	switch {
	case !busy:
		if m.waiting == nil {
			m.waiting = map[string][]string{}
		}
		m.waiting[repository] = nil
		return false, nil
	case slices.Contains(next, source):
		return true, nil
	case len(next) >= maxMarks:
		return true, errManySources
	}
	m.waiting[repository] = append(next, source)
	return true, nil
}

// next annotates the Repository for the push that has waited longest.
func (m *marks) next(repository string) {
	m.mu.Lock()
	next := m.waiting[repository]
	if len(next) == 0 {
		delete(m.waiting, repository)
		m.mu.Unlock()
		return
	}
	source := next[0]
	m.waiting[repository] = slices.Clone(next[1:])
	m.mu.Unlock()
	if err := m.write(context.Background(), repository, source); err != nil {
		m.log.Error(err, "Requesting a fetch; polling will find the push", "repository", repository)
	}
	m.clock.AfterFunc(markPause, func() { go m.next(repository) })
}

// write sets Flux's annotation, as `kubectl annotate` would, and the time of the call; or the annotation that names the source.
func (m *marks) write(ctx context.Context, repository, source string) error {
	ctx, cancel := context.WithTimeout(ctx, markTime)
	defer cancel()
	now := m.clock.Now().UTC().Format(time.RFC3339Nano)
	annotations := map[string]string{meta.ReconcileRequestAnnotation: now, v1alpha1.HookCalledAnnotation: now}
	if source != "" {
		annotations = map[string]string{v1alpha1.PushedAnnotation: now + " " + source}
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": annotations}})
	if err != nil {
		return fmt.Errorf("encoding the annotation: %w", err)
	}
	o := &v1alpha1.Repository{}
	o.Name = repository
	if err := m.client.Patch(ctx, o, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("annotating repository %s: %w", repository, err)
	}
	return nil
}
