package wake

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// settling is how long an App waits after the API server has served new kinds, because they come in groups.
const settling = time.Second

// Retry queues an App whose failure may have lost its cause, after a delay. The App does not wait until the end of its pause; see Mended.
func (q *Queue) Retry(app types.NamespacedName, after time.Duration) {
	q.mended.Store(app, q.Clock.Now())
	q.AddAfter(app, after)
}

// Mended returns since when what failed before may succeed; zero if that is not known of any time.
func (q *Queue) Mended(app types.NamespacedName) time.Time {
	at, _ := q.mended.Load(app)
	since, _ := at.(time.Time)
	return since
}

// AwaitKinds has KindsServed wake an App once. The App needs a kind that the API server does not serve.
func (q *Queue) AwaitKinds(app types.NamespacedName) { q.unserved.Store(app, true) }

// KindsServed wakes the Apps that wait for a kind. The API server may serve it now.
func (q *Queue) KindsServed() {
	q.unserved.Range(func(app, _ any) bool {
		q.unserved.Delete(app)
		q.Retry(app.(types.NamespacedName), settling)
		return true
	})
}

// Forget drops the state of an App.
func (q *Queue) Forget(app *v1alpha1.App) {
	q.mended.Delete(client.ObjectKeyFromObject(app))
	q.unserved.Delete(client.ObjectKeyFromObject(app))
}
