package read

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/cmd/kubeop/call"
	"github.com/kubeop/kubeop/cmd/kubeop/objects"
	"github.com/kubeop/kubeop/delivery/inventory"
	"github.com/kubeop/kubeop/gitops/identity"
)

// Trace returns the command trace.
func Trace(c *call.Call) *cobra.Command {
	return &cobra.Command{
		Use:   "trace KIND/NAME",
		Short: "Show where an object comes from: its app, file, commit and author",
		Long: `Show where an object of the cluster comes from. The command follows the owners of the object up to one that an app delivered, or to the Job of a hook,
and shows this app, the file that declares it, and the commit and author of its last change.`,
		Example: `  # Who declared this pod
  kubeop trace pod/web-7d4b9c-x2x4q -n kubeop-acme-shop

  # An object of a kind that several groups have
  kubeop trace certificates.cert-manager.io/web -n kubeop-acme-shop`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return trace(cmd.Context(), c, args[0]) },
	}
}

// maxOwners bounds how many owners are followed.
const maxOwners = 10

func trace(ctx context.Context, c *call.Call, arg string) error {
	kindArg, name, ok := strings.Cut(arg, "/")
	if !ok || name == "" {
		return fmt.Errorf("%q names no object: write KIND/NAME, such as pod/web-0", arg)
	}
	reader, err := c.Client()
	if err != nil {
		return err
	}
	kind, err := kindNamed(c, kindArg)
	if err != nil {
		return err
	}
	namespace, _, err := c.Flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return fmt.Errorf("reading the kubeconfig: %w", err)
	}
	if within := c.Within(); *c.Flags.Namespace == "" && within.Project != "" {
		namespace = v1alpha1.ProjectNamespace(within.Tenant, within.Project)
	}
	object, err := readAny(ctx, reader, kind, client.ObjectKey{Namespace: namespace, Name: name})
	if err != nil {
		return err
	}
	page := c.Page()
	page.Title("%s/%s", object.GetKind(), object.GetName())
	app, err := owningApp(ctx, reader, object, func(owner *unstructured.Unstructured) {
		page.Field("Owner", owner.GetKind()+"/"+owner.GetName())
	})
	if err != nil {
		return err
	}
	if app == nil {
		page.Field("App", "none: no app delivered it, or an owner of it")
		return page.End()
	}
	ref, _ := identity.Of(app)
	page.Field("App", ref.Path())
	describeOrigin(page, app)
	return page.End()
}

// kindNamed returns the kind that an argument names, as kubectl does: "pod", "deploy", "certificates.cert-manager.io".
func kindNamed(c *call.Call, arg string) (schema.GroupVersionKind, error) {
	mapper, err := c.Flags.ToRESTMapper()
	if err != nil {
		return schema.GroupVersionKind{}, fmt.Errorf("reading the kinds of the cluster: %w", err)
	}
	resource := schema.ParseGroupResource(strings.ToLower(arg))
	kind, err := mapper.KindFor(resource.WithVersion(""))
	if err != nil {
		return schema.GroupVersionKind{}, fmt.Errorf("the cluster has no kind %q: %w", arg, err)
	}
	return kind, nil
}

func readAny(ctx context.Context, reader client.Client, kind schema.GroupVersionKind, key client.ObjectKey) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	if namespaced, err := reader.IsObjectNamespaced(object); err != nil {
		return nil, fmt.Errorf("reading the kinds of the cluster: %w", err)
	} else if !namespaced {
		key.Namespace = ""
	}
	if err := reader.Get(ctx, key, object); err != nil {
		return nil, fmt.Errorf("reading %s/%s: %w", kind.Kind, key.Name, err)
	}
	return object, nil
}

// owningApp returns the app that delivered an object or one of its owners; nil for none. An app is named by labels, which others can set, so the
// object has to be in its inventory, or to be owned by it as the Job of a hook. owner is called with each owner on the way.
func owningApp(ctx context.Context, reader client.Client, object *unstructured.Unstructured, owner func(*unstructured.Unstructured)) (*v1alpha1.App, error) {
	for range maxOwners {
		app, err := labelledApp(ctx, reader, object)
		if app != nil || err != nil {
			return app, err
		}
		controller := metav1.GetControllerOf(object)
		if controller == nil {
			return nil, nil
		}
		kind := schema.FromAPIVersionAndKind(controller.APIVersion, controller.Kind)
		object, err = readAny(ctx, reader, kind, client.ObjectKey{Namespace: object.GetNamespace(), Name: controller.Name})
		if err != nil {
			return nil, err
		}
		owner(object)
	}
	return nil, nil
}

func labelledApp(ctx context.Context, reader client.Client, object *unstructured.Unstructured) (*v1alpha1.App, error) {
	labels := object.GetLabels()
	ref := identity.Ref{Tenant: labels[v1alpha1.TenantLabel], Project: labels[v1alpha1.ProjectLabel], App: labels[v1alpha1.AppLabel]}
	if ref.Tenant == "" || ref.Project == "" || ref.App == "" {
		return nil, nil
	}
	app := &v1alpha1.App{}
	err := reader.Get(ctx, ref.Key(), app)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("the object has the labels of the app %s, which does not exist any more", ref.Path())
	}
	if err != nil {
		return nil, fmt.Errorf("reading the app %s: %w", ref.Path(), err)
	}
	if objects.IsHook(object, app) {
		return app, nil
	}
	id := inventory.IDOf(object).String()
	for _, entry := range app.Status.Inventory.Entries {
		if entry.ID == id {
			return app, nil
		}
	}
	return nil, nil
}
