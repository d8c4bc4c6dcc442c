//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/plan"
	"github.com/kubeop/kubeop/e2e/stage"
)

// planned is the tenant whose commits are planned, and what its repository declares.
type planned struct {
	*team
	*rand.Rand
	// raw has the ConfigMaps of two Raw Apps with their value, by App. A negative value is one that the API server refuses.
	raw map[string]map[string]int
	// turns are the contents of one App of each other type; 0 for none. A turn of the Raw App "rights" asks for what no App may have.
	turns map[string]int
}

// TestAPlanIsWhatHappens plans random commits of all types of Apps, then pushes them: the objects that were created, changed, deleted and refused are
// those of the plan. PLAN_COMMITS is how many commits there are, and PLAN_SEED makes the same ones again.
func TestAPlanIsWhatHappens(t *testing.T) {
	seed, commits := number(t, "PLAN_SEED", 1), number(t, "PLAN_COMMITS", 4)
	p := &planned{
		team: newTeam(t, "planned"), Rand: rand.New(rand.NewPCG(uint64(seed), 0)),
		raw: map[string]map[string]int{"one": {"a": 1}, "two": {"b": 1}}, turns: map[string]int{},
	}
	for n := range commits {
		if n > 0 {
			p.change()
		}
		p.files()
		made := p.plan()
		before := p.objects()
		p.push(fmt.Sprintf("Change %d", n))
		p.delivered(made)
		// An object that moves to an App of which another object is refused is taken over after the refusal.
		if err := stage.Until(t.Context(), 30*time.Second, "what was planned happens", func(context.Context) error {
			if diff := cmp.Diff(predicted(made, before), happened(before, p.objects())); diff != "" {
				return errors.New("planned and done (-planned +done):\n" + diff)
			}
			return nil
		}); err != nil {
			t.Fatalf("commit %d of seed %d: %v\nthe plan: %+v\nthe objects (-before +after): %s\n%s", n, seed, err, made, cmp.Diff(contents(before), contents(p.objects())),
				kubectl(t, "describe", "apps", "-n", p.namespace()))
		}
		if again := p.plan(); slices.ContainsFunc(again.Apps, func(a plan.App) bool { return a.Failed == "" && slices.ContainsFunc(a.Changes, notRefused) }) {
			t.Fatalf("commit %d of seed %d: after the delivery the plan has %+v", n, seed, again.Apps)
		}
	}
}

func number(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	must(t, err)
	return n
}

func notRefused(c plan.Change) bool { return c.Action != plan.Refuse && c.Action != plan.Run }

// change changes what the repository declares, in up to three places.
func (p *planned) change() {
	for range 1 + p.IntN(3) {
		from := []string{"one", "two"}[p.IntN(2)]
		to := map[string]string{"one": "two", "two": "one"}[from]
		name := string(rune('a' + p.IntN(4)))
		switch p.IntN(8) {
		case 0, 1:
			p.add(from, name, 1+p.IntN(9))
		case 2:
			delete(p.raw[from], name)
		case 3: // It moves to the other App.
			if value, there := p.raw[from][name]; there {
				delete(p.raw[from], name)
				p.add(to, name, value)
			}
		case 4:
			p.add(from, name, -1-p.IntN(9))
		default:
			app := []string{"image", "helm", "git", "rights"}[p.IntN(4)]
			p.turns[app] = p.IntN(3) * (1 + p.IntN(9))
		}
	}
}

// add declares a ConfigMap in one of the Raw Apps only.
func (p *planned) add(app, name string, value int) {
	for other := range p.raw {
		delete(p.raw[other], name)
	}
	p.raw[app][name] = value
}

const (
	plannedApp   = "apiVersion: paas.kubeop.io/v1alpha1\nkind: App\nmetadata: {name: %s}\nspec:\n%s"
	plannedMap   = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\ndata: {%q: %q}\n---\n"
	plannedImage = "  type: Image\n  image:\n    reference: %s\n    replicas: 0\n    env: [{name: TURN, value: %q}]\n"
	plannedHelm  = "  type: Helm\n  helm: {path: chart, values: {turn: %d}}\n"
	plannedGit   = "  type: Git\n  git:\n    url: %s\n    patches:\n    - target: {kind: Deployment}\n      patch: |-\n" +
		"        - {op: add, path: /spec/replicas, value: 0}\n        - {op: add, path: /metadata/annotations, value: {turn: %q}}\n"
	plannedChart = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: helm-{{ mod .Values.turn 2 }}}\ndata: {turn: {{ .Values.turn | quote }}}\n" +
		"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: helm-always}\ndata: {kept: always}\n"
	plannedRole = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: planned}\n---\n"
)

// files writes what the repository declares.
func (p *planned) files() {
	p.t.Helper()
	must(p.t, os.RemoveAll(filepath.Join(p.Dir, "projects/shop/apps")))
	app := func(name, spec string) {
		p.write("projects/shop/apps/"+name+"/app.yaml", fmt.Sprintf(plannedApp, name, spec))
	}
	for name, maps := range p.raw {
		app(name, "  type: Raw\n  raw: {path: manifests}\n")
		text := fmt.Sprintf(plannedMap, name+"-always", "kept", "always")
		for _, key := range slices.Sorted(keysOf(maps)) {
			field := "value"
			if maps[key] < 0 {
				field = "not valid"
			}
			text += fmt.Sprintf(plannedMap, key, field, strconv.Itoa(maps[key]))
		}
		p.write("projects/shop/apps/"+name+"/manifests/all.yaml", text)
	}
	for name, turn := range p.turns {
		switch {
		case turn == 0:
		case name == "image":
			app(name, fmt.Sprintf(plannedImage, image("v1"), strconv.Itoa(turn)))
		case name == "git":
			app(name, fmt.Sprintf(plannedGit, platform.GitURL()+"/docs.git", strconv.Itoa(turn)))
		case name == "helm":
			app(name, fmt.Sprintf(plannedHelm, turn))
			p.write("projects/shop/apps/helm/chart/Chart.yaml", "apiVersion: v2\nname: planned\nversion: 1.0.0\n")
			p.write("projects/shop/apps/helm/chart/templates/all.yaml", plannedChart)
		case name == "rights":
			app(name, "  type: Raw\n  raw: {path: manifests}\n")
			text := fmt.Sprintf(plannedMap, "rights", "turn", strconv.Itoa(turn))
			if turn%2 == 0 {
				text += plannedRole
			}
			p.write("projects/shop/apps/rights/manifests/all.yaml", text)
		}
	}
}

// plan runs `kubeop plan` in the clone.
func (p *planned) plan() *plan.Plan {
	p.t.Helper()
	env, err := platform.Env(samples)
	must(p.t, err)
	out, err := platform.Shell(p.t.Context(), p.Dir, "kubeop plan --tenant planned -o json || [ $? = 2 ]", env...)
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = fmt.Errorf("%w: %s", err, out)
	}
	must(p.t, err)
	made := &plan.Plan{}
	text := out[strings.Index(out, "{") : strings.LastIndex(out, "}")+1]
	if err := json.Unmarshal([]byte(text), made); err != nil {
		p.t.Fatalf("%v in %s", err, out)
	}
	return made
}

// delivered waits until the commit is delivered: every App of the plan is ready, or refused as the plan says.
func (p *planned) delivered(made *plan.Plan) {
	p.t.Helper()
	out, err := exec.CommandContext(p.t.Context(), "git", "-C", p.Dir, "rev-parse", "HEAD").Output()
	must(p.t, err)
	commit := strings.TrimSpace(string(out))
	until(p.t, "the commit is synced", func(ctx context.Context) error {
		repository := &v1alpha1.Repository{}
		if err := platform.Ready(ctx, repository, "", p.name); err != nil || strings.HasSuffix(repository.Status.LastAppliedRevision, commit) {
			return err
		}
		return fmt.Errorf("it is at %s", repository.Status.LastAppliedRevision)
	})
	for _, of := range made.Apps {
		name := of.App[strings.LastIndex(of.App, "/")+1:]
		refused := of.Failed != "" || slices.ContainsFunc(of.Changes, func(c plan.Change) bool { return c.Action == plan.Refuse })
		until(p.t, name+" is delivered", func(ctx context.Context) error {
			if refused {
				return p.refused(ctx, name)
			}
			app := &v1alpha1.App{}
			if err := platform.Ready(ctx, app, p.namespace(), name); err != nil || app.Status.ObservedTree == app.Annotations[v1alpha1.TreeAnnotation] {
				return err
			}
			return errors.New("it does not have its present folder")
		})
	}
	until(p.t, "what left is gone", func(ctx context.Context) error {
		apps := &v1alpha1.AppList{}
		if err := platform.Client.List(ctx, apps, client.InNamespace(p.namespace())); err != nil {
			return err
		}
		for i := range apps.Items {
			if !apps.Items[i].DeletionTimestamp.IsZero() {
				return fmt.Errorf("app %s is being deleted", apps.Items[i].Name)
			}
		}
		return nil
	})
}

// refused returns nil once the present generation of an App was tried and failed.
func (p *planned) refused(ctx context.Context, name string) error {
	app := &v1alpha1.App{}
	if err := platform.Client.Get(ctx, client.ObjectKey{Namespace: p.namespace(), Name: name}, app); err != nil {
		return err
	}
	for _, c := range app.Status.Conditions {
		tried := c.ObservedGeneration == app.Generation && strings.HasSuffix(app.Status.LastAttemptedRevision, app.Annotations[v1alpha1.RevisionAnnotation])
		if (c.Type == v1alpha1.AllowedCondition || c.Type == v1alpha1.AppliedCondition) && c.Status == "False" && tried {
			return nil
		}
	}
	return fmt.Errorf("it is not refused: %+v", app.Status.Conditions)
}

// kinds are the kinds of the objects that the Apps have.
var kinds = []schema.GroupVersionKind{
	{Version: "v1", Kind: "ConfigMap"}, {Version: "v1", Kind: "Service"}, {Version: "v1", Kind: "ServiceAccount"}, {Group: "apps", Version: "v1", Kind: "Deployment"},
}

// objects are the objects of the tenant's Apps, as "app Kind/name".
func (p *planned) objects() map[string]*unstructured.Unstructured {
	p.t.Helper()
	all := map[string]*unstructured.Unstructured{}
	for _, kind := range kinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		must(p.t, platform.Client.List(p.t.Context(), list, client.InNamespace(p.namespace()), client.HasLabels{v1alpha1.AppLabel}))
		for i := range list.Items {
			o := &list.Items[i]
			all[o.GetLabels()[v1alpha1.AppLabel]+" "+o.GetKind()+"/"+o.GetName()] = o
		}
	}
	return all
}

// predicted are the changes of a plan, as "app: action Kind/name". A deleted App deletes all its objects.
func predicted(made *plan.Plan, before map[string]*unstructured.Unstructured) []string {
	done := map[string]bool{}
	for _, of := range made.Apps {
		app := of.App[strings.LastIndex(of.App, "/")+1:]
		for _, c := range of.Changes {
			switch c.Action {
			case plan.Create, plan.Update, plan.Delete:
				done[fmt.Sprintf("%s: %s %s", app, c.Action, c.Object)] = true
				for key := range before { // An update also takes an object over from an App that the commit does not change.
					if of, object, _ := strings.Cut(key, " "); c.Action == plan.Update && object == c.Object && of != app {
						done[fmt.Sprintf("%s: %s %s", of, plan.Delete, object)] = true
					}
				}
			case plan.Move: // The App that takes it over lists an update. It may have taken it over before.
				if before[app+" "+c.Object] != nil {
					done[fmt.Sprintf("%s: %s %s", app, plan.Delete, c.Object)] = true
				}
			}
		}
	}
	for _, c := range made.Changes {
		name, isApp := strings.CutPrefix(c.Object, "app ")
		if !isApp {
			name, isApp = strings.CutPrefix(c.Object, "App ")
		}
		if c.Action != plan.Delete || !isApp {
			continue
		}
		app := name[strings.LastIndex(name, "/")+1:]
		for key := range before {
			if of, object, _ := strings.Cut(key, " "); of == app {
				done[fmt.Sprintf("%s: %s %s", app, plan.Delete, object)] = true
			}
		}
	}
	return slices.Sorted(keysOf(done))
}

// happened are the changes between two states, in the same form. An object that moved is deleted from one App and updated in the other.
func happened(before, after map[string]*unstructured.Unstructured) []string {
	done := map[string]bool{}
	uids := map[string]bool{}
	for _, o := range before {
		uids[string(o.GetUID())] = true
	}
	for key, o := range after {
		app, object, _ := strings.Cut(key, " ")
		was := before[key]
		switch {
		case was == nil && uids[string(o.GetUID())]:
			done[fmt.Sprintf("%s: %s %s", app, plan.Update, object)] = true
		case was == nil:
			done[fmt.Sprintf("%s: %s %s", app, plan.Create, object)] = true
		case !equality.Semantic.DeepEqual(content(was), content(o)):
			done[fmt.Sprintf("%s: %s %s", app, plan.Update, object)] = true
		}
	}
	for key := range before {
		if app, object, _ := strings.Cut(key, " "); after[key] == nil {
			done[fmt.Sprintf("%s: %s %s", app, plan.Delete, object)] = true
		}
	}
	return slices.Sorted(keysOf(done))
}

// content is an object without what the API server and controllers write.
func content(o *unstructured.Unstructured) map[string]any {
	c := o.DeepCopy()
	c.SetManagedFields(nil)
	c.SetResourceVersion("")
	c.SetGeneration(0)
	delete(c.Object, "status")
	annotations := c.GetAnnotations()
	delete(annotations, "deployment.kubernetes.io/revision")
	c.SetAnnotations(annotations)
	return c.Object
}

func contents(objects map[string]*unstructured.Unstructured) map[string]any {
	all := map[string]any{}
	for key, o := range objects {
		all[key] = content(o)
	}
	return all
}

func keysOf[V any](m map[string]V) func(func(string) bool) { return maps.Keys(m) }
