package repository

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/usage"
	"github.com/kubeop/kubeop/gitops/identity"
	"github.com/kubeop/kubeop/gitops/tree"
)

// commit is a folder of a commit. As in a store of Git objects, its digests and the entries of its folders are known.
type commit struct {
	files   fstest.MapFS
	entries map[string][]fs.DirEntry
	digests map[string]string
	at      string
}

func commitOf(t *testing.T, files map[string]string) commit {
	t.Helper()
	c := commit{inMemory(files).MapFS, map[string][]fs.DirEntry{}, map[string]string{}, "."}
	for _, file := range slices.Sorted(maps.Keys(files)) {
		for name := file; ; name = path.Dir(name) {
			if _, known := c.digests[name]; !known && name != "." {
				info, err := c.files.Stat(name)
				if err != nil {
					t.Fatal(err)
				}
				c.entries[path.Dir(name)] = append(c.entries[path.Dir(name)], fs.FileInfoToDirEntry(info))
			}
			c.digests[name] = fmt.Sprintf("%x", sha256.Sum256([]byte(c.digests[name]+file+files[file])))
			if name == "." {
				break
			}
		}
	}
	return c
}

func (c commit) Open(name string) (fs.File, error) { return c.files.Open(path.Join(c.at, name)) }

func (c commit) ReadDir(name string) ([]fs.DirEntry, error) {
	return c.entries[path.Join(c.at, name)], nil
}

func (c commit) Digest(name string) (string, error) { return c.digests[path.Join(c.at, name)], nil }

func (c commit) Sub(name string) (tree.Files, error) {
	c.at = path.Join(c.at, name)
	return c, nil
}

// manyProjects are the files of a platform with 250 tenants of 4 projects each. If there are policies, each tenant is under 8 of 50, no two under the same.
func manyProjects(policies bool, cpus int) map[string]string {
	files := map[string]string{"kubeop.yaml": "layout: v1\n"}
	add := func(file, kind, name, spec string) {
		files[file] = fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata: {name: %s}\nspec: %s\n", v1alpha1.GroupVersion, kind, name, spec)
	}
	for i := 0; policies && i < 50; i++ {
		name := fmt.Sprintf("p%d", i)
		add("policies/"+name+".yaml", "Policy", name, "{images: {allow: [registry.example.com, registry.example.com/"+name+"], requireDigest: true}, services: {types: [ClusterIP]}, "+
			"hostnames: {suffixes: [example.com]}, classes: {storage: [fast]}, nodes: {selector: {pool: tenants}}, kinds: {deny: [Job.batch]}, "+
			"metadata: {requiredLabels: [team]}, sources: {git: {allow: ['https://git.example.com']}}, egress: {cidrs: [10.0.0.0/8]}, quota: {max: {requests.cpu: '8'}}}")
	}
	for i := range 250 {
		tenant, spec := fmt.Sprintf("t%d", i), "{}"
		if policies {
			var names []string
			for j := range 8 {
				names = append(names, fmt.Sprintf("p%d", (i+(2*(i/50)+1)*j)%50))
			}
			spec = "{policies: [" + strings.Join(names, ", ") + "]}"
		}
		add("tenants/"+tenant+"/tenant.yaml", "Tenant", tenant, spec)
		for j := range 4 {
			name := fmt.Sprintf("s%d", j)
			add("tenants/"+tenant+"/projects/"+name+"/project.yaml", "Project", name, fmt.Sprintf("{quota: {requests.cpu: '%d'}}", cpus))
		}
	}
	return files
}

// informers answer from memory, as the operator's cache does. What they list is not copied.
type informers struct {
	client.Client
	objects  map[identity.Ref]client.Object
	policies []v1alpha1.Policy
	tenants  []v1alpha1.Tenant
	projects map[string][]v1alpha1.Project
}

// informersOf has what a commit declared, as kubeop applied it.
func informersOf(t *testing.T, files map[string]string) *informers {
	t.Helper()
	r, err := reader()
	if err != nil {
		t.Fatal(err)
	}
	of := &informers{objects: map[identity.Ref]client.Object{}, projects: map[string][]v1alpha1.Project{}}
	read := r.Read(commitOf(t, files), tree.Scope{Repository: v1alpha1.PlatformRepository}, nil)
	tree.Changes(nil, read, func(ref identity.Ref) {
		o := read.Declared(ref)
		o.SetManagedFields(fromAcme(app("", "")).ManagedFields)
		o.SetFinalizers([]string{v1alpha1.Finalizer})
		of.objects[ref] = o
		switch o := o.(type) {
		case *v1alpha1.Policy:
			of.policies = append(of.policies, *o)
		case *v1alpha1.Tenant:
			of.tenants = append(of.tenants, *o)
		case *v1alpha1.Project:
			of.projects[""] = append(of.projects[""], *o)
			of.projects[o.Namespace] = append(of.projects[o.Namespace], *o)
		}
	})
	if n := len(of.projects[""]); n != 1000 {
		t.Fatalf("%d projects are there", n)
	}
	return of
}

func (i *informers) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	into.SetNamespace(key.Namespace)
	into.SetName(key.Name)
	ref, _ := identity.Of(into)
	o, there := i.objects[ref]
	if !there {
		return apierrors.NewNotFound(schema.GroupResource{Group: v1alpha1.GroupVersion.Group}, key.Name)
	}
	reflect.ValueOf(into).Elem().Set(reflect.ValueOf(o.DeepCopyObject()).Elem())
	return nil
}

func (i *informers) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	of := client.ListOptions{}
	of.ApplyOptions(options)
	switch list := list.(type) {
	case *v1alpha1.PolicyList:
		list.Items = i.policies
	case *v1alpha1.TenantList:
		list.Items = i.tenants
	case *v1alpha1.ProjectList:
		list.Items = i.projects[of.Namespace]
	}
	return nil // There are no Registries and Apps.
}

// planning is the Repository controller of a platform, that writes nothing.
type planning struct {
	*cluster
	// commits are the first one and the next one.
	commits [2]commit
}

// planned plans the first commit, as a process does that has just started, and then the next one. It returns which objects each would write, and what
// processor time that took.
func (p *planning) planned() (written [2][]string, took [2]time.Duration) {
	p.t.Helper()
	before := &progress{}
	for i, root := range p.commits {
		s := newScope(&v1alpha1.Repository{})
		s.repository.Name, s.commit.Revision = v1alpha1.PlatformRepository, fmt.Sprint("main@sha1:", i)
		s.repository.Status.LastAttemptedRevision = s.commit.Revision // It is announced.
		if s.progress = before; i == 0 {
			s.progress = newProgress()
		}
		before = s.progress
		runtime.GC() // Of what was planned before.
		began := processorTime(p.t)
		written[i] = p.plan(s, root)
		took[i] = processorTime(p.t) - began
	}
	return written, took
}

// plan does what sync does until objects are applied.
func (p *planning) plan(s *scope, root tree.Files) (written []string) {
	p.t.Helper()
	if err := p.read(p.t.Context(), s, root); err != nil {
		p.t.Fatal(err)
	}
	if err := p.look(p.t.Context(), s); err != nil {
		p.t.Fatal(err)
	}
	for {
		todo, err := p.next(p.t.Context(), s, failures{})
		if err != nil {
			p.t.Fatal(err)
		}
		if len(todo) == 0 {
			break
		}
		for _, o := range todo {
			ref, _ := identity.Of(o)
			written = append(written, ref.String())
			s.progress.done(ref)
		}
	}
	if left, problems := s.progress.pending.All(), s.found.Counts().Problems; len(left)+problems > 0 {
		p.t.Fatalf("pending are %v; there are %d problems", paths(left), problems)
	}
	return written
}

// processorTime is what the process used of it so far.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// mostForPolicies is how much more processor time planning a commit may take with 50 policies.
const mostForPolicies = 100 * time.Millisecond

// TestFiftyPoliciesCostLittle plans a commit that changes the quotas of 1,000 projects, without policies and with 50, and then one that changes a single policy.
func TestFiftyPoliciesCostLittle(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector changes what takes how long")
	}
	var namespaces []client.Object
	for i := range 250 {
		namespaces = append(namespaces, namespace(fmt.Sprintf("kubeop-t%d", i)))
	}
	k := reading(t, namespaces...)
	platform := func(policies bool) *planning {
		p := &planning{cluster: &cluster{Reconciler: &Reconciler{}, t: t}}
		live := informersOf(t, manyProjects(policies, 1))
		p.Client, p.Tree, p.Watch, p.Steps, p.Remotes = live, k.Tree, k.Watch, k.Steps, k.Remotes
		p.Usage = &usage.Counter{Reader: live, Limits: k.Usage.Limits, Budgets: &usage.Budgets{Reader: live, Kinds: k.Usage.Budgets.Kinds}}
		files := manyProjects(policies, 2)
		p.commits[0] = commitOf(t, files)
		if policies {
			files["policies/p0.yaml"] = strings.Replace(files["policies/p0.yaml"], "fast", "slow, fast", 1)
		}
		p.commits[1] = commitOf(t, files)
		return p
	}
	without, with := platform(false), platform(true)
	least := [2][2]time.Duration{{time.Hour, time.Hour}, {time.Hour, time.Hour}}
	more := func(i int) time.Duration { return least[1][i] - least[0][i] }
	// What else the machine does makes a round slower, never faster, so further rounds come closer to what planning takes.
	for round := 0; round < 7 || round < 40 && max(more(0), more(1)) > mostForPolicies; round++ {
		for i, p := range []*planning{without, with} {
			written, took := p.planned()
			if n := len(written[0]); n != 1000 {
				t.Fatalf("the first commit writes %d objects, want the 1,000 projects", n)
			}
			if i == 1 {
				if diff := cmp.Diff([]string{"Policy p0"}, written[1]); diff != "" {
					t.Fatalf("the next commit writes (-want +got):\n%s", diff)
				}
			}
			for j := range took {
				least[i][j] = min(least[i][j], took[j])
			}
		}
	}
	t.Logf("processor time for 1,000 projects: %s without policies, %s with 50; for the commit after it, %s and %s", least[0][0], least[1][0], least[0][1], least[1][1])
	for i, which := range []string{"of 1,000 projects", "of one policy"} {
		if more(i) > mostForPolicies {
			t.Errorf("with 50 policies, planning a commit %s takes %s more of processor time, want %s at most", which, more(i), mostForPolicies)
		}
	}
}
