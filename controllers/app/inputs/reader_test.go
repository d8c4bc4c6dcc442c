package inputs

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/app/subject"
	"github.com/kubeop/kubeop/delivery/render"
)

// fixture is a Reader with a fake API server that counts reads, and the subject of an App.
type fixture struct {
	*Reader
	s     *subject.Subject
	reads int
	// version is the version in the watch; failure is the error of each read.
	version string
	failure error
}

func newFixture(objects ...client.Object) *fixture {
	b := &fixture{version: "1"}
	b.Reader = &Reader{Version: func(context.Context, string, string, string) (string, error) { return b.version, nil }}
	b.s = (&subject.Subjects{}).New(&v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-a-b", Name: "web"}})
	b.s.Client = interceptor.NewClient(fake.NewClientBuilder().WithObjects(objects...).Build(), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			b.reads++
			if b.failure != nil {
				return b.failure
			}
			return c.Get(ctx, key, o, opts...)
		},
	})
	return b
}

func meta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

func TestASecretIsReadOncePerVersionAndMaskedEachTime(t *testing.T) {
	b := newFixture(&corev1.Secret{ObjectMeta: meta("kubeop-a-b", "db"), Data: map[string][]byte{"password": []byte("hunter22")}})
	for range 2 {
		data, err := b.Data(t.Context(), b.s, Secret, "db")
		if err != nil || string(data["password"]) != "hunter22" {
			t.Fatalf("got %s, %v", data, err)
		}
		if !slices.Contains(b.s.Sensitive(), "hunter22") {
			t.Error("the value is not masked")
		}
		b.s = &subject.Subject{App: b.s.App, Client: b.s.Client} // The next Reconcile.
	}
	if b.reads != 1 {
		t.Errorf("the Secret was read %d times in one version, want 1", b.reads)
	}
	b.version = "2"
	if _, err := b.Data(t.Context(), b.s, Secret, "db"); err != nil || b.reads != 2 {
		t.Errorf("a new version was not read: %d reads, %v", b.reads, err)
	}
}

func TestAConfigMapHasTextAndBinaryDataAndIsNotMasked(t *testing.T) {
	b := newFixture(&corev1.ConfigMap{ObjectMeta: meta("kubeop-a-b", "db"), Data: map[string]string{"a": "text"}, BinaryData: map[string][]byte{"b": {0xff}}})
	data, err := b.Data(t.Context(), b.s, ConfigMap, "db")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string][]byte{"a": []byte("text"), "b": {0xff}}, data); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(b.s.Sensitive()) != 0 {
		t.Errorf("the masked values are %q", b.s.Sensitive())
	}
}

func TestASecretAndAConfigMapOfOneNameAreDistinguished(t *testing.T) {
	b := newFixture(&corev1.ConfigMap{ObjectMeta: meta("kubeop-a-b", "db"), Data: map[string]string{"a": "config"}},
		&corev1.Secret{ObjectMeta: meta("kubeop-a-b", "db"), Data: map[string][]byte{"a": []byte("secret")}})
	for kind, want := range map[string]string{ConfigMap: "config", Secret: "secret"} {
		if data, err := b.Data(t.Context(), b.s, kind, "db"); err != nil || string(data["a"]) != want {
			t.Errorf("the %s has %s, %v", kind, data, err)
		}
	}
}

func TestAppsOfOtherNamespacesShareNoContent(t *testing.T) {
	b := newFixture(&corev1.Secret{ObjectMeta: meta("kubeop-a-b", "db"), Data: map[string][]byte{"a": []byte("theirs")}})
	if _, err := b.Data(t.Context(), b.s, Secret, "db"); err != nil {
		t.Fatal(err)
	}
	b.s.App.Namespace = "kubeop-other-b"
	if data, err := b.Data(t.Context(), b.s, Secret, "db"); !errors.Is(err, render.ErrMissing) {
		t.Errorf("another tenant got %s, %v", data, err)
	}
}

func TestErrorsOfReadsAreDistinguishedFromMissingObjects(t *testing.T) {
	down := errors.New("down")
	cases := map[string]struct {
		change  func(*fixture)
		missing bool
		want    string
	}{
		"not in the watch": {func(b *fixture) { b.version = "" }, true, ""},
		"deleted since":    {func(*fixture) {}, true, ""},
		"the watch fails": {func(b *fixture) {
			b.Version = func(context.Context, string, string, string) (string, error) { return "1", down }
		}, false, "reading from the API server: Secret db: down"},
		"the API server fails": {func(b *fixture) { b.failure = down }, false, "reading from the API server: Secret db: down"},
	}
	cases["the API server fails for a ConfigMap"] = cases["the API server fails"]
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			b, kind := newFixture(), Secret
			if c.change(b); strings.HasSuffix(name, "ConfigMap") {
				kind, c.want = ConfigMap, "reading from the API server: ConfigMap db: down"
			}
			_, err := b.Lookup(t.Context(), b.s)(kind, "db")
			if errors.Is(err, render.ErrMissing) != c.missing || errors.Is(err, ErrReading) == c.missing {
				t.Fatalf("error %v", err)
			}
			if name == "not in the watch" && b.reads != 0 {
				t.Errorf("the API server was asked %d times for what the watch does not have", b.reads)
			}
			if !c.missing && (err.Error() != c.want || !errors.Is(err, down)) {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestAMissingInputNamesWhoCreatesIt(t *testing.T) {
	for kind, want := range map[string]string{ConfigMap: "; an app of the project delivers it from Git", Secret: "kubectl create secret generic db"} {
		b := newFixture()
		b.version = ""
		if _, err := b.Data(t.Context(), b.s, kind, "db"); !errors.Is(err, render.ErrMissing) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", kind, err, want)
		}
	}
}

func TestASecretOfAFailedWatchIsNotRead(t *testing.T) {
	b := newFixture(&corev1.Secret{ObjectMeta: meta("kubeop-a-b", "login")})
	down := errors.New("down")
	b.Version = func(context.Context, string, string, string) (string, error) { return "", down }
	err := b.Secrets(b.s).Get(t.Context(), client.ObjectKey{Namespace: "kubeop-a-b", Name: "login"}, &corev1.Secret{})
	if !errors.Is(err, down) || b.reads != 0 {
		t.Errorf("error %v after %d reads", err, b.reads)
	}
}

func TestAFailedReadIsNotCached(t *testing.T) {
	b := newFixture(&corev1.Secret{ObjectMeta: meta("kubeop-a-b", "db"), Data: map[string][]byte{"a": []byte("b")}})
	b.failure = errors.New("down")
	if _, err := b.Data(t.Context(), b.s, Secret, "db"); err == nil {
		t.Fatal("there is no error")
	}
	b.failure = nil
	if data, err := b.Data(t.Context(), b.s, Secret, "db"); err != nil || string(data["a"]) != "b" {
		t.Errorf("got %s, %v", data, err)
	}
}

func TestHideSecretReadsWithoutTheCache(t *testing.T) {
	b := newFixture(&corev1.Secret{ObjectMeta: meta("kubeop-a-b", "db"), Data: map[string][]byte{"a": []byte("hunter22")}})
	for range 2 {
		if err := b.HideSecret(t.Context(), b.s, "db"); err != nil {
			t.Fatal(err)
		}
	}
	if b.reads != 2 || !slices.Contains(b.s.Sensitive(), "hunter22") {
		t.Errorf("%d reads; the masked values are %q", b.reads, b.s.Sensitive())
	}
	if err := b.HideSecret(t.Context(), b.s, "absent"); err != nil {
		t.Errorf("a Secret that does not exist: error %v", err)
	}
	b.failure = errors.New("down")
	if err := b.HideSecret(t.Context(), b.s, "db"); err == nil || err.Error() != "reading Secret db: down" {
		t.Errorf("error %v", err)
	}
}

// TestSecretsAreReadOncePerVersion: two apps of a project log in with one Secret.
func TestSecretsAreReadOncePerVersion(t *testing.T) {
	b := newFixture(&corev1.Secret{ObjectMeta: meta("kubeop-a-b", "login"), Data: map[string][]byte{"a": []byte("b")}})
	b.failure = errors.New("down")
	if err := b.Secrets(b.s).Get(t.Context(), client.ObjectKey{Namespace: "kubeop-a-b", Name: "login"}, &corev1.Secret{}); !errors.Is(err, b.failure) {
		t.Errorf("a read that fails: %v", err)
	}
	b.failure, b.reads = nil, 0
	reader, key := b.Secrets(b.s), client.ObjectKey{Namespace: "kubeop-a-b", Name: "login"}
	get := func() *corev1.Secret {
		t.Helper()
		secret := &corev1.Secret{}
		if err := reader.Get(t.Context(), key, secret); err != nil {
			t.Fatal(err)
		}
		return secret
	}
	first := get()
	b.version = first.ResourceVersion
	again := get()
	if b.reads != 1 {
		t.Errorf("%d reads, want 1", b.reads)
	}
	if again.Namespace != key.Namespace || again.Name != key.Name || again.ResourceVersion != b.version || string(again.Data["a"]) != "b" {
		t.Errorf("the second read has %+v", again)
	}
	if data, err := b.Data(t.Context(), b.s, Secret, "login"); err != nil || string(data["a"]) != "b" || b.reads != 1 {
		t.Errorf("as an input of the app: %s, %v after %d reads", data, err, b.reads)
	}
	b.version = "another"
	if get(); b.reads != 2 {
		t.Errorf("%d reads after a change, want 2", b.reads)
	}
	b.version = "" // Without a version in the watch the cached content must not be used.
	if get(); b.reads != 3 {
		t.Errorf("%d reads without a version in the watch, want 3", b.reads)
	}
	if err := reader.Get(t.Context(), key, &corev1.ConfigMap{}); client.IgnoreNotFound(err) != nil || err == nil || b.reads != 4 {
		t.Errorf("an object that is no Secret: error %v after %d reads", err, b.reads)
	}
}

// TestSecretsAreNotMistakenForOthers: what one project logs in with is no other's, although the versions are equal.
func TestSecretsAreNotMistakenForOthers(t *testing.T) {
	of := map[client.ObjectKey]string{{Namespace: "kubeop-a-b", Name: "login"}: "first", {Namespace: "kubeop-a-b", Name: "other"}: "second", {Namespace: "kubeop-c-d", Name: "login"}: "third"}
	var objects []client.Object
	for key, value := range of {
		objects = append(objects, &corev1.Secret{ObjectMeta: meta(key.Namespace, key.Name), Data: map[string][]byte{"a": []byte(value)}})
	}
	b := newFixture(objects...)
	for range 2 {
		for key, want := range of {
			secret := &corev1.Secret{}
			if err := b.Secrets(b.s).Get(t.Context(), key, secret); err != nil || string(secret.Data["a"]) != want {
				t.Errorf("%s has %s, %v, want %s", key, secret.Data["a"], err, want)
			}
			b.version = secret.ResourceVersion
		}
	}
	if b.reads != len(of) {
		t.Errorf("%d reads, want %d", b.reads, len(of))
	}
}
