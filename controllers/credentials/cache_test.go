package credentials

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// TestSecretsAreReadOnceAVersion: those of a thousand repositories after a start, at their intervals, and when one is rotated.
func TestSecretsAreReadOnceAVersion(t *testing.T) {
	const repositories = 1000
	secret := func(n int, password string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-system", Name: fmt.Sprint("git", n)}, Data: map[string][]byte{"password": []byte(password)}}
	}
	objects := []client.Object{&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-system", Name: "other"}}}
	for n := range repositories {
		objects = append(objects, secret(n, "first"))
	}
	api := fake.NewClientBuilder().WithObjects(objects...).Build()
	gets, lists := 0, 0
	c := &Cache{
		Reader: interceptor.NewClient(api, interceptor.Funcs{
			Get: func(ctx context.Context, to client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
				gets++
				return to.Get(ctx, key, o, options...)
			},
			List: func(ctx context.Context, to client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
				lists++
				return to.List(ctx, list, options...)
			},
		}),
		Metadata: api,
		Named:    func(_ context.Context, name string) bool { return strings.HasPrefix(name, "git") },
		Clock:    clocktesting.NewFakePassiveClock(time.Unix(1000, 0)),
	}
	read := func(n int) string {
		t.Helper()
		got := &corev1.Secret{}
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: "kubeop-system", Name: fmt.Sprint("git", n)}, got); err != nil {
			t.Fatal(err)
		}
		return string(got.Data["password"])
	}
	for range 2 {
		for n := range repositories {
			if got := read(n); got != "first" {
				t.Fatalf("secret %d says %q, want %q", n, got, "first")
			}
		}
		if gets != burst || lists != 1 {
			t.Fatalf("%d gets and %d lists", gets, lists)
		}
	}
	rotated := secret(7, "second")
	if err := api.Update(t.Context(), rotated); err != nil {
		t.Fatal(err)
	}
	c.Clock = clocktesting.NewFakePassiveClock(time.Unix(2000, 0))
	if got := read(7); got != "second" || gets != burst+1 || lists != 1 {
		t.Errorf("got %q with %d gets and %d lists", got, gets, lists)
	}
	if c.held["other"] != nil {
		t.Error("a Secret that no repository names is held")
	}
	c.Drop("git7")
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "kubeop-system", Name: "none"}, &corev1.Secret{}); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("of one that does not exist: %v", err)
	}
	if c.held["git7"] != nil || c.held["none"] != nil {
		t.Error("a Secret is held that was dropped, or never was")
	}

	// Those that waited for a list use what it brought.
	lists = 0
	live := &corev1.Secret{}
	if err := api.Get(t.Context(), client.ObjectKey{Namespace: "kubeop-system", Name: "git3"}, live); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	c.held = nil
	for range 20 {
		all.Go(func() {
			got := &corev1.Secret{}
			if err := c.readAll(t.Context(), client.ObjectKeyFromObject(live), live.ResourceVersion, got); err != nil || string(got.Data["password"]) != "first" {
				t.Errorf("%q, %v", got.Data["password"], err)
			}
		})
	}
	all.Wait()
	if lists != 1 {
		t.Errorf("%d lists for twenty that read the same Secret at once, want 1", lists)
	}
}
