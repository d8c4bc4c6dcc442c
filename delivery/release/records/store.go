// Package records stores the revisions of releases in Secrets, as Helm does. A record is written with the resourceVersion that was read, so
// that one of two writers is refused.
package records

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"strconv"
	"sync"
	"time"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/command"
	"github.com/kubeop/kubeop/delivery/release/fence"

	helm "helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage/driver"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/utils/clock"

	"github.com/kubeop/kubeop/delivery/fair"
	"github.com/kubeop/kubeop/delivery/quota"
	"github.com/kubeop/kubeop/delivery/release/decide"
	"github.com/kubeop/kubeop/delivery/release/fault"
	"github.com/kubeop/kubeop/delivery/yamlcheck"
)

// Store reads and writes single records in Helm 3's format, and records its writes in the Memo.
type Store struct {
	client  typedcorev1.SecretInterface
	release types.NamespacedName
	memory  *Memo
	now     func() time.Time
}

// NewStore returns the store of one release's records. memory records what is written and read.
func NewStore(client typedcorev1.SecretInterface, release types.NamespacedName, memory *Memo, now func() time.Time) Store {
	return Store{client: client, release: release, memory: memory, now: now}
}

// recordType is the type of Helm 3's Secrets with records.
const recordType corev1.SecretType = "helm.sh/release.v1"

// maxRecordBytes limits the inflated size of one record. Tenants can write Secrets, and small ones could otherwise inflate to more than the
// operator's memory.
const maxRecordBytes = 16 << 20

// maxRecordNodes limits the values in one record: each takes about twenty times the three bytes with which it can be written. Large charts
// with all their values have some ten thousand.
const maxRecordNodes = 300_000

// decoding is held while a record is inflated and decoded, so that the memory for that is needed once and not for every action. Namespaces
// take turns.
var decoding = fair.NewPlaces("Helm records", fair.Bounds{Places: 1}, clock.RealClock{})

// Read gets the payload of one revision and the metadata of its record.
func (s Store) Read(ctx context.Context, number int) (*helm.Release, *metav1.ObjectMeta, error) {
	secret, err := s.client.Get(ctx, decide.KeyOf(s.release.Name, number), metav1.GetOptions{})
	if err != nil {
		return nil, nil, fmt.Errorf("reading revision %d of release %s: %w", number, s.release.Name, err)
	}
	rel, err := s.decode(ctx, secret)
	if err != nil {
		return nil, nil, err
	}
	if rel.Name != s.release.Name || rel.Version != number {
		return nil, nil, fmt.Errorf("secret %s is no record of revision %d of release %s: %s", secret.Name, number, s.release.Name, deletion(secret))
	}
	// The record may have been copied from another namespace; Helm must work on this one.
	rel.Namespace = s.release.Namespace
	s.memory.saw(rel, secret.Labels)
	return rel, &secret.ObjectMeta, nil
}

// Found records that a record differs from what was expected.
func (s Store) Found(meta *metav1.ObjectMeta) { s.memory.wrote(meta, s.now()) }

// insert creates a record if weigh allows it; a nil weigh allows all. If the record exists, someone else took the number, and the error is
// ErrFenced.
func (s Store) insert(ctx context.Context, rel *helm.Release, weigh func(*helm.Release, int) error) (*metav1.ObjectMeta, error) {
	secret, err := Encode(rel, "createdAt", s.now())
	if err == nil && weigh != nil {
		err = weigh(rel, len(secret.Data["release"]))
	}
	if err != nil {
		return nil, err
	}
	var made *corev1.Secret
	err = quota.Retry(func() (err error) {
		made, err = s.client.Create(ctx, secret, metav1.CreateOptions{})
		return err
	})
	if apierrors.IsAlreadyExists(err) {
		return nil, fmt.Errorf("recording revision %d: %w", rel.Version, fence.ErrFenced)
	}
	if err != nil {
		return nil, fmt.Errorf("recording revision %d: %w", rel.Version, err)
	}
	s.memory.wrote(&made.ObjectMeta, s.now())
	s.memory.saw(rel, made.Labels)
	return &made.ObjectMeta, nil
}

// Replace overwrites exactly this version of a record. If the version is another one, someone else has written, and the error is ErrFenced.
func (s Store) Replace(ctx context.Context, rel *helm.Release, version string) (*metav1.ObjectMeta, error) {
	secret, err := Encode(rel, "modifiedAt", s.now())
	if err != nil {
		return nil, err
	}
	secret.ResourceVersion = version
	put, err := s.client.Update(ctx, secret, metav1.UpdateOptions{})
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("recording revision %d: %w", rel.Version, fence.ErrFenced)
	}
	if err != nil {
		return nil, fmt.Errorf("recording revision %d: %w", rel.Version, err)
	}
	s.memory.wrote(&put.ObjectMeta, s.now())
	s.memory.saw(rel, put.Labels)
	return &put.ObjectMeta, nil
}

// remove deletes this version of a record, if it exists.
func (s Store) remove(ctx context.Context, number int, version string) error {
	name := decide.KeyOf(s.release.Name, number)
	err := s.client.Delete(ctx, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &version}})
	switch {
	case apierrors.IsConflict(err):
		return fence.ErrFenced
	case err != nil && !apierrors.IsNotFound(err):
		return err
	}
	s.memory.removed(name, version, s.now())
	return nil
}

// packers are reused, because each takes more than a megabyte.
var packers = sync.Pool{New: func() any { return gzip.NewWriter(nil) }}

// Encode encodes a record as Helm does. The label named at has the time.
func Encode(rel *helm.Release, at string, now time.Time) (*corev1.Secret, error) {
	data, err := json.Marshal(rel)
	if err != nil {
		return nil, fault.Render(fmt.Errorf("recording the release: %w", err))
	}
	var packed bytes.Buffer
	out := packers.Get().(*gzip.Writer)
	defer func() {
		out.Reset(io.Discard)
		packers.Put(out)
	}()
	out.Reset(&packed)
	if _, err := out.Write(data); err != nil {
		return nil, err
	}
	if err := out.Close(); err != nil {
		return nil, err
	}
	labels := maps.Clone(rel.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels["name"], labels["owner"] = rel.Name, "helm"
	labels["status"], labels["version"] = rel.Info.Status.String(), strconv.Itoa(rel.Version)
	labels[at] = strconv.FormatInt(now.Unix(), 10)
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: decide.KeyOf(rel.Name, rel.Version), Labels: labels},
		Type:       recordType,
		Data:       map[string][]byte{"release": []byte(base64.StdEncoding.EncodeToString(packed.Bytes()))},
	}, nil
}

// decode decodes a record when it is the namespace's turn.
func (s Store) decode(ctx context.Context, secret *corev1.Secret) (*helm.Release, error) {
	leave, err := decoding.Enter(ctx, s.release.Namespace)
	if err != nil {
		return nil, err
	}
	defer leave()
	return Decode(secret)
}

// deletion says who may delete a Secret that has the name of a record and is none.
func deletion(secret *corev1.Secret) string {
	return command.Delete(command.Admin.In(v1alpha1.TenantOf(secret.Namespace)), "secret", secret)
}

// Decode decodes a record within its limits.
func Decode(secret *corev1.Secret) (*helm.Release, error) {
	rel, err := inflate(secret.Data["release"])
	if err != nil {
		return nil, fmt.Errorf("secret %s is no record of a release: %w: %s", secret.Name, err, deletion(secret))
	}
	rel.Labels = map[string]string{}
	for k, v := range secret.Labels {
		// Helm does not count the labels by which it finds its Secrets as the release's own.
		if !driver.ContainsSystemLabels(map[string]string{k: ""}) {
			rel.Labels[k] = v
		}
	}
	return rel, nil
}

func inflate(data []byte) (*helm.Release, error) {
	unzipped, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, bytes.NewReader(data)))
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(unzipped, maxRecordBytes+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxRecordBytes {
		return nil, fmt.Errorf("it inflates to more than %d MiB", maxRecordBytes>>20)
	}
	if yamlcheck.JSONNodes(text) > maxRecordNodes {
		return nil, fmt.Errorf("it has more than %d values", maxRecordNodes)
	}
	rel := &helm.Release{}
	if err := json.Unmarshal(text, rel); err != nil {
		return nil, err
	}
	if rel.Info == nil {
		return nil, errors.New("it has no status")
	}
	return rel, nil
}
