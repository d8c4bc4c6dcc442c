package controllers

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/rollup"
)

// writes are requests that change something, as "PATCH /api/v1/namespaces/shop".
type writes struct {
	mu  sync.Mutex
	all []string
}

// record notes the writes of the clients of a connection.
func (w *writes) record(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		if r.Method != http.MethodGet && r.URL.Query().Get("dryRun") == "" {
			w.mu.Lock()
			w.all = append(w.all, r.Method+" "+r.URL.Path)
			w.mu.Unlock()
		}
		return next.RoundTrip(r)
	})
}

// since returns the writes after the first ones whose path has a text, and how many there are now.
func (w *writes) since(first int, text string) (found []string, now int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, one := range w.all[first:] {
		if strings.Contains(one, text) {
			found = append(found, one)
		}
	}
	return found, len(w.all)
}

// written returns what a change wrote for a project, after the first writes, such as "limitranges/kubeop" or "namespaces", and how often it wrote the statuses of the project and its
// app. Those that answer the requests that this function makes do not count.
func (n *team) written(first int, name string) (objects []string, statuses int) {
	n.t.Helper()
	project, app, namespace := n.project(name), n.app(name, "web"), v1alpha1.ProjectNamespace(n.name, name)
	n.ready(project, app)
	n.eventually(func() error { return n.counted(project) })
	n.reconcile(project, app)
	found, _ := n.requests.since(first, "/namespaces/"+namespace)
	own, _ := n.requests.since(first, "/namespaces/"+v1alpha1.HomeNamespace(n.name)+"/projects/"+name)
	tier, _ := n.requests.since(first, "/clusternetworkpolicies/"+namespace)
	for _, one := range slices.Concat(found, own, tier) {
		switch dir, base := path.Split(one); base {
		case "status":
			statuses++
		case namespace:
			objects = append(objects, path.Base(dir))
		default:
			objects = append(objects, path.Base(dir)+"/"+base)
		}
	}
	slices.Sort(objects)
	return objects, statuses - 2
}

// counted returns an error while the status of a project does not have the numbers of its apps: they are written at most every rollup.Pause.
func (n *team) counted(project *v1alpha1.Project) error {
	if err := n.admin.Get(n.t.Context(), client.ObjectKeyFromObject(project), project); err != nil {
		return err
	}
	apps := &rollup.Apps{}
	if err := apps.Count(n.t.Context(), n.admin, project.Status.Namespace, ""); err != nil {
		return err
	}
	if apps.Differ(project.Status.AppCounts) {
		return fmt.Errorf("the status of %s has %+v", project.Name, project.Status.AppCounts)
	}
	return nil
}

// untilQuotasCountRoutes waits until the quota of a project counts HTTPRoutes, if another test made the API server serve them. Quotas count a new kind
// after two minutes, when the Project is reconciled next.
func (n *team) untilQuotasCountRoutes(project string) {
	n.t.Helper()
	const routes = "httproutes.gateway.networking.k8s.io"
	definition := n.object("", "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: "+routes+"}}")
	err := n.admin.Get(n.t.Context(), client.ObjectKeyFromObject(definition), definition)
	if apierrors.IsNotFound(err) {
		return
	}
	for end := time.Now().Add(4 * time.Minute); ; time.Sleep(time.Second) {
		n.written(0, project) // Looks at it.
		if err = n.hasText(project, &corev1.ResourceQuota{}, "count/"+routes); err == nil {
			return
		}
		if time.Now().After(end) {
			n.t.Fatal(err)
		}
	}
}

// families are all families of rules, and four of their fields with an effect of its own, each with a change of it. What is added to the objects of apps is written to these.
var families = []struct {
	name string
	set  func(*v1alpha1.PolicySpec)
	// of is the object that a project has of it, with text; wants are the objects that are written.
	of    client.Object
	text  string
	wants []string
}{
	{"images", func(s *v1alpha1.PolicySpec) { s.Images = &v1alpha1.ImageRules{Deny: []string{"evil.org/other"}} }, &v1alpha1.Guardrails{}, "evil.org/other", itsRules},
	{"services", func(s *v1alpha1.PolicySpec) {
		s.Services = &v1alpha1.ServiceRules{LoadBalancerClasses: []string{"thrifty.example/lb"}}
	}, &v1alpha1.Guardrails{}, "thrifty.example/lb", itsRules},
	{"services.externalIPs", func(s *v1alpha1.PolicySpec) {
		s.Services = &v1alpha1.ServiceRules{ExternalIPs: []string{"198.18.8.0/28"}}
	}, &corev1.Namespace{}, "198.18.8.0/28", []string{"guardrails/kubeop", "namespaces"}},
	{"hostnames", func(s *v1alpha1.PolicySpec) {
		s.Hostnames = &v1alpha1.HostnameRules{Suffixes: []string{"apps.thrifty.example"}}
	}, &v1alpha1.Guardrails{}, "apps.thrifty.example", itsRules},
	{"images.verify", func(s *v1alpha1.PolicySpec) {
		s.Images = &v1alpha1.ImageRules{Verify: []v1alpha1.SignatureRule{{Images: []string{"signed.thrifty.example/*"}, Keys: []string{thriftyKey}}}}
	}, &v1alpha1.Guardrails{}, "signed.thrifty.example", itsRules},
	{"classes", func(s *v1alpha1.PolicySpec) { s.Classes = &v1alpha1.ClassRules{Storage: []string{"thrifty-disks"}} }, &v1alpha1.Guardrails{}, "thrifty-disks", itsRules},
	{"classes.defaults", func(s *v1alpha1.PolicySpec) {
		s.Classes = &v1alpha1.ClassRules{Defaults: &v1alpha1.ClassDefaults{Ingress: "thrifty-ingress"}}
	}, &v1alpha1.Guardrails{}, "thrifty-ingress", itsRules},
	{"nodes", func(s *v1alpha1.PolicySpec) {
		s.Nodes = &v1alpha1.NodeRules{Selector: map[string]v1alpha1.LabelValue{"pool": "thrifty-nodes"}}
	}, &v1alpha1.Guardrails{}, "thrifty-nodes", itsRules},
	{"kinds", func(s *v1alpha1.PolicySpec) { s.Kinds = &v1alpha1.KindRules{Deny: []string{"Job.batch"}} }, &v1alpha1.Guardrails{}, "Job.batch", itsRules},
	{"metadata", func(s *v1alpha1.PolicySpec) {
		s.Metadata = &v1alpha1.MetadataRules{ForbiddenLabels: []string{"thrifty.example/*"}}
	}, &v1alpha1.Guardrails{}, "thrifty.example/*", itsRules},
	{"metadata.added", func(s *v1alpha1.PolicySpec) {
		s.Metadata.Added = &v1alpha1.AddedMetadata{Labels: map[string]v1alpha1.LabelValue{"thrifty/centre": "thrifty-17"}}
	}, &corev1.ConfigMap{}, "thrifty-17", []string{"configmaps/web", "guardrails/kubeop"}},
	{"sources", func(s *v1alpha1.PolicySpec) {
		s.Sources = &v1alpha1.SourceRules{Helm: &v1alpha1.URLPatterns{Deny: []string{"charts.thrifty.example"}}}
	}, &v1alpha1.Guardrails{}, "charts.thrifty.example", itsRules},
	{"quota", func(s *v1alpha1.PolicySpec) {
		s.Quota = &v1alpha1.QuotaRules{Default: corev1.ResourceList{"requests.cpu": resource.MustParse("7001m")}}
	}, &corev1.ResourceQuota{}, "7001m", []string{"resourcequotas/kubeop"}},
	{"limits", func(s *v1alpha1.PolicySpec) {
		s.Limits = &v1alpha1.LimitRules{Max: corev1.ResourceList{"cpu": resource.MustParse("3001m")}}
	}, &corev1.LimitRange{}, "3001m", []string{"guardrails/kubeop", "limitranges/kubeop"}},
	{"egress", func(s *v1alpha1.PolicySpec) {
		s.Egress = &v1alpha1.EgressRules{CIDRs: []string{"198.18.9.0/24"}}
	}, &networkingv1.NetworkPolicy{}, "198.18.9.0/24", []string{"networkpolicies/kubeop"}},
	{"podSecurity", func(s *v1alpha1.PolicySpec) {
		s.PodSecurity = &v1alpha1.PodSecurityRules{Level: "restricted", Version: "v1.34"}
	}, &corev1.Namespace{}, "v1.34", []string{"guardrails/kubeop", "namespaces"}},
}

var itsRules = []string{"guardrails/kubeop"}

// thriftyKey is a public key for which nothing is signed.
const thriftyKey = "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEdaybSypmw3np2YGkdwcgRxt3jyRU\nORUFSxBT4bCl2prLA9Lf7B/aDlsSDE64FqXefes+eJG1G78SDoBGc4ouyw==\n-----END PUBLIC KEY-----\n"

// TestAChangeOfAPolicyWritesLittle changes each family of rules. In each project under the policy, kubeop writes one object, for limits, podSecurity and external IPs two, each once, and the
// status of the Project only if that is no third write; and nothing in other projects.
func TestAChangeOfAPolicyWritesLittle(t *testing.T) {
	t.Parallel()
	n, other := teamOf(t, "thrifty"), teamOf(t, "bystander")
	projects := []string{"shop", "blog"}
	for _, of := range []*team{n, other} {
		files := shopFiles("shop", "web")
		maps.Copy(files, shopFiles("blog", "web"))
		of.push(files)
		of.ready(of.app("shop", "web"), of.app("blog", "web"), of.repository(), &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: of.name}})
	}
	for _, project := range projects {
		n.untilQuotasCountRoutes(project)
		other.untilQuotasCountRoutes(project)
	}
	n.under(setting("all", func(s *v1alpha1.PolicySpec) { s.Images = &v1alpha1.ImageRules{Deny: []string{"evil.org"}} }))
	for _, project := range projects { // Until nothing before the first change is left to be written.
		n.written(0, project)
		other.written(0, project)
	}
	for _, family := range families {
		_, first := n.requests.since(0, "")
		n.resets("all", family.set)
		for _, project := range projects {
			n.eventually(func() error { return n.hasText(project, family.of, family.text) })
		}
		for _, project := range projects {
			objects, statuses := n.written(first, project)
			most := 2
			if slices.Contains(family.wants, "configmaps/web") {
				most = 3 // The app has a new object, which counts beside the writes of the project.
			}
			if diff := cmp.Diff(family.wants, objects); diff != "" || len(objects)+statuses > most {
				t.Errorf("%s: kubeop wrote %d objects and %d statuses of project %s, want %d together at most, and (-want +got):\n%s", family.name, len(objects), statuses, project, most, diff)
			}
		}
		if found, _ := n.requests.since(first, "/namespaces/kubeop-bystander"); len(found) > 0 {
			t.Errorf("%s: kubeop wrote to a tenant that is not under the policy:\n%s", family.name, strings.Join(found, "\n"))
		}
	}
}

// hasText returns an error unless the object named kubeop of a kind has a text; of a Namespace, the project's, and of a ConfigMap, that of the app.
func (n *team) hasText(project string, of client.Object, text string) error {
	key := client.ObjectKey{Namespace: v1alpha1.ProjectNamespace(n.name, project), Name: "kubeop"}
	switch of.(type) {
	case *corev1.Namespace:
		key = client.ObjectKey{Name: key.Namespace}
	case *corev1.ConfigMap:
		key.Name = "web"
	}
	if err := n.admin.Get(n.t.Context(), key, of); err != nil {
		return err
	}
	content, err := json.Marshal(of)
	if err != nil {
		return err
	}
	if !bytes.Contains(content, []byte(text)) {
		return fmt.Errorf("%T of %s lacks %s", of, project, text)
	}
	return nil
}
