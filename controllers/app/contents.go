package app

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// maxContents bounds, in bytes, how much of ConfigMaps and Secrets is remembered.
const maxContents = 8 << 20

// contents remembers what ConfigMaps and Secrets hold, each in the one version that was read, so that values are not read
// again while the watch shows that version.
type contents struct {
	mu   sync.Mutex
	held map[reference]content
	size int
}

type content struct {
	version string
	data    map[string][]byte
}

func (c *contents) get(ref reference, version string) (map[string][]byte, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known, ok := c.held[ref]
	return known.data, ok && known.version == version
}

// put remembers an object. When there is too much, everything else is forgotten: it is read again when it is needed.
func (c *contents) put(ref reference, version string, data map[string][]byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if was, known := c.held[ref]; known {
		c.size -= sizeOf(was.data)
	}
	if c.size += sizeOf(data); c.held == nil || c.size > maxContents {
		c.held, c.size = map[reference]content{}, sizeOf(data)
	}
	c.held[ref] = content{version: version, data: data}
}

// contentCost is about what an object takes beside what it holds, so that empty ones are not for free.
const contentCost = 512

func sizeOf(data map[string][]byte) int {
	size := contentCost
	for k, v := range data {
		size += len(k) + len(v)
	}
	return size
}

// secrets reads Secrets as the deployer, each once for each version that the watch shows: all apps of a project may log in with
// the same.
func (r *Reconciler) secrets(s *scope) client.Reader { return secretReader{s.client, r} }

type secretReader struct {
	client.Reader
	reconciler *Reconciler
}

// Get reads a Secret, or from the API server what is none.
func (s secretReader) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	secret, ok := o.(*corev1.Secret)
	if !ok {
		return s.Reader.Get(ctx, key, o, opts...)
	}
	version, err := s.reconciler.Version(ctx, key.Namespace, "Secret", key.Name)
	if err != nil {
		return err
	}
	ref := reference{namespace: key.Namespace, kind: "Secret", name: key.Name}
	data, known := s.reconciler.contents.get(ref, version)
	if version == "" || !known {
		if err := s.Reader.Get(ctx, key, secret, opts...); err != nil {
			return err
		}
		s.reconciler.contents.put(ref, secret.ResourceVersion, secret.Data)
		return nil
	}
	secret.Namespace, secret.Name, secret.ResourceVersion, secret.Data = key.Namespace, key.Name, version, data
	return nil
}
