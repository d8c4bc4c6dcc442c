package live

import (
	"context"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/internal/testenv"
)

var env *testenv.Env

func TestMain(m *testing.M) { testenv.Main(m, &env) }

// TestTheCachesFollowTheClusterWithTheRightsOfTheChart reads as the service account that the chart makes.
func TestTheCachesFollowTheClusterWithTheRightsOfTheChart(t *testing.T) {
	ctx := t.Context()
	if _, err := env.InstallChart(ctx, "manager.enabled=true", "manager.plainHTTP=true"); err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	admin, err := client.New(env.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	accounts, err := kubernetes.NewForConfig(env.Config)
	if err != nil {
		t.Fatal(err)
	}
	token, err := accounts.CoreV1().ServiceAccounts(testenv.Namespace).CreateToken(ctx, "kubeop-manager", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	config := rest.AnonymousClientConfig(env.Config)
	config.BearerToken = token.Status.Token
	running, stop := context.WithCancel(ctx)
	c, err := NewCluster(running, config)
	if err != nil {
		t.Fatal(err)
	}
	if c.Synced(ctx) == nil {
		t.Error("caches that were not started are filled")
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Start(running) }()
	eventually(t, func() bool { return c.Synced(ctx) == nil })
	tenant := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "cached", Labels: map[string]string{v1alpha1.TenantLabel: "cached"}, Annotations: map[string]string{"paas.kubeop.io/allow-deletion": "cached"}}}
	if err := admin.Create(ctx, tenant); err != nil {
		t.Fatal(err)
	}
	read := &v1alpha1.Tenant{}
	eventually(t, func() bool { return c.Get(ctx, client.ObjectKeyFromObject(tenant), read) == nil })
	if read.ResourceVersion != tenant.ResourceVersion || len(read.ManagedFields) > 0 {
		t.Errorf("the cache has %+v", read.ObjectMeta)
	}
	if err := admin.Delete(ctx, tenant); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { return apierrors.IsNotFound(c.Get(ctx, client.ObjectKeyFromObject(tenant), read)) })
	stop()
	if err := <-ended; err != nil {
		t.Errorf("the stop failed: %v", err)
	}
}

func eventually(t *testing.T, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(4 * time.Minute); !holds(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it did not come true")
		}
	}
}
