package release

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"

	helm "helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage"
	"helm.sh/helm/v3/pkg/storage/driver"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
)

// records is Helm's storage as one action uses it.
type records struct {
	driver.Driver
	// create stands before every new revision: history is what storage held last.
	create func(history state, r *helm.Release) error
	// failed hears of every error of the storage itself.
	failed func(error)
	// seen is the history once it was read: one action reads it once, where Helm would three times and more.
	seen  []*helm.Release
	known bool
	// created: a new revision was recorded.
	created bool
}

// Query strips the labels by which Helm finds its Secrets: its driver hands them out as the release's own, and an upgrade
// would carry them on.
func (r *records) Query(labels map[string]string) ([]*helm.Release, error) {
	if r.known {
		return r.recall(labels["status"])
	}
	found, err := r.Driver.Query(labels)
	if err != nil && !errors.Is(err, driver.ErrReleaseNotFound) {
		return nil, r.note(err)
	}
	for _, rel := range found {
		maps.DeleteFunc(rel.Labels, func(k, _ string) bool { return driver.ContainsSystemLabels(map[string]string{k: ""}) })
	}
	if labels["status"] == "" {
		r.seen, r.known = found, true
	}
	return found, err
}

// recall answers from the history; an empty status is any.
func (r *records) recall(status string) ([]*helm.Release, error) {
	var out []*helm.Release
	for _, rel := range r.seen {
		if status == "" || rel.Info.Status.String() == status {
			out = append(out, rel)
		}
	}
	if len(out) == 0 {
		return nil, driver.ErrReleaseNotFound
	}
	return out, nil
}

// Create records a new revision, after which Helm begins to apply it.
func (r *records) Create(key string, rel *helm.Release) error {
	if r.create != nil {
		if err := r.create(stateOf(r.seen), rel); err != nil {
			return err
		}
	}
	if err := r.Driver.Create(key, rel); err != nil {
		return r.note(err)
	}
	r.created = true
	return nil
}

// Update records how a revision fares.
func (r *records) Update(key string, rel *helm.Release) error {
	return r.note(r.Driver.Update(key, rel))
}

func (r *records) note(err error) error {
	if err != nil && r.failed != nil && !errors.Is(err, driver.ErrReleaseNotFound) {
		r.failed(err)
	}
	return err
}

// keyOf names the record of a revision as Helm does.
func keyOf(r *helm.Release) string {
	return fmt.Sprintf("%s.%s.v%d", storage.HelmStorageType, r.Name, r.Version)
}

// maxRecordBytes is how large one record may be once inflated, maxHistoryBytes all that are read at once. Tenants can
// write Secrets: small ones could else inflate to more than the operator's memory.
const (
	maxRecordBytes  = 16 << 20
	maxHistoryBytes = 64 << 20
)

// secrets are the Secrets of one namespace: read within bounds, on a context that Helm's driver has no room for.
type secrets struct {
	typedcorev1.SecretInterface
	ctx context.Context
}

// Get reads a Secret that Helm can decode safely.
func (s secrets) Get(_ context.Context, name string, o metav1.GetOptions) (*corev1.Secret, error) {
	secret, err := s.SecretInterface.Get(s.ctx, name, o)
	if err != nil {
		return nil, err
	}
	_, err = inflated(secret)
	return secret, err
}

// List reads Secrets that Helm can decode safely.
func (s secrets) List(_ context.Context, o metav1.ListOptions) (*corev1.SecretList, error) {
	list, err := s.SecretInterface.List(s.ctx, o)
	if err != nil {
		return nil, err
	}
	var total int64
	for i := range list.Items {
		n, err := inflated(&list.Items[i])
		if err != nil {
			return nil, err
		}
		if total += n; total > maxHistoryBytes {
			return nil, fmt.Errorf("the records inflate to more than %d MiB", maxHistoryBytes>>20)
		}
	}
	return list, nil
}

// Create is the inner one's, on the right context.
func (s secrets) Create(_ context.Context, n *corev1.Secret, o metav1.CreateOptions) (*corev1.Secret, error) {
	return s.SecretInterface.Create(s.ctx, n, o)
}

// Update is the inner one's, on the right context.
func (s secrets) Update(_ context.Context, n *corev1.Secret, o metav1.UpdateOptions) (*corev1.Secret, error) {
	return s.SecretInterface.Update(s.ctx, n, o)
}

// Delete is the inner one's, on the right context.
func (s secrets) Delete(_ context.Context, name string, o metav1.DeleteOptions) error {
	return s.SecretInterface.Delete(s.ctx, name, o)
}

// inflated returns the size of a record, or an error when Helm could not decode it safely.
func inflated(secret *corev1.Secret) (int64, error) {
	in := base64.NewDecoder(base64.StdEncoding, bytes.NewReader(secret.Data["release"]))
	unzipped, err := gzip.NewReader(in)
	if err != nil {
		return 0, fmt.Errorf("secret %s is no record of a release; delete it: %w", secret.Name, err)
	}
	n, err := io.Copy(io.Discard, io.LimitReader(unzipped, maxRecordBytes+1))
	if err != nil {
		return 0, fmt.Errorf("secret %s is no record of a release; delete it: %w", secret.Name, err)
	}
	if n > maxRecordBytes {
		return 0, fmt.Errorf("secret %s is no record of a release; delete it: it inflates to more than %d MiB", secret.Name, maxRecordBytes>>20)
	}
	return n, nil
}
