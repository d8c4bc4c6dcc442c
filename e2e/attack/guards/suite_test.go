//go:build e2e

// Package guards has a tenant try everything that no tenant may do, in every form that the platform has: in Git, as an account with all rights
// of the deployer, as an owner, and with the operator stopped. Nothing of it may exist afterwards, and nothing of another tenant may change or be revealed.
package guards

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/e2e/stage"
	"github.com/kubeop/kubeop/e2e/tenants"
)

const (
	attacker, victim = "mallet", "quarry"
	// hidden is in a Secret of the victim.
	hidden = "tourmaline"
	// least is how many cases there have to be.
	least = 150
)

var (
	shop   = v1alpha1.ProjectNamespace(attacker, "shop")
	theirs = v1alpha1.ProjectNamespace(victim, "shop")
	bot    = "system:serviceaccount:" + shop + ":bot"
)

const policy = `apiVersion: paas.kubeop.io/v1alpha1
kind: Policy
metadata: {name: strict}
spec:
  images: {allow: [registry.example.com/mallet], deny: [registry.example.com/mallet/old], requireDigest: true, pullPolicies: [Always], verify: [{images: [registry.example.com/mallet/signed, %s], keys: [%q]}]}
  services: {types: [ClusterIP, LoadBalancer], loadBalancerClasses: [internal.example.com/lb], loadBalancerSourceRanges: [198.51.100.0/24], nodePorts: [{port: 30010}]}
  hostnames: {suffixes: [mallet.example, mine.example]}
  classes: {storage: [fast], volumeAttributes: [silver], ingress: [public], gateway: [shared], runtime: [gvisor]}
  nodes: {selector: {pool: tenants}, tolerations: [{key: pool, value: tenants}]}
  sources: {git: {deny: [evil.org]}, helm: {deny: [evil.org]}, oci: {deny: [evil.org]}}
  kinds: {deny: [HorizontalPodAutoscaler.autoscaling]}
  metadata: {requiredLabels: [team], forbiddenLabels: ["evil.org/*"], forbiddenAnnotations: ["evil.org/*"], added: {labels: {cost: "7"}}}
`

const project = `apiVersion: paas.kubeop.io/v1alpha1
kind: Project
metadata: {name: shop}
spec: {quota: {pods: "50", requests.storage: 10Gi, services.loadbalancers: "5"}}
`

const nets = `apiVersion: paas.kubeop.io/v1alpha1
kind: Project
metadata: {name: nets}
spec: {network: {policies: Own}}
`

// rights are an app with an account that has all rights of the deployer, and with the attacker's host.
const rights = `apiVersion: paas.kubeop.io/v1alpha1
kind: App
metadata: {name: bot}
spec:
  type: Raw
  raw:
    manifests:
    - {apiVersion: v1, kind: ServiceAccount, metadata: {name: bot}}
    - {apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: little}, rules: []}
    - apiVersion: rbac.authorization.k8s.io/v1
      kind: RoleBinding
      metadata: {name: bot}
      roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: kubeop-deployer}
      subjects: [{kind: ServiceAccount, name: bot, namespace: %s}]
    - {apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: web}, spec: {ingressClassName: public, rules: [{host: %s}]}}
`

// netRights are the same in the project whose apps have NetworkPolicies.
const netRights = `apiVersion: paas.kubeop.io/v1alpha1
kind: App
metadata: {name: bot}
spec:
  type: Raw
  raw:
    manifests:
    - {apiVersion: v1, kind: ServiceAccount, metadata: {name: bot}}
    - apiVersion: rbac.authorization.k8s.io/v1
      kind: RoleBinding
      metadata: {name: bot}
      roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: kubeop-deployer}
      subjects: &bot [{kind: ServiceAccount, name: bot, namespace: %s}]
    - apiVersion: rbac.authorization.k8s.io/v1
      kind: RoleBinding
      metadata: {name: bot-networks}
      roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: kubeop-deployer-network-policies}
      subjects: *bot
`

const wealth = `apiVersion: paas.kubeop.io/v1alpha1
kind: App
metadata: {name: wealth}
spec:
  type: Raw
  raw:
    manifests:
    - {apiVersion: v1, kind: Secret, metadata: {name: wealth}, stringData: {password: %s}}
    - {apiVersion: v1, kind: ConfigMap, metadata: {name: wealth}, data: {a: b}}
    - {apiVersion: v1, kind: Service, metadata: {name: wealth}, spec: {ports: [{port: 80}]}}
    - {apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: wealth}, spec: {accessModes: [ReadWriteOnce], storageClassName: none, resources: {requests: {storage: 1Gi}}}}
    - {apiVersion: apps/v1, kind: Deployment, metadata: {name: wealth}, spec: {replicas: 0, selector: {matchLabels: {app: wealth}}, template: {metadata: {labels: {app: wealth}}, spec: {containers: [{name: a, image: a}]}}}}
    - {apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: wealth}, spec: {ingressClassName: public, rules: [{host: %s}]}}
`

// definition defines a kind of the Gateway API.
const definition = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: %[1]s.gateway.networking.k8s.io
  annotations: {api-approved.kubernetes.io: "https://github.com/kubernetes-sigs/gateway-api"}
spec:
  group: gateway.networking.k8s.io
  scope: Namespaced
  names: {plural: %[1]s, singular: %[2]s, kind: %[3]s, listKind: %[3]sList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, x-kubernetes-preserve-unknown-fields: true}}}}
`

// moreKinds lets apps have all kinds of the Gateway API, as administrators may do.
const moreKinds = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: gateways, labels: {paas.kubeop.io/aggregate-to-deployer: "true"}}
rules: [{apiGroups: [gateway.networking.k8s.io], resources: [gateways, listenersets, grpcroutes, tlsroutes], verbs: [get, list, watch, create, update, patch, delete]}]
`

// chosen are parts of the names of the guards that are tried, with commas; "" for all.
var chosen = os.Getenv("GUARDS")

// platform has all tenants; own is the repository of the attacker, folders is a public one with folders for kustomize. repositories are those of all attackers.
var (
	platform     *tenants.Platform
	own, folders *stage.Repository
	repositories = map[string]*stage.Repository{}
	// signer signs what the policy wants to be signed.
	signer *stage.Signer
)

func TestMain(m *testing.M) {
	ctrllog.SetLogger(logr.Discard()) // The client's.
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "guards:", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	ctx := context.Background()
	platform, err = tenants.Up(ctx, "guards")
	if platform != nil {
		defer func() { err = errors.Join(err, platform.Close()) }()
	}
	if err == nil {
		err = prepare(ctx)
	}
	if err != nil {
		return 1, err
	}
	if code = m.Run(); code == 0 && chosen == "" && tried.count() < least {
		return 1, fmt.Errorf("%d cases were tried, at least %d have to be", tried.count(), least)
	}
	fmt.Printf("%d cases were tried\n", tried.count())
	return code, nil
}

func prepare(ctx context.Context) error {
	for _, class := range []client.Object{
		&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "high"}, Value: 1000},
		&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "low"}, Value: 10},
		&nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: "kata"}, Handler: "kata"},
		&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "wealth"}, Spec: corev1.PersistentVolumeSpec{ // An app is ready with its claim bound.
			Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			StorageClassName: "none", ClaimRef: &corev1.ObjectReference{Namespace: theirs, Name: "wealth"},
			PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/nowhere"}},
		}},
	} {
		if err := platform.Client.Create(ctx, class); err != nil {
			return err
		}
	}
	var err error
	if folders, err = platform.CreateRepository(ctx, "folders", ""); err != nil {
		return err
	}
	if err := gateways(ctx); err != nil {
		return err
	}
	if signer, err = stage.NewSigner(); err != nil {
		return err
	}
	key, err := signer.Public()
	if err != nil {
		return err
	}
	if err := platform.Declare(ctx, map[string]string{"policies/strict.yaml": fmt.Sprintf(policy, platform.Cluster.Registry.Host+"/"+signedPath, key)}); err != nil {
		return err
	}
	return errors.Join(twoTenants(ctx), narrowTenant(ctx, key))
}

// gatewayKinds are kinds of the Gateway API.
var gatewayKinds = []string{"HTTPRoute", "GRPCRoute", "TLSRoute", "Gateway", "ListenerSet"}

// newKinds is how long after the definition of a kind kubeop writes quotas that count it.
const newKinds = 2 * time.Minute

// gateways defines the kinds of the Gateway API, and lets apps have them. It returns when new quotas count them: a quota that changed between two attacks would look
// like a change by them.
func gateways(ctx context.Context) error {
	all := []string{moreKinds}
	for _, kind := range gatewayKinds {
		one := strings.ToLower(kind)
		all = append(all, fmt.Sprintf(definition, one+"s", one, kind))
	}
	for _, text := range all {
		o, err := tenants.Object("", text)
		if err != nil {
			return err
		}
		if err := platform.Client.Create(ctx, o); err != nil {
			return err
		}
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(newKinds + 5*time.Second):
		return nil
	}
}

func twoTenants(ctx context.Context) (err error) {
	if _, err = platform.Tenant(ctx, victim, "owners: [{kind: User, name: owner-of-quarry, role: admin}]", map[string]string{
		"projects/shop/project.yaml": strings.Split(project, "spec:")[0], "projects/shop/apps/wealth/app.yaml": fmt.Sprintf(wealth, hidden, victims),
	}); err != nil {
		return err
	}
	own, err = platform.Tenant(ctx, attacker, "policies: [strict]\ntaints: [pool, gpu]\nquota: {services.loadbalancers: \"5\"}\nlimits: {apps: 1200}\n"+owners(attacker), map[string]string{
		"projects/shop/project.yaml": project, "projects/shop/apps/bot/app.yaml": fmt.Sprintf(rights, shop, host),
		"projects/nets/project.yaml": nets, "projects/nets/apps/bot/app.yaml": fmt.Sprintf(netRights, v1alpha1.ProjectNamespace(attacker, "nets")),
	})
	repositories[attacker] = own
	nets := v1alpha1.ProjectNamespace(attacker, "nets")
	if err := errors.Join(err, registries(ctx), platform.AppReady(ctx, theirs, "wealth"), platform.AppReady(ctx, shop, "bot"), platform.AppReady(ctx, nets, "bot")); err != nil {
		return err
	}
	for namespace, tenant := range map[string]string{theirs: victim, shop: attacker, nets: attacker} {
		if err := stage.Until(ctx, time.Minute, "the credentials of the Registries are there", func(ctx context.Context) error {
			_, err := pulled(ctx, namespace, tenant)
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// roles are those of a tenant's people.
var roles = []string{"view", "edit", "admin"}

// owners is the field of a tenant with a person for each role.
func owners(tenant string) string {
	var all []string
	for _, role := range roles {
		all = append(all, "{kind: User, name: "+tenant+"-"+role+", role: "+role+"}")
	}
	return "owners: [" + strings.Join(all, ", ") + "]"
}

// journal has the cases that were tried, and every message that an attacker got.
type journal struct {
	mu       sync.Mutex
	cases    map[string]bool
	messages []string
}

var tried = &journal{cases: map[string]bool{}}

func (j *journal) count() int { return len(j.cases) }

// add notes a case and its message.
func (j *journal) add(name string, message string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.cases[name] = true
	j.messages = append(j.messages, message)
}

// watched are the kinds of the victim's objects that must not change.
var watched = []string{"Secret", "ConfigMap", "Service", "ServiceAccount", "networking.k8s.io/v1 Ingress", "networking.k8s.io/v1 NetworkPolicy", "rbac.authorization.k8s.io/v1 RoleBinding",
	"paas.kubeop.io/v1alpha1 Guardrails", "PersistentVolumeClaim", "ResourceQuota", "LimitRange", "apps/v1 Deployment", "paas.kubeop.io/v1alpha1 App"}

// settling are the kinds of which controllers write the status some time after nobody changed the object. Their version is the generation and a digest of all else.
var settling = []string{"PersistentVolumeClaim", "ResourceQuota", "apps/v1 Deployment", ours + "App", ours + "HostnameClaim"}

// versions returns the versions of the victim's objects.
func versions(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, kind := range watched {
		found := listed(t, kind, theirs)
		if len(found) == 0 {
			t.Errorf("the victim has no %s", kind)
		}
		for _, o := range found {
			all = append(all, kind+" "+o.GetName()+" "+versionOf(t, kind, o))
		}
	}
	for _, claim := range listed(t, ours+"HostnameClaim", "") {
		if value(claim.Object, []string{"spec", "tenant"}) == victim {
			all = append(all, "HostnameClaim "+claim.GetName()+" "+versionOf(t, ours+"HostnameClaim", claim))
		}
	}
	slices.Sort(all)
	return all
}

func listed(t *testing.T, kind, namespace string) []unstructured.Unstructured {
	t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(ofKind(kind, "").GroupVersionKind())
	must(t, platform.Client.List(t.Context(), list, client.InNamespace(namespace)))
	return list.Items
}

// versionOf returns what is different after any change of an object.
func versionOf(t *testing.T, kind string, o unstructured.Unstructured) string {
	t.Helper()
	if !slices.Contains(settling, kind) {
		return o.GetResourceVersion()
	}
	delete(o.Object, "status")
	o.SetManagedFields(nil)
	o.SetResourceVersion("")
	text, err := o.MarshalJSON()
	must(t, err)
	return fmt.Sprintf("%d %x", o.GetGeneration(), sha256.Sum256(text))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// soon waits until look has no error.
func soon(t *testing.T, what string, look func(context.Context) error) {
	t.Helper()
	must(t, stage.Until(t.Context(), 90*time.Second, what, look))
}

func as(t *testing.T, user string, groups ...string) client.Client {
	t.Helper()
	c, err := platform.As(user, groups...)
	must(t, err)
	return c
}
