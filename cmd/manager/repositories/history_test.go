package repositories

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/internal/manager/history"
	"github.com/kubeop/kubeop/internal/manager/writes"
	"github.com/kubeop/kubeop/internal/store"
)

const webPath = "/v1/apps/acme/shop/web"

// delivered puts an app into the cluster, of which commits were delivered, the newest last.
func (s *stage) delivered(tenant, name string, commits ...string) *v1alpha1.App {
	s.Helper()
	app := &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.ProjectNamespace(tenant, "shop"), Name: name}}
	app.Spec.Type = "Image"
	for i, commit := range commits {
		app.Annotations = map[string]string{v1alpha1.RevisionAnnotation: "main@sha1:" + commit}
		app.Status.Deliveries = slices.Insert(app.Status.Deliveries, 0, v1alpha1.DeliveryRecord{
			Revision: "main@sha1:" + commit, Commit: commit, Author: "t", Release: i, StartedAt: metav1.NewTime(s.now.Add(time.Duration(i) * time.Minute)), Result: v1alpha1.DeliverySucceeded,
			FinishedAt: new(metav1.NewTime(s.now.Add(time.Duration(i)*time.Minute + 20*time.Second))),
		})
	}
	if err := s.objects.Create(s.Context(), app); err != nil {
		s.Fatal(err)
	}
	return app
}

// answered sends a GET that has to be answered.
func answered[T any](s *stage, secret, path string) (body T) {
	s.Helper()
	answer := s.send(secret, "GET", path, "")
	if answer.Code != http.StatusOK {
		s.Fatalf("%s: %d %s", path, answer.Code, answer.Body)
	}
	if err := json.Unmarshal(answer.Body.Bytes(), &body); err != nil {
		s.Fatal(err)
	}
	return body
}

// TestHistoryHasTheDeliveriesAndTheLog: dates and messages are those of Git, and all else of the status.
func TestHistoryHasTheDeliveriesAndTheLog(t *testing.T) {
	s := newStage(t)
	first := s.acme.bare("rev-parse", "main")
	s.acme.Write(appFile, strings.Replace(appText, "hello", "hi", 1))
	second := s.acme.Push("Greet\n\nIn fewer letters. " + strings.Repeat("x", 2*maxMessage))
	elsewhere := strings.Repeat("e", 40)
	s.delivered("acme", "web", first, elsewhere, second)
	got := answered[history.History](s, s.holder("reader", "project:acme/shop:view"), webPath+"/history")
	if len(got.Items) != 3 || got.Incomplete != "" {
		t.Fatalf("%+v", got)
	}
	newest, unknown := got.Items[0], got.Items[1]
	if newest.Commit != second || newest.Author != "t" || !strings.HasPrefix(newest.Message, "Greet\n\nIn fewer") || len(newest.Message) > maxMessage || newest.Release != 2 || newest.Result != "Succeeded" ||
		newest.Date.Format(time.RFC3339) != s.acme.Run(s.acme.Work, "log", "-1", "--format=%cd", "--date=format-local:%Y-%m-%dT%H:%M:%SZ") {
		t.Errorf("%+v", newest)
	}
	if newest.Finished.Sub(newest.Started) != 20*time.Second {
		t.Errorf("started %s, finished %s", newest.Started, newest.Finished)
	}
	if unknown.Commit != elsewhere || unknown.Message != "" || !unknown.Date.IsZero() {
		t.Errorf("a commit of another repository: %+v", unknown)
	}
	// The log is read once for a commit.
	s.acme.server.Seen()
	answered[history.History](s, s.holder("again", "admin"), webPath+"/history")
	if seen := s.acme.server.Seen(); slices.ContainsFunc(seen, func(r string) bool { return strings.HasPrefix(r, "POST") }) {
		t.Errorf("it sends %q again", seen)
	}
	s.refused(s.holder("x", "admin"), "GET /v1/apps/acme/shop/none/history", "", http.StatusNotFound)
	s.acme.server.Set(func() { s.acme.server.Allow = func(*http.Request) bool { return false } })
	if got := answered[history.History](s, s.holder("later", "admin"), webPath+"/history"); len(got.Items) != 3 || got.Incomplete == "" || got.Items[0].Message != "" || strings.Contains(got.Incomplete, "127.0.0.1") {
		t.Errorf("without the Git server: %+v", got)
	}
}

// TestATenantReadsNoMessagesOfThePlatform: those in its repository may be about others.
func TestATenantReadsNoMessagesOfThePlatform(t *testing.T) {
	s := newStage(t)
	s.delivered("beta", "a", s.platform.bare("rev-parse", "main"))
	if got := answered[history.History](s, s.holder("beta", "tenant:beta:admin"), "/v1/apps/beta/shop/a/history"); len(got.Items) != 1 || got.Items[0].Message != "" || got.Incomplete == "" {
		t.Errorf("%+v", got)
	}
	if got := answered[history.History](s, s.holder("root", "admin"), "/v1/apps/beta/shop/a/history"); got.Items[0].Message != "first" {
		t.Errorf("%+v", got)
	}
}

func TestADiffIsThatOfTheFolderOfTheApp(t *testing.T) {
	s := newStage(t)
	first := s.acme.bare("rev-parse", "main")
	s.acme.Write(appFile, strings.Replace(appText, "hello", "hi", 1))
	s.acme.Write("projects/shop/apps/web/secret.yaml", "kind: Secret\nstringData: {password: hunter2}\n")
	s.acme.Write("projects/shop/apps/other/app.yaml", strings.Replace(appText, "name: web", "name: other", 1))
	second := s.acme.Push("second")
	caller := s.holder("ci", "project:acme/shop:deploy")
	got := answered[history.Comparison](s, caller, webPath+"/diff?from="+first)
	if got.From != first || got.To != second || len(got.Files) != 2 || got.Files[0].Path != appFile || !strings.Contains(got.Files[0].Patch, "-      value: hello # shown first\n+      value: hi # shown first\n") {
		t.Errorf("%+v", got)
	}
	if f := got.Files[1]; f.Omitted == "" || f.Patch != "" {
		t.Errorf("%+v", f)
	}
	if back := answered[history.Comparison](s, caller, webPath+"/diff?from="+second+"&to="+first); len(back.Files) != 2 || back.Files[1].Change != "removed" {
		t.Errorf("%+v", back)
	}
	if same := answered[history.Comparison](s, caller, webPath+"/diff?from="+second+"&to="+second); len(same.Files) != 0 {
		t.Errorf("%+v", same)
	}
	// What the server has in another branch is not of this app.
	s.acme.Git("switch", "--quiet", "--create", "side")
	s.acme.Write(appFile, "hunter2")
	side := s.acme.Push("side")
	for _, query := range []string{"from=" + side, "from=" + first + "&to=" + side, "from=" + strings.Repeat("0", 40)} {
		if p := s.refused(caller, "GET "+webPath+"/diff?"+query, "", http.StatusNotFound); strings.Contains(p.Detail, "hunter2") {
			t.Errorf("%+v", p)
		}
	}
	s.refused(caller, "GET /v1/apps/acme/shop/none/diff?from="+first, "", http.StatusNotFound)
	s.refused(caller, "GET "+webPath+"/diff?from=main", "", http.StatusUnprocessableEntity)
}

// TestARollbackRestoresTheFolder, and nothing else, by the caller, once.
func TestARollbackRestoresTheFolder(t *testing.T) {
	s := newStage(t)
	s.acme.Write("projects/shop/apps/web/old.txt", "x")
	first := s.acme.Push("second")
	s.acme.Git("rm", "--quiet", "projects/shop/apps/web/old.txt")
	s.acme.Write(appFile, strings.Replace(appText, "hello", "hi", 1))
	s.acme.Write("README.md", "new")
	second := s.acme.Push("third")
	s.acme.Write("README.md", "newer")
	s.acme.Push("fourth")
	s.delivered("acme", "web", first, second)
	caller := s.holder("ci", "project:acme/shop:deploy")
	key := header{"Idempotency-Key", "1"}
	w := s.written(caller, "POST", webPath+"/rollback", `{"to":"`+first+`"}`, key)
	tree := func(commit string) string { return s.acme.bare("rev-parse", commit+":projects/shop/apps/web") }
	if tree("main") != tree(first) || s.acme.bare("show", "main:README.md") != "newer" || s.acme.bare("rev-parse", "main") != w.Commit || !w.Changed {
		t.Errorf("%+v\n%s", w, s.acme.bare("show", "--stat", "main"))
	}
	if got := s.acme.bare("log", "-1", "--format=%an|%ae|%s|%b"); got != "CI of ci|ci@token.kubeop|Roll back acme/shop/web to "+first[:8]+"|Restore projects/shop/apps/web as it was at commit "+first+".\n\nKubeop-Request: "+w.Request {
		t.Errorf("the commit says %q", got)
	}
	if again := s.written(caller, "POST", webPath+"/rollback", `{"to":"`+first+`"}`, key); again != w || s.acme.commits() != 5 {
		t.Errorf("again: %+v", again)
	}
	s.refused(caller, "POST "+webPath+"/rollback", `{"to":"`+second+`"}`, http.StatusUnprocessableEntity, key)
	events, err := s.store.ListEvents(t.Context(), "acme", 0, 1)
	if err != nil || len(events) != 1 || events[0].Action != "rollbackApp" || events[0].Commit != w.Commit || events[0].Object != "app/acme/shop/web" {
		t.Errorf("%v %+v", err, events)
	}
}

// TestARollbackWithoutACommitGoesToWhatWorked before.
func TestARollbackWithoutACommitGoesToWhatWorked(t *testing.T) {
	s := newStage(t)
	first := s.acme.bare("rev-parse", "main")
	s.acme.Write(appFile, strings.Replace(appText, "hello", "hi", 1))
	second := s.acme.Push("second")
	s.delivered("acme", "web", first, second)
	s.written(s.holder("ci", "project:acme/shop:edit"), "POST", webPath+"/rollback", `{}`)
	if got := s.acme.bare("show", "main:"+appFile) + "\n"; got != appText {
		t.Errorf("it is\n%s", got)
	}
}

// TestARollbackIsRefusedWithAReason, and nothing is written.
func TestARollbackIsRefusedWithAReason(t *testing.T) {
	s := newStage(t)
	s.acme.Write("projects/shop/apps/base/app.yaml", strings.Replace(appText, "name: web", "name: base", 1))
	s.acme.Write(appFile, appText+"  dependsOn: [{name: base}]\n")
	dependent := s.acme.Push("second")
	s.acme.Write(appFile, "kind: no app")
	broken := s.acme.Push("third")
	s.acme.Write(appFile, appText)
	s.acme.Write("projects/shop/apps/base/app.yaml", strings.Replace(appText, "name: web", "name: base", 1)+"  dependsOn: [{name: web}]\n")
	current := s.acme.Push("fourth")
	app := s.delivered("acme", "web", current)
	caller := s.holder("ci", "project:acme/shop:edit")
	try := func(to string, status int, want string) {
		t.Helper()
		body := `{}`
		if to != "" {
			body = `{"to":"` + to + `"}`
		}
		p := s.refused(caller, "POST "+webPath+"/rollback", body, status)
		text := p.Detail
		for _, fault := range p.Errors {
			text += " " + fault.Location + " " + fault.Message
		}
		if !strings.Contains(text, want) {
			t.Errorf("%s: %+v, want %q", to, p, want)
		}
	}
	try(dependent, http.StatusUnprocessableEntity, "dependsOn makes a ring")
	try(broken, http.StatusUnprocessableEntity, appFile+":1")
	try(strings.Repeat("0", 40), http.StatusNotFound, "None of the last")
	try("", http.StatusConflict, "no earlier delivery of the app acme/shop/web succeeded")
	app.Spec.Git = &v1alpha1.GitSource{URL: "https://git.example.com/x.git"}
	if err := s.objects.Update(t.Context(), app); err != nil {
		t.Fatal(err)
	}
	try(current, http.StatusConflict, "is in another Git repository")
	app.Spec.Git = nil
	if err := s.objects.Update(t.Context(), app); err != nil {
		t.Fatal(err)
	}
	// Somebody changed the app after what the operator has read.
	first := s.acme.bare("rev-list", "--max-parents=0", "main")
	s.acme.Write(appFile, strings.Replace(appText, "hello", "hi", 1))
	s.acme.Push("fifth")
	s.acme.Write(appFile, strings.Replace(appText, "hello", "hey", 1))
	newest := s.acme.Push("sixth")
	try(first, http.StatusConflict, "another commit changed projects/shop/apps/web")
	s.refused(caller, "POST /v1/apps/acme/shop/none/rollback", `{}`, http.StatusNotFound)
	s.refused(caller, "POST "+webPath+"/rollback", `{"to":"main"}`, http.StatusUnprocessableEntity)
	if s.acme.bare("rev-parse", "main") != newest {
		t.Error("something was written")
	}
}

// TestADryRunAnswersThePlan of each write, and pushes nothing and keeps no key.
func TestADryRunAnswersThePlan(t *testing.T) {
	s := newStage(t)
	first := s.acme.bare("rev-parse", "main")
	s.acme.Write(appFile, strings.Replace(appText, "hello", "hi", 1))
	second := s.acme.Push("second")
	s.delivered("acme", "web", first, second)
	admin := s.holder("root", "admin")
	before := s.acme.bare("rev-parse", "main") + s.platform.bare("rev-parse", "main") + s.acme.bare("count-objects") + s.platform.bare("count-objects")
	for name, c := range map[string]struct {
		method, path, body string
		objects            string
		confirmation       string
		patch              string
	}{
		"a new app":         {"POST", "/v1/apps/acme/shop", `{"name":"api","spec":` + webSpec + `}`, "App acme/shop/api create", writes.No, "+  host: api.example.com\n"},
		"a new project":     {"POST", "/v1/projects/acme", `{"name":"docs","spec":{"quota":{"pods":"20"}}}`, "Project acme/docs create", writes.No, "+    pods: \"20\"\n"},
		"a new tenant":      {"POST", "/v1/tenants", `{"name":"gamma","spec":{"repository":{"url":"https://git.example.com/gamma.git"}}}`, "Tenant gamma create", writes.No, "+kind: Tenant\n"},
		"a patch":           {"PATCH", webPath, `{"spec":{"image":{"replicas":3}}}`, "App acme/shop/web change", writes.No, "-    replicas: 2 # two zones\n+    replicas: 3 # two zones\n"},
		"a replacement":     {"PUT", webPath, `{"spec":` + webSpec + `}`, "App acme/shop/web change", writes.No, "+  host: api.example.com\n"},
		"a deleted app":     {"DELETE", webPath, "", "App acme/shop/web delete", writes.No, "-kind: App\n"},
		"a deleted project": {"DELETE", "/v1/projects/acme/shop", "", "Project acme/shop delete, App acme/shop/web delete", writes.Perhaps, "-kind: Project\n"},
		"a deleted tenant":  {"DELETE", "/v1/tenants/beta", "", "Tenant beta delete, Project beta/shop delete, App beta/shop/a delete", writes.Yes, "-kind: Tenant\n"},
		"a rollback":        {"POST", webPath + "/rollback", `{"to":"` + first + `"}`, "App acme/shop/web change", writes.No, "+      value: hello # shown first\n"},
		"nothing":           {"PATCH", webPath, `{"spec":{"image":{"replicas":2}}}`, "", writes.No, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s.T = t
			answer := s.send(admin, c.method, c.path+"?dryRun=true", c.body, header{"Idempotency-Key", strings.ReplaceAll(name, " ", "-")})
			var w writes.Written
			if err := json.Unmarshal(answer.Body.Bytes(), &w); answer.Code != http.StatusOK || err != nil || w.Plan == nil {
				t.Fatalf("%d %s", answer.Code, answer.Body)
			}
			var objects []string
			for _, o := range w.Plan.Objects {
				objects = append(objects, o.Kind+" "+o.Name+" "+o.Action)
			}
			var patches strings.Builder
			for _, f := range w.Plan.Files {
				patches.WriteString(f.Patch)
			}
			if strings.Join(objects, ", ") != c.objects || w.Plan.Confirmation.Needed != c.confirmation || !strings.Contains(patches.String(), c.patch) || w.Changed != (c.objects != "") || w.Follow != "" ||
				answer.Header().Get("Location") != "" || (len(w.Plan.Unknown) > 0) != w.Changed {
				t.Errorf("%s", answer.Body)
			}
		})
	}
	s.T = t
	if p := s.refused(admin, "PATCH "+webPath+"?dryRun=true", `{"spec":{"image":{"replica":3}}}`, http.StatusUnprocessableEntity); len(p.Errors) == 0 || !strings.Contains(p.Errors[0].Location, appFile+":") {
		t.Errorf("%+v", p)
	}
	if p := s.refused(admin, "POST /v1/apps/acme/shop?dryRun=true", `{"name":"web","spec":`+webSpec+`}`, http.StatusConflict); p.Versions == nil {
		t.Errorf("%+v", p)
	}
	s.refused(admin, "DELETE /v1/apps/acme/shop/none?dryRun=true", "", http.StatusNotFound)
	if now := s.acme.bare("rev-parse", "main") + s.platform.bare("rev-parse", "main") + s.acme.bare("count-objects") + s.platform.bare("count-objects"); now != before {
		t.Error("something was written")
	}
	if events, err := s.store.ListEvents(t.Context(), "", 0, 100); err != nil || slices.ContainsFunc(events, func(e store.Event) bool { return e.Action != "test" }) {
		t.Errorf("%v %+v", err, events)
	}
	// The keys are free.
	s.written(admin, "PATCH", webPath, `{"spec":{"image":{"replicas":5}}}`, header{"Idempotency-Key", "a-patch"})
}

// TestADryRunSaysThatAMoveIsHeld: the operator of the cluster that an object leaves always holds that, and a cluster more moves nothing.
func TestADryRunSaysThatAMoveIsHeld(t *testing.T) {
	s := newStage(t)
	for name, spec := range map[string]string{"a": "{default: true}", "b": "{}", "c": "{}"} {
		s.platform.Write("clusters/"+name+".yaml", head+"Cluster\nmetadata: {name: "+name+"}\nspec: "+spec+"\n")
		cluster := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.ClusterSpec{Default: name == "a"}}
		if err := s.objects.Create(t.Context(), cluster); err != nil {
			t.Fatal(err)
		}
	}
	s.platform.Write("tenants/acme/tenant.yaml", head+"Tenant\nmetadata: {name: acme}\nspec: {clusters: [a, b], repository: {url: 'https://git.example.com/acme.git'}}\n")
	s.platform.Write("tenants/beta/tenant.yaml", head+"Tenant\nmetadata: {name: beta}\nspec: {clusters: [a, b]}\n")
	s.platform.Push("clusters")
	tenant := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "acme"}, Spec: v1alpha1.TenantSpec{Clusters: []string{"a", "b"}}}
	if err := s.objects.Create(t.Context(), tenant); err != nil {
		t.Fatal(err)
	}
	admin := s.holder("root", "admin")
	const goes = ", and nothing of what it has here goes along"
	for name, c := range map[string]struct{ path, spec, needed, why string }{
		"a project to another cluster":               {"projects/acme/shop", `{"cluster":"b"}`, writes.Yes, "it places project acme/shop on cluster b" + goes},
		"a project of the platform repository":       {"projects/beta/shop", `{"cluster":"b"}`, writes.Yes, "it places project beta/shop on cluster b" + goes},
		"a project that names where it is":           {"projects/acme/shop", `{"cluster":"a"}`, writes.No, ""},
		"another field of a project":                 {"projects/acme/shop", `{"quota":{"pods":"9"}}`, writes.No, ""},
		"a tenant that gets a cluster more":          {"tenants/beta", `{"clusters":["a","b","c"]}`, writes.No, ""},
		"a tenant that loses a cluster":              {"tenants/beta", `{"clusters":["a"]}`, writes.Yes, "it places tenant beta on cluster a" + goes},
		"a tenant that goes back to the default":     {"tenants/beta", `{"clusters":null}`, writes.Yes, "it places tenant beta on cluster a" + goes},
		"a tenant with another first cluster":        {"tenants/beta", `{"clusters":["b","a"]}`, writes.Yes, "it places project beta/shop on cluster b" + goes},
		"one with a repository, and another first":   {"tenants/acme", `{"clusters":["b","a"]}`, writes.Perhaps, "if its repository has projects that name no cluster, because these move to another one"},
		"one with a repository that loses a cluster": {"tenants/acme", `{"clusters":["b"]}`, writes.Yes, "it places tenant acme on cluster b" + goes},
	} {
		t.Run(name, func(t *testing.T) {
			s.T = t
			answer := s.send(admin, "PATCH", "/v1/"+c.path+"?dryRun=true", `{"spec":`+c.spec+`}`)
			var w writes.Written
			if err := json.Unmarshal(answer.Body.Bytes(), &w); answer.Code != http.StatusOK || err != nil || w.Plan == nil || !w.Changed {
				t.Fatalf("%d %s", answer.Code, answer.Body)
			}
			if got := w.Plan.Confirmation; got.Needed != c.needed || got.Why != c.why {
				t.Errorf("got %q: %s", got.Needed, got.Why)
			}
		})
	}
}
