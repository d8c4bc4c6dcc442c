//go:build e2e

package property

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kubeop/kubeop/e2e/stage"
)

// world is the cluster of all histories.
type world struct {
	*stage.Stage
	operator *stage.Operator
	claims   *claims
	// root is the platform repository.
	root     *stage.Repository
	rootLock sync.Mutex
	// operatorLock is held while the operator is restarted.
	operatorLock sync.Mutex
	restarted    time.Time
	restarts     atomic.Int64

	shrinking sync.Mutex
	shrunk    atomic.Int64
}

func newWorld(t *testing.T) *world {
	t.Helper()
	dir, err := os.MkdirTemp("", "property-")
	must(t, err)
	up, err := stage.Up(t.Context(), stage.Options{Dir: dir, Node: "none", Out: os.Stdout})
	t.Cleanup(func() {
		if up != nil {
			must(t, up.Close())
		}
	})
	must(t, err)
	w := &world{Stage: up}
	// Use a short lease, so that a killed operator is replaced soon.
	w.operator, err = up.StartOperator(t.Context(), "PLATFORM_INTERVAL=10s", "LEASE_DURATION=3s", "RETRY_PERIOD=500ms")
	must(t, err)
	must(t, up.ServeVolumes(t.Context()))
	w.claims, err = watchClaims(t.Context(), up.Cluster.Kubeconfig)
	must(t, err)
	w.root, err = w.newRepository(t.Context(), "platform")
	must(t, err)
	must(t, w.root.Write("kubeop.yaml", []byte("layout: v1\n")))
	must(t, w.root.Push(t.Context(), "Begin"))
	return w
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (w *world) newRepository(ctx context.Context, name string) (*stage.Repository, error) {
	key := rand.Text()
	r, err := w.CreateRepository(ctx, name, key)
	if err != nil {
		return nil, err
	}
	if err := w.SetSecret(ctx, name+"-git", map[string]string{"username": r.User, "password": r.Password}); err != nil {
		return nil, err
	}
	return r, w.SetSecret(ctx, name+"-hook", map[string]string{"token": key})
}

const tenantYAML = `apiVersion: paas.kubeop.io/v1alpha1
kind: Tenant
metadata: {name: %[1]s}
spec:
  repository:
    url: %[2]s
    interval: 5s
    secretRef: {name: %[1]s-git}
    hookSecretRef: {name: %[1]s-hook}
`

// newTenant declares a tenant with its own repository.
func (w *world) newTenant(ctx context.Context, name string) (*tenant, error) {
	r, err := w.newRepository(ctx, name)
	if err != nil {
		return nil, err
	}
	w.rootLock.Lock()
	defer w.rootLock.Unlock()
	if err := w.root.Write("tenants/"+name+"/tenant.yaml", fmt.Appendf(nil, tenantYAML, name, r.OperatorURL)); err != nil {
		return nil, err
	}
	return &tenant{world: w, name: name, repo: r}, w.root.Push(ctx, "Welcome "+name)
}

// restart kills and restarts the operator for all histories, but not too often.
func (w *world) restart(ctx context.Context) error {
	w.operatorLock.Lock()
	defer w.operatorLock.Unlock()
	if time.Since(w.restarted) < 15*time.Second {
		return nil
	}
	if err := w.operator.Kill(); err != nil {
		return err
	}
	err := w.operator.Start(ctx)
	w.restarted = time.Now()
	w.restarts.Add(1)
	return err
}

// claims watches all claims, and records which ones confirmations listed as deleted.
type claims struct {
	// known are the claims by namespace and name.
	known cache.Store

	mu sync.Mutex
	// listed are the UIDs of claims that a confirmation listed as deleted.
	listed map[types.UID]bool
	// wrong are deletions that no confirmation listed, by tenant. right counts the others.
	wrong map[string][]string
	seen  map[types.UID]bool
	right int
}

func watchClaims(ctx context.Context, kubeconfig string) (*claims, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	informer := informers.NewSharedInformerFactory(client, 0).Core().V1().PersistentVolumeClaims().Informer()
	c := &claims{known: informer.GetStore(), listed: map[types.UID]bool{}, wrong: map[string][]string{}, seen: map[types.UID]bool{}}
	_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(_, o any) {
			if claim := o.(*corev1.PersistentVolumeClaim); claim.DeletionTimestamp != nil {
				c.goes(claim)
			}
		},
		DeleteFunc: func(o any) {
			if last, missed := o.(cache.DeletedFinalStateUnknown); missed {
				o = last.Obj
			}
			c.goes(o.(*corev1.PersistentVolumeClaim))
		},
	})
	if err != nil {
		return nil, err
	}
	go informer.Run(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return nil, context.Cause(ctx)
	}
	return c, nil
}

// goes checks the deletion of a claim. Only a claim with a volume may hold data.
func (c *claims) goes(claim *corev1.PersistentVolumeClaim) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if claim.Spec.VolumeName == "" || c.seen[claim.UID] {
		return
	}
	c.seen[claim.UID] = true
	if c.listed[claim.UID] {
		c.right++
		return
	}
	owner, _, _ := strings.Cut(strings.TrimPrefix(claim.Namespace, "kubeop-"), "-")
	c.wrong[owner] = append(c.wrong[owner], claim.Namespace+"/"+claim.Name)
}

// going matches a claim that a Repository lists as deleted. Other listed claims are kept.
var going = regexp.MustCompile(`^PersistentVolumeClaim ([^ ]+): .*, is deleted with its data$`)

// confirmed records the claims that a confirmation is about to allow. Call it before the confirmation.
func (c *claims) confirmed(held []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, line := range held {
		claim := going.FindStringSubmatch(line)
		if claim == nil {
			continue
		}
		if now, known, _ := c.known.GetByKey(claim[1]); known {
			c.listed[now.(*corev1.PersistentVolumeClaim).UID] = true
		}
	}
}

// lost returns the claims of a tenant that were deleted without a confirmation.
func (c *claims) lost(tenant string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.wrong[tenant]
}

func (c *claims) deleted() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.right
}
