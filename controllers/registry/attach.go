package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
)

// defaultAccount is the service account of pods that name none. Kubernetes makes it in each namespace, and gives the pull Secrets that it names
// to pods that name none.
const defaultAccount = "default"

// retryConflict is the pause after somebody else wrote the account at the same time.
const retryConflict = time.Second

// attached is the version of a service account that needed no change, and the names that it was to have.
type attached struct{ version, names string }

// attach has the default service account name these Secrets, and no longer those that are gone. Other entries stay. To the API server, the list
// is one field, so it is written as a whole, and only if nobody changed the account since it was read. An account that did not change since the
// last time is not read.
//
// If an app delivers the list, refused says so, and nothing is changed: two writers would undo each other's work for ever.
func (p *Provider) attach(ctx context.Context, namespace string, want, gone []string) (refused, err error) {
	version, err := p.Version(ctx, namespace, "ServiceAccount", defaultAccount)
	if err != nil || version == "" { // A watch reports when Kubernetes has made it.
		return nil, err
	}
	now := attached{version, strings.Join(want, " ")}
	if last, ok := p.attached.Load(namespace); ok && last == now && len(gone) == 0 {
		return nil, nil
	}
	account := &corev1.ServiceAccount{}
	err = p.Direct.Get(ctx, client.ObjectKey{Namespace: namespace, Name: defaultAccount}, account)
	if err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	list := merged(account.ImagePullSecrets, want, gone)
	if !slices.Equal(list, account.ImagePullSecrets) {
		if app := account.Labels[v1alpha1.AppLabel]; app != "" && applied(account) {
			return step.Stop(v1alpha1.AccountDeliveredReason, fmt.Errorf("app %s delivers the default service account with imagePullSecrets: add %s to them in Git, or take the field out of it",
				app, strings.Join(want, ", "))), nil
		}
		if account, err = p.writeList(ctx, account, list); err != nil {
			return nil, err
		}
	}
	p.attached.Store(namespace, attached{account.ResourceVersion, now.names})
	return nil, nil
}

// writeList writes the list, if the account is as it was read.
func (p *Provider) writeList(ctx context.Context, account *corev1.ServiceAccount, list []corev1.LocalObjectReference) (*corev1.ServiceAccount, error) {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": account.ResourceVersion}, "imagePullSecrets": list})
	if err != nil {
		return nil, fmt.Errorf("encoding imagePullSecrets: %w", err)
	}
	now := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: account.Namespace, Name: account.Name}}
	err = p.Direct.Patch(ctx, now, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(v1alpha1.FieldManager+"-registries"))
	if apierrors.IsConflict(err) {
		return nil, step.FailAfter(v1alpha1.ApplyFailedReason, retryConflict, err)
	}
	if err != nil {
		return nil, fmt.Errorf("naming the pull Secrets in service account %s/%s: %w", account.Namespace, account.Name, err)
	}
	return now, nil
}

// merged returns a list of pull Secrets with those that are wanted, and without those that are gone.
func merged(list []corev1.LocalObjectReference, want, gone []string) []corev1.LocalObjectReference {
	list = slices.DeleteFunc(slices.Clone(list), func(ref corev1.LocalObjectReference) bool { return slices.Contains(gone, ref.Name) })
	for _, name := range want {
		if ref := (corev1.LocalObjectReference{Name: name}); !slices.Contains(list, ref) {
			list = append(list, ref)
		}
	}
	return list
}

// applied reports whether kubeop applied the list for an app.
func applied(account *corev1.ServiceAccount) bool {
	return slices.ContainsFunc(account.ManagedFields, func(f metav1.ManagedFieldsEntry) bool {
		return f.Manager == v1alpha1.FieldManager && f.Operation == metav1.ManagedFieldsOperationApply && f.FieldsV1 != nil && strings.Contains(f.FieldsV1.GetRawString(), `"f:imagePullSecrets"`)
	})
}
