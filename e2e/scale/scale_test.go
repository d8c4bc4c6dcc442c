package main

import (
	"io"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestSizesHaveToBeWholeTenants(t *testing.T) {
	tests := map[string]struct {
		args string
		want []int
		err  string
	}{
		"defaults":                    {want: []int{1000}},
		"sizes are apps, sorted":      {args: "-sizes 3000,300", want: []int{30, 300}},
		"a size of half a tenant":     {args: "-sizes 305", err: "no number of apps"},
		"too many":                    {args: "-tenants 10000", err: "may be 1 to 9999"},
		"another layout":              {args: "-repositories both", err: "-repositories is"},
		"hosts without tenants' own":  {args: "-hosts-hanging 3", err: "-repositories tenant"},
		"hosts":                       {args: "-repositories tenant -hosts-hanging 3 -hosts-refusing 4", want: []int{1000}},
		"no push":                     {args: "-pushes 0", err: "-pushes is 0"},
		"an argument that is no flag": {args: "all", err: `what is "all"`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := parseSettings(strings.Fields(test.args), io.Discard)
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Fatalf("got %v, want %q", err, test.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got.tenants); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestEachAppIsOneOfTheRepository imports a platform repository and checks that it contains the files of each app.
func TestEachAppIsOneOfTheRepository(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Fatal("git is missing: on Debian, apt-get install git")
	}
	dir := t.TempDir()
	if out, err := exec.Command("git", "init", "--quiet", "--bare", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	r := &run{Tenants: 3, Apps: 30, unreachable: []string{"http://127.0.0.1:1/a.git"}}
	fastImport := exec.Command("git", "-C", dir, "fast-import", "--quiet", "--done", "--date-format=now")
	fastImport.Stdin = (&repositories{}).beginning(r)
	if out, err := fastImport.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := exec.Command("git", "-C", dir, "ls-tree", "-r", "--name-only", "main").Output()
	if err != nil {
		t.Fatal(err)
	}
	files := strings.Fields(string(out))
	// kubeop.yaml, then for each tenant its file, two projects and ten apps of two files, and the file of the tenant on the unreachable host.
	if want := 1 + 3*(1+2+20) + 1; len(files) != want {
		t.Errorf("%d files, want %d:\n%s", len(files), want, out)
	}
	seen := map[string]bool{}
	for n := range r.Apps {
		a := appNumber(n)
		file := "tenants/" + tenantName(a.tenant) + "/" + a.folder() + "/" + manifestFile
		if !strings.Contains(string(out), file+"\n") || seen[file] {
			t.Errorf("app %d has no file of its own: %s", n, file)
		}
		seen[file] = true
	}
}

func TestARunOverABudgetIsReported(t *testing.T) {
	good := func() *run {
		return &run{
			Apps: 100, Ready: 100, All: 300, Pushes: []push{{Seconds: 0.1, CPUSeconds: 0.1}, {Seconds: 1.4, CPUSeconds: 0.2}},
			Phases: []phase{
				{Name: firstSync, Units: 100, PeakRSS: 300 << 20}, {Name: pushes, Units: 2}, {Name: idle, Seconds: 10, Reads: 2, Leases: 3},
				{Name: restart, Seconds: 3, Reads: 100},
			},
		}
	}
	tests := map[string]struct {
		change func(*run)
		want   string
	}{
		"all kept":                         {change: func(*run) {}},
		"a slow first sync":                {change: func(r *run) { r.All = 361 }, want: "first sync: all ready: 361.00 s, the budget is ≤ 360 s"},
		"memory":                           {change: func(r *run) { r.Phases[0].PeakRSS = 401 << 20 }, want: "peak memory, first sync"},
		"half of the pushes slow":          {change: func(r *run) { r.Pushes[0].Seconds = 0.6 }, want: "push → applied, p50"},
		"one push slow":                    {change: func(r *run) { r.Pushes[1].Seconds = 1.6 }, want: "push → applied, p99"},
		"CPU":                              {change: func(r *run) { r.Pushes[0].CPUSeconds = 0.4; r.Pushes[1].CPUSeconds = 0.5 }, want: "push: CPU, p50"},
		"watches and leases count as idle": {change: func(r *run) { r.Phases[2].Watches = 6 }, want: "idle: requests per second"},
		"a write after the restart":        {change: func(r *run) { r.Phases[3].Writes = 1 }, want: "restart: writes"},
		"other hosts do not answer":        {change: func(r *run) { r.Unreachable = 3 }, want: "unreachable hosts"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := good()
			test.change(r)
			got := strings.Join(r.broken(), "\n")
			if (got == "") != (test.want == "") || !strings.Contains(got, test.want) || strings.Contains(got, "\n") {
				t.Errorf("got %q, want one line with %q", got, test.want)
			}
		})
	}
}

func TestMarksKeepTheFirstTime(t *testing.T) {
	m := newMarks()
	go m.set("a")
	first, err := m.wait(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Millisecond)
	m.set("a")
	if again, err := m.wait(t.Context(), "a"); err != nil || !again.Equal(first) {
		t.Errorf("marked at %s and then at %s (%v)", first, again, err)
	}
	if n, _ := m.count(); n != 1 {
		t.Errorf("%d marks, want one", n)
	}
}

func TestTheLargestObjectOfAPageIsFound(t *testing.T) {
	got, next, err := largestOf("App", []byte(`{"metadata":{"continue":"on"},"items":[{"metadata":{"name":"a"}},{"metadata":{"name":"longer"}}]}`))
	if err != nil || next != "on" {
		t.Fatal(next, err)
	}
	if diff := cmp.Diff(object{Kind: "App", Name: "longer", Bytes: len(`{"metadata":{"name":"longer"}}`)}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
