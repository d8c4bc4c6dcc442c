package offline

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kubeop/kubeop/cmd/kubeop/call"
	"github.com/kubeop/kubeop/cmd/kubeop/exit"
	"github.com/kubeop/kubeop/controllers/plan/render"
	"github.com/kubeop/kubeop/gitops/code"
	"github.com/kubeop/kubeop/gitops/examples"
	"github.com/kubeop/kubeop/gitops/tree"
)

const app = `apiVersion: paas.kubeop.io/v1alpha1
kind: App
metadata: {name: web}
spec:
  type: Image
  image: {reference: registry.example.com/acme/web:1}
`

// write writes files below a new folder "acme".
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	root := filepath.Join(t.TempDir(), "acme")
	for name, text := range files {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func repository(more map[string]string) map[string]string {
	files := map[string]string{
		"kubeop.yaml":                     "layout: v1\n",
		"projects/shop/project.yaml":      "apiVersion: paas.kubeop.io/v1alpha1\nkind: Project\nmetadata: {name: shop}\n",
		"projects/shop/apps/web/app.yaml": app,
	}
	for name, text := range more {
		files[name] = text
	}
	return files
}

// run runs validate with arguments.
func run(t *testing.T, args ...string) (out, complaint string, err error) {
	t.Helper()
	return runFor(t, "", args...)
}

// runFor runs validate with the flag --tenant, which all commands have.
func runFor(t *testing.T, tenant string, args ...string) (out, complaint string, err error) {
	t.Helper()
	streams, _, stdout, stderr := genericiooptions.NewTestIOStreams()
	c := call.New(streams, clocktesting.NewFakeClock(time.Now()))
	c.Tenant = tenant
	command := Validate(c, render.New)
	command.SilenceErrors, command.SilenceUsage = true, true
	command.SetArgs(args)
	command.SetOut(io.Discard)
	err = command.ExecuteContext(t.Context())
	return stdout.String(), stderr.String(), err
}

func TestValidateListsWhatIsWrong(t *testing.T) {
	broken := repository(map[string]string{
		"projects/shop/apps/api/app.yaml": strings.Replace(strings.Replace(app, "web}", "api}", 1), "  type: Image", "  typ: Image", 1),
		"projects/shop/stray.yaml":        "a: 1\n",
	})
	for name, tc := range map[string]struct {
		files map[string]string
		args  []string
		out   []string
		err   string
	}{
		"nothing": {files: repository(nil)},
		"a field and a stray file": {files: broken, err: "in",
			out: []string{"projects/shop/apps/api/app.yaml:5:3: ", "spec.typ", "projects/shop/stray.yaml: "}},
		"a folder of it": {files: broken, args: []string{"projects/shop"}, err: "problems in", out: []string{"projects/shop/apps/api/app.yaml:5:3: "}},
		"a file of it":   {files: broken, args: []string{"projects/shop/project.yaml"}, err: "problems in", out: []string{"projects/shop/apps/api/app.yaml:5:3: "}},
		"no layout":      {files: map[string]string{"projects/shop/project.yaml": "a"}, err: "1 problem in", out: []string{"kubeop.yaml"}},
		"the platform's": {files: map[string]string{"kubeop.yaml": "layout: v1\n", "tenants/acme/tenant.yaml": "kind: Tenant\n"}, err: "in", out: []string{"tenants/acme/tenant.yaml:"}},
		"policies alone": {files: map[string]string{"kubeop.yaml": "layout: v1\n", "policies/base.yaml": "apiVersion: paas.kubeop.io/v1alpha1\nkind: Policy\nmetadata: {name: bas}\n"}, err: "1 problem in",
			out: []string{`policies/base.yaml:3:12: metadata.name is "bas", but its file is "base"`}},
		"a missing folder": {files: repository(nil), args: []string{"nowhere"}, err: "no such file"},
		"a file as folder": {files: repository(nil), args: []string{"kubeop.yaml/x"}, err: "not a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(write(t, tc.files))
			out, complaint, err := run(t, tc.args...)
			if tc.err == "" && (err != nil || out != "" || !strings.HasPrefix(complaint, "No problems in ") || !strings.HasSuffix(complaint, ": 1 project, 1 app, 1 of them rendered.\n")) {
				t.Errorf("got %q, %q, %v", out, complaint, err)
			}
			if tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)) {
				t.Errorf("got %v, want %s", err, tc.err)
			}
			if want := map[bool]int{true: exit.Differences, false: exit.Code(err)}[len(tc.out) > 0]; exit.Code(err) != want {
				t.Errorf("the exit code is %d, want %d", exit.Code(err), want)
			}
			for _, want := range tc.out {
				if !strings.Contains(out, want) {
					t.Errorf("%s is not in\n%s", want, out)
				}
			}
		})
	}
}

// TestValidateComparesQuotasWithTheBudget of a tenant in the same repository, and of one in a file beside it.
func TestValidateComparesQuotasWithTheBudget(t *testing.T) {
	const tenant = "apiVersion: paas.kubeop.io/v1alpha1\nkind: Tenant\nmetadata: {name: acme}\nspec:\n  owners: [{kind: User, name: lead@acme.example}]\n  budget: {requests.cpu: 6}\n"
	const small = "apiVersion: paas.kubeop.io/v1alpha1\nkind: Project\nmetadata: {name: a}\nspec:\n  quota:\n    requests.cpu: 3\n"
	want := "project.yaml:1:1: the quota of project shop does not fit into the budget of tenant acme: requests.cpu 4 (the default), with 3 of 6 left (the others have 3: a 3); "
	files := repository(map[string]string{"projects/a/project.yaml": small})
	root := write(t, files)
	settings := filepath.Join(t.TempDir(), "tenant.yaml")
	if err := os.WriteFile(settings, []byte(tenant), 0o600); err != nil {
		t.Fatal(err)
	}
	platform := map[string]string{"kubeop.yaml": "layout: v1\n", "tenants/acme/tenant.yaml": tenant}
	for name, text := range files {
		if name != "kubeop.yaml" {
			platform["tenants/acme/"+name] = text
		}
	}
	for name, args := range map[string][]string{"a tenant's": {root, "--render=false", "--tenant-file", settings}, "the platform's": {write(t, platform), "--render=false"}} {
		t.Run(name, func(t *testing.T) {
			out, _, err := run(t, args...)
			if err == nil || !strings.Contains(out, "projects/shop/"+want) || strings.Count(out, "\n") != 1 || !strings.Contains(out, "[over-budget]") {
				t.Errorf("got %v\n%s", err, out)
			}
		})
	}
	if out, _, err := run(t, root, "--render=false"); err != nil {
		t.Errorf("without the tenant's settings: %v\n%s", err, out)
	}
}

func TestTheSamplesAreValid(t *testing.T) {
	for _, name := range append(examples.Names(), examples.Stages) {
		if name == "docs" {
			continue // It is a source of apps, without declarations.
		}
		samples, err := examples.Repository(name, examples.Places{GitURL: "https://git.example.com/demo", Registry: "registry.example.com/demo"})
		if err != nil {
			t.Fatal(err)
		}
		files := map[string]string{}
		for file, text := range samples {
			files[file] = string(text)
		}
		if out, _, err := run(t, write(t, files)); err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}

func TestValidateReportsPlacesInTheFormatsOfPrograms(t *testing.T) {
	t.Chdir(write(t, repository(map[string]string{"projects/shop/apps/web/app.yaml": strings.Replace(app, "type:", "typ:", 1)})))
	const file = "projects/shop/apps/web/app.yaml"

	out, _, err := run(t, "-o", "sarif")
	var log sarifLog
	if jsonErr := json.Unmarshal([]byte(out), &log); jsonErr != nil || exit.Code(err) != exit.Differences {
		t.Fatalf("%v, %v\n%s", jsonErr, err, out)
	}
	result := log.Runs[0].Results[0]
	place := result.Locations[0].PhysicalLocation
	if log.Version != "2.1.0" || result.RuleID != code.UnknownField || log.Runs[0].Tool.Driver.Rules[0].ID != code.UnknownField || !strings.Contains(log.Runs[0].Tool.Driver.Rules[0].Help.Markdown, "**Fix:**") || place.ArtifactLocation.URI != file || place.Region.StartLine != 5 || place.Region.StartColumn != 3 {
		t.Errorf("got %+v", log)
	}

	out, _, _ = run(t, "-o", "junit")
	var suite junitSuite
	if err := xml.Unmarshal([]byte(out), &suite); err != nil {
		t.Fatal(err, out)
	}
	failures := 0
	names := []string{}
	for _, c := range suite.Cases {
		failures += len(c.Failures)
		names = append(names, c.Class+" "+c.Name)
	}
	if diff := cmp.Diff([]string{"Repository repository", "Project acme/shop", "App acme/shop/web"}, names); diff != "" {
		t.Error(diff)
	}
	if failures == 0 || failures != suite.Failures || suite.Tests != len(suite.Cases) || !strings.HasPrefix(suite.Cases[2].Failures[0].Text, file+":5:3: ") || suite.Cases[2].Failures[0].Type != code.UnknownField {
		t.Errorf("got %+v", suite)
	}

	out, _, _ = run(t, "-o", "json")
	var found []finding
	if err := json.Unmarshal([]byte(out), &found); err != nil || len(found) != failures || found[0].Object != "acme/shop/web" || found[0].File != file || found[0].Line != 5 || found[0].Column != 3 || found[0].Code != code.UnknownField {
		t.Errorf("%v: got %+v", err, found)
	}

	if out, _, err := run(t, "-o", "yaml"); exit.Code(err) != exit.Differences || !strings.HasPrefix(out, "- code: unknown-field\n") {
		t.Errorf("%v\n%s", err, out)
	}

	t.Chdir(write(t, repository(nil)))
	if out, _, err := run(t, "-o", "sarif"); err != nil || !strings.Contains(out, `"results": []`) {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestFilesThatGitIgnoresAreLeftOut(t *testing.T) {
	root := write(t, repository(map[string]string{
		".gitignore": "*.tmp\n/projects/old/\n", "projects/shop/notes.tmp": "x", "projects/old/project.yaml": "broken", "projects/shop/gone.yaml": "x",
	}))
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}} {
		if out, err := exec.Command("git", append([]string{"-C", root}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	if err := os.Remove(filepath.Join(root, "projects/shop/gone.yaml")); err != nil {
		t.Fatal(err)
	}
	if out, _, err := run(t, root); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	w, err := openWorktree(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	for file, there := range map[string]bool{"projects/shop/project.yaml": true, "projects/shop/notes.tmp": false, "projects/shop/gone.yaml": false} {
		if f, err := w.Open(file); (err == nil) != there || !there && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is a file: %v", file, err)
		} else if there {
			_ = f.Close()
		}
	}
	// A file that is neither tracked nor ignored will be in the commit.
	if err := os.WriteFile(filepath.Join(root, "projects/shop/new.yaml"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, _, err := run(t, root); err == nil || !strings.HasPrefix(out, "projects/shop/new.yaml: ") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestValidateRunsNoProgramOfTheFolder, although the folder's configuration of Git names a program, as in an unpacked archive.
func TestValidateRunsNoProgramOfTheFolder(t *testing.T) {
	root := write(t, repository(nil))
	ran := filepath.Join(t.TempDir(), "ran")
	for _, args := range [][]string{{"init", "-q"}, {"config", "core.fsmonitor", "touch " + ran + "; false"}} {
		if out, err := exec.Command("git", append([]string{"-C", root}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	if out, _, err := run(t, root); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("the program in the folder's configuration ran")
	}
	if out, err := exec.Command("git", "-C", root, "ls-files", "--others").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if _, err := os.Stat(ran); err != nil {
		t.Error("git runs no such program, so this test shows nothing")
	}
}

func TestSymlinksAreNotFollowed(t *testing.T) {
	root := write(t, repository(nil))
	secret := filepath.Join(t.TempDir(), "secret.yaml")
	if err := os.WriteFile(secret, []byte("password: hidden"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, filepath.Join(root, "projects/shop/apps/web/link.yaml")); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(root, "projects/shop/apps/web/app.yaml")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, filepath.Join(root, "projects/shop/apps/web/app.yaml")); err != nil {
		t.Fatal(err)
	}
	out, _, err := run(t, root)
	if err == nil || strings.Contains(out, "hidden") || !strings.Contains(out, "symlinks are not followed") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestTheDigestOfAFolderIsItsContent(t *testing.T) {
	digest := func(files map[string]string) string {
		w, err := openWorktree(t.Context(), write(t, files))
		if err != nil {
			t.Fatal(err)
		}
		var sub tree.Files
		if sub, err = w.Sub("a"); err != nil {
			t.Fatal(err)
		}
		inner, err := sub.Digest("b")
		if err != nil {
			t.Fatal(err)
		}
		outer, err := w.Digest("a/b")
		if err != nil || outer != inner {
			t.Errorf("the digest depends on where it is asked for: %s, %s, %v", inner, outer, err)
		}
		return outer
	}
	same := digest(map[string]string{"a/b/c": "x", "a/other": "1"})
	if same != digest(map[string]string{"a/b/c": "x", "a/other": "2"}) {
		t.Error("the digest of a folder depends on files beside it")
	}
	for name, files := range map[string]map[string]string{
		"content": {"a/b/c": "y"}, "name": {"a/b/d": "x"}, "more": {"a/b/c": "x", "a/b/d": ""}, "deeper": {"a/b/c/c": "x"},
	} {
		if digest(files) == same {
			t.Errorf("%s: another folder has the same digest", name)
		}
	}
}

// TestWatchSeesAllThatIsRead: a change of the platform repository, in the folder of the policies or beside it, and of the tenant's file.
func TestWatchSeesAllThatIsRead(t *testing.T) {
	root, platform, tenantFile := write(t, repository(nil)), platformWith(t, nil), filepath.Join(t.TempDir(), "tenant.yaml")
	if err := os.WriteFile(tenantFile, []byte(declares("Tenant", "acme", "{}")), 0o600); err != nil {
		t.Fatal(err)
	}
	v := &validate{policies: filepath.Join(platform, "policies"), tenantFile: tenantFile}
	last := ""
	for i, file := range []string{tenantFile, filepath.Join(platform, "policies/lax.yaml"), filepath.Join(platform, "tenants/acme/tenant.yaml"), filepath.Join(root, "projects/shop/project.yaml")} {
		at := time.Unix(int64(1_000_000_000+i), 0)
		if err := os.Chtimes(file, at, at); err != nil {
			t.Fatal(err)
		}
		now, err := v.versions(t.Context(), root)
		if err != nil || now == last {
			t.Errorf("a change of %s is not seen: %v", file, err)
		}
		last = now
	}
}

// TestWatchChecksAgainAfterAChange changes a file while validate watches.
func TestWatchChecksAgainAfterAChange(t *testing.T) {
	root := write(t, repository(nil))
	clock := clocktesting.NewFakeClock(time.Now())
	lines, in := io.Pipe()
	streams := genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: in, ErrOut: in}
	command := Validate(call.New(streams, clock), render.New)
	command.SetArgs([]string{"--watch", root})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- command.ExecuteContext(ctx)
		_ = in.Close()
	}()
	next := func() string {
		buffer := make([]byte, 4096)
		n, err := lines.Read(buffer)
		if err != nil {
			t.Fatal(err)
		}
		return string(buffer[:n])
	}
	if got := next(); !strings.HasPrefix(got, "No problems") {
		t.Fatal(got)
	}
	if err := os.WriteFile(filepath.Join(root, "projects/shop/apps/web/app.yaml"), []byte("kind: App\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	go func() {
		for ctx.Err() == nil {
			if clock.HasWaiters() {
				clock.Step(lookAgain)
			}
		}
	}()
	if got := next(); !strings.HasPrefix(got, "projects/shop/apps/web/app.yaml:") {
		t.Errorf("after the change: %s", got)
	}
	for got := next(); !strings.Contains(got, " in "+root+"; valid are 1 project, "); got = next() {
		if !strings.HasPrefix(got, "projects/shop/apps/web/app.yaml:") {
			t.Fatalf("after the problems: %s", got)
		}
	}
	if err := os.Rename(root, root+"-away"); err != nil {
		t.Fatal(err)
	}
	if got := next(); !strings.Contains(got, "no such file") {
		t.Errorf("while there is no folder: %s", got)
	}
	cancel()
	go func() { _, _ = io.Copy(io.Discard, lines) }()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestWatchSaysWhatIsWrongOncePerChange, the problems to stdout and how many there are to stderr.
func TestWatchSaysWhatIsWrongOncePerChange(t *testing.T) {
	root := write(t, repository(nil))
	clock := clocktesting.NewFakeClock(time.Now())
	var out, complaint bytes.Buffer
	command := Validate(call.New(genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &out, ErrOut: &complaint}, clock), render.New)
	command.SetArgs([]string{"--watch", root})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- command.ExecuteContext(ctx) }()
	looked := func() {
		for !clock.HasWaiters() {
			select {
			case err := <-ended:
				t.Fatalf("the command ended: %v", err)
			case <-time.After(time.Millisecond):
			}
		}
	}
	looked()
	fine := complaint.String()
	if !strings.HasPrefix(fine, "No problems in "+root+": ") || out.Len() > 0 {
		t.Fatalf("without problems it says %q, %q", out.String(), fine)
	}
	if err := os.WriteFile(filepath.Join(root, "projects/shop/apps/web/app.yaml"), []byte("kind: App\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		clock.Step(lookAgain)
		looked()
	}
	if said := strings.TrimPrefix(complaint.String(), fine); said != "1 problem in "+root+"; valid are 1 project, 0 apps\n" || strings.Count(out.String(), "[wrong-version]\n") != 1 {
		t.Errorf("stderr has %q, stdout %q", said, out.String())
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
