// Package objects reads the objects of an app and what Kubernetes made of them, down to the pods.
package objects

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/health"
	"github.com/kubeop/kubeop/delivery/inventory"
	"github.com/kubeop/kubeop/delivery/jobs"
)

// State is what can be said of an object.
type State string

// States of objects.
const (
	Healthy State = "Healthy"
	// Unhealthy: it is in progress, or failed.
	Unhealthy State = "Unhealthy"
	// Missing: the app delivered it, and it does not exist.
	Missing State = "Missing"
	// Unknown: the caller may not read it, or its kind is not served any more.
	Unknown State = "Unknown"
)

// Node is an object of an app, or one that Kubernetes made of it.
type Node struct {
	Kind      string    `json:"kind"`
	Group     string    `json:"group,omitempty"`
	Namespace string    `json:"namespace,omitempty"`
	Name      string    `json:"name"`
	Created   string    `json:"created,omitempty"`
	State     State     `json:"state"`
	Why       string    `json:"why,omitempty"`
	Children  []*Node   `json:"children,omitempty"`
	UID       types.UID `json:"-"`

	// Object is nil if it could not be read.
	Object *unstructured.Unstructured `json:"-"`
}

// Reader reads with the rights of the caller.
type Reader struct {
	Client client.Client
	// Logs are quoted for pods that fail; nil for none.
	Logs health.Logs
}

// parallel is how many objects are read at the same time.
const parallel = 8

// made are the kinds that controllers of Kubernetes make of others.
var made = []schema.GroupVersionKind{
	{Group: "apps", Version: "v1", Kind: "Deployment"}, {Group: "apps", Version: "v1", Kind: "StatefulSet"}, {Group: "apps", Version: "v1", Kind: "DaemonSet"},
	{Group: "apps", Version: "v1", Kind: "ReplicaSet"}, {Group: "batch", Version: "v1", Kind: "CronJob"}, {Group: "batch", Version: "v1", Kind: "Job"}, {Version: "v1", Kind: "Pod"},
}

// Of returns the objects that an app delivered and the Jobs of its hooks, each with what was made of it.
func (r Reader) Of(ctx context.Context, app *v1alpha1.App) ([]*Node, error) {
	entries := app.Status.Inventory.Entries
	roots := make([]*Node, len(entries))
	group, within := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for i, entry := range entries {
		group.Go(func() error {
			node, err := r.read(within, entry)
			roots[i] = node
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	hooks, err := r.hooks(ctx, app)
	if err != nil {
		return nil, err
	}
	roots = append(roots, hooks...)
	if err := r.adopt(ctx, roots); err != nil {
		return nil, err
	}
	slices.SortFunc(roots, byName)
	return roots, nil
}

// hooks returns the Jobs of an app's hooks, which no inventory lists.
func (r Reader) hooks(ctx context.Context, app *v1alpha1.App) ([]*Node, error) {
	all, err := r.list(ctx, jobs.Kind, app.Namespace, client.MatchingLabels{v1alpha1.AppLabel: app.Name}, client.HasLabels{v1alpha1.HookLabel})
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(job *Node) bool { return !IsHook(job.Object, app) })
	for _, job := range all {
		if err := r.fill(ctx, job, job.Object); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// IsHook reports whether an object is the Job of a hook of an app. Anybody can set labels, so the app has to own it, too.
func IsHook(object client.Object, app *v1alpha1.App) bool {
	return object.GetLabels()[v1alpha1.HookLabel] != "" && slices.ContainsFunc(object.GetOwnerReferences(), func(o metav1.OwnerReference) bool { return o.UID == app.UID })
}

// read reads one object of the inventory.
func (r Reader) read(ctx context.Context, entry v1alpha1.InventoryEntry) (*Node, error) {
	id, err := inventory.ParseObjectID(entry.ID)
	if err != nil {
		return nil, err
	}
	node := &Node{Kind: id.Kind, Group: id.Group, Namespace: id.Namespace, Name: id.Name}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(schema.GroupVersionKind{Group: id.Group, Version: entry.Version, Kind: id.Kind})
	err = r.Client.Get(ctx, client.ObjectKey{Namespace: id.Namespace, Name: id.Name}, object)
	switch {
	case err == nil:
		return node, r.fill(ctx, node, object)
	case apierrors.IsNotFound(err):
		node.State, node.Why = Missing, "it does not exist"
	case apierrors.IsForbidden(err):
		node.State, node.Why = Unknown, fmt.Sprintf("you may not read %s objects here", id.Kind)
	case meta.IsNoMatchError(err):
		node.State, node.Why = Unknown, fmt.Sprintf("the cluster does not serve %s %s any more", entry.Version, id.Kind)
	default:
		return nil, fmt.Errorf("reading %s/%s: %w", id.Kind, id.Name, err)
	}
	return node, nil
}

// fill fills in what is known of an object that was read.
func (r Reader) fill(ctx context.Context, node *Node, object *unstructured.Unstructured) error {
	node.Object, node.UID = object, object.GetUID()
	created := object.GetCreationTimestamp()
	node.Created = created.UTC().Format("2006-01-02T15:04:05Z")
	why, _, err := health.WhyUnhealthy(object)
	if err != nil {
		return fmt.Errorf("judging %s/%s: %w", node.Kind, node.Name, err)
	}
	if why == "" {
		node.State = Healthy
		return nil
	}
	node.State, node.Why = Unhealthy, why
	if node.Kind != "Pod" && node.Kind != "PersistentVolumeClaim" {
		return nil
	}
	explainer := health.Explainer{Client: r.Client, Logs: r.Logs}
	explained := explainer.Explain(ctx, object)
	if explained.Why == "" && node.Kind == "PersistentVolumeClaim" { // It waits for its first pod.
		node.State, node.Why = Healthy, ""
		return nil
	}
	node.Why = cmp.Or(explained.Why, why)
	return nil
}

// adopt reads what was made of the roots, and puts it below them.
func (r Reader) adopt(ctx context.Context, roots []*Node) error {
	namespaces := sets.New[string]()
	for _, root := range roots {
		if root.UID != "" && root.Namespace != "" {
			namespaces.Insert(root.Namespace)
		}
	}
	all := slices.Clone(roots)
	for namespace := range namespaces {
		for _, kind := range made {
			found, err := r.list(ctx, kind, namespace)
			if err != nil {
				return err
			}
			all = append(all, found...)
		}
	}
	byUID := map[types.UID]*Node{}
	for _, node := range all {
		if byUID[node.UID] == nil { // A root is listed with its kind too.
			byUID[node.UID] = node
		}
	}
	for _, node := range all[len(roots):] {
		owner := metav1.GetControllerOf(node.Object)
		if owner == nil || byUID[owner.UID] == nil || byUID[node.UID] != node {
			continue
		}
		parent := byUID[owner.UID]
		parent.Children = append(parent.Children, node)
	}
	return r.judge(ctx, roots)
}

// list reads the objects of a kind, without judging them. Those that the caller may not list are left out.
func (r Reader) list(ctx context.Context, kind schema.GroupVersionKind, namespace string, of ...client.ListOption) ([]*Node, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind)
	if err := r.Client.List(ctx, list, append(of, client.InNamespace(namespace))...); err != nil {
		if apierrors.IsForbidden(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("listing the %s objects of %s: %w", kind.Kind, namespace, err)
	}
	nodes := make([]*Node, len(list.Items))
	for i := range list.Items {
		object := &list.Items[i]
		nodes[i] = &Node{Kind: kind.Kind, Group: kind.Group, Namespace: namespace, Name: object.GetName(), UID: object.GetUID(), Object: object}
	}
	return nodes, nil
}

// judge fills in what is known of everything below the nodes, and leaves out what is over: ReplicaSets of earlier revisions.
func (r Reader) judge(ctx context.Context, nodes []*Node) error {
	for _, node := range nodes {
		node.Children = slices.DeleteFunc(node.Children, over)
		slices.SortFunc(node.Children, byName)
		for _, child := range node.Children {
			if err := r.fill(ctx, child, child.Object); err != nil {
				return err
			}
		}
		if err := r.judge(ctx, node.Children); err != nil {
			return err
		}
	}
	return nil
}

// over reports whether an object is a ReplicaSet that is to have no pods, and has none.
func over(n *Node) bool {
	replicas, found, err := unstructured.NestedInt64(n.Object.Object, "spec", "replicas")
	return n.Kind == "ReplicaSet" && err == nil && found && replicas == 0 && len(n.Children) == 0
}

func byName(a, b *Node) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
}

// Pods returns the pods below nodes, in the order of the tree.
func Pods(nodes []*Node) []*Node {
	var pods []*Node
	for _, node := range nodes {
		if node.Kind == "Pod" && node.Group == "" && node.Object != nil {
			pods = append(pods, node)
		}
		pods = append(pods, Pods(node.Children)...)
	}
	return pods
}
