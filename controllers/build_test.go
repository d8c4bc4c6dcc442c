package controllers

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/internal/testenv"
	"github.com/kubeop/kubeop/internal/testkeys"
)

// encryptedFile is a file of testdata that SOPS encrypted for the first of testkeys. secretWords lists the encrypted values.
func encryptedFile(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

var secretWords = []string{"correct horse battery", "second line", "secret-token-1234", "hunter22-variable"}

// gitApp has an app "web" deliver the root of a repository of its own; spec has the other fields of spec.git.
func (n *team) gitApp(files map[string]string, spec string) *testenv.Repo {
	n.t.Helper()
	source := env.Repo(n.t, n.name+"-source", "", "")
	source.Push(files)
	declared := shopFiles("shop")
	declared["projects/shop/apps/web/app.yaml"] = fmt.Sprintf("apiVersion: paas.kubeop.io/v1alpha1\nkind: App\nmetadata: {name: web}\n"+
		"spec: {type: Git, retryInterval: 1s, interval: 5s, git: {url: '%s', secretRef: {name: login}, %s}}\n", source.URL, spec)
	n.push(declared)
	n.eventually(func() error {
		return n.admin.Get(n.t.Context(), client.ObjectKey{Name: n.namespace()}, &corev1.Namespace{})
	})
	n.create(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: n.namespace(), Name: "login"},
		StringData: map[string]string{"username": source.User, "password": source.Password},
	})
	return source
}

// sopsKeys creates the Secret that decrypts the files of testdata.
func (n *team) sopsKeys() {
	n.t.Helper()
	n.create(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: n.namespace(), Name: "sops-keys"},
		StringData: map[string]string{"age.agekey": testkeys.Age(testkeys.First)},
	})
}

// needsProcesses skips a test of what only a process that evaluates can do: decrypt, keep a limit, or be counted.
func needsProcesses(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("the race detector cannot run in a confined process")
	}
}

// TestAGitAppIsBuilt delivers a folder with a kustomization, an encrypted file and variables.
func TestAGitAppIsBuilt(t *testing.T) {
	needsProcesses(t)
	n := newTeam(t, "built")
	n.gitApp(map[string]string{
		"kustomization.yaml": "resources: [secret.yaml, config.yaml]\nconfigMapGenerator: [{name: note, files: [note.txt], options: {disableNameSuffixHash: true}}]\n",
		"config.yaml":        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata: {greeting: '${GREETING}', who: '${WHO:=you}'}\n",
		"secret.yaml":        encryptedFile(t, "sops-secret.yaml"), "note.txt": encryptedFile(t, "sops-note.txt"),
	}, `decryption: {provider: sops, secretRef: {name: sops-keys}}, substituteFrom: [{kind: ConfigMap, name: words}], `+
		`patches: [{target: {kind: ConfigMap, name: web}, patch: '[{"op": "add", "path": "/data/patched", "value": "yes"}]'}]`)
	app := n.app("shop", "web")
	message := n.until(app, v1alpha1.ReadyCondition, metav1.ConditionFalse, v1alpha1.DecryptionFailedReason)
	if want := "decryption.secretRef: Secret sops-keys does not exist"; !strings.Contains(message, want) {
		t.Errorf("the message of Ready is %q, want %q", message, want)
	}
	n.sopsKeys()
	message = n.until(app, v1alpha1.ReadyCondition, metav1.ConditionFalse, v1alpha1.ValuesFailedReason)
	if want := "substituteFrom[0]: ConfigMap words does not exist"; !strings.Contains(message, want) {
		t.Errorf("the message of Ready is %q, want %q", message, want)
	}
	words := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: n.namespace(), Name: "words"}, Data: map[string]string{"GREETING": "hello"}}
	n.create(words)
	n.ready(app)
	n.greets("hello")
	if data := n.configMap("shop", "web").Data; data["patched"] != "yes" || data["who"] != "you" {
		t.Errorf("the ConfigMap holds %v", data)
	}
	if note := n.configMap("shop", "note").Data["note.txt"]; note != "just text\nof a file\n" {
		t.Errorf("the generated ConfigMap holds %q, want %q", note, "just text\nof a file\n")
	}
	db := &corev1.Secret{}
	if err := n.admin.Get(t.Context(), client.ObjectKey{Namespace: n.namespace(), Name: "db"}, db); err != nil {
		t.Fatal(err)
	}
	if got := string(db.Data["password"]); got != secretWords[0] {
		t.Errorf("the password is %q, want %q", got, secretWords[0])
	}

	words.Data["GREETING"] = "bye"
	changed := time.Now()
	if err := n.admin.Update(t.Context(), words); err != nil {
		t.Fatal(err)
	}
	n.greets("bye")
	t.Logf("a changed variable was applied after %s", time.Since(changed))
	n.revealsNothing(app)
}

// TestASecretIsInNoStatusEventOrLog makes the API server and kustomize fail on decrypted values and on variables from a Secret, which
// they put into their messages, and looks for these values in status, events, log and metrics.
func TestASecretIsInNoStatusEventOrLog(t *testing.T) {
	needsProcesses(t)
	n := newTeam(t, "discreet")
	const variable = "apiVersion: v1\nkind: Service\nmetadata: {name: other}\nspec: {clusterIP: '${ADDRESS}', ports: [{port: 80}]}\n"
	source := n.gitApp(map[string]string{"secret.yaml": encryptedFile(t, "sops-secret.yaml"), "service.yaml": encryptedFile(t, "sops-service.yaml")},
		"decryption: {provider: sops, secretRef: {name: sops-keys}}, substituteFrom: [{kind: Secret, name: words}]")
	n.sopsKeys()
	n.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: n.namespace(), Name: "words"}, StringData: map[string]string{"ADDRESS": "hunter22-variable"}})
	app := n.app("shop", "web")
	stages := []struct {
		name         string
		files        map[string]string
		reason, want string
	}{
		{"a decrypted value that the API server refuses", nil, v1alpha1.ApplyFailedReason, `Invalid value: "***"`},
		{"a variable that it refuses", map[string]string{"service.yaml": variable}, v1alpha1.ApplyFailedReason, `Invalid value: "***"`},
		{"a decrypted patch that kustomize refuses", map[string]string{
			"kustomization.yaml": "resources: [secret.yaml]\npatches: [{path: patch.yaml}]\n", "patch.yaml": encryptedFile(t, "sops-patch.yaml"),
		}, v1alpha1.RenderFailedReason, "Nothing"},
		{"a damaged file", map[string]string{"secret.yaml": strings.Replace(encryptedFile(t, "sops-secret.yaml"), "name: db", "name: da", 1)},
			v1alpha1.DecryptionFailedReason, "reading secret.yaml: its MAC is not that of its values"},
	}
	for i, stage := range stages {
		if i > 0 {
			source.Push(stage.files)
			n.annotate(app, "reconcile.fluxcd.io/requestedAt", stage.name)
		}
		n.eventually(func() error {
			message := n.until(app, v1alpha1.ReadyCondition, metav1.ConditionFalse, "")
			if !strings.Contains(message, stage.want) || conditions.GetReason(app, v1alpha1.ReadyCondition) != stage.reason {
				return fmt.Errorf("%s: the message of Ready is %q", stage.name, message)
			}
			return nil
		})
		n.revealsNothing(app)
	}
}

// revealsNothing looks for the secret words in the log, in the metrics, and in every event and the status of the app.
func (n *team) revealsNothing(app *v1alpha1.App) {
	n.t.Helper()
	outputs := map[string]string{"the log": n.log()}
	status, err := json.Marshal(app)
	if err != nil {
		n.t.Fatal(err)
	}
	outputs["the app"] = string(status)
	events := &eventsv1.EventList{}
	n.eventually(func() error { // Events come after the status.
		if err := n.admin.List(n.t.Context(), events, client.InNamespace(n.namespace())); err != nil {
			return err
		}
		if len(events.Items) == 0 {
			return errors.New("there is no event about the app")
		}
		return nil
	})
	for _, e := range events.Items {
		outputs["the events"] += e.Note + "\n"
	}
	families, err := metrics.Registry.Gather()
	if err != nil {
		n.t.Fatal(err)
	}
	for _, family := range families {
		outputs["the metrics"] += family.String()
	}
	for where, text := range outputs {
		for _, word := range secretWords {
			if strings.Contains(text, word) || strings.Contains(text, base64.StdEncoding.EncodeToString([]byte(word))) {
				n.t.Errorf("%s contains the secret %q", where, word)
			}
		}
	}
}

// TestAFolderOverTheBuildLimitIsReported: other apps are not affected, the message names the limit and the file, it is not built again
// before it changes, and it is delivered once it is small enough.
func TestAFolderOverTheBuildLimitIsReported(t *testing.T) {
	needsProcesses(t)
	n := newTeam(t, "toomuch")
	n.tenanted(func(s *v1alpha1.TenantSpec) { s.Limits.AppValues = ptr.To[int32](5_000_000) })
	lists := "data: [" + strings.Repeat("[],", 340_000) + "]\n"
	of := func(name string) string { return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\n" }
	source := n.gitApp(map[string]string{"deploy/a.yaml": of("a") + lists, "deploy/b.yaml": of("b") + lists, "README.md": "one"}, "path: deploy")
	app := n.app("shop", "web")
	message := n.until(app, v1alpha1.ReadyCondition, metav1.ConditionFalse, v1alpha1.RenderFailedReason)
	if want := "deploy/a.yaml takes more than the limit of memory, 48 MiB; it is not tried again before the app or its source changes"; message != want {
		t.Errorf("the message of Ready is %q, want %q", message, want)
	}
	tried := builtOf(n.name)
	source.Push(map[string]string{"README.md": "two"})
	time.Sleep(7 * time.Second) // The app's interval is 5.
	if is := builtOf(n.name); is != tried {
		t.Errorf("the folder was built %d times, want once, and %d more times for a commit that does not change it, want none", tried, is-tried)
	}
	n.annotate(app, "reconcile.fluxcd.io/requestedAt", "now")
	n.eventually(func() error {
		if is := builtOf(n.name); is != tried+1 {
			return fmt.Errorf("the folder was built %d times after a reconcile request, want 1", is-tried)
		}
		return nil
	})
	source.Push(map[string]string{"deploy/a.yaml": of("web") + "data: {greeting: hello}\n", "deploy/b.yaml": ""})
	n.annotate(app, "reconcile.fluxcd.io/requestedAt", "then")
	n.ready(app)
	n.greets("hello")
}

// TestAnUnchangedAppIsNotBuiltAgain: neither to correct drift, nor for a commit that changes other files. It is built again when a file or
// a variable changes, or when somebody requests it.
func TestAnUnchangedAppIsNotBuiltAgain(t *testing.T) {
	needsProcesses(t)
	n := newTeam(t, "asitwas")
	of := func(greeting string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata: {greeting: " + greeting + ", who: '${WHO:=you}'}\n"
	}
	source := n.gitApp(map[string]string{"deploy/kustomization.yaml": "resources: [config.yaml]\n", "deploy/config.yaml": of("hello"), "README.md": "one"},
		"path: deploy, substitute: {WHO: me}")
	app := n.app("shop", "web")
	n.ready(app)
	n.greets("hello")
	is := builtOf(n.name)
	if is == 0 {
		t.Fatal("the app was not built in another process")
	}
	same := func(when string) {
		t.Helper()
		if now := builtOf(n.name); now != is {
			t.Errorf("%s: the app was built %d times", when, now-is)
			is = now
		}
	}
	for i := range 3 {
		n.edit(n.configMap("shop", "web"), `{"data": {"greeting": "changed by hand"}}`)
		n.greets("hello")
		same(fmt.Sprintf("drift %d", i))
	}
	source.Push(map[string]string{"README.md": "two"})
	time.Sleep(7 * time.Second) // The app's interval is 5.
	n.edit(n.configMap("shop", "web"), `{"data": {"greeting": "changed by hand"}}`)
	n.greets("hello")
	same("another commit and drift")
	source.Push(map[string]string{"deploy/config.yaml": of("bye")})
	n.annotate(app, "reconcile.fluxcd.io/requestedAt", "now")
	n.greets("bye")
	if now := builtOf(n.name); now == is {
		t.Error("the app was not built after its file changed")
	}
}

// TestALargePackIsReadInAnotherProcess: an app whose repository has some megabytes is delivered. A pack of few bytes whose files
// inflate to 200 MiB is refused with the limit in the message, and is not fetched again before the next commit.
func TestALargePackIsReadInAnotherProcess(t *testing.T) {
	needsProcesses(t)
	n := newTeam(t, "packed")
	notes := make([]byte, 3<<20)
	_, _ = rand.NewChaCha8([32]byte{}).Read(notes)
	web := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata: {greeting: %s}\n"
	source := n.gitApp(map[string]string{"web.yaml": fmt.Sprintf(web, "hello"), "notes": string(notes)}, "path: ./")
	n.ready(n.app("shop", "web"))
	n.greets("hello")

	large := map[string]string{"web.yaml": fmt.Sprintf(web, "late")}
	for i := range 4 {
		large[fmt.Sprint("same", i)] = strings.Repeat(fmt.Sprint(i), 50<<20)
	}
	source.Push(large)
	const limit, again = "the commit's pack takes more than the limit of processor time, 60ms: take large files out of Git", "this commit is not fetched again"
	app := n.app("shop", "web")
	n.eventually(func() error {
		message := n.until(app, v1alpha1.SourceReadyCondition, metav1.ConditionFalse, "")
		if !strings.Contains(message, limit) || !strings.Contains(message, again) {
			return fmt.Errorf("the message of SourceReady is %q", message)
		}
		return nil
	})
	n.greets("hello")
	source.Push(map[string]string{"web.yaml": fmt.Sprintf(web, "again"), "same0": "", "same1": "", "same2": "", "same3": ""})
	n.ready(n.app("shop", "web"))
	n.greets("again")
}
