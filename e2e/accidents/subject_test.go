//go:build e2e

package accidents

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/e2e/stage"
)

// layout is where a tenant's projects are declared.
type layout int

const (
	// own: in a repository of the tenant.
	own layout = iota
	// inPlatform: in the folder of tenant.yaml in the platform repository.
	inPlatform
)

// subject is the tenant of an accident. Its project shop has the app store, which has written to a volume, and six small apps.
type subject struct {
	t      *testing.T
	tenant string
	layout layout
	// repo is the repository the tenant's users push to: its own or the platform's.
	repo *stage.Repository
	// good are the tenant's correct files by path in repo. tenantFile is its correct tenant.yaml in the platform repository.
	good       map[string]string
	tenantFile string
	// before is the state that the accident must not change.
	before state
	// refusal is the error of the last refused kubectl or git command. vars are values that an accident stores for later steps.
	refusal string
	vars    map[string]string
	// began is when the accident began. Earlier events are ignored.
	began time.Time
}

const (
	projectYAML = "apiVersion: paas.kubeop.io/v1alpha1\nkind: Project\nmetadata: {name: %s}\n"
	storeYAML   = `apiVersion: paas.kubeop.io/v1alpha1
kind: App
metadata: {name: %s}
spec:
  type: Image
  image:
    reference: %s
    ports: [{name: http, port: 8080, servicePort: 80}]
    env: [{name: STARTS, value: /data/starts}]
    volumes: [{name: data, mountPath: /data, size: 1Mi}]
    security: {runAsUser: 65532, runAsGroup: 65532, readOnlyRootFilesystem: true}
    resources: {requests: {cpu: 1m, memory: 8Mi}, limits: {cpu: 200m, memory: 64Mi}}
    terminationGracePeriodSeconds: 1
    probes: {readiness: {path: /healthz, periodSeconds: 1}}
`
	noteYAML = `apiVersion: paas.kubeop.io/v1alpha1
kind: App
metadata: {name: %[1]s}
spec:
  type: Raw
  raw:
    manifests:
    - {apiVersion: v1, kind: ConfigMap, metadata: {name: %[1]s}, data: {text: hello}}
`
	tenantYAML = `apiVersion: paas.kubeop.io/v1alpha1
kind: Tenant
metadata: {name: %[1]s}
spec:
  owners: [{kind: User, name: %[1]s-admin, role: admin}]
  clusterKinds: [IngressClass.networking.k8s.io, ValidatingWebhookConfiguration.admissionregistration.k8s.io]
`
	bindingYAML = `  repository:
    url: %[2]s
    secretRef: {name: %[1]s-git}
    hookSecretRef: {name: %[1]s-hook}
`
)

// notes are the small apps.
const notes = 6

// newSubject creates a tenant and waits until its app has written to its volume.
func newSubject(t *testing.T, name string, l layout) *subject {
	t.Helper()
	s := &subject{t: t, tenant: name, layout: l, repo: root, good: map[string]string{}, vars: map[string]string{}, began: time.Now()}
	s.tenantFile = fmt.Sprintf(tenantYAML, name)
	if l == own {
		var err error
		s.repo, err = newRepository(t.Context(), name)
		s.must(err)
		s.tenantFile += fmt.Sprintf(bindingYAML, name, s.repo.OperatorURL)
		s.good["kubeop.yaml"] = "layout: v1\n"
	}
	s.good[s.expand("$r/project.yaml")] = fmt.Sprintf(projectYAML, "shop")
	s.good[s.expand("$r/apps/store/app.yaml")] = fmt.Sprintf(storeYAML, "store", platform.Cluster.Registry.Host+"/hello:v1")
	for n := range notes {
		note := fmt.Sprintf("note%d", n)
		s.good[s.expand("$r/apps/"+note+"/app.yaml")] = fmt.Sprintf(noteYAML, note)
	}
	if l == own {
		s.restoreFiles()
		s.push("Begin")
	}
	s.inRoot("Welcome "+name, func() {
		s.must(root.Write("tenants/"+name+"/tenant.yaml", []byte(s.tenantFile)))
		if l == inPlatform {
			s.restoreFiles()
		}
	})
	s.waitUntilReady()
	s.before = s.mustReadState()
	return s
}

// expand replaces $t with the tenant, $home and $ns with its namespaces, and $r with the folder of the project shop in repo.
func (s *subject) expand(text string) string {
	folder := "projects/shop"
	if s.layout == inPlatform {
		folder = "tenants/" + s.tenant + "/" + folder
	}
	return strings.NewReplacer("$home", v1alpha1.HomeNamespace(s.tenant), "$ns", s.namespace(), "$t", s.tenant, "$r", folder).Replace(text)
}

func (s *subject) namespace() string { return v1alpha1.ProjectNamespace(s.tenant, "shop") }

// repository is the name of the Repository that declares the tenant's projects.
func (s *subject) repository() string {
	if s.layout == inPlatform {
		return v1alpha1.PlatformRepository
	}
	return s.tenant
}

// inRoot changes the platform repository and pushes it.
func (s *subject) inRoot(message string, change func()) {
	s.t.Helper()
	rootLock.Lock()
	defer rootLock.Unlock()
	change()
	s.must(root.Push(s.t.Context(), message))
	pushed, err := root.Git(s.t.Context(), "rev-parse", "HEAD")
	s.must(err)
	s.vars["pushed"] = pushed
}

// commit changes the repository that the tenant pushes to, and pushes it.
func (s *subject) commit(message string, change func()) {
	s.t.Helper()
	if s.layout == inPlatform {
		s.inRoot(message, change)
		return
	}
	change()
	s.push(message)
}

func (s *subject) push(message string) {
	s.t.Helper()
	s.must(s.repo.Push(s.t.Context(), message))
}

// restoreFiles restores the tenant's correct files.
func (s *subject) restoreFiles() {
	s.t.Helper()
	if s.layout == inPlatform {
		s.must(root.Remove("tenants/" + s.tenant))
		s.must(root.Write("tenants/"+s.tenant+"/tenant.yaml", []byte(s.tenantFile)))
	} else {
		s.must(s.repo.Remove("projects"))
	}
	for name, content := range s.good {
		s.must(s.repo.Write(name, []byte(content)))
	}
}

// state is what an accident must not change: claims with their data, and pods.
type state struct {
	// Claims by "namespace/name".
	Claims map[string]claim
	// Pods are the UIDs and the running containers of pods by "namespace/name". Whether Kubernetes calls a pod ready does not count: when
	// its node could not report for a while, it does not, although all its containers run on.
	Pods map[string]string
}

// claim is a claim with the first line of the file to which its pod appends at each start.
type claim struct {
	UID    types.UID
	Volume string
	Word   string
}

// mustReadState reads the current state. It skips claims that are being deleted.
func (s *subject) mustReadState() state {
	s.t.Helper()
	found, err := s.readState()
	s.must(err)
	return found
}

func (s *subject) readState() (state, error) {
	ctx := s.t.Context()
	found := state{Claims: map[string]claim{}, Pods: map[string]string{}}
	claims := &corev1.PersistentVolumeClaimList{}
	if err := platform.Client.List(ctx, claims); err != nil {
		return found, err
	}
	mine := func(namespace string) bool { return strings.HasPrefix(namespace, v1alpha1.HomeNamespace(s.tenant)+"-") }
	for _, c := range claims.Items {
		if mine(c.Namespace) && c.DeletionTimestamp == nil && c.Status.Phase == corev1.ClaimBound {
			found.Claims[c.Namespace+"/"+c.Name] = claim{UID: c.UID, Volume: c.Spec.VolumeName, Word: word(c.Spec.VolumeName)}
		}
	}
	pods := &corev1.PodList{}
	if err := platform.Client.List(ctx, pods); err != nil {
		return found, err
	}
	for _, p := range pods.Items {
		if containers := running(&p); mine(p.Namespace) && p.DeletionTimestamp == nil && containers != "" {
			found.Pods[p.Namespace+"/"+p.Name] = string(p.UID) + containers
		}
	}
	return found, nil
}

// running returns the IDs of a pod's containers, or "" if one of them does not run.
func running(p *corev1.Pod) (ids string) {
	for _, c := range p.Status.ContainerStatuses {
		if c.State.Running == nil {
			return ""
		}
		ids += " " + c.ContainerID
	}
	return ids
}

// word is the first line that a pod wrote to the volume, or "" if there is none.
func word(volume string) string {
	content, err := os.ReadFile(filepath.Join(platform.VolumeDir(volume), "starts"))
	if err != nil {
		return ""
	}
	first, _, _ := strings.Cut(string(content), "\n")
	return first
}

// keep defines whether the same pods and claims must exist after an accident. The data must always exist.
type keep struct{ pods, claims bool }

// lost compares the state with that before the accident, and returns what is missing.
func (s *subject) lost(keep keep) error {
	now, err := s.readState()
	if err != nil {
		return err
	}
	var gone []error
	for name, was := range s.before.Claims {
		if is, there := now.Claims[name]; keep.claims && (!there || is != was) {
			gone = append(gone, fmt.Errorf("claim %s was %+v and is %+v", name, was, is))
		}
		if found := word(was.Volume); found != was.Word {
			gone = append(gone, fmt.Errorf("volume %s held %q and holds %q", was.Volume, was.Word, found))
		}
	}
	if keep.pods {
		for name, was := range s.before.Pods {
			if now.Pods[name] != was {
				gone = append(gone, fmt.Errorf("pod %s was %s and does not run any more; there are %v", name, was, now.Pods))
			}
		}
	}
	return errors.Join(gone...)
}

// mustKeep checks several times that nothing is lost, because a deletion may be delayed.
func (s *subject) mustKeep(keep keep, looks int) {
	s.t.Helper()
	for n := range looks {
		if n > 0 {
			time.Sleep(500 * time.Millisecond)
		}
		if err := s.lost(keep); err != nil {
			pods, _ := output("get pods -A -o wide")(s)
			nodes, _ := output("describe nodes")(s)
			s.t.Fatalf("lost: %v\nthe pods are\n%s\nthe nodes are\n%s", err, pods, nodes)
		}
	}
}

// volume is the volume of the store's claim, as before the accident.
func (s *subject) volume() string { return s.before.Claims[s.namespace()+"/store-data"].Volume }

// hasVolume checks that the store's claim, which may be new, is bound to the same volume as before.
func (s *subject) hasVolume(context.Context) error {
	now, err := s.readState()
	if is := now.Claims[s.namespace()+"/store-data"].Volume; err == nil && is != s.volume() {
		err = fmt.Errorf("the claim had volume %s and has %q", s.volume(), is)
	}
	return err
}

// waitUntilReady waits until all objects of the tenant match Git and the store has written to its volume.
func (s *subject) waitUntilReady() {
	s.t.Helper()
	s.until("all is well", func(ctx context.Context) error {
		for _, one := range []struct {
			object    stage.Conditioned
			namespace string
			name      string
		}{
			{&v1alpha1.Tenant{}, "", s.tenant}, {&v1alpha1.Project{}, v1alpha1.HomeNamespace(s.tenant), "shop"},
			{&v1alpha1.App{}, s.namespace(), "store"}, {&v1alpha1.App{}, s.namespace(), "note0"}, {&v1alpha1.App{}, s.namespace(), "note5"},
		} {
			if err := platform.Ready(ctx, one.object, one.namespace, one.name); err != nil {
				return fmt.Errorf("%T %s: %w", one.object, one.name, err)
			}
			if !one.object.GetDeletionTimestamp().IsZero() {
				return fmt.Errorf("%T %s is being deleted", one.object, one.name)
			}
		}
		if err := s.synced(ctx); err != nil {
			return fmt.Errorf("the repository: %w", err)
		}
		return s.storeRuns(ctx)
	})
}

// synced checks that the tenant's and the platform's repository have processed the last push. The platform's repository may be not
// Ready because of another tenant's accident.
func (s *subject) synced(ctx context.Context) error {
	if s.layout == own {
		if err := platform.Ready(ctx, &v1alpha1.Repository{}, "", s.tenant); err != nil {
			return err
		}
	}
	return errors.Join(s.attempted(ctx, s.repository()), s.attempted(ctx, root.Name))
}

// attempted checks that a Repository has processed this tenant's last push to it.
func (s *subject) attempted(ctx context.Context, repository string) error {
	clone, pushed := s.repo, "HEAD"
	if repository == root.Name {
		clone, pushed = root, s.vars["pushed"]
	}
	now := &v1alpha1.Repository{}
	if err := platform.Client.Get(ctx, client.ObjectKey{Name: repository}, now); err != nil {
		return err
	}
	_, attempted, _ := strings.Cut(now.Status.LastAttemptedRevision, ":")
	if _, err := clone.Git(ctx, "merge-base", "--is-ancestor", pushed, attempted); err != nil {
		return fmt.Errorf("%s has seen %q, not yet %s", repository, attempted, pushed)
	}
	return nil
}

// storeRuns checks that the store runs with its claim.
func (s *subject) storeRuns(ctx context.Context) error {
	c := &corev1.PersistentVolumeClaim{}
	if err := platform.Client.Get(ctx, client.ObjectKey{Namespace: s.namespace(), Name: "store-data"}, c); err != nil {
		return err
	}
	if c.DeletionTimestamp != nil || word(c.Spec.VolumeName) == "" {
		return errors.New("the store has written nothing")
	}
	now, err := s.readState()
	if err == nil && len(now.Pods) == 0 {
		err = errors.New("no pod of the store runs")
	}
	return err
}

// until waits for a condition. If it times out, the operator's log is shown.
func (s *subject) until(what string, look func(context.Context) error) {
	s.t.Helper()
	if err := stage.Until(s.t.Context(), stepTimeout, what, look); err != nil {
		s.t.Fatalf("tenant %s: %v\nthe operator's log ends:\n%s", s.tenant, err, s.log())
	}
}

// log is the part of the operator's log that mentions this tenant.
func (s *subject) log() string {
	var mine []string
	for line := range strings.Lines(platform.OperatorLog(context.WithoutCancel(s.t.Context()))) {
		if strings.Contains(line, s.tenant) {
			mine = append(mine, line)
		}
	}
	return strings.Join(mine, "")
}

func (s *subject) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatalf("tenant %s: %v", s.tenant, err)
	}
}

// clone copies the subject for another test.
func (s *subject) clone(t *testing.T) *subject {
	c := *s
	c.t, c.began = t, time.Now()
	c.refusal, c.vars, c.good = "", map[string]string{"pushed": s.vars["pushed"]}, maps.Clone(s.good)
	return &c
}
