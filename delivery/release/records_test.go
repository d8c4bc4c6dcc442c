package release

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	helm "helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage"
	"helm.sh/helm/v3/pkg/storage/driver"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

// payload is what Helm keeps in a record, of that size when inflated.
func payload(t *testing.T, size int) string {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(bytes.Repeat([]byte(" "), size)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(out.Bytes())
}

func TestForgedRecordsAreRefused(t *testing.T) {
	many := make([]string, maxHistoryBytes/maxRecordBytes+1)
	for i := range many {
		many[i] = payload(t, maxRecordBytes)
	}
	tests := map[string]struct {
		payloads []string
		want     string
	}{
		"no base64":      {[]string{"%"}, "delete it"},
		"not zipped":     {[]string{base64.StdEncoding.EncodeToString([]byte("hello, this is nothing"))}, "delete it"},
		"cut off":        {[]string{payload(t, 1000)[:20]}, "delete it"},
		"a bomb":         {[]string{payload(t, maxRecordBytes+1)}, "inflates to more than 16 MiB"},
		"large together": {many, "inflate to more than 64 MiB"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset()
			for i, p := range test.payloads {
				secret := &corev1.Secret{
					ObjectMeta: metav1.ObjectMeta{
						Name:   keyOf(&helm.Release{Name: "web", Version: i}),
						Labels: map[string]string{"owner": "helm", "name": "web"},
					},
					Data: map[string][]byte{"release": []byte(p)},
				}
				if err := client.Tracker().Add(withNamespace(secret)); err != nil {
					t.Fatal(err)
				}
			}
			d := driver.NewSecrets(secrets{SecretInterface: client.CoreV1().Secrets("team"), ctx: t.Context()})
			_, err := read(storage.Init(d), "web")
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func withNamespace(s *corev1.Secret) *corev1.Secret {
	s.Namespace = "team"
	return s
}

func TestHelmsOwnLabelsAreNotCarriedOn(t *testing.T) {
	client := fake.NewClientset()
	d := driver.NewSecrets(secrets{SecretInterface: client.CoreV1().Secrets("team"), ctx: t.Context()})
	first := record(1, helm.StatusDeployed, "d")
	if err := storage.Init(d).Create(first); err != nil {
		t.Fatal(err)
	}
	want := record(1, helm.StatusDeployed, "d").Labels
	last, err := storage.Init(&records{Driver: d}).Last("web")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, last.Labels); diff != "" {
		t.Error(diff)
	}
}

func TestOneActionReadsTheHistoryOnce(t *testing.T) {
	inner := &countingDriver{Driver: stored(t, record(1, helm.StatusSuperseded, "a"), record(2, helm.StatusDeployed, "b")).Driver}
	store := storage.Init(&records{Driver: inner})
	for range 2 {
		if last, err := store.Last("web"); err != nil || last.Version != 2 {
			t.Fatalf("%v, %v", last, err)
		}
		if deployed, err := store.Deployed("web"); err != nil || deployed.Version != 2 {
			t.Fatalf("%v, %v", deployed, err)
		}
	}
	if inner.queries != 1 {
		t.Errorf("%d queries", inner.queries)
	}
}

func TestNoHistoryIsKnownToo(t *testing.T) {
	inner := &countingDriver{Driver: stored(t).Driver}
	store := storage.Init(&records{Driver: inner})
	for range 2 {
		if _, err := store.History("web"); !errors.Is(err, driver.ErrReleaseNotFound) {
			t.Fatalf("got %v", err)
		}
	}
	if inner.queries != 1 {
		t.Errorf("%d queries", inner.queries)
	}
}

type countingDriver struct {
	driver.Driver
	queries int
}

func (c *countingDriver) Query(labels map[string]string) ([]*helm.Release, error) {
	c.queries++
	return c.Driver.Query(labels)
}
