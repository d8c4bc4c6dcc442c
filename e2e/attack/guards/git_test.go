//go:build e2e

package guards

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/e2e/stage"
	"github.com/kubeop/kubeop/e2e/tenants"
)

// gitForm is how an object is written in Git: the App's spec, and files beside it. kinds are those whose fields it can set, by default all. A patch can also
// replace the object by one of any kind.
type gitForm struct {
	name  string
	kinds []string
	write func(t *testing.T, c try, name string) (spec string, files map[string]string)
}

// fits reports whether a guard can be broken in this form.
func (f gitForm) fits(c try) bool {
	if strings.Contains(c.skip, oneInGit) && f.name != inTheApp {
		return false
	}
	if f.name == inHooks {
		return strings.HasSuffix(c.field, "/image") // A hook says no more about its pod.
	}
	return f.kinds == nil || c.project == "" && (c.field == "" || slices.Contains(f.kinds, c.kind))
}

const (
	folder    = "type: Raw\n  raw: {path: manifests}"
	chart     = "type: Helm\n  helm: {path: chart}"
	inTheApp  = "in the App"
	inHooks   = "in the App's hooks"
	chartFile = "apiVersion: v2\nname: web\nversion: 1.0.0\n"
)

var gitForms = []gitForm{
	{inTheApp, nil, func(t *testing.T, c try, name string) (string, map[string]string) {
		return "type: Raw\n  raw:\n    manifests:\n    - " + text(t, c.bad(t, name)), nil
	}},
	{"in a List", nil, func(t *testing.T, c try, name string) (string, map[string]string) {
		return folder, map[string]string{"manifests/all.yaml": `{"apiVersion": "v1", "kind": "List", "items": [` + text(t, c.bad(t, name)) + "]}"}
	}},
	{"by kustomize", nil, func(t *testing.T, c try, name string) (string, map[string]string) {
		must(t, folders.Write(name+"/good.yaml", []byte(text(t, c.good(t, name)))))
		must(t, folders.Write(name+"/kustomization.yaml", []byte("resources: [good.yaml]\npatches:\n- target: {name: "+c.good(t, name).GetName()+"}\n  patch: "+quoted(t, c.patch(t, name))+"\n")))
		return "type: Git\n  git: {url: '" + folders.OperatorURL + "', path: " + name + "}", nil
	}},
	{"in a chart", nil, func(t *testing.T, c try, name string) (string, map[string]string) {
		return chart, map[string]string{"chart/Chart.yaml": chartFile, "chart/templates/a.yaml": text(t, c.bad(t, name))}
	}},
	{"in a hook of a chart", nil, func(t *testing.T, c try, name string) (string, map[string]string) {
		o := c.bad(t, name)
		annotations := o.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations["helm.sh/hook"] = "pre-install"
		o.SetAnnotations(annotations)
		return chart, map[string]string{"chart/Chart.yaml": chartFile, "chart/templates/a.yaml": text(t, o)}
	}},
	{"by a post-renderer", nil, func(t *testing.T, c try, name string) (string, map[string]string) {
		spec := "type: Helm\n  helm:\n    path: chart\n    postRenderers:\n    - kustomize: {patches: [{target: {name: " + c.good(t, name).GetName() + "}, patch: " + quoted(t, c.patch(t, name)) + "}]}"
		return spec, map[string]string{"chart/Chart.yaml": chartFile, "chart/templates/a.yaml": text(t, c.good(t, name))}
	}},
	{"by a patch of an Image app", []string{"Deployment"}, func(t *testing.T, c try, name string) (string, map[string]string) {
		return imageApp(t, name, "\n    - target: {kind: Deployment}\n      patch: "+quoted(t, c.patch(t, name))), nil
	}},
	{inHooks, []string{"Deployment"}, func(t *testing.T, c try, name string) (string, map[string]string) {
		hook := "{name: steal, image: '" + fmt.Sprint(value(c.bad(t, name).Object, strings.Split(templates["Deployment"]+"/containers/0/image", "/")[1:])) + "'}"
		return "type: Raw\n  raw:\n    manifests:\n    - " + text(t, object(t, controls["ConfigMap"], name)) + "\n  hooks: {pre: [" + hook + "]}", nil
	}},
}

// imageApp is the spec of an Image app that a tenant may have, with further patches. The first patch adds the parents of what guards change.
func imageApp(t *testing.T, name, patches string) string {
	t.Helper()
	first := "{apiVersion: apps/v1, kind: Deployment, " + filled(metadata, shop, name) + ", spec: {template: {" + inside + "}}}"
	return "type: Image\n  image:\n    reference: registry.example.com/mallet/web" + digest + "\n    replicas: 0\n    nodeSelector: {pool: tenants}\n    patches:\n    - patch: " + quoted(t, first) + patches
}

func text(t *testing.T, o *unstructured.Unstructured) string {
	t.Helper()
	if o.GetNamespace() != "default" {
		o.SetNamespace("")
	}
	out, err := o.MarshalJSON()
	must(t, err)
	return strings.TrimSpace(string(out))
}

// quoted returns text as a YAML scalar.
func quoted(t *testing.T, s string) string {
	t.Helper()
	out, err := json.Marshal(s)
	must(t, err)
	return string(out)
}

// pushed is a case in Git: an app, and what its condition has to say.
type pushed struct {
	// app is its namespace and name.
	app, about, words string
	bad               *unstructured.Unstructured
	conditions        []metav1.Condition
}

// TestNothingIsDeliveredFromGit pushes each guard in each form, all in one commit.
func TestNothingIsDeliveredFromGit(t *testing.T) {
	before := versions(t)
	files := map[string]map[string]string{attacker: {}, narrow: {}}
	var all []pushed
	for i, g := range guards {
		if strings.Contains(g.skip, noGit) || !g.chosen() {
			continue
		}
		c := g.tries("Deployment")[0]
		for j, form := range gitForms {
			if !form.fits(c) {
				continue
			}
			name := fmt.Sprintf("g%d-%d", i, j)
			spec, beside := form.write(t, c, name)
			appFiles(files[g.by()], cmp.Or(g.project, "shop"), name, spec, beside)
			all = append(all, pushed{app: g.namespace() + "/" + name, about: "in Git: " + g.name + ", " + form.name, words: cmp.Or(g.git, g.words), bad: c.bad(t, name)})
		}
	}
	for tenant := range files {
		appFiles(files[tenant], "shop", "image-control", imageApp(t, "image-control", ""), nil)
	}
	must(t, folders.Push(t.Context(), "Change"))
	for tenant := range files {
		must(t, tenants.Push(t.Context(), repositories[tenant], files[tenant]))
		must(t, platform.AppReady(t.Context(), v1alpha1.ProjectNamespace(tenant, "shop"), "image-control"))
	}
	nothingIsDelivered(t, all)
	unchanged(t, before)
}

// appFiles adds the files of an app.
func appFiles(files map[string]string, project, name, spec string, beside map[string]string) {
	dir := "projects/" + project + "/apps/" + name + "/"
	files[dir+"app.yaml"] = "apiVersion: paas.kubeop.io/v1alpha1\nkind: App\nmetadata: {name: " + name + "}\nspec:\n  " + spec + "\n"
	for file, content := range beside {
		files[dir+file] = content
	}
}

// nothingIsDelivered waits until each App says why, and checks that nothing of it exists.
func nothingIsDelivered(t *testing.T, all []pushed) {
	t.Helper()
	reported(t, all)
	for _, p := range all {
		left := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: p.bad.GetAPIVersion(), Kind: p.bad.GetKind()}}
		if err := platform.Client.Get(t.Context(), client.ObjectKeyFromObject(p.bad), left); !apierrors.IsNotFound(err) {
			t.Errorf("ESCAPE: %s: it exists: %v", p.about, err)
		}
	}
}

// reported waits until each App says why nothing was delivered.
func reported(t *testing.T, all []pushed) {
	t.Helper()
	silent := all
	_ = stage.Until(t.Context(), 4*time.Minute, "the apps are refused", func(ctx context.Context) error {
		apps := &v1alpha1.AppList{}
		if err := platform.Client.List(ctx, apps); err != nil {
			return err
		}
		said := map[string][]metav1.Condition{}
		for _, app := range apps.Items {
			said[app.Namespace+"/"+app.Name] = app.Status.Conditions
		}
		var left []pushed
		for _, p := range silent {
			if p.conditions = said[p.app]; !p.refused() {
				left = append(left, p)
			}
		}
		if silent = left; len(silent) > 0 {
			return errors.New("some are not")
		}
		return nil
	})
	for _, p := range silent {
		t.Errorf("%s: no condition says %q: %+v", p.about, p.words, p.conditions)
	}
}

// refused reports whether a condition says what the guard says, and notes it.
func (p pushed) refused() bool {
	for _, c := range p.conditions {
		if c.Status == metav1.ConditionFalse && c.Type != v1alpha1.ReadyCondition && strings.Contains(c.Message, p.words) {
			tried.add(p.about, c.Message)
			return true
		}
	}
	return false
}
