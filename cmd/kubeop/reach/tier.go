package reach

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/delivery/few"
	"github.com/kubeop/kubeop/delivery/isolation"
)

// uncomputed says which ClusterNetworkPolicies decide before NetworkPolicies do, because the verdicts leave them out; "" for none.
func uncomputed(ctx context.Context, reader client.Reader) (string, error) {
	kind := isolation.ClusterPolicyKind
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	err := reader.List(ctx, list)
	switch {
	case meta.IsNoMatchError(err), apierrors.IsNotFound(err): // The cluster does not have them.
		return "", nil
	case apierrors.IsForbidden(err):
		return "ClusterNetworkPolicies, which you may not read, may decide otherwise", nil
	case err != nil:
		return "", fmt.Errorf("listing the ClusterNetworkPolicies: %w", err)
	}
	var names []string
	for i := range list.Items {
		if tier, _, _ := unstructured.NestedString(list.Items[i].Object, "spec", "tier"); tier == "Admin" {
			names = append(names, list.Items[i].GetName())
		}
	}
	if len(names) == 0 {
		return "", nil
	}
	slices.Sort(names)
	return "ClusterNetworkPolicies of the tier Admin, which may decide otherwise: " + strings.Join(few.Of(names, 4), ", "), nil
}
