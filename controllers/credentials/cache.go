// Package credentials reads the Secrets that Repositories name.
package credentials

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Cache reads the Secrets that repositories name. It reads each version once, and reads all Secrets with one request if many are
// requested at the same time, for example after a start. Otherwise a thousand repositories would send a thousand requests per interval.
type Cache struct {
	// Reader reads without a cache.
	client.Reader
	// Metadata has the metadata of all Secrets of the namespace.
	Metadata client.Reader
	// Named reports whether a Repository names a Secret; other Secrets are not cached.
	Named func(ctx context.Context, secret string) bool
	Clock clock.PassiveClock

	mu   sync.Mutex
	held map[string]*corev1.Secret
	// single counts the Secrets that were read one by one since began.
	single int
	began  time.Time
	// listing is locked while all Secrets are read.
	listing sync.Mutex
}

// burst is how many Secrets are read one by one within a second; page is how many are listed with one request.
const (
	burst = 8
	page  = 500
)

// Get implements client.Reader for Secrets.
func (c *Cache) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	secret, ok := into.(*corev1.Secret)
	if !ok {
		return c.Reader.Get(ctx, key, into, options...)
	}
	version := c.version(ctx, key)
	if c.take(key.Name, version, secret) {
		return nil
	}
	if c.many() {
		if err := c.readAll(ctx, key, version, secret); err != nil || secret.Name != "" {
			return err
		}
	}
	if err := c.Reader.Get(ctx, key, secret, options...); err != nil {
		return err
	}
	c.hold(secret)
	return nil
}

// version returns the newest known version of a Secret, "" if there is none.
func (c *Cache) version(ctx context.Context, key client.ObjectKey) string {
	about := MetadataOnly()
	if c.Metadata.Get(ctx, key, about) != nil {
		return ""
	}
	return about.ResourceVersion
}

// take copies the cached content of that version.
func (c *Cache) take(name, version string, into *corev1.Secret) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	held := c.held[name]
	if held == nil || held.ResourceVersion != version {
		return false
	}
	held.DeepCopyInto(into)
	return true
}

func (c *Cache) hold(secret *corev1.Secret) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held == nil {
		c.held = map[string]*corev1.Secret{}
	}
	c.held[secret.Name] = secret.DeepCopy()
}

// Drop removes Secrets that changed, or that no repository names any more, from the cache.
func (c *Cache) Drop(names ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range names {
		delete(c.held, name)
	}
}

// many reports whether so many Secrets were read in the last second that a list is better.
func (c *Cache) many() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := c.Clock.Now(); now.Sub(c.began).Abs() > time.Second {
		c.began, c.single = now, 0
	}
	c.single++
	return c.single > burst
}

// readAll reads all Secrets of the namespace and caches those that are named. If another call has cached the requested version meanwhile,
// it reads nothing. If the Secret does not exist, into stays empty.
func (c *Cache) readAll(ctx context.Context, key client.ObjectKey, version string, into *corev1.Secret) error {
	c.listing.Lock()
	defer c.listing.Unlock()
	if c.take(key.Name, version, into) {
		return nil
	}
	list := &corev1.SecretList{}
	for more := true; more; more = list.Continue != "" {
		if err := c.List(ctx, list, client.InNamespace(key.Namespace), client.Limit(page), client.Continue(list.Continue)); err != nil {
			return fmt.Errorf("listing the Secrets of %s: %w", key.Namespace, err)
		}
		for i := range list.Items {
			if c.Named(ctx, list.Items[i].Name) {
				c.hold(&list.Items[i])
			}
		}
	}
	c.take(key.Name, version, into)
	return nil
}

// MetadataOnly is a Secret without its content.
func MetadataOnly() *metav1.PartialObjectMetadata {
	o := &metav1.PartialObjectMetadata{}
	o.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	return o
}
