package tree

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubeop/kubeop/gitops/identity"
)

// manyProjects is a platform repository of 250 tenants with 4 projects each. With policies, there are 50 of them, and each tenant is under 8.
func manyProjects(policies bool) flat {
	files := repository{"kubeop.yaml": {Data: []byte("layout: v1\n")}}
	add := func(name, text string) { files[name] = &fstest.MapFile{Data: []byte(text)} }
	for i := range 50 {
		if policies {
			name := fmt.Sprintf("p%d", i)
			add("policies/"+name+".yaml", declaration("Policy", name, "{images: {allow: [registry.example.com, registry.example.com/"+name+"]}, services: {types: [ClusterIP]}, hostnames: {suffixes: [example.com]}}"))
		}
	}
	for t := range 250 {
		tenant, spec := fmt.Sprintf("t%d", t), "{}"
		if policies {
			var names []string
			for i := range 8 {
				names = append(names, fmt.Sprintf("p%d", (t+7*i)%50))
			}
			spec = "{policies: [" + strings.Join(names, ", ") + "]}"
		}
		add("tenants/"+tenant+"/tenant.yaml", declaration("Tenant", tenant, spec))
		for p := range 4 {
			name := fmt.Sprintf("s%d", p)
			add("tenants/"+tenant+"/projects/"+name+"/project.yaml", declaration("Project", name, "{}"))
		}
	}
	return flat{files}
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

// cheapest returns the least processor time of five runs.
func cheapest(t *testing.T, run func()) time.Duration {
	t.Helper()
	least := time.Hour
	for range 5 {
		before := processorTime(t)
		run()
		least = min(least, processorTime(t)-before)
	}
	return least
}

// TestFiftyPoliciesCostLittle reads a commit of 1,000 projects, and then one that changes a single policy, with and without 50 policies.
func TestFiftyPoliciesCostLittle(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector changes what takes how long")
	}
	scope := Scope{Repository: "platform"}
	without, with := manyProjects(false), manyProjects(true)
	whole := func(files flat) *Tree {
		tree := shared.Read(files, scope, nil)
		if c := tree.Counts(); c.Projects != 1000 || c.Problems != 0 {
			t.Fatalf("read %+v", c)
		}
		return tree
	}
	plain := cheapest(t, func() { whole(without) })
	limited := cheapest(t, func() { whole(with) })
	if limited > plain*2 {
		t.Errorf("the first commit takes %s of processor time with 50 policies, and %s without", limited, plain)
	}
	before := whole(with)
	changed := manyProjects(true)
	changed.repository["policies/p0.yaml"] = &fstest.MapFile{Data: []byte(declaration("Policy", "p0", "{images: {requireDigest: true}}"))}
	var after *Tree
	again := cheapest(t, func() { after = shared.Read(renamed{changed}, scope, before) })
	var got []string
	Changes(before, after, func(ref identity.Ref) { got = append(got, ref.String()) })
	if diff := cmp.Diff([]string{"Policy p0"}, got); diff != "" {
		t.Errorf("changed (-want +got):\n%s", diff)
	}
	t.Logf("1,000 projects: %s of processor time without policies, %s with 50, %s for the next commit", plain, limited, again)
	if again > 100*time.Millisecond {
		t.Errorf("a commit that changes one of 50 policies takes %s of processor time, want 100ms at most", again)
	}
}

// renamed has another digest for the changed policy and for the folders that it is in.
type renamed struct{ flat }

func (r renamed) Digest(path string) (string, error) {
	switch path {
	case ".", "", "policies", "policies/p0.yaml":
		return "changed " + path, nil
	}
	return path, nil
}

func (r renamed) Sub(path string) (Files, error) { return sub{r, path}, nil }
