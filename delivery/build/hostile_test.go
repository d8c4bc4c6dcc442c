package build

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/fluxcd/pkg/apis/kustomize"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/internal/sandbox"
	testsources "github.com/kubeop/kubeop/internal/testenv/sources"
	"github.com/kubeop/kubeop/internal/testkeys"
)

const mebibyte = 1 << 20

// doubling are bases each of which takes the one below twice.
func doubling(levels int) map[string]string {
	files := map[string]string{"app/kustomization.yaml": fmt.Sprintf("resources: [../l%d]\n", levels), "l0/kustomization.yaml": "resources: [a.yaml]\n", "l0/a.yaml": manifest("a")}
	for i := 1; i <= levels; i++ {
		files[fmt.Sprintf("l%d/kustomization.yaml", i)] = "resources: [s, t]\n"
		for _, side := range []string{"s", "t"} {
			files[fmt.Sprintf("l%d/%s/kustomization.yaml", i, side)] = fmt.Sprintf("resources: [../../l%d]\nnamePrefix: %s-\n", i-1, side)
		}
	}
	return files
}

// objects are many manifests, each with more data.
func objects(n int, data string) string {
	var out strings.Builder
	for i := range n {
		out.WriteString(manifest(fmt.Sprintf("o%d", i)) + "data: {" + data + "}\n---\n")
	}
	return out.String()
}

// folderOf has a file many times.
func folderOf(n int, text func(int) string) map[string]string {
	files := map[string]string{}
	for i := range n {
		files[fmt.Sprintf("app/%d/%d.yaml", i%50, i)] = text(i)
	}
	return files
}

// manyTimes is a folder with the same manifest of a megabyte again and again.
func manyTimes(n int) Source {
	files, large := fstest.MapFS{}, &fstest.MapFile{Data: []byte("apiVersion: v1\nkind: List\nitems: []\n#" + bigText + "\n")}
	for i := range n {
		files[fmt.Sprintf("app/%04d.yaml", i)] = large
	}
	return Source{Files: files, Git: &v1alpha1.GitSource{Path: "app"}}
}

// sopsLike is a file that says it is SOPS'.
func sopsLike(body, more string) string {
	return body + "\nsops:\n  mac: ENC[AES256_GCM,data:AA==,iv:AA==,tag:AA==,type:str]\n  lastmodified: \"2024-01-01T00:00:00Z\"\n" + more
}

// overALimit is what is said of a source that exceeded a limit of the process.
const overALimit = "takes more than the limit of"

// hostile are sources that take more than they may, and what is said of them. "" is any answer: the processes and this one live on.
func hostile() map[string]struct {
	source func() Source
	want   string
} {
	half := strings.Repeat("[],", mebibyte/3-1000)
	patch := func(p string) v1alpha1.Build {
		return v1alpha1.Build{Patches: []kustomize.Patch{{Patch: p, Target: &kustomize.Selector{Kind: "ConfigMap"}}}}
	}
	array := `[{"op": "add", "path": "/data", "value": [` + strings.Repeat("[],", 300_000) + `[]]}]`
	kustomized := func(k string, more map[string]string) Source {
		files := map[string]string{"app/kustomization.yaml": k, "app/a.yaml": manifest("a")}
		for name, text := range more {
			files[name] = text
		}
		return git(files, v1alpha1.Build{})
	}
	keyed := func(s Source) Source {
		s.Keys = keys(testkeys.First)
		return s
	}
	stanzas := strings.Repeat("    - recipient: age1\n      enc: |\n        "+strings.Repeat("x", 8000)+"\n", 60)
	return map[string]struct {
		source func() Source
		want   string
	}{
		"bases that double": {func() Source { return git(doubling(12), v1alpha1.Build{}) }, "a kustomize build may read 1000 files"},
		"5 MiB of lists": {func() Source {
			return git(map[string]string{"app/a.yaml": strings.Repeat("[[],[],", 5*mebibyte/7)}, v1alpha1.Build{})
		}, "a file may have 1048576"},
		"lists in 40 files": {func() Source {
			return git(folderOf(40, func(i int) string { return manifest(fmt.Sprint("a", i)) + "data: [" + half + "]\n" }), v1alpha1.Build{})
		}, overALimit},
		"lists in one file": {func() Source {
			return git(map[string]string{"app/a.yaml": manifest("a") + "data: [" + half + "]\n"}, v1alpha1.Build{})
		}, "more than 500000 mappings, lists and values"},
		"lists of a list": {func() Source {
			return git(map[string]string{"app/a.yaml": manifest("a") + "data: &a [" + strings.Repeat("1,", 200_000) + "]\nb: [*a, *a]\n"}, v1alpha1.Build{})
		}, "more than 500000 mappings, lists and values"},
		"an alias bomb": {func() Source {
			return git(map[string]string{"app/a.yaml": padded("a") + "x: &a [" + strings.Repeat("x,", 9999) + "]\ny: &b [" + strings.Repeat("*a,", 99) + "]\nz: [" + strings.Repeat("*b,", 99) + "]\n"}, v1alpha1.Build{})
		}, "YAML aliases stand for more than 1048576 bytes"},
		"a bomb in a patch": {func() Source {
			return git(map[string]string{"app/a.yaml": manifest("a")}, patch("x: &a ["+strings.Repeat("x,", 9999)+"]\ny: &b ["+strings.Repeat("*a,", 99)+"]\nz: ["+strings.Repeat("*b,", 99)+"]\n"))
		}, "YAML aliases stand for more than 1048576 bytes"},
		"a huge array of a patch": {func() Source { return git(map[string]string{"app/a.yaml": objects(40, "a: b")}, patch(array)) }, ""},
		"the same in a file": {func() Source {
			return kustomized("resources: [a.yaml]\npatches: [{path: p.json, target: {kind: ConfigMap}}]\n", map[string]string{"app/p.json": array, "app/a.yaml": objects(30, "a: b")})
		}, ""},
		"operations without end": {func() Source {
			return git(map[string]string{"app/a.yaml": objects(900, "a: b")}, patch("["+strings.Repeat(`{"op": "test", "path": "/kind", "value": "ConfigMap"},`, 1000)+`{"op": "add", "path": "/data/z", "value": "z"}]`))
		}, ""},
		"a patch of a patch": {func() Source {
			return git(map[string]string{"app/a.yaml": objects(900, "a: b")}, patch(`[{"op": "add", "path": "/data/z", "value": {}}`+strings.Repeat(`, {"op": "copy", "from": "/data", "path": "/data/z/z"}`, 40)+`]`))
		}, "operations copy of patches may make more than 67108864 bytes"},
		"generators": {func() Source {
			return kustomized("configMapGenerator:\n"+strings.Repeat("- {files: [big.txt]}\n", 900), map[string]string{"app/big.txt": strings.Repeat("x", 900_000)})
		}, ""},
		"a generator of many files": {func() Source {
			return kustomized("configMapGenerator: [{name: a, files: ["+strings.Repeat("big.txt,", 900)+"big.txt]}]\n", map[string]string{"app/big.txt": strings.Repeat("x", 900_000)})
		}, "a kustomize build may read 33554432 bytes"},
		"replacements that double": {func() Source {
			return kustomized("resources: [a.yaml]\nreplacements:\n"+strings.Repeat("- source: {kind: ConfigMap, fieldPath: data}\n  targets: [{select: {kind: ConfigMap}, fieldPaths: [data.k0], options: {create: true}}]\n", 40), map[string]string{"app/a.yaml": objects(100, "k: "+strings.Repeat("x", 1000))})
		}, "replacements may make more than"},
		"a kustomization of lists": {func() Source { return kustomized("resources: ["+strings.Repeat("[],", mebibyte/3-1000)+"]\n", nil) }, ""},
		"two values in one": {func() Source {
			return kustomized("resources: [a.yaml]\nnamePrefix: "+strings.Repeat("x", mebibyte-100)+"\n", map[string]string{"app/a.yaml": objects(60, "a: b")})
		}, ""},
		"a regular expression": {func() Source {
			return git(map[string]string{"app/a.yaml": objects(900, "a: b")}, v1alpha1.Build{Patches: []kustomize.Patch{{Patch: `[{"op": "test", "path": "/kind", "value": "ConfigMap"}]`, Target: &kustomize.Selector{Name: strings.Repeat("((a{0,30}){0,30})", 900)}}}})
		}, ""},
		"more than 64 MiB":          {func() Source { return manyTimes(80) }, "the files of the build have more than 64 MiB together"},
		"1,500 files of a megabyte": {func() Source { return manyTimes(1500) }, "the files of the build have more than 64 MiB together"},
		"20 MiB of objects": {func() Source {
			return git(folderOf(20, func(i int) string { return manifest(fmt.Sprint("a", i)) + "data: {a: " + bigText[:1_000_000] + "}\n" }), v1alpha1.Build{})
		}, "limit of output, 16 MiB"},
		"variables that grow": {func() Source {
			return git(map[string]string{"app/a.yaml": objects(900, "a: '"+strings.Repeat("${A}", 200)+"'")}, v1alpha1.Build{Substitute: map[string]string{"A": strings.Repeat("x", 4000)}})
		}, "with its variables set: too large"},
		"variables that become lists": {func() Source {
			return git(map[string]string{"app/a.yaml": manifest("a") + "data: " + strings.Repeat("x", smallBytes) + "${A}\n"}, v1alpha1.Build{Substitute: map[string]string{"A": "\x00"}})
		}, ""},
		"too deep": {func() Source {
			return git(map[string]string{"app/a.yaml": manifest("a") + "data: " + strings.Repeat("[", 900_000)}, v1alpha1.Build{})
		}, "exceeded max depth of 10000"},
		"too deep JSON": {func() Source {
			return git(map[string]string{"app/a.json": strings.Repeat(`{"a":`, 200_000)}, v1alpha1.Build{})
		}, "app/a.json:1: "},
		"SOPS with 600,000 nodes": {func() Source {
			return keyed(git(map[string]string{"app/a.yaml": sopsLike("a: ["+strings.Repeat("[],", 300_000)+"]", "  age: [{recipient: age1, enc: x}]\n")}, v1alpha1.Build{}))
		}, "no key in Secret sops-keys decrypts it"},
		"SOPS with 60 recipients": {func() Source {
			return keyed(git(map[string]string{"app/a.yaml": sopsLike("a: b", "  age:\n"+stanzas)}, v1alpha1.Build{}))
		}, "no key in Secret sops-keys decrypts it"},
		"SOPS with 9,000 INI keys": {func() Source {
			var text strings.Builder
			for i := range 9000 {
				fmt.Fprintf(&text, "k%d = 1\n", i)
			}
			text.WriteString("[sops]\nmac = ENC[AES256_GCM,data:AA==,iv:AA==,tag:AA==,type:str]\nlastmodified = 2024-01-01T00:00:00Z\nage__list_0__map_recipient = age1\nage__list_0__map_enc = x\n")
			return keyed(git(map[string]string{"app/kustomization.yaml": "configMapGenerator: [{name: a, files: [a.ini]}]\n", "app/a.ini": text.String()}, v1alpha1.Build{}))
		}, "no key in Secret sops-keys decrypts it"},
		"SOPS in SOPS": {func() Source {
			return keyed(git(map[string]string{"app/a.yaml": sopsLike("a: "+strings.Repeat("{a: ", 5000)+strings.Repeat("}", 5000), "")}, v1alpha1.Build{}))
		}, "is encrypted with SOPS, but not as a file of its extension"},
		"SOPS with an alias bomb": {func() Source {
			return keyed(git(map[string]string{"app/a.yaml": sopsLike("x: &a ["+strings.Repeat("x,", 9999)+"]\ny: &b ["+strings.Repeat("*a,", 99)+"]\nz: ["+strings.Repeat("*b,", 99)+"]", "")}, v1alpha1.Build{}))
		}, "is encrypted with SOPS, but not as a file of its extension"},
		"SOPS in 60 files": {func() Source {
			return keyed(git(folderOf(60, func(int) string { return sopsLike("a: ["+strings.Repeat("[],", 300_000)+"]", "") }), v1alpha1.Build{}))
		}, ""},
		"no keys but text": {func() Source {
			return Source{Files: repository(nil), Git: &v1alpha1.GitSource{Path: "app"}, Keys: &Keys{Secret: "s", Data: map[string][]byte{"a.asc": []byte(bigText)}}}
		}, "key a.asc of Secret s holds no armored OpenPGP key"},
	}
}

var bigText = strings.Repeat("x", 1_000_000)

// TestHostileSourcesEndWithinTheLimits, or with an error that names the source, and the heap of this process stays flat. What may use up its
// processor time has little of it.
func TestHostileSourcesEndWithinTheLimits(t *testing.T) {
	patient, hasty := newFixture(t, sandbox.Limits{}), newFixture(t, sandbox.Limits{CPU: 300 * time.Millisecond})
	var worst uint64
	for name, tc := range hostile() {
		t.Run(name, func(t *testing.T) {
			b := patient
			if tc.want == "" || tc.want == overALimit {
				b = hasty
			}
			var err error
			source := tc.source()
			began := time.Now()
			grew := testsources.PeakHeap(t, func() { _, err = b.Build(t.Context(), requestOf(source, name)) })
			worst = max(worst, grew)
			t.Logf("%s, heap +%d MiB: %.200v", time.Since(began).Round(time.Millisecond), grew>>20, err)
			if tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("got %.500v, want %s", err, tc.want)
			}
			if errors.Is(err, ErrUnfit) {
				t.Error("the world is at fault")
			}
			if grew > 96<<20 {
				t.Errorf("the heap grew by %d MiB", grew>>20)
			}
			if made, err := b.Build(t.Context(), requestOf(git(map[string]string{"app/a.yaml": padded("a")}, v1alpha1.Build{}), "next")); err != nil || len(made.Objects) != 1 {
				t.Errorf("the next one: %v", err)
			}
		})
	}
	t.Logf("the heap grew by %d MiB at most", worst>>20)
}

// tooMuch takes more than 32 MiB at its first file.
func tooMuch() Source {
	lists := "data: [" + strings.Repeat("[],", mebibyte/3-1000) + "]\n"
	return git(map[string]string{"app/y.yaml": manifest("y") + lists, "app/z.yaml": manifest("z") + lists}, v1alpha1.Build{})
}

// A source that was over a limit is not evaluated again before it changes or is requested anew, also not by the next operator.
func TestASourceOverALimitIsNotEvaluatedAgain(t *testing.T) {
	b := newFixture(t, sandbox.Limits{Memory: 32 << 20})
	request := requestOf(tooMuch(), "input")
	const want = "app/y.yaml takes more than the limit of memory, 32 MiB; it is not tried again before the app or its source changes"
	refused := func(when string, calls int) {
		t.Helper()
		before := b.calls
		if _, err := b.Build(t.Context(), request); err == nil || err.Error() != want {
			t.Errorf("%s: %v", when, err)
		}
		if b.calls-before != calls {
			t.Errorf("%s: %d calls, want %d", when, b.calls-before, calls)
		}
	}
	refused("the first time", 1)
	refused("the second time", 0)
	b.restart()
	refused("after a restart", 0)
	request.Retry = true
	refused("when somebody asks", 1)
	request.Retry = false
	refused("and then", 0)
	request.Identity = "another commit"
	refused("of another commit", 1)
	request.Input = "another spec"
	refused("of another spec", 1)
	request.Source.Files = repository(map[string]string{"app/ok.yaml": padded("a")})
	request.Identity = "a better commit"
	if _, err := b.Build(t.Context(), request); err != nil {
		t.Error(err)
	}
	if last, err := b.Trials.Last(web); last != "" || err != nil {
		t.Errorf("what is noted is %q, %v", last, err)
	}
}

// TestAnotherVersionThatReadsTheSame is not evaluated again either.
func TestAnotherVersionThatReadsTheSame(t *testing.T) {
	b := newFixture(t, sandbox.Limits{Memory: 32 << 20})
	files := "files\n"
	request := requestOf(tooMuch(), "input")
	request.Reads = func() (string, error) { return strconv.Quote(files), nil }
	request.Same = func(reads string) bool { return reads == strconv.Quote(files) }
	for i, change := range []struct {
		to    func()
		calls int
	}{
		{func() {}, 1},
		{func() { request.Identity = "another commit" }, 0},
		{b.restart, 0},
		{func() { files = "others" }, 1},
		{func() { request.Input = "another spec" }, 1},
		{func() { request.Retry = true }, 1},
	} {
		change.to()
		before := b.calls
		if _, err := b.Build(t.Context(), request); err == nil || !strings.Contains(err.Error(), "limit of memory, 32 MiB") {
			t.Errorf("%d: %v", i, err)
		}
		if b.calls-before != change.calls {
			t.Errorf("%d: %d calls, want %d", i, b.calls-before, change.calls)
		}
	}
}

// TestAnInputThatEndedTheOperatorThreeTimesIsRefused during a build has it left alone.
func TestAnInputThatEndedTheOperatorThreeTimesIsRefused(t *testing.T) {
	b := newFixture(t, sandbox.Limits{})
	request := requestOf(git(map[string]string{"app/a.yaml": padded("a")}, v1alpha1.Build{}), "input")
	for range 3 {
		if err := b.Trials.Begin(web, "input of commit"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.Build(t.Context(), request); err == nil || !strings.Contains(err.Error(), "the operator ended 3 times while it evaluated these files") {
		t.Errorf("got %v", err)
	}
	request.Identity = "another commit"
	if _, err := b.Build(t.Context(), request); err != nil {
		t.Error(err)
	}
}

// TestACanceledBuildIsNotHeldAgainstItsSource: its process ends because nobody wants the build any more.
func TestACanceledBuildIsNotHeldAgainstItsSource(t *testing.T) {
	b := newFixture(t, sandbox.Limits{Wall: time.Second})
	request := requestOf(git(map[string]string{"app/a.yaml": padded("a")}, v1alpha1.Build{}), "input")
	b.function = stuck
	newer := errors.New("there is a newer commit")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(50*time.Millisecond, func() { cancel(newer) })
	if _, err := b.Build(ctx, request); !errors.Is(err, newer) || !errors.Is(err, ErrUnfit) {
		t.Errorf("got %v", err)
	}
	b.function = ""
	if _, err := b.Build(t.Context(), request); err != nil {
		t.Errorf("the next one: %v", err)
	}
	b.function, request.Identity = stuck, "another commit"
	if _, err := b.Build(t.Context(), request); err == nil || !strings.Contains(err.Error(), "it takes more than the limit of ") {
		t.Errorf("got %v", err)
	}
}

// TestABuildWhoseProcessIsKilledIsTriedAgain once, whenever that happens, and nothing is held against its source.
func TestABuildWhoseProcessIsKilledIsTriedAgain(t *testing.T) {
	b := newFixture(t, sandbox.Limits{})
	source := git(map[string]string{
		"app/kustomization.yaml": "resources: [a.yaml]\nnamePrefix: n-\nlabels: [{pairs: {a: b}, includeSelectors: true}]\n", "app/a.yaml": objects(100, "a: b"),
	}, v1alpha1.Build{})
	ctx, stop := context.WithCancel(t.Context())
	kills := 0
	var killer sync.WaitGroup
	killer.Go(func() {
		for ctx.Err() == nil {
			for _, pid := range children(t) {
				if syscall.Kill(pid, syscall.SIGKILL) == nil {
					kills++
				}
			}
			time.Sleep(time.Duration(30+kills*7%200) * time.Millisecond)
		}
	})
	built, crashed := 0, 0
	for i := 0; built < 40; i++ {
		made, err := b.Build(t.Context(), requestOf(source, fmt.Sprint("input ", i)))
		var crash *sandbox.CrashError
		switch {
		case err == nil && len(made.Objects) == 100:
			built++
		case errors.Is(err, ErrUnfit) && (errors.As(err, &crash) || strings.Contains(err.Error(), "starting a process")):
			crashed++
		default:
			t.Fatalf("%d objects, %v", len(made.Objects), err)
		}
	}
	stop()
	killer.Wait()
	t.Logf("%d built, %d killed twice, %d kills", built, crashed, kills)
	if kills < 10 {
		t.Errorf("only %d kills", kills)
	}
	if _, err := b.Build(t.Context(), requestOf(source, "input")); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// killing are files that have the process killed that reads the last of them, once.
type killing struct {
	fstest.MapFS
	last string
	kill func()
}

func (k killing) ReadFile(name string) ([]byte, error) {
	if name == k.last {
		k.kill()
	}
	return k.MapFS.ReadFile(name)
}

// TestReadsOfAKilledProcessDoNotCount: files of 40 MiB are within the limit of 64 MiB, however often they had to be read.
func TestReadsOfAKilledProcessDoNotCount(t *testing.T) {
	b := newFixture(t, sandbox.Limits{Memory: 1 << 30})
	pad := "# " + strings.Repeat("x", 1_000_000) + "\n"
	source := git(folderOf(42, func(i int) string { return pad + manifest(fmt.Sprint("a", i)) }), v1alpha1.Build{})
	files, ok := source.Files.(fstest.MapFS)
	if !ok {
		t.Fatalf("the files are a %T", source.Files)
	}
	kills := 0
	source.Files = killing{files, "app/41/41.yaml", sync.OnceFunc(func() {
		for _, pid := range children(t) {
			if syscall.Kill(pid, syscall.SIGKILL) == nil {
				kills++
			}
		}
	})}
	made, err := b.Build(t.Context(), requestOf(source, "input"))
	if err != nil || len(made.Objects) != 42 || kills == 0 {
		t.Errorf("%d objects after %d kills, %v", len(made.Objects), kills, err)
	}
}

// children are the processes that this one has started.
func children(t *testing.T) (pids []int) {
	all, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", os.Getpid()))
	if err != nil {
		t.Error(err)
	}
	for _, file := range all {
		text, _ := os.ReadFile(file) // A thread may have ended.
		for _, field := range strings.Fields(string(text)) {
			if pid, err := strconv.Atoi(field); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// TestAPanicShowsNoSecret: nothing of its text is shown.
func TestAPanicShowsNoSecret(t *testing.T) {
	if _, err := safely(&Source{Git: &v1alpha1.GitSource{Path: "app"}, Files: panicking{}}, func(string) {}, nil); err == nil || strings.Contains(err.Error(), "hunter22") {
		t.Errorf("got %v", err)
	}
}

type panicking struct{ failing }

func (panicking) Lstat(string) (os.FileInfo, error) { panic("hunter22") }

// TestUnknownQuestionsAreRefused are refused, whatever a process asks.
func TestUnknownQuestionsAreRefused(t *testing.T) {
	a := &answers{files: repository(map[string]string{"app/a.yaml": "a"})}
	for _, question := range []string{"", "\x00app", "\x09app"} {
		if _, err := a.answer(t.Context(), []byte(question)); !errors.Is(err, errQuestion) {
			t.Errorf("%q: %v", question, err)
		}
	}
	if _, err := (&answers{}).answer(t.Context(), []byte{askInfo, '.'}); !errors.Is(err, errQuestion) {
		t.Errorf("without files: %v", err)
	}
	for _, name := range []string{"../etc/passwd", "/etc/passwd", "app/../../etc", ""} {
		for _, about := range []byte{askInfo, askFile, askFolder} {
			text, err := a.answer(t.Context(), append([]byte{about}, name...))
			var r reply
			if err != nil || reader.Read(text, &r) != nil || r.Err == nil || r.Data != nil || r.Info != nil || r.Entries != nil {
				t.Errorf("%d %q: %v, %v", about, name, r, err)
			}
		}
	}
}
