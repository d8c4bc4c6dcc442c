package build

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/fluxcd/pkg/apis/kustomize"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/apart"
	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/delivery/decrypt"
	"github.com/kubeop/kubeop/delivery/decrypt/sops"
	"github.com/kubeop/kubeop/delivery/message"
	"github.com/kubeop/kubeop/delivery/render"
	"github.com/kubeop/kubeop/internal/sandbox"
	"github.com/kubeop/kubeop/internal/testkeys"
)

// errLater stands for an error of the API server or of the disk: another try may do.
var errLater = errors.New("the API server does not answer")

// failing are files of which one cannot be read.
type failing struct{ fstest.MapFS }

func (f failing) ReadFile(name string) ([]byte, error) {
	if strings.HasSuffix(name, "lost.yaml") {
		return nil, errLater
	}
	return f.MapFS.ReadFile(name)
}

func (f failing) Lstat(name string) (fs.FileInfo, error)  { return f.MapFS.Lstat(name) }
func (f failing) ReadLink(name string) (string, error)    { return f.MapFS.ReadLink(name) }
func (f failing) ReadDir(n string) ([]fs.DirEntry, error) { return f.MapFS.ReadDir(n) }

func encryptedFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../decrypt/sops/testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func keys(words string) *Keys {
	return &Keys{Secret: "sops-keys", Data: map[string][]byte{"age.agekey": []byte(testkeys.Age(words))}}
}

// sources are what people write and what goes wrong with it, each too large or too much for this process.
func sources(t *testing.T) map[string]Source {
	t.Helper()
	off := false
	secret := encryptedFile(t, "secret.yaml")
	raw := func(s Source, manifests ...string) Source {
		s.Raw = &v1alpha1.RawSource{}
		for _, m := range manifests {
			s.Raw.Manifests = append(s.Raw.Manifests, runtime.RawExtension{Raw: []byte(m)})
		}
		return s
	}
	pad := strings.Repeat("x", smallBytes)
	numbers := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"n"},"a":1,"b":1.0,"c":1.5,"d":9007199254740993,"e":1e21,"f":-0.0,"g":null,"h":"<&>\u2028\ud83d\ude00","i":[[],{}],"pad":"` + pad + `"}`
	with := func(s Source, variables ...Variable) Source {
		s.Variables = variables
		return s
	}
	decrypted := func(s Source, k *Keys) Source {
		s.Keys = k
		return s
	}
	patched := func(s Source, patch, kind string) Source {
		s.Patches = []kustomize.Patch{{Patch: patch, Target: &kustomize.Selector{Kind: kind}}}
		return s
	}
	limited := func(s Source, l budget.App) Source {
		s.Limits = l
		return s
	}
	from := v1alpha1.Build{SubstituteFrom: []v1alpha1.SubstituteReference{{Kind: "ConfigMap", Name: "words"}}}
	uses := map[string]string{"app/a.yaml": padded("a") + "---\n" + manifest("b") + "data: {a: '${A}', b: '${B:=b}'}\n"}
	link := repository(map[string]string{"app/a.yaml": padded("a")})
	link["app/link.yaml"] = &fstest.MapFile{Mode: fs.ModeSymlink, Data: []byte("/etc/passwd")}
	return map[string]Source{
		"plain":            git(map[string]string{"app/b.yaml": padded("b"), "app/a/c.yml": manifest("c"), "app/d.json": numbers}, v1alpha1.Build{}),
		"kustomized":       git(map[string]string{"app/kustomization.yaml": "resources: [../base]\nnamePrefix: n-\nconfigMapGenerator: [{name: g, files: [note.txt]}]\n", "base/kustomization.yaml": "resources: [a.yaml]\n", "base/a.yaml": padded("a"), "app/note.txt": "note"}, v1alpha1.Build{}),
		"patched":          git(map[string]string{"app/a.yaml": manifest("a")}, v1alpha1.Build{Patches: []kustomize.Patch{{Patch: `[{"op": "add", "path": "/data", "value": {"a": "1"}}]`, Target: &kustomize.Selector{Kind: "ConfigMap"}}}}),
		"images":           git(map[string]string{"app/a.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: a, image: shop}]}\n"}, v1alpha1.Build{Images: []kustomize.Image{{Name: "shop", NewTag: "v2"}}}),
		"a failed patch":   git(map[string]string{"app/a.yaml": manifest("a")}, v1alpha1.Build{Patches: []kustomize.Patch{{Patch: `[{"op": "remove", "path": "/nothing"}]`, Target: &kustomize.Selector{Kind: "ConfigMap", Name: "a"}}}}),
		"a component":      git(map[string]string{"app/a.yaml": manifest("a"), "c/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nnameSuffix: -c\n"}, v1alpha1.Build{Components: []string{"../c"}}),
		"no component":     git(map[string]string{"app/a.yaml": manifest("a")}, v1alpha1.Build{Components: []string{"../c"}}),
		"variables":        with(git(uses, from), Variable{Kind: "ConfigMap", Name: "words", Data: map[string][]byte{"A": []byte("1")}}),
		"of the spec":      git(uses, v1alpha1.Build{Substitute: map[string]string{"A": "one"}}),
		"not strict":       git(uses, v1alpha1.Build{Substitute: map[string]string{"X": "one"}, SubstituteStrict: &off}),
		"not set":          git(uses, v1alpha1.Build{Substitute: map[string]string{"X": "one"}}),
		"missing":          with(git(uses, from), Variable{Kind: "ConfigMap", Name: "words", Err: render.ErrMissing}),
		"not read":         with(git(uses, from), Variable{Kind: "ConfigMap", Name: "words", Err: errLater}),
		"encrypted":        decrypted(git(map[string]string{"app/a.yaml": secret}, v1alpha1.Build{}), keys(testkeys.First)),
		"of another key":   decrypted(git(map[string]string{"app/a.yaml": secret}, v1alpha1.Build{}), keys("another")),
		"no keys":          git(map[string]string{"app/a.yaml": secret, "app/b.yaml": padded("b")}, v1alpha1.Build{}),
		"broken keys":      decrypted(git(nil, v1alpha1.Build{}), &Keys{Secret: "s", Data: map[string][]byte{"a.agekey": []byte("AGE-SECRET-KEY-1")}}),
		"damaged":          decrypted(git(map[string]string{"app/a.yaml": strings.Replace(secret, "kind: Secret", "kind: Sekret", 1)}, v1alpha1.Build{}), keys(testkeys.First)),
		"broken":           git(map[string]string{"app/a.yaml": padded("a") + "  b: [\n", "app/b.yaml": "a: b: c\n", "app/c.json": "{"}, v1alpha1.Build{}),
		"no folder":        git(map[string]string{"base/a.yaml": padded("a")}, v1alpha1.Build{}),
		"no base":          git(map[string]string{"app/kustomization.yaml": "resources: [../base, https://example.com/a.yaml]\n"}, v1alpha1.Build{}),
		"out of it":        git(map[string]string{"app/kustomization.yaml": "resources: [../../etc]\n"}, v1alpha1.Build{}),
		"a link":           {Files: link, Git: &v1alpha1.GitSource{Path: "app"}},
		"a lost file":      {Files: failing{repository(map[string]string{"app/a.yaml": padded("a"), "app/lost.yaml": "a: b\n"})}, Git: &v1alpha1.GitSource{Path: "app"}},
		"one too large":    git(map[string]string{"app/a.yaml": strings.Repeat("a", 2<<20)}, v1alpha1.Build{}),
		"a bomb":           git(map[string]string{"app/a.yaml": padded("a") + "---\na: &a [" + strings.Repeat("x,", 9999) + "]\nb: &b [" + strings.Repeat("*a,", 99) + "]\nc: [" + strings.Repeat("*b,", 99) + "]\n"}, v1alpha1.Build{}),
		"inline":           raw(Source{}, numbers, `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"}}`),
		"inline, refused":  raw(Source{}, numbers, `{"kind":"Secret","metadata":{"name":"s"}}`, `{"apiVersion":"v1","kind":"Secret","metadata":{"generateName":"s"}}`),
		"inline, twice":    raw(Source{}, numbers, numbers),
		"raw":              {Files: repository(map[string]string{"m/a.yaml": padded("a")}), Raw: &v1alpha1.RawSource{Path: "m"}},
		"inline, patched":  patched(raw(Source{}, numbers), `[{"op": "add", "path": "/h", "value": "<other>"}]`, "ConfigMap"),
		"patched, no kind": patched(raw(Source{}, numbers), `[{"op": "add", "path": "/h", "value": "x"}]`, "Secret"),
		"raw, no folder":   {Files: repository(map[string]string{"m/a.yaml": padded("a")}), Raw: &v1alpha1.RawSource{Path: "n"}, Keys: keys(testkeys.First)},
		"raw, no files":    {Raw: &v1alpha1.RawSource{Path: "n"}, Keys: keys(testkeys.First)},
		"raw, encrypted":   {Files: repository(map[string]string{"m/a.yaml": secret}), Raw: &v1alpha1.RawSource{Path: "m"}, Keys: keys(testkeys.First)},
		"over a limit":     limited(git(map[string]string{"app/a.yaml": padded("a"), "app/b.yaml": padded("b")}, v1alpha1.Build{}), budget.App{Objects: 1, Bytes: 1 << 20, Values: 1000}),
		"a secret in text": decrypted(git(map[string]string{"app/kustomization.yaml": "resources: [a.yaml]\npatches: [{path: note.txt}]\n", "app/a.yaml": secret, "app/note.txt": encryptedFile(t, "note.txt")}, v1alpha1.Build{}), keys(testkeys.First)),
	}
}

// TestTheLimitsOfAnAppHoldInAnotherProcess: an error of another process keeps its kind.
func TestTheLimitsOfAnAppHoldInAnotherProcess(t *testing.T) {
	b := newFixture(t, sandbox.Limits{})
	source := git(map[string]string{"app/a.yaml": padded("a"), "app/b.yaml": padded("b")}, v1alpha1.Build{})
	source.Limits = budget.App{Objects: 1, Bytes: 1 << 20, Values: 1000}
	_, err := b.Build(t.Context(), requestOf(source, "two"))
	if over := (*budget.Exceeded)(nil); !errors.As(err, &over) || over.Field.Name != "appObjects" || !strings.Contains(err.Error(), "spec.limits.appObjects of the Tenant") {
		t.Errorf("got %v", err)
	}
	source.Limits.Objects = 2
	if made, err := b.Build(t.Context(), requestOf(source, "two, of which there may be two")); err != nil || len(made.Objects) != 2 {
		t.Errorf("with room for both: %v", err)
	}
}

// TestAnotherProcessMakesTheSame: what another process makes, and what it says, is what is made here.
func TestAnotherProcessMakesTheSame(t *testing.T) {
	b := newFixture(t, sandbox.Limits{})
	for name, s := range sources(t) {
		t.Run(name, func(t *testing.T) {
			before := b.calls
			got, err := b.Build(t.Context(), requestOf(s, name))
			if here := name == "no folder" || name == "one too large"; b.calls != before+1 && !here {
				t.Fatalf("%d calls of a process, want 1", b.calls-before)
			}
			checkMade(t, &s, got, err)
		})
	}
}

// TestMessagesOfABuildLoseNothing: what is sent to a process and back is all that the source makes, with the class of each error. It needs no
// process.
func TestMessagesOfABuildLoseNothing(t *testing.T) {
	for name, s := range sources(t) {
		t.Run(name, func(t *testing.T) {
			function := Evaluate
			if s.Keys != nil {
				function = Decrypting(sops.New)
			}
			got, err := evaluated(t, &s, function)
			checkMade(t, &s, got, err)
		})
	}
}

// evaluated has a function for another process evaluate a source in this process.
func evaluated(t *testing.T, s *Source, function apart.Function) (Made, error) {
	t.Helper()
	answering := &answers{files: s.Files}
	input, err := message.Write(orderOf(s, answering.keep))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := function(input, func(question []byte) ([]byte, error) { return answering.answer(t.Context(), question) }, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	return answering.made(answer)
}

// unlisted are files of which no folder can be listed.
type unlisted struct{ failing }

func (unlisted) ReadDir(string) ([]fs.DirEntry, error) { return nil, errLater }

func TestAFolderThatCannotBeListedFailsTheBuildWithItsError(t *testing.T) {
	s := Source{Files: unlisted{failing{repository(map[string]string{"app/a.yaml": padded("a")})}}, Git: &v1alpha1.GitSource{Path: "app"}}
	if made, err := evaluated(t, &s, Evaluate); !errors.Is(err, errLater) || len(made.Objects) != 0 {
		t.Errorf("got %d objects and %v", len(made.Objects), err)
	}
}

// TestFilesForAnEarlierKeyAreReported, up to a limit, which also holds for what another process says. Without another key nothing is reported.
func TestFilesForAnEarlierKeyAreReported(t *testing.T) {
	opens := func(string, map[string][]byte, http.RoundTripper) (decrypt.Decrypter, error) {
		return func(_ decrypt.Format, data []byte) (decrypt.Decrypted, error) {
			name := strings.Fields(string(data))[1]
			return decrypt.Decrypted{Plain: []byte(padded(name)), Recipients: []string{"age1" + name[:1]}}, nil
		}, nil
	}
	files, all := map[string]string{}, []string{}
	for n := range maxOutdated + 1 {
		name := fmt.Sprintf("o%03d", n)
		files["app/"+name+".yaml"] = "name: " + name + "\nsops: {mac: 'ENC[AES256_GCM,data:AA==,iv:AA==,tag:AA==,type:str]'}\n"
		all = append(all, "app/"+name+".yaml")
	}
	for name, tc := range map[string]struct {
		recipient string
		files     int
		want      []string
	}{
		"another key":            {"age1n", 2, all[:2]},
		"as many as may be":      {"age1n", maxOutdated, all[:maxOutdated]},
		"more":                   {"age1n", maxOutdated + 1, all[:maxOutdated]},
		"the present key":        {"age1o", 2, nil},
		"one key, as ever":       {"", 2, nil},
		"no files are encrypted": {"age1n", 0, nil},
	} {
		t.Run(name, func(t *testing.T) {
			some := map[string]string{"app/plain.yaml": padded("plain")}
			for _, name := range all[:tc.files] {
				some[name] = files[name]
			}
			s := git(some, v1alpha1.Build{})
			s.Keys = keys(testkeys.First)
			s.Keys.Recipient = tc.recipient
			var out outcome
			made, err := evaluated(t, &s, func(input []byte, ask func([]byte) ([]byte, error), note func(string)) ([]byte, error) {
				answer, err := Decrypting(opens)(input, ask, note)
				return answer, errors.Join(err, reader.Read(answer, &out))
			})
			for _, got := range [][]string{out.Outdated, made.Outdated} {
				if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); err != nil || diff != "" {
					t.Errorf("error %v; -want +got:\n%s", err, diff)
				}
			}
		})
	}
	for _, far := range []int{0, maxOutdated + 1} {
		answer, err := message.Write(outcome{Outdated: all[:far]})
		if err != nil {
			t.Fatal(err)
		}
		if made, err := (&answers{}).made(answer); err != nil || len(made.Outdated) != min(far, maxOutdated) {
			t.Errorf("a process says %d: got %d, %v", far, len(made.Outdated), err)
		}
	}
}

// TestAPanicOfABuildShowsNoSecret: the value of a panic may contain one.
func TestAPanicOfABuildShowsNoSecret(t *testing.T) {
	s := git(map[string]string{"app/a.yaml": padded("a")}, v1alpha1.Build{})
	s.Keys = keys(testkeys.First)
	made, err := evaluated(t, &s, Decrypting(func(string, map[string][]byte, http.RoundTripper) (decrypt.Decrypter, error) { panic("hunter2") }))
	if err == nil || err.Error() != "these manifests cannot be built" || len(made.Objects) != 0 {
		t.Errorf("got %d objects and %v", len(made.Objects), err)
	}
}

// TestAProgramWithoutKeysDecryptsNothing: the keys stay with the program that is confined for them.
func TestAProgramWithoutKeysDecryptsNothing(t *testing.T) {
	s := git(map[string]string{"app/a.yaml": encryptedFile(t, "secret.yaml")}, v1alpha1.Build{})
	s.Keys = keys(testkeys.First)
	if made, err := evaluated(t, &s, Evaluate); err == nil || !strings.Contains(err.Error(), errProgram.Error()) || len(made.Objects)+len(made.Secrets) != 0 {
		t.Errorf("got %+v and %v", made, err)
	}
}

// TestAnInvalidMessageIsNoErrorOfTheSource: a retry may succeed.
func TestAnInvalidMessageIsNoErrorOfTheSource(t *testing.T) {
	if answer, err := Evaluate([]byte("no message"), nil, func(string) {}); err == nil || answer != nil {
		t.Errorf("an order: %q and %v", answer, err)
	}
	if _, err := (&answers{}).made([]byte("no message")); !errors.Is(err, ErrUnfit) {
		t.Errorf("an answer: %v", err)
	}
	files := repository(map[string]string{"app/a.yaml": manifest("a")})
	for name, c := range map[string]struct {
		answers  *answers
		question string
	}{
		"nothing":                     {&answers{files: files}, ""},
		"of another kind":             {&answers{files: files}, "\x7fapp/a.yaml"},
		"about no files":              {&answers{}, string(askFile) + "app/a.yaml"},
		"for a service, without keys": {&answers{files: files}, string(askService) + "decrypt"},
	} {
		if answer, err := c.answers.answer(t.Context(), []byte(c.question)); !errors.Is(err, errQuestion) || answer != nil {
			t.Errorf("a question %s: %q and %v", name, answer, err)
		}
	}
}

// checkMade compares what was made of a source elsewhere with what is made here.
func checkMade(t *testing.T, s *Source, got Made, err error) {
	t.Helper()
	want, wants := s.make(func(string) {}, opened)
	if wants != nil {
		t.Log(wants)
		if err == nil || err.Error() != wants.Error() {
			t.Errorf("it says:\n%v\nwant:\n%v", err, wants)
		}
	} else if err != nil {
		t.Fatal(err)
	}
	for _, class := range append(classes, errLater) {
		if errors.Is(err, class) != errors.Is(wants, class) {
			t.Errorf("the error is %q: %t", class, errors.Is(err, class))
		}
	}
	if over := new(*budget.Exceeded); errors.As(err, over) != errors.As(wants, over) {
		t.Errorf("the error is not about the same limit of the app: %v", err)
	}
	if errors.Is(err, ErrUnfit) {
		t.Error("the world is at fault")
	}
	if diff := cmp.Diff(asSent(t, want.Objects), got.Objects); wants == nil && diff != "" {
		t.Error("-here +apart:\n", diff)
	}
	if diff := cmp.Diff(want.Secrets, got.Secrets); diff != "" {
		t.Error("secrets, -here +apart:\n", diff)
	}
}

// asSent are objects as the API server is sent them, to which 1.0 is 1.
func asSent(t *testing.T, objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	t.Helper()
	var sent []*unstructured.Unstructured
	for _, o := range objects {
		text, err := o.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		is := &unstructured.Unstructured{}
		if err := is.UnmarshalJSON(text); err != nil {
			t.Fatal(err)
		}
		sent = append(sent, is)
	}
	return sent
}

// TestSmallManifestsAreReadInThisProcess, and nothing else is.
func TestSmallManifestsAreReadInThisProcess(t *testing.T) {
	inline := func(m string) Source {
		return Source{Raw: &v1alpha1.RawSource{Manifests: []runtime.RawExtension{{Raw: []byte(m)}}}}
	}
	object := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`
	many := map[string]string{}
	for _, c := range strings.Repeat("abcdefghij", 7) {
		many["app/"+string(c)+strings.Repeat("a", len(many))+".yaml"] = manifest("a" + strings.Repeat("a", len(many)))
	}
	aliases := manifest("a") + "data: {a: &a x, b: *a}\n"
	tests := map[string]struct {
		source Source
		apart  bool
	}{
		"a folder":              {git(map[string]string{"app/a.yaml": manifest("a")}, v1alpha1.Build{}), false},
		"one that is broken":    {git(map[string]string{"app/a.yaml": "a: [\n"}, v1alpha1.Build{}), false},
		"one that is not there": {git(nil, v1alpha1.Build{}), false},
		"an inline manifest":    {inline(object), false},
		"a large folder":        {git(map[string]string{"app/a.yaml": padded("a")}, v1alpha1.Build{}), true},
		"one of many files":     {git(many, v1alpha1.Build{}), true},
		"aliases":               {git(map[string]string{"app/a.yaml": aliases}, v1alpha1.Build{}), true},
		"a kustomization":       {git(map[string]string{"app/kustomization.yaml": "resources: [a.yaml]\n", "app/a.yaml": manifest("a")}, v1alpha1.Build{}), true},
		"variables":             {git(map[string]string{"app/a.yaml": manifest("a")}, v1alpha1.Build{Substitute: map[string]string{"a": "b"}}), true},
		"patches": {func() Source {
			s := inline(object)
			s.Patches = []kustomize.Patch{{Patch: `[{"op": "add", "path": "/data", "value": {"a": "b"}}]`, Target: &kustomize.Selector{Kind: "ConfigMap"}}}
			return s
		}(), true},
		"keys":                      {Source{Files: repository(map[string]string{"app/a.yaml": manifest("a")}), Git: &v1alpha1.GitSource{Path: "app"}, Keys: keys(testkeys.First)}, true},
		"a large inline manifest":   {inline(strings.Replace(object, `"a"`, `"a","labels":{"a":"`+strings.Repeat("a", smallBytes)+`"}`, 1)), true},
		"a kustomization of a base": {git(map[string]string{"app/b/kustomization.yaml": "resources: []\n", "app/a.yaml": manifest("a")}, v1alpha1.Build{}), true},
	}
	b := newFixture(t, sandbox.Limits{})
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			want, wants := tc.source.make(func(string) {}, opened)
			got, small, err := tc.source.Small()
			if small == tc.apart {
				t.Errorf("small is %t", small)
			}
			if !small {
				got, err = b.Build(t.Context(), requestOf(tc.source, name))
			}
			if diff := cmp.Diff(textOf(wants), textOf(err)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(want.Objects, got.Objects); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestErrorsOfThePoolAreErrUnfit(t *testing.T) {
	b := newFixture(t, sandbox.Limits{})
	source := git(map[string]string{"app/a.yaml": padded("a")}, v1alpha1.Build{})
	b.function = "nothing"
	if _, err := b.Build(t.Context(), requestOf(source, "a")); !errors.Is(err, ErrUnfit) {
		t.Errorf("got %v", err)
	}
	b.pool.Close()
	if _, err := b.Build(t.Context(), requestOf(source, "a")); !errors.Is(err, ErrUnfit) || !errors.Is(err, sandbox.ErrClosed) {
		t.Errorf("got %v", err)
	}
	b.Apart.Run = func(context.Context, apart.Call) ([]byte, error) {
		return []byte("no message"), nil
	}
	if _, err := b.Build(t.Context(), requestOf(source, "a")); !errors.Is(err, ErrUnfit) {
		t.Errorf("got %v", err)
	}
	if errors.Is(ErrUnfit, decrypt.ErrKeys) {
		t.Error("every error is one of keys")
	}
}
