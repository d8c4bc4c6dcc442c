package offline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/app/project"
	"github.com/kubeop/kubeop/controllers/app/source"
	"github.com/kubeop/kubeop/controllers/plan"
	"github.com/kubeop/kubeop/delivery/fetch/folder"
	"github.com/kubeop/kubeop/delivery/guardrails"
	"github.com/kubeop/kubeop/delivery/own"
	"github.com/kubeop/kubeop/delivery/podsecurity"
	"github.com/kubeop/kubeop/delivery/policy"
	"github.com/kubeop/kubeop/gitops/identity"
	"github.com/kubeop/kubeop/gitops/lines"
	"github.com/kubeop/kubeop/gitops/tree"
)

// rendering renders the apps of a tree that are made from nothing but their folders.
type rendering struct {
	*plan.Renderer
	reader *tree.Reader
	tree   *tree.Tree
	files  fs.FS
	// terms are those of the tenant whose repository is checked.
	terms *terms
	// cluster has no objects.
	cluster client.Client

	mu       sync.Mutex
	problems []tree.Problem
	rendered int
	// apps are those that were rendered without a problem.
	apps map[tree.Node]delivered
}

// delivered is an app with the host names of its objects.
type delivered struct {
	app   *v1alpha1.App
	hosts []plan.Host
}

// rendersAtOnce is how many apps are rendered at once.
const rendersAtOnce = 4

// renderAll renders the apps of a repository against a cluster without objects. It returns what does not render or is not allowed, and how many
// apps were rendered.
func (v *validate) renderAll(ctx context.Context, files fs.FS, t *tree.Tree, known *terms) (problems []tree.Problem, rendered int, err error) {
	scratch, err := os.MkdirTemp("", "kubeop-validate-")
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	config, err := plan.Empty()
	if err != nil {
		return nil, 0, err
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return nil, 0, err
	}
	r := &rendering{reader: v.reader, tree: t, files: files, terms: known, apps: map[tree.Node]delivered{}}
	if r.cluster, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		return nil, 0, err
	}
	all := folder.FromFS(files)
	folders := func(app *v1alpha1.App) (*folder.Folder, error) {
		return all.Folder(app.Annotations[v1alpha1.FolderAnnotation]), nil
	}
	local, err := plan.Local(ctx, config, r.cluster, scratch)
	if err != nil {
		return nil, 0, err
	}
	r.Renderer = v.renderer(local, folders)
	if err := r.all(ctx); err != nil {
		return nil, 0, err
	}
	r.shareHosts()
	slices.SortStableFunc(r.problems, func(a, b tree.Problem) int {
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	return r.problems, r.rendered, nil
}

// all renders all apps, some at once.
func (r *rendering) all(ctx context.Context) error {
	var failed error
	var work sync.WaitGroup
	slots := make(chan struct{}, rendersAtOnce)
	start := func(n tree.Node, app *v1alpha1.App) {
		slots <- struct{}{}
		work.Go(func() {
			defer func() { <-slots }()
			r.one(ctx, n, app)
		})
	}
	r.tree.Walk(func(n tree.Node) bool {
		app, err := r.app(n)
		if err == nil && app != nil {
			start(n, app)
		}
		failed = err
		return err == nil && ctx.Err() == nil
	})
	work.Wait()
	return errors.Join(failed, ctx.Err())
}

// app returns the App that a folder declares, with the defaults that the API server sets; nil if it declares none.
func (r *rendering) app(n tree.Node) (*v1alpha1.App, error) {
	if n.Ref().App == "" || !n.Declared() {
		return nil, nil
	}
	object, err := r.reader.Default(r.tree.Object(n, "worktree@sha1:"+strings.Repeat("0", 40)))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", r.tree.File(n), err)
	}
	app, isApp := object.(*v1alpha1.App)
	if !isApp {
		return nil, fmt.Errorf("%s is a %T", r.tree.File(n), object)
	}
	return app, nil
}

// one renders an app, or judges only its source if that is elsewhere, and notes what is wrong. What depends on the kinds of a cluster, or
// on settings of the tenant that are not known, is left to the operator.
func (r *rendering) one(ctx context.Context, n tree.Node, app *v1alpha1.App) {
	at, known, err := r.place(n.Ref(), app)
	local, objects := source.Local(app), []*unstructured.Unstructured(nil)
	switch {
	case err != nil:
	case local:
		var made *plan.Rendered
		made, err = r.Render(ctx, app, at)
		objects = made.Declared()
	default:
		from, _ := guardrails.SourceOf(&app.Spec)
		err = policy.Refusal(policy.JudgeSource("App/"+app.Name, from, at.Guardrails))
	}
	unjudged := []string{policy.UnknownKind}
	if !known {
		unjudged = append(unjudged, policy.ClusterScoped, policy.Toleration, policy.IngressAnnotation, policy.VolumeType, policy.PriorityClass, policy.GracePeriod, podsecurity.Rule)
	}
	if err = policy.Without(err, unjudged...); meta.IsNoMatchError(err) {
		return
	}
	var problems []tree.Problem
	if err != nil {
		problems = r.problemsOf(n, app, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.problems = append(r.problems, problems...)
		return
	}
	if local {
		r.rendered++
		r.apps[n] = delivered{app, plan.HostsOf(objects)}
	}
}

// problemsOf returns the problems of an app that an error of rendering it is about.
func (r *rendering) problemsOf(n tree.Node, app *v1alpha1.App, err error) (problems []tree.Problem) {
	for _, found := range (lines.Declaration{App: app, File: r.tree.File(n), Files: r.files}).Findings(err) {
		problems = append(problems, tree.Problem{Finding: found, Of: n.Ref()})
	}
	return problems
}

// shareHosts reports the host names that an app before has in another project, in the order of the tree.
func (r *rendering) shareHosts() {
	hosts := plan.Hosts{}
	r.tree.Walk(func(n tree.Node) bool {
		of := r.apps[n] // Of an app that was not rendered, nothing is known.
		if err := hosts.Add(n.Ref(), of.hosts); err != nil {
			r.problems = append(r.problems, r.problemsOf(n, of.app, err)...)
		}
		return true
	})
}

// place returns where an app is delivered. known reports whether the settings of its tenant are known.
func (r *rendering) place(ref identity.Ref, app *v1alpha1.App) (at project.Place, known bool, err error) {
	at = project.Place{
		Owner:     own.Owner{Tenant: ref.Tenant, Project: ref.Project, App: ref.App, Namespace: app.Namespace},
		Namespace: &metav1.ObjectMeta{Name: app.Namespace}, Tenant: &v1alpha1.Tenant{},
	}
	if at.Client, err = r.Clients.As(app.Namespace); err != nil {
		return at, false, err
	}
	switch node, there := r.tree.Find(ref.Parent().Parent()); {
	case r.terms.tenant != nil:
		at.Tenant, known = r.terms.tenant, true
		if r.terms.ruled {
			at.Guardrails = guardrails.Offline(at.Tenant, r.terms.policies)
		}
	case r.tree.Scope.Tenant == "" && there && node.Declared():
		at.Tenant, known = r.tree.Object(node, "").(*v1alpha1.Tenant)
		under, _ := guardrails.Select(at.Tenant, r.tree.DeclaredPolicies())
		at.Guardrails = guardrails.Offline(at.Tenant, under)
	}
	at.Guardrails = plan.Opening(r.tree, ref.Parent(), at.Guardrails)
	return at, known, nil
}
