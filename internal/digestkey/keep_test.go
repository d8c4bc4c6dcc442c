package digestkey

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// watched is a cache whose deletions a test makes.
type watched struct {
	cache.Cache
	cache.Informer
	handler toolscache.ResourceEventHandler
	err     error
}

func (w *watched) GetInformer(context.Context, client.Object, ...cache.InformerGetOption) (cache.Informer, error) {
	return w, w.err
}

func (w *watched) AddEventHandler(handler toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	w.handler = handler
	return nil, nil
}

// TestTheSecretIsRecreated with the same key when it is deleted, as soon as the API server permits it.
func TestTheSecretIsRecreated(t *testing.T) {
	about := func(name string) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	}
	const made = `"level"=0 "msg"="Recreated the key of digests, which was deleted" "secret"="kubeop-system/kubeop-digest-key"`
	const refusal = `"msg"="Recreating the key of digests" "error"="Internal error occurred: no API server" "secret"="kubeop-system/kubeop-digest-key"`
	for name, tc := range map[string]struct {
		deleted []any
		// refused is how many creations the API server refuses. made: somebody else creates the Secret first.
		refused int
		made    bool
		after   time.Duration
		tries   int
		want    string
		logged  []string
	}{
		"deleted":                    {deleted: []any{about(Name)}, tries: 1, want: "ours", logged: []string{made}},
		"its deletion was missed":    {deleted: []any{toolscache.DeletedFinalStateUnknown{Key: namespace + "/" + Name, Obj: about(Name)}}, tries: 1, want: "ours", logged: []string{made}},
		"another Secret is deleted":  {deleted: []any{about("another")}, want: ""},
		"refused twice":              {deleted: []any{about(Name)}, refused: 2, after: 2 * retry, tries: 3, want: "ours", logged: []string{refusal, refusal, made}},
		"refused, and not yet again": {deleted: []any{about(Name)}, refused: 2, after: 2*retry - 1, tries: 2, want: "", logged: []string{refusal, refusal}},
		"deleted twice, refused":     {deleted: []any{about(Name), about(Name)}, refused: 1, after: 3 * retry, tries: 3, want: "ours", logged: []string{refusal, made}},
		"restored from a backup":     {deleted: []any{about(Name)}, made: true, after: 2 * retry, tries: 1, want: "theirs"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tries := 0
				theirs := held("theirs")
				c := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
					Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
						if tries++; tries <= tc.refused {
							return apierrors.NewInternalError(errors.New("no API server"))
						}
						if tc.made {
							if err := c.Create(ctx, theirs); err != nil {
								return err
							}
						}
						return c.Create(ctx, o, options...)
					},
				}).Build()
				k, secrets := &Key{secret: []byte("ours"), client: c, namespace: namespace}, &watched{}
				ctx, end := context.WithCancel(t.Context())
				ended := make(chan error)
				var logged []string
				log := funcr.New(func(_, line string) { logged = append(logged, line) }, funcr.Options{})
				go func() { ended <- k.Keep(ctx, secrets, log) }()
				synctest.Wait()
				for _, object := range tc.deleted {
					secrets.handler.OnDelete(object)
					synctest.Wait()
				}
				time.Sleep(tc.after)
				synctest.Wait()
				end()
				if err := <-ended; err != nil {
					t.Errorf("it ended with %v", err)
				}
				got := &corev1.Secret{}
				err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: Name}, got)
				if key := string(got.Data[field]); client.IgnoreNotFound(err) != nil || key != tc.want {
					t.Errorf("the key is %q, %v, want %q", key, err, tc.want)
				}
				if diff := cmp.Diff(tc.logged, logged); diff != "" {
					t.Errorf("logged (-want +got):\n%s", diff)
				}
				if tries != tc.tries {
					t.Errorf("it was created in %d tries, want %d", tries, tc.tries)
				}
			})
		})
	}
}

func TestAWatchThatFailsNamesTheSecret(t *testing.T) {
	broken := errors.New("no API server")
	err := (&Key{namespace: namespace}).Keep(t.Context(), &watched{err: broken}, logr.Discard())
	if !errors.Is(err, broken) || err.Error() != "watching Secret kubeop-system/kubeop-digest-key: no API server" {
		t.Errorf("got %v", err)
	}
}
