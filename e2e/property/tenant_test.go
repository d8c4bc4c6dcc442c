//go:build e2e

package property

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/e2e/stage"
)

// tenant runs histories, one after the other.
type tenant struct {
	*world
	name string
	repo *stage.Repository
	// tree is the last pushed tree. commits are the pushed commits of the current history, oldest first.
	tree    tree
	commits []commit
	// saved is a backup of the tenant's Projects and Apps.
	saved []client.Object
}

type commit struct {
	hash string
	tree tree
}

// play carries out the acts of a history, and then checks that the cluster becomes equal to Git when everything is confirmed.
func (k *tenant) play(ctx context.Context, h history) error {
	k.tree, k.commits, k.saved = h.beginning(), nil, nil
	if err := errors.Join(k.push(ctx, false), k.converge(ctx)); err != nil {
		return fmt.Errorf("at the beginning: %w", err)
	}
	if err := k.save(ctx); err != nil {
		return err
	}
	for n, a := range h.acts {
		if err := k.do(ctx, h, a); err != nil {
			return fmt.Errorf("act %d, %s: %w", n+1, a.kind, err)
		}
		if lost := k.claims.lost(k.name); lost != nil {
			return fmt.Errorf("after act %d, %s: claims were deleted that no confirmation listed: %v", n+1, a.kind, lost)
		}
	}
	if err := errors.Join(k.push(ctx, false), k.converge(ctx)); err != nil {
		return fmt.Errorf("in the end: %w", err)
	}
	if lost := k.claims.lost(k.name); lost != nil {
		return fmt.Errorf("in the end: claims were deleted that no confirmation listed: %v", lost)
	}
	return nil
}

func (k *tenant) do(ctx context.Context, h history, a act) error {
	r := random(a.seed)
	switch a.kind {
	case "wait":
		time.Sleep(time.Duration(r.IntN(1500)) * time.Millisecond)
		return ctx.Err()
	case "restart":
		return k.restart(ctx)
	case "confirm":
		return k.confirm(ctx)
	case "restore":
		return k.restore(ctx)
	case "delete-app", "delete-project", "delete-repository", "delete-objects":
		return k.deleteLive(ctx, a.kind, r.IntN)
	case "broken":
		return k.push(ctx, true)
	case "rewind":
		then := k.commits[r.IntN(len(k.commits))]
		k.tree = then.tree.clone()
		return k.forcePush(ctx, then.hash)
	case "foreign":
		k.commits = nil
		return k.push(ctx, false)
	}
	if !h.changeTree(k.tree, a) {
		return nil
	}
	return k.push(ctx, false)
}

// push commits the tree on top of the last pushed commit, and pushes it. broken adds an invalid file.
func (k *tenant) push(ctx context.Context, broken bool) error {
	var in bytes.Buffer
	_, _ = fmt.Fprintf(&in, "reset refs/heads/next\ncommit refs/heads/next\ncommitter dev <dev@acme.example> now\ndata 4\npush\n")
	if n := len(k.commits); n > 0 {
		_, _ = fmt.Fprintf(&in, "from %s\n", k.commits[n-1].hash)
	}
	_, _ = fmt.Fprintln(&in, "deleteall")
	files := k.tree.files()
	if broken {
		for _, name := range slices.Sorted(maps.Keys(files)) {
			if strings.HasSuffix(name, "/app.yaml") {
				files[name] = "this: [is no app\n"
				break
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		_, _ = fmt.Fprintf(&in, "M 100644 inline %s\ndata %d\n%s\n", name, len(files[name]), files[name])
	}
	_, _ = fmt.Fprintln(&in, "done")
	if err := k.repo.Import(ctx, &in); err != nil {
		return err
	}
	hash, err := k.repo.Git(ctx, "rev-parse", "refs/heads/next")
	if err != nil {
		return err
	}
	k.commits = append(k.commits, commit{hash: hash, tree: k.tree.clone()})
	return k.forcePush(ctx, hash)
}

func (k *tenant) forcePush(ctx context.Context, hash string) error {
	_, err := k.repo.Git(ctx, "push", "--quiet", "--force", "origin", hash+":refs/heads/main")
	return err
}

// confirm confirms what the Repository holds now, if anything.
func (k *tenant) confirm(ctx context.Context) error {
	r := &v1alpha1.Repository{}
	if err := k.Client.Get(ctx, client.ObjectKey{Name: k.name}, r); err != nil {
		return client.IgnoreNotFound(err)
	}
	if !stage.NeedsConfirmation(r) {
		return nil
	}
	k.claims.confirmed(r.Status.Held)
	return client.IgnoreNotFound(k.ConfirmAs(ctx, r))
}

// deleteLive deletes an object of the cluster as with kubectl, with the annotation if admission requires it.
func (k *tenant) deleteLive(ctx context.Context, kind string, choose func(int) int) error {
	projects := slices.Sorted(maps.Keys(k.tree))
	if kind == "delete-repository" {
		return k.deleteOne(ctx, &v1alpha1.Repository{}, "", k.name)
	}
	if len(projects) == 0 {
		return nil
	}
	project := projects[choose(len(projects))]
	if kind == "delete-project" {
		return k.deleteOne(ctx, &v1alpha1.Project{}, v1alpha1.HomeNamespace(k.name), project)
	}
	for app := range k.tree[project].apps {
		namespace := v1alpha1.ProjectNamespace(k.name, project)
		if kind == "delete-app" {
			return k.deleteOne(ctx, &v1alpha1.App{}, namespace, app)
		}
		if err := k.deleteOne(ctx, &corev1.ConfigMap{}, namespace, app); err != nil {
			return err
		}
	}
	return nil
}

func (k *tenant) deleteOne(ctx context.Context, o client.Object, namespace, name string) error {
	err := k.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, o)
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	before := o.DeepCopyObject().(client.Object)
	marks := o.GetAnnotations()
	if marks == nil {
		marks = map[string]string{}
	}
	marks[v1alpha1.AllowDeletionAnnotation] = name
	o.SetAnnotations(marks)
	if err := k.Client.Patch(ctx, o, client.MergeFrom(before)); err != nil {
		return client.IgnoreNotFound(err)
	}
	return client.IgnoreNotFound(k.Client.Delete(ctx, o))
}

// save backs up the tenant's Projects and Apps. restore creates those that are gone, as backup tools do: with new UIDs and without status.
func (k *tenant) save(ctx context.Context) error {
	projects, apps := &v1alpha1.ProjectList{}, &v1alpha1.AppList{}
	mine := client.MatchingLabels{v1alpha1.TenantLabel: k.name}
	if err := errors.Join(k.Client.List(ctx, projects, mine), k.Client.List(ctx, apps, mine)); err != nil {
		return err
	}
	for i := range projects.Items {
		k.saved = append(k.saved, &projects.Items[i])
	}
	for i := range apps.Items {
		k.saved = append(k.saved, &apps.Items[i])
	}
	return nil
}

func (k *tenant) restore(ctx context.Context) error {
	for _, saved := range k.saved {
		o := saved.DeepCopyObject().(client.Object)
		o.SetResourceVersion("")
		o.SetUID("")
		err := k.Client.Create(ctx, o)
		switch {
		case err == nil, apierrors.IsAlreadyExists(err), apierrors.IsNotFound(err), apierrors.IsForbidden(err):
			// It exists, or its namespace does not exist or is being deleted.
		default:
			return fmt.Errorf("restoring %T %s: %w", o, o.GetName(), err)
		}
	}
	return nil
}

// stallTimeout is how long nothing may change before a history counts as stuck. totalTimeout is how long it may keep changing. Both are long,
// because Kubernetes needs ten seconds to delete a namespace, and minutes on a busy machine.
const stallTimeout, totalTimeout = 5 * time.Minute, 20 * time.Minute

// converge confirms everything that is held until the cluster equals Git.
func (k *tenant) converge(parent context.Context) error {
	ctx, cancel := context.WithTimeout(parent, totalTimeout)
	defer cancel()
	differs := errors.New("not compared yet")
	for differs != nil {
		was := differs.Error()
		err := stage.Until(ctx, stallTimeout, "the cluster equals Git, or comes nearer", func(ctx context.Context) error {
			if differs = k.equal(ctx); differs == nil || differs.Error() != was {
				return nil
			}
			if failed := k.confirm(ctx); failed != nil {
				return stage.Final(failed)
			}
			time.Sleep(300 * time.Millisecond)
			return differs
		})
		if ctx.Err() != nil {
			return fmt.Errorf("the cluster has changed for %s, and does not equal Git: %w", totalTimeout, differs)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// equal compares the tenant's Projects and Apps, and the objects of the apps, with Git.
func (k *tenant) equal(ctx context.Context) error {
	projects, apps := &v1alpha1.ProjectList{}, &v1alpha1.AppList{}
	mine := client.MatchingLabels{v1alpha1.TenantLabel: k.name}
	if err := errors.Join(k.Client.List(ctx, projects, mine), k.Client.List(ctx, apps, mine)); err != nil {
		return err
	}
	var is, want []string
	for _, p := range projects.Items {
		is = append(is, state(&p, "project "+p.Name))
	}
	for _, a := range apps.Items {
		is = append(is, state(&a, a.Namespace+"/"+a.Name))
	}
	for project, p := range k.tree {
		want = append(want, "project "+project)
		for app := range p.apps {
			want = append(want, v1alpha1.ProjectNamespace(k.name, project)+"/"+app)
		}
	}
	slices.Sort(is)
	slices.Sort(want)
	if !slices.Equal(is, want) {
		return fmt.Errorf("there are %v, Git declares %v; %s", is, want, k.report(ctx))
	}
	return k.delivered(ctx)
}

// state returns the name of an object and, if it is being deleted, what it waits for.
func state(o stage.Conditioned, name string) string {
	if o.GetDeletionTimestamp() == nil {
		return name
	}
	message := "it reports nothing"
	if ready := meta.FindStatusCondition(o.GetConditions(), v1alpha1.ReadyCondition); ready != nil {
		message = ready.Message
	}
	return fmt.Sprintf("%s (being deleted: %s)", name, message)
}

// delivered compares each app's ConfigMap and claim with Git.
func (k *tenant) delivered(ctx context.Context) error {
	for project, p := range k.tree {
		namespace := v1alpha1.ProjectNamespace(k.name, project)
		for app, turn := range p.apps {
			settings, claim := &corev1.ConfigMap{}, &corev1.PersistentVolumeClaim{}
			if err := k.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: app}, settings); err != nil {
				return err
			}
			if settings.Data["turn"] != strconv.Itoa(turn) {
				return fmt.Errorf("%s/%s has turn %s, Git declares %d", namespace, app, settings.Data["turn"], turn)
			}
			if err := k.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: app + "-data"}, claim); err != nil {
				return err
			}
			if claim.DeletionTimestamp != nil {
				return fmt.Errorf("the claim of %s/%s is being deleted", namespace, app)
			}
		}
	}
	return nil
}

// report returns the Repository's conditions, for the message of a failed history.
func (k *tenant) report(ctx context.Context) string {
	err := k.Ready(ctx, &v1alpha1.Repository{}, "", k.name)
	if err == nil {
		return "the Repository is ready"
	}
	return err.Error()
}
