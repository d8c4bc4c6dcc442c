package build

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/internal/sandbox"
	"github.com/kubeop/kubeop/internal/testkeys"
)

// evaluations is what kubeop_sandbox_calls_total counts of a pool.
func evaluations(t *testing.T, p *sandbox.Pool) (calls float64) {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(p.Collectors()...)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if family.GetName() == "kubeop_sandbox_calls_total" {
				calls += m.GetCounter().GetValue()
			}
		}
	}
	return calls
}

// TestTheSameSourceIsEvaluatedOnce, and another one or one that somebody asks for again.
func TestTheSameSourceIsEvaluatedOnce(t *testing.T) {
	b := newFixture(t, sandbox.Limits{})
	files := "files"
	good := git(map[string]string{"app/kustomization.yaml": "resources: [a.yaml]\nnamePrefix: n-\n", "app/a.yaml": manifest("a")}, v1alpha1.Build{})
	request := requestOf(good, "input")
	request.Reads, request.Same = func() (string, error) { return files, nil }, func(reads string) bool { return reads == files }
	want := ""
	for _, change := range []struct {
		name  string
		to    func()
		calls float64
		reads string
	}{
		{"at first", func() {}, 1, ""},
		{"an interval later", func() {}, 0, "files"},
		{"another commit that reads the same", func() { request.Identity = "other" }, 0, "files"},
		{"another commit that reads something else", func() { files, request.Identity = "others", "third" }, 1, ""},
		{"that one again", func() {}, 0, "others"},
		{"another spec, variable or key", func() { request.Input = "another" }, 1, ""},
		{"somebody asks for it", func() { request.Retry = true }, 1, ""},
		{"and then", func() { request.Retry = false }, 0, "others"},
		{"another app", func() { request.App.Name = "api" }, 1, ""},
		{"the first one again", func() { request.App.Name = web.Name }, 0, "others"},
		{"an app that was gone", func() { b.Forget(web) }, 1, ""},
		{"after a restart", b.restart, 1, ""},
		{"a source that is wrong", func() {
			request.Source, request.Input = git(map[string]string{"app/kustomization.yaml": "resources: [b.yaml]\n"}, v1alpha1.Build{}), "bad"
			want = "b.yaml"
		}, 1, ""},
		{"that one an interval later", func() {}, 0, "others"},
	} {
		change.to()
		before := evaluations(t, b.pool)
		made, err := b.Build(t.Context(), request)
		if !strings.Contains(textOf(err), want) || (err == nil) != (want == "") {
			t.Fatalf("%s: %v", change.name, err)
		}
		if want == "" && (len(made.Objects) != 1 || made.Objects[0].GetName() != "n-a") {
			t.Errorf("%s: it made %v", change.name, made.Objects)
		}
		if calls := evaluations(t, b.pool) - before; calls != change.calls || made.Reads != change.reads {
			t.Errorf("%s: %v evaluations and reads %q, want %v and %q", change.name, calls, made.Reads, change.calls, change.reads)
		}
	}
}

// TestAMemoEqualsTheBuild: objects, decrypted values and the class of an error; and the caller may change the objects.
func TestAMemoEqualsTheBuild(t *testing.T) {
	b := newFixture(t, sandbox.Limits{})
	for name, source := range sources(t) {
		t.Run(name, func(t *testing.T) {
			request := requestOf(source, name)
			request.App.Name = name
			first, failed := b.Build(t.Context(), request)
			again, err := b.Build(t.Context(), request)
			if diff := cmp.Diff(textOf(failed), textOf(err)); diff != "" {
				t.Error(diff)
			}
			for _, class := range append(classes, ErrUnfit) {
				if errors.Is(err, class) != errors.Is(failed, class) {
					t.Errorf("it is a %q no more, or now", class)
				}
			}
			if diff := cmp.Diff(first, again); diff != "" {
				t.Error(diff)
			}
			for _, o := range again.Objects {
				o.SetNamespace("changed")
			}
			if third, _ := b.Build(t.Context(), request); cmp.Diff(first.Objects, third.Objects) != "" {
				t.Error("a caller changed what is remembered")
			}
		})
	}
}

// TestDecryptedObjectsAreNotRemembered: it is evaluated again each time.
func TestDecryptedObjectsAreNotRemembered(t *testing.T) {
	b := newFixture(t, sandbox.Limits{})
	source := Source{Files: repository(map[string]string{"app/a.yaml": padded("a")}), Git: &v1alpha1.GitSource{Path: "app"}}
	keys, variables := source, source
	keys.Keys = &Keys{Secret: "keys", Data: map[string][]byte{"age.agekey": []byte(testkeys.Age(testkeys.First))}}
	variables.Variables = []Variable{{Kind: "Secret", Name: "words", Data: map[string][]byte{"A": []byte("b")}}}
	for name, tt := range map[string]struct {
		source Source
		want   float64
	}{"keys": {keys, 2}, "variables of a Secret": {variables, 2}, "neither": {source, 1}} {
		request, before := requestOf(tt.source, name), evaluations(t, b.pool)
		request.App.Name = name
		for range 2 {
			if _, err := b.Build(t.Context(), request); err != nil {
				t.Fatal(name, err)
			}
		}
		if calls := evaluations(t, b.pool) - before; calls != tt.want {
			t.Errorf("%s: %v evaluations, want %v", name, calls, tt.want)
		}
	}
}

// TestErrorsOfFilesAreNotRemembered: the store may have the file the next time.
func TestErrorsOfFilesAreNotRemembered(t *testing.T) {
	b := newFixture(t, sandbox.Limits{})
	files := repository(map[string]string{"app/lost.yaml": padded("a")})
	source := Source{Files: failing{files}, Git: &v1alpha1.GitSource{Path: "app"}}
	if _, err := b.Build(t.Context(), requestOf(source, "input")); !errors.Is(err, errLater) {
		t.Fatalf("got %v", err)
	}
	source.Files = files
	if made, err := b.Build(t.Context(), requestOf(source, "input")); err != nil || len(made.Objects) != 1 {
		t.Errorf("afterwards %d objects, %v", len(made.Objects), err)
	}
	source.Variables = []Variable{{Kind: "Secret", Name: "words", Err: errLater}}
	source.Git.SubstituteFrom = []v1alpha1.SubstituteReference{{Kind: "Secret", Name: "words"}}
	if _, err := b.Build(t.Context(), requestOf(source, "words")); !errors.Is(err, errLater) {
		t.Fatalf("got %v", err)
	}
	source.Variables[0].Err, source.Variables[0].Data = nil, map[string][]byte{"A": []byte("b")}
	if _, err := b.Build(t.Context(), requestOf(source, "words")); err != nil {
		t.Error(err)
	}
}

// TestMemosAreBounded: who has most makes room, with what it used longest ago.
func TestMemosAreBounded(t *testing.T) {
	noise := func(n int) []byte {
		text := make([]byte, n)
		for i := range text {
			text[i] = byte(rand.IntN(256))
		}
		return text
	}
	const most = 100 << 10
	m := &memos{most: most}
	request := func(tenant string, i int) *Request {
		return &Request{App: types.NamespacedName{Namespace: tenant, Name: fmt.Sprint(i)}, Tenant: tenant, Input: "input", Identity: "commit"}
	}
	has := func(tenant string, i int) bool {
		answer, _, err := m.get(request(tenant, i))
		return answer != nil && err == nil
	}
	put := func(tenant string, i, bytes int) {
		t.Helper()
		if err := m.put(request(tenant, i), noise(bytes), ""); err != nil {
			t.Fatal(err)
		}
		sum := 0
		for _, one := range m.of {
			sum += one.size()
		}
		if sum != m.total || sum > most {
			t.Fatalf("%d bytes are remembered, it counts %d, and may be %d", sum, m.total, most)
		}
	}
	put("small", 0, 10<<10)
	for i := range 50 {
		put("greedy", i, 10<<10)
		if i == 5 {
			has("greedy", 0) // It is used.
		}
	}
	if !has("small", 0) || has("greedy", 1) || !has("greedy", 49) {
		t.Error("the tenant with most did not make room")
	}
	put("greedy", 49, 8<<10)
	put("greedy", 50, 2*most)
	if !has("small", 0) || has("greedy", 50) {
		t.Error("what is too large for all is remembered, or took another tenant's room")
	}
	m.forget(request("small", 0).App)
	for i := range 51 {
		m.forget(request("greedy", i).App)
	}
	if m.total != 0 || len(m.bytes) != 0 || len(m.of) != 0 {
		t.Errorf("%d bytes are left, of %d tenants and %d apps", m.total, len(m.bytes), len(m.of))
	}
}
