package clusternet

import (
	"context"
	"errors"
	"net/netip"
	"net/url"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/kubeop/kubeop/internal/testenv"
)

var env *testenv.Env

func TestMain(m *testing.M) { testenv.Main(m, &env) }

// TestTheNetworksFollowTheNodesOfACluster uses the operator's permissions, and expects a notification when a node joins, moves or leaves.
func TestTheNetworksFollowTheNodesOfACluster(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	admin, err := client.New(env.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	config, err := env.InstallChart(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	shared, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	mapper, err := apiutil.NewDynamicRESTMapper(config, shared)
	if err != nil {
		t.Fatal(err)
	}
	n, err := New(config, shared, scheme, mapper, Options{Named: prefixes("10.244.0.0/16"), Always: always})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- n.Start(ctx) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("it ended with %v", err)
		}
	}()
	if !n.GetCache().WaitForCacheSync(ctx) {
		t.Fatal("the networks are not known")
	}
	service := &corev1.Service{}
	if err := admin.Get(ctx, client.ObjectKey{Namespace: "default", Name: "kubernetes"}, service); err != nil {
		t.Fatal(err)
	}
	is(t, n, service.Spec.ClusterIP, ofService)
	if at, err := url.Parse(env.Config.Host); err == nil && !netip.MustParseAddr(at.Hostname()).IsLoopback() {
		is(t, n, at.Hostname(), ofAPIServer)
	}
	is(t, n, "10.244.9.9", ofCluster)
	is(t, n, "203.0.113.9", "")
	changes := make(chan struct{}, 100)
	n.OnChange(func() { changes <- struct{}{} })

	joined := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "joined"}}
	if err := admin.Create(ctx, joined); err != nil {
		t.Fatal(err)
	}
	before := joined.DeepCopy() // Kubernetes writes Nodes, too.
	joined.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeExternalIP, Address: "203.0.113.9"}, {Type: corev1.NodeHostName, Address: "joined"}}
	if err := admin.Status().Patch(ctx, joined, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	awaitChange(t, changes, "a node joins")
	is(t, n, "203.0.113.9", ofNode)
	if except, all, err := n.Except(ctx, netip.MustParsePrefix("203.0.113.77/24")); err != nil || all || !slices.Equal(except, prefixes("203.0.113.9/32")) {
		t.Errorf("of its network %v is left out, %t, %v", except, all, err)
	}
	before = joined.DeepCopy()
	joined.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	if err := admin.Status().Patch(ctx, joined, client.StrategicMergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	if err := admin.Delete(ctx, joined); err != nil {
		t.Fatal(err)
	}
	awaitChange(t, changes, "it leaves")
	is(t, n, "203.0.113.9", "")
	if len(changes) > 0 {
		t.Error("there was a notification without a change of networks")
	}
}

func is(t *testing.T, n *Networks, address, want string) {
	t.Helper()
	var got string
	err := errors.New("not called")
	for range 100 { // The watch takes a little time.
		if got, err = n.What(t.Context(), netip.MustParseAddr(address)); err == nil && got == want {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Errorf("%s is %q, %v, want %q", address, got, err, want)
}

func awaitChange(t *testing.T, changes chan struct{}, what string) {
	t.Helper()
	select {
	case <-changes:
	case <-time.After(10 * time.Second):
		t.Fatalf("there is no notification when %s", what)
	}
}
