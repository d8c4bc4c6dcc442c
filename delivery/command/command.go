// Package command composes the sentences by which messages ask a person to act: who may do it, and the whole command.
package command

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// Who is the role whose rights a command needs. docs/tenants.md lists the commands of each role.
type Who string

const (
	// Editor is a person who may request something from kubeop.
	Editor Who = "an owner of the tenant with the role edit or admin"
	// Admin is a person who may also confirm what deletes data.
	Admin Who = "an owner of the tenant with the role admin, or an administrator of the cluster,"
	// Administrator is a person who may update Tenants.
	Administrator Who = "an administrator of the cluster"
)

// In returns who has the rights in a tenant: nobody is an owner of the platform's own objects, whose tenant is "" or "platform".
func (w Who) In(tenant string) Who {
	if tenant == "" || tenant == v1alpha1.PlatformTenant {
		return Administrator
	}
	return w
}

// Now is a value for annotations that request something: each call of the command gives a new one.
const Now = `"$(date +%s)"`

// Annotate returns the sentence that who may give an object an annotation, such as "an administrator of the cluster may run: kubectl
// annotate app web -n kubeop-acme-shop --overwrite paas.kubeop.io/confirm-deletions=all". resource is the kubectl name of the kind.
func Annotate(who Who, resource string, o metav1.Object, key, value string) string {
	return fmt.Sprintf("%s may run: kubectl annotate %s --overwrite %s=%s", who, at(resource, o), key, value)
}

// Again returns the sentence that people of a tenant may request another try of an App.
func Again(tenant string, app metav1.Object, annotation string) string {
	return Annotate(Editor.In(tenant), "app", app, annotation, Now)
}

// Set returns the sentence that administrators may set a field of an App, for an App that is not in Git any more.
func Set(app metav1.Object, field, value string) string {
	return fmt.Sprintf("%s may run: kubectl patch %s --type merge -p '{\"spec\":{%q:%q}}'", Administrator, at("app", app), field, value)
}

// ForceRemoval returns the sentence that administrators may have the deletion of an object not wait for finalizers that no controller handles.
func ForceRemoval(resource string, o metav1.Object) string {
	return "a finalizer that nobody serves any more is taken off, and what it waits for left undone, if that is meant: " +
		Annotate(Administrator, resource, o, v1alpha1.ForceRemovalAnnotation, o.GetName())
}

// Delete returns the sentence that who may delete an object.
func Delete(who Who, resource string, o metav1.Object) string {
	return fmt.Sprintf("%s may run: kubectl delete %s", who, at(resource, o))
}

// DeleteClaim returns the sentence that people may delete a claim, and its data with it.
func DeleteClaim(claim metav1.Object) string {
	return Delete(Admin.In(v1alpha1.TenantOf(claim.GetNamespace())), "pvc", claim)
}

// TakeOffFinalizers returns the sentence that who may let an object go that finalizers hold.
func TakeOffFinalizers(who Who, resource string, o metav1.Object) string {
	return fmt.Sprintf(`%s may run: kubectl patch %s --type merge -p '{"metadata":{"finalizers":null}}'`, who, at(resource, o))
}

// CreateSecret returns the sentence that people may create a Secret with these keys, or with any if there are none: owners in the namespaces
// of their tenant's projects, administrators in others.
func CreateSecret(namespace, name string, keys ...string) string {
	text := fmt.Sprintf("%s may run: kubectl create secret generic %s -n %s", Admin.In(v1alpha1.TenantOf(namespace)), name, namespace)
	if len(keys) == 0 {
		keys = []string{"KEY"}
	}
	for _, key := range keys {
		flag := " --from-literal="
		if strings.Contains(key, ".") || key == "identity" || key == "known_hosts" { // They have several lines.
			flag = " --from-file="
		}
		text += flag + key + "=..."
	}
	return text
}

// WriteSecret is CreateSecret for a Secret that exists: its other keys stay as they are.
func WriteSecret(namespace, name string, keys ...string) string {
	return CreateSecret(namespace, name, keys...) + " --dry-run=client -o yaml | kubectl apply -f -"
}

// RemoveKey returns the sentence that people may take a key out of a Secret.
func RemoveKey(namespace, name, key string) string {
	return fmt.Sprintf(`%s may run: kubectl patch secret %s -n %s -p '{"data":{%q:null}}'`, Admin.In(v1alpha1.TenantOf(namespace)), name, namespace, key)
}

// Label returns the sentence that administrators may give an object labels, each as key=value, or take one off as key-.
func Label(resource string, o metav1.Object, labels ...string) string {
	return fmt.Sprintf("%s may run: kubectl label %s --overwrite %s", Administrator, at(resource, o), strings.Join(labels, " "))
}

// Describe returns the sentence that administrators may see what the matter is with an object.
func Describe(resource string, o metav1.Object) string {
	return fmt.Sprintf("%s may see why with: kubectl describe %s", Administrator, at(resource, o))
}

// Resource returns the name by which kubectl knows a kind, such as "priorityclass.scheduling.k8s.io".
func Resource(kind schema.GroupKind) string { return strings.ToLower(kind.String()) }

// Disown returns the sentence that administrators may have claims outlive the object that owns them.
func Disown(namespace string, claims []string) string {
	return fmt.Sprintf("to keep them, %s may run: kubectl patch pvc %s -n %s --type json -p '[{\"op\":\"remove\",\"path\":\"/metadata/ownerReferences\"}]'",
		Administrator, strings.Join(claims, " "), namespace)
}

// OfTenant names a field of a Tenant, and the file in which administrators set it.
func OfTenant(field string) string {
	return field + " of the Tenant, in tenant.yaml of the platform repository"
}

// OfPolicy names a field of a Policy, and the file in which administrators set it.
func OfPolicy(policy, field string) string {
	return fmt.Sprintf("%s of policies/%s.yaml in the platform repository", field, policy)
}

// OfChart names a setting of the operator, which administrators set when they upgrade kubeop's release.
func OfChart(value string) string { return value + " of the values of kubeop's chart" }

// at returns the arguments of kubectl that name an object.
func at(resource string, o metav1.Object) string {
	if o.GetNamespace() == "" {
		return resource + " " + o.GetName()
	}
	return resource + " " + o.GetName() + " -n " + o.GetNamespace()
}
