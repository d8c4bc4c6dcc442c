package subject

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// Memory keeps a T for each App between its Reconciles. Only the App's own Reconcile uses its T, and an App never has two Reconciles at the
// same time, so a T needs no lock. After a restart all T are lost, which costs only a few requests. The zero value is empty.
type Memory[T any] struct {
	mu   sync.Mutex
	apps map[types.UID]*T
}

// Get returns the T of an App, a new one if there is none.
func (m *Memory[T]) Get(app *v1alpha1.App) *T {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.apps == nil {
		m.apps = map[types.UID]*T{}
	}
	t, ok := m.apps[app.UID]
	if !ok {
		t = new(T)
		m.apps[app.UID] = t
	}
	return t
}

// Forget drops the T of an App.
func (m *Memory[T]) Forget(app *v1alpha1.App) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.apps, app.UID)
}
