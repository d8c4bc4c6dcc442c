// Package digestkey keeps the key of the digests in statuses: 32 random bytes in a Secret of the operator's namespace, created at the first
// start. Back it up: with another key every digest changes, so all apps are compared with the cluster and applied once more, and their hooks run
// once more.
package digestkey

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Name is the name of the Secret. Its field "key" holds the key.
const Name = "kubeop-digest-key"

const (
	field = "key"
	size  = 32
)

// Key turns digests into those that statuses show.
type Key struct {
	secret    []byte
	client    client.Client
	namespace string
}

// Ensure reads the key, or creates it if there is none. The client must not read from a cache.
func Ensure(ctx context.Context, c client.Client, namespace string) (*Key, error) {
	k := &Key{client: c, namespace: namespace, secret: make([]byte, size)}
	_, _ = rand.Read(k.secret) // It never fails.
	held := &corev1.Secret{}
	err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: Name}, held)
	if apierrors.IsNotFound(err) {
		// If another replica creates the key first, that one is used.
		if err = k.create(ctx); err == nil {
			return k, nil
		}
		if apierrors.IsAlreadyExists(err) {
			err = c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: Name}, held)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("reading the key of digests, Secret %s/%s: %w", namespace, Name, err)
	}
	if k.secret = held.Data[field]; len(k.secret) < size {
		return nil, fmt.Errorf("secret %s/%s has no %q of %d bytes: an administrator of the cluster restores it from a backup, or has another made, with which every app is applied and every hook runs once more, by: kubectl delete secret %s -n %s",
			namespace, Name, field, size, Name, namespace)
	}
	return k, nil
}

func (k *Key) create(ctx context.Context) error {
	immutable := true
	return k.client.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: Name, Labels: map[string]string{"app.kubernetes.io/managed-by": "kubeop"}},
		Immutable:  &immutable, Data: map[string][]byte{field: k.secret},
	})
}

// Seal returns the hexadecimal HMAC-SHA256 of a digest.
func (k *Key) Seal(digest string) string {
	h := hmac.New(sha256.New, k.secret)
	h.Write([]byte(digest))
	return hex.EncodeToString(h.Sum(nil))
}

// retry is the time between two tries to recreate the Secret.
const retry = 10 * time.Second

// Keep recreates the Secret when it is deleted, until the context ends, so that the next process has the same key. secrets is a cache of the
// metadata of the namespace's Secrets.
func (k *Key) Keep(ctx context.Context, secrets cache.Cache, log logr.Logger) error {
	about := &metav1.PartialObjectMetadata{}
	about.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	informer, err := secrets.GetInformer(ctx, about)
	if err != nil {
		return fmt.Errorf("watching Secret %s/%s: %w", k.namespace, Name, err)
	}
	gone := make(chan struct{}, 1)
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{DeleteFunc: func(object any) {
		if last, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
			object = last.Obj
		}
		if o, ok := object.(metav1.Object); ok && o.GetName() == Name {
			select {
			case gone <- struct{}{}:
			default:
			}
		}
	}})
	if err != nil {
		return fmt.Errorf("watching Secret %s/%s: %w", k.namespace, Name, err)
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-gone:
			k.putBack(ctx, log)
		}
	}
}

func (k *Key) putBack(ctx context.Context, log logr.Logger) {
	// The only error is the end of the context.
	_ = wait.PollUntilContextCancel(ctx, retry, true, func(ctx context.Context) (bool, error) {
		err := k.create(ctx)
		if err == nil {
			log.Info("Recreated the key of digests, which was deleted", "secret", k.namespace+"/"+Name)
		}
		if err == nil || apierrors.IsAlreadyExists(err) {
			return true, nil
		}
		log.Error(err, "Recreating the key of digests", "secret", k.namespace+"/"+Name)
		return false, nil
	})
}
