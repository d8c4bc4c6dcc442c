package controllers

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/kustomize"
	"github.com/fluxcd/pkg/runtime/conditions"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// dependent is an app with a ConfigMap of the same name that depends on something.
func dependent(name, on string) string {
	return fmt.Sprintf(rawFile, name, name, "hello") + "  dependsOn: " + on + "\n"
}

// waits waits until an app reports that it waits, and returns the message.
func (n *team) waits(project, app string) string {
	n.t.Helper()
	return n.until(n.app(project, app), v1alpha1.DependenciesReadyCondition, metav1.ConditionUnknown, v1alpha1.DependencyNotReadyReason)
}

// absent checks that an app has delivered nothing.
func (n *team) absent(project, name string) {
	n.t.Helper()
	err := n.admin.Get(n.t.Context(), client.ObjectKeyFromObject(n.configMapOf(project, name)), &corev1.ConfigMap{})
	if !apierrors.IsNotFound(err) {
		n.t.Errorf("ConfigMap %s exists before its app may be delivered: %v", name, err)
	}
}

// unhealthyFile is a Raw app with a Job that ends when the test ends it.
const unhealthyFile = `apiVersion: paas.kubeop.io/v1alpha1
kind: App
metadata: {name: %[1]s}
spec:
  type: Raw
  raw:
    manifests:
    - apiVersion: batch/v1
      kind: Job
      metadata: {name: %[1]s-%[2]s}
      spec:
        suspend: true
        template: {spec: {restartPolicy: Never, containers: [{name: c, image: none.example/c}]}}
`

// end completes or fails a Job, as its controller would.
func (n *team) end(project, name string, failed bool) {
	n.t.Helper()
	job := &batchv1.Job{}
	n.eventually(func() error {
		if err := n.admin.Get(n.t.Context(), client.ObjectKey{Namespace: v1alpha1.ProjectNamespace(n.name, project), Name: name}, job); err != nil {
			return err
		}
		now := metav1.Now()
		if job.Status.StartTime == nil {
			job.Status.StartTime = &now
		}
		kinds := []batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobComplete}
		if failed {
			kinds = []batchv1.JobConditionType{batchv1.JobFailureTarget, batchv1.JobFailed}
		} else {
			job.Status.CompletionTime = &now
		}
		for _, kind := range kinds {
			job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{
				Type: kind, Status: corev1.ConditionTrue, Reason: "Test", Message: "ended by the test", LastTransitionTime: now,
			})
		}
		return n.admin.Status().Update(n.t.Context(), job)
	})
}

func TestAnAppWaitsForAnother(t *testing.T) {
	n := newTeam(t, "waiting")
	files := shopFiles("shop", "web", "late")
	files["projects/shop/apps/web/app.yaml"] = dependent("web", "[{name: database}]")
	files["projects/shop/apps/late/app.yaml"] = dependent("late", "[{name: web}, {name: database}]")
	n.push(files)
	n.eventually(func() error {
		if got := n.waits("shop", "web"); got != "waits for App shop/database, which does not exist: add it, or correct dependsOn in app.yaml" {
			return fmt.Errorf("the message is %q, want %q", got, "waits for App shop/database, which does not exist: add it, or correct dependsOn in app.yaml")
		}
		return nil
	})
	n.push(map[string]string{"projects/shop/apps/database/app.yaml": fmt.Sprintf(unhealthyFile, "database", "one")})
	n.eventually(func() error {
		if got := n.waits("shop", "late"); !strings.Contains(got, "App shop/web, which waits for what it depends on itself") || !strings.Contains(got, "Job/database-one") {
			return fmt.Errorf("the message is %q", got)
		}
		return nil
	})
	n.absent("shop", "web")
	n.end("shop", "database-one", false)
	ended := time.Now()
	n.ready(n.app("shop", "database"))
	known := time.Since(ended)
	n.ready(n.app("shop", "web"), n.app("shop", "late"))
	t.Logf("after the dependency's event it was ready in %s, its dependents in %s more", known, time.Since(ended)-known)
	if more := time.Since(ended) - known; more > 10*time.Second {
		t.Errorf("the dependents became ready %s later, want less", more)
	}
}

// TestACommitIsDeliveredInOrder changes two apps in one commit, again and again: the dependent app must never be
// delivered first.
func TestACommitIsDeliveredInOrder(t *testing.T) {
	n := newTeam(t, "monorepo")
	files := shopFiles("shop")
	for k, v := range shopFiles("base") {
		files[k] = v
	}
	const web, database = "projects/shop/apps/web/app.yaml", "projects/base/apps/database/app.yaml"
	files[web] = dependent("web", "[{name: database, project: base}]")
	files[database] = fmt.Sprintf(unhealthyFile, "database", "v0")
	n.push(files)
	n.end("base", "database-v0", false)
	n.ready(n.app("shop", "web"))
	for i := 1; i <= 3; i++ {
		version := fmt.Sprintf("v%d", i)
		n.push(map[string]string{
			web:      strings.Replace(files[web], "greeting: hello", "greeting: "+version, 1),
			database: fmt.Sprintf(unhealthyFile, "database", version),
		})
		n.eventually(func() error {
			return n.admin.Get(t.Context(), client.ObjectKey{Namespace: "kubeop-monorepo-base", Name: "database-" + version}, &batchv1.Job{})
		})
		n.waits("shop", "web")
		if got := n.configMap("shop", "web").Data["greeting"]; got == version {
			t.Fatalf("web is delivered at %s before the database is ready with it", version)
		}
		n.end("base", "database-"+version, false)
		n.eventually(func() error {
			if got := n.configMap("shop", "web").Data["greeting"]; got != version {
				return fmt.Errorf("web is at %s, want %s", got, version)
			}
			return nil
		})
	}
	// A commit that changes only web waits for nothing.
	began := time.Now()
	n.push(map[string]string{web: strings.Replace(files[web], "greeting: hello", "greeting: alone", 1)})
	n.eventually(func() error {
		if got := n.configMap("shop", "web").Data["greeting"]; got != "alone" {
			return fmt.Errorf("web is at %s, want %q", got, "alone")
		}
		return nil
	})
	t.Logf("a commit about web alone was delivered in %s", time.Since(began))
	app := n.app("base", "database")
	n.ready(app)
	if app.Status.ObservedTree != app.Annotations[v1alpha1.TreeAnnotation] || app.Status.ObservedTree == "" {
		t.Errorf("observed %q, want %q", app.Status.ObservedTree, app.Annotations[v1alpha1.TreeAnnotation])
	}
}

func TestAnAppWaitsForDependenciesOfEachKind(t *testing.T) {
	n := newTeam(t, "kinds")
	files := shopFiles("shop", "labelled")
	for k, v := range shopFiles("base") {
		files[k] = v
	}
	for name, on := range map[string]string{
		"project":    "[{kind: Project, name: base}]",
		"ring":       "[{name: gnir}]",
		"nowhere":    "[{name: x, project: nowhere}]",
		"unlabelled": "[{apiVersion: v1, kind: ConfigMap, name: settings, project: base, readyExpr: \"dep.data.ready == self.metadata.name\"}]",
		"job":        "[{apiVersion: batch/v1, kind: Job, name: labelled-one}]",
		"unserved":   "[{apiVersion: db.example/v1, kind: Database, name: x}]",
		"greedy":     "[{apiVersion: v1, kind: ConfigMap, name: settings, project: base, readyExpr: \"dep.data.all(a, dep.data.all(b, dep.data.all(c, dep.data.all(d, dep.data.all(e, dep.data.all(f, true))))))\"}]",
		"foreign":    "[{apiVersion: v1, kind: Namespace, name: kube-system}]",
	} {
		files["projects/shop/apps/"+name+"/app.yaml"] = dependent(name, on)
	}
	files["projects/shop/apps/labelled/app.yaml"] = fmt.Sprintf(unhealthyFile, "labelled", "one")
	n.push(files)
	n.ready(n.app("shop", "project"))
	for app, want := range map[string]string{
		"nowhere":    "waits for App nowhere/x, which does not exist: add it, or correct dependsOn in app.yaml",
		"ring":       "waits for App shop/gnir, which does not exist: add it, or correct dependsOn in app.yaml",
		"unlabelled": "waits for ConfigMap base/settings, which does not exist: add it, or correct dependsOn in app.yaml",
		"job":        "waits for Job shop/labelled-one: is suspended (spec.suspend)",
		"unserved":   "waits for the cluster to know the kind db.example/v1 Database",
	} {
		n.eventually(func() error {
			if got := n.waits("shop", app); !strings.Contains(got, want) {
				return fmt.Errorf("the message of %s is %q, want %q", app, got, want)
			}
			return nil
		})
	}
	refused := n.app("shop", "foreign")
	if got := n.until(refused, v1alpha1.ReadyCondition, metav1.ConditionFalse, v1alpha1.InvalidExpressionReason); !strings.Contains(got, "Namespace is cluster-scoped") || !conditions.IsStalled(refused) {
		t.Errorf("the message is %q", got)
	}

	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-kinds-base", Name: "settings"}, Data: map[string]string{"other": "1"}}
	for i := range 40 {
		settings.Data[fmt.Sprintf("key-%d", i)] = ""
	}
	n.create(settings)
	n.eventually(func() error {
		if got := n.waits("shop", "unlabelled"); !strings.Contains(got, "no such key: ready") {
			return fmt.Errorf("the message is %q", got)
		}
		if got := n.waits("shop", "greedy"); !strings.Contains(got, "costs more than the limit of 50000") {
			return fmt.Errorf("the message is %q", got)
		}
		return nil
	})
	settings.Data["ready"] = "unlabelled"
	if err := n.admin.Update(t.Context(), settings); err != nil {
		t.Fatal(err)
	}
	n.ready(n.app("shop", "unlabelled"))

	n.end("shop", "labelled-one", false)
	began := time.Now()
	n.ready(n.app("shop", "job"))
	t.Logf("after the Job's event its dependent was ready in %s", time.Since(began))
}

// TestADeletedDependencyKeepsTheDependent: what was delivered stays.
func TestADeletedDependencyKeepsTheDependent(t *testing.T) {
	n := newTeam(t, "lonely")
	files := shopFiles("shop", "web", "database")
	files["projects/shop/apps/web/app.yaml"] = dependent("web", "[{name: database}]")
	n.push(files)
	n.ready(n.app("shop", "web"))
	n.push(map[string]string{"projects/shop/apps/database": "-"})
	if got := n.waits("shop", "web"); !strings.HasPrefix(got, "waits for App shop/database, which ") {
		t.Errorf("the message is %q", got)
	}
	n.configMap("shop", "web")
}

// TestAnExpressionDecidesTheHealthOfAnObject: an annotation, which kstatus ignores, decides the health of a Job.
func TestAnExpressionDecidesTheHealthOfAnObject(t *testing.T) {
	n := newTeam(t, "judged")
	const file = "projects/shop/apps/web/app.yaml"
	files := shopFiles("shop")
	files[file] = fmt.Sprintf(unhealthyFile, "web", "one") +
		"  healthCheckExprs:\n  - {apiVersion: batch/v1, kind: Job, current: \"metadata.annotations['example.com/state'] == 'done'\"}\n"
	n.push(files)
	app := n.app("shop", "web")
	n.eventually(func() error {
		if got := n.until(app, v1alpha1.HealthyCondition, metav1.ConditionUnknown, v1alpha1.ProgressingReason); got != "Job/web-one: is in progress, as healthCheckExprs say" {
			return fmt.Errorf("the message is %q, want %q", got, "Job/web-one: is in progress, as healthCheckExprs say")
		}
		return nil
	})
	job := &batchv1.Job{}
	if err := n.admin.Get(t.Context(), client.ObjectKey{Namespace: "kubeop-judged-shop", Name: "web-one"}, job); err != nil {
		t.Fatal(err)
	}
	before := job.DeepCopy()
	metav1.SetMetaDataAnnotation(&job.ObjectMeta, "example.com/state", "done")
	if err := n.admin.Patch(t.Context(), job, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	n.ready(app)
	t.Logf("ready %s after the change", time.Since(began))
	if d := time.Since(began); d > 10*time.Second {
		t.Errorf("the app became ready %s after the change, want less", d)
	}
}

// TestAWrongExpressionStalls creates an App by hand, so that its file is not checked.
func TestAWrongExpressionStalls(t *testing.T) {
	n := newTeam(t, "wrongly")
	n.push(shopFiles("shop", "web"))
	web := n.app("shop", "web")
	n.ready(web)
	for name, change := range map[string]func(*v1alpha1.Delivery){
		"of a dependency": func(d *v1alpha1.Delivery) { d.DependsOn = []v1alpha1.Dependency{{Name: "web", ReadyExpr: "dep.x =="}} },
		"of health": func(d *v1alpha1.Delivery) {
			d.HealthCheckExprs = []kustomize.CustomHealthCheck{{APIVersion: "v1", Kind: "Pod", HealthCheckExpressions: kustomize.HealthCheckExpressions{Current: "statos.x"}}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			app := n.app("shop", strings.ReplaceAll(name, " ", "-"))
			app.Spec = *web.Spec.DeepCopy()
			change(&app.Spec.Delivery)
			n.create(app)
			if got := n.until(app, v1alpha1.ReadyCondition, metav1.ConditionFalse, v1alpha1.InvalidExpressionReason); !strings.Contains(got, "[0].") || !strings.Contains(got, ": 1:") || !conditions.IsStalled(app) {
				t.Errorf("the message is %q", got)
			}
		})
	}
}
