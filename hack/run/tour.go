package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/e2e/stage"
)

const (
	// shop is the namespace of the sample project.
	shop = "kubeop-acme-shop"
	// stepTimeout limits one step, including pulling images and starting pods.
	stepTimeout = 3 * time.Minute
	// goal is the maximum time from a push to the changed Deployment.
	goal = 2 * time.Second
)

// sampleApps are the apps of the sample project, one of each type.
var sampleApps = []string{"web", "docs", "api", "tools"}

// tour runs the steps in order.
type tour struct {
	stage   *stage.Stage
	line    *stage.Timeline
	samples *stage.Samples
	manager *stage.Manager
}

func (r *tour) run(ctx context.Context) error {
	for _, act := range []func(context.Context) error{r.start, r.ship, r.change, r.breakOne, r.breakRules, r.overspend, r.removeOne} {
		if err := act(ctx); err != nil {
			return err
		}
	}
	return nil
}

// start starts the operator and the manager, and creates the repositories.
func (r *tour) start(ctx context.Context) error {
	r.line.Title("The operator, the management API, and three Git repositories")
	operator, err := r.stage.StartOperator(ctx)
	if err != nil {
		return err
	}
	r.line.Say("the operator is ready, acting as its own service account; log: %s", operator.Log)
	if r.manager, err = r.stage.StartManager(ctx); err != nil {
		return err
	}
	r.line.Say("the management API is at %s, see %s/docs; log: %s", r.manager.URL, r.manager.URL, r.manager.Log)
	r.line.Say("the code for its first administrator, for an hour and once: %s", r.manager.Code)
	r.samples, err = r.stage.CreateSamples(ctx)
	if err != nil {
		return err
	}
	r.line.Say("the image hello:v1 is in the registry; the repositories docs, acme and platform are empty")
	return nil
}

// ship pushes a tenant with one project and four apps, and waits for each.
func (r *tour) ship(ctx context.Context) error {
	r.line.Title("First push: a tenant, a project with an image, a Git folder, a chart and manifests, and one with what images may be")
	if err := r.samples.Push(ctx, "Ship the shop"); err != nil {
		return err
	}
	r.line.Say("pushed")
	if err := r.until(ctx, "the tenant acme is ready", func(ctx context.Context) error {
		return r.stage.Ready(ctx, &v1alpha1.Tenant{}, "", "acme")
	}); err != nil {
		return err
	}
	for _, app := range sampleApps {
		if err := r.until(ctx, "the app "+app+" is ready", func(ctx context.Context) error { return r.ready(ctx, app) }); err != nil {
			return err
		}
	}
	for _, app := range sampleApps {
		if err := r.answers(ctx, app, "hello from "+app); err != nil {
			return err
		}
	}
	return nil
}

// change pushes a new message for web and measures how long its Deployment takes to change.
func (r *tour) change(ctx context.Context) error {
	r.line.Title("Second push: the app web gets another message")
	if err := r.edit("web/app.yaml", "hello from web", "good morning from web"); err != nil {
		return err
	}
	before, err := r.generation(ctx, "web")
	if err != nil {
		return err
	}
	pushing := time.Now()
	if err := r.samples.Acme.Push(ctx, "Greet by the time of day"); err != nil {
		return err
	}
	pushed := time.Now()
	err = stage.Until(ctx, stepTimeout, "the Deployment web is updated", func(ctx context.Context) error {
		now, err := r.generation(ctx, "web")
		if err == nil && now == before {
			err = errors.New("it is as it was")
		}
		return err
	})
	if err != nil {
		return err
	}
	took, alone := time.Since(pushed), pushed.Sub(pushing)
	r.line.Say("push → Deployment updated: %.2f s after git push returned (which took %.2f s)", took.Seconds(), alone.Seconds())
	if took > goal {
		return fmt.Errorf("push → Deployment updated took %.2f s; at most %s is promised", took.Seconds(), goal)
	}
	if err := r.until(ctx, "the app web is ready", func(ctx context.Context) error { return r.ready(ctx, "web") }); err != nil {
		return err
	}
	return r.answers(ctx, "web", "good morning from web")
}

// breakOne adds a ClusterRole to the manifests of tools. The app must report it, and the other apps must not change.
func (r *tour) breakOne(ctx context.Context) error {
	r.line.Title("Third push: the app tools wants a ClusterRole")
	const forbidden = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: everything}\n"
	if err := r.samples.Acme.Write(folder("tools")+"/manifests/clusterrole.yaml", []byte(forbidden)); err != nil {
		return err
	}
	if err := r.samples.Acme.Push(ctx, "Add a ClusterRole"); err != nil {
		return err
	}
	r.line.Say("pushed")
	if err := r.refused(ctx, "tools", "ClusterRole/everything"); err != nil {
		return err
	}
	for _, other := range []string{"web", "docs", "api"} {
		if err := r.ready(ctx, other); err != nil {
			return fmt.Errorf("the app %s was to stay ready: %w", other, err)
		}
	}
	r.line.Say("the apps web, docs and api are ready as before")
	return r.answers(ctx, "tools", "hello from tools")
}

// breakRules pushes an image and then a host name that the policy of the tenant does not allow. The app must say which rule it breaks, and what ran must
// still run.
func (r *tour) breakRules(ctx context.Context) error {
	r.line.Title("Two more pushes: an image, and then a host name, that the tenant's policy does not allow")
	const file, subject = "web/app.yaml", "Try what the policy says"
	was, err := r.samples.Acme.Read(folder(file))
	if err != nil {
		return err
	}
	for _, c := range []struct{ content, refused string }{
		{strings.Replace(string(was), r.stage.Registry()+"/hello", "registry.elsewhere.example/hello", 1), "images.allow"},
		{string(was) + "  hosts:\n  - host: www.other.example\n", "hostnames.suffixes"},
	} {
		if err := r.samples.Acme.Write(folder(file), []byte(c.content)); err != nil {
			return err
		}
		if err := r.samples.Acme.Push(ctx, subject); err != nil {
			return err
		}
		r.line.Say("pushed")
		if err := r.refused(ctx, "web", c.refused); err != nil {
			return err
		}
	}
	if err := r.answers(ctx, "web", "good morning from web"); err != nil {
		return err
	}
	if err := r.samples.Acme.Write(folder(file), was); err != nil {
		return err
	}
	if err := r.samples.Acme.Push(ctx, "Keep to the policy"); err != nil {
		return err
	}
	return r.until(ctx, "pushed what it was before; the app web is ready", func(ctx context.Context) error { return r.ready(ctx, "web") })
}

// overspend pushes a quota for which the tenant's budget has no room. The project must say so, and keep the quota that it had.
func (r *tour) overspend(ctx context.Context) error {
	r.line.Title("One more push: a quota for which the tenant's budget has no room")
	const file = "projects/shop/project.yaml"
	was, err := r.samples.Acme.Read(file)
	if err != nil {
		return err
	}
	more := strings.Replace(string(was), `requests.cpu: "2"`, `requests.cpu: "12"`, 1)
	if err := r.samples.Acme.Write(file, []byte(more)); err != nil {
		return err
	}
	if err := r.samples.Acme.Push(ctx, "Want more"); err != nil {
		return err
	}
	r.line.Say("pushed")
	var current *metav1.Condition
	err = stage.Until(ctx, stepTimeout, "the project shop reports the problem", func(ctx context.Context) error {
		live := &v1alpha1.Project{}
		if err := r.stage.Client.Get(ctx, client.ObjectKey{Namespace: v1alpha1.HomeNamespace("acme"), Name: "shop"}, live); err != nil {
			return err
		}
		current = meta.FindStatusCondition(live.Status.Conditions, v1alpha1.CurrentCondition)
		if current == nil || current.Status != metav1.ConditionFalse || !strings.Contains(current.Message, "budget") {
			return fmt.Errorf("its condition is %+v", current)
		}
		return nil
	})
	if err != nil {
		return err
	}
	r.line.Say("kubectl get project shop: CURRENT %s, %s\n%s", current.Status, current.Reason, current.Message)
	quota := &corev1.ResourceQuota{}
	if err := r.stage.Client.Get(ctx, client.ObjectKey{Namespace: shop, Name: "kubeop"}, quota); err != nil {
		return err
	}
	if has := quota.Spec.Hard[corev1.ResourceRequestsCPU]; has.String() != "2" {
		return fmt.Errorf("the quota of the project is now %s requests.cpu", has.String())
	}
	if err := r.samples.Acme.Write(file, was); err != nil {
		return err
	}
	return r.samples.Acme.Push(ctx, "Keep to the budget")
}

// refused waits until an app says that an object is not allowed, with a message that contains the text, and prints it.
func (r *tour) refused(ctx context.Context, app, text string) error {
	var ready *metav1.Condition
	err := stage.Until(ctx, stepTimeout, "the app "+app+" reports the problem", func(ctx context.Context) error {
		live := &v1alpha1.App{}
		if err := r.stage.Client.Get(ctx, client.ObjectKey{Namespace: shop, Name: app}, live); err != nil {
			return err
		}
		ready = meta.FindStatusCondition(live.Status.Conditions, v1alpha1.ReadyCondition)
		if ready == nil || ready.Reason != v1alpha1.NotAllowedReason || !strings.Contains(ready.Message, text) {
			return fmt.Errorf("its condition is %+v", ready)
		}
		return nil
	})
	if err == nil {
		r.line.Say("kubectl get app %s: READY %s, %s\n%s", app, ready.Status, ready.Reason, ready.Message)
	}
	return err
}

// removeOne removes the app tools and waits until the App and its objects are deleted.
func (r *tour) removeOne(ctx context.Context) error {
	r.line.Title("Last push: the app tools is removed")
	if err := r.samples.Acme.Remove(folder("tools")); err != nil {
		return err
	}
	if err := r.samples.Acme.Push(ctx, "Remove the tools"); err != nil {
		return err
	}
	r.line.Say("pushed")
	return r.until(ctx, "the app tools and its Deployment are gone", func(ctx context.Context) error {
		for _, object := range []client.Object{&v1alpha1.App{}, &appsv1.Deployment{}} {
			err := r.stage.Client.Get(ctx, client.ObjectKey{Namespace: shop, Name: "tools"}, object)
			if !apierrors.IsNotFound(err) {
				return fmt.Errorf("the %T is still there (%w)", object, err)
			}
		}
		return nil
	})
}

// until waits and reports.
func (r *tour) until(ctx context.Context, what string, look func(context.Context) error) error {
	if err := stage.Until(ctx, stepTimeout, what, look); err != nil {
		return err
	}
	r.line.Say("%s", what)
	return nil
}

func (r *tour) ready(ctx context.Context, app string) error {
	return r.stage.Ready(ctx, &v1alpha1.App{}, shop, app)
}

// answers waits until the app's Service answers with the sentence, if pods really run.
func (r *tour) answers(ctx context.Context, app, want string) error {
	if !r.stage.Cluster.RealPods() {
		r.line.Say("curl %s: skipped, because its pods are simulated", app)
		return nil
	}
	return r.until(ctx, fmt.Sprintf("curl %s: %s", app, want), func(ctx context.Context) error {
		got, err := r.stage.GetService(ctx, shop, app)
		if err == nil && got != want {
			err = fmt.Errorf("it answers %q", got)
		}
		return err
	})
}

func (r *tour) generation(ctx context.Context, deployment string) (int64, error) {
	d := &appsv1.Deployment{}
	err := r.stage.Client.Get(ctx, client.ObjectKey{Namespace: shop, Name: deployment}, d)
	return d.Generation, err
}

// edit replaces text in a file of the sample project.
func (r *tour) edit(file, old, text string) error {
	path := folder(file)
	content, err := r.samples.Acme.Read(path)
	if err != nil {
		return err
	}
	if !bytes.Contains(content, []byte(old)) {
		return fmt.Errorf("editing %s: it does not hold %q", path, old)
	}
	return r.samples.Acme.Write(path, bytes.Replace(content, []byte(old), []byte(text), 1))
}

func folder(app string) string { return "projects/shop/apps/" + app }
