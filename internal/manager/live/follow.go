package live

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/internal/manager/etag"
	"github.com/kubeop/kubeop/internal/manager/index"
)

// The names of the lists. A caller with tokens of one tenant sees a list with only that tenant.
const (
	allTenants    = "tenants"
	allPriceLists = "pricelists"
)

func tenantsOf(tenant string) string       { return "tenants/" + tenant }
func projectsOf(tenant string) string      { return "projects/" + tenant }
func appsOf(tenant, project string) string { return "apps/" + tenant + "/" + project }

// Apply records an object as it is now.
func Apply(x *index.Index, object client.Object) error {
	lists, content := place(object)
	if len(lists) == 0 {
		return nil
	}
	item, err := encode(object.GetName(), content)
	if err != nil {
		return err
	}
	item.UID, item.Created, item.Deleting = string(object.GetUID()), object.GetCreationTimestamp().Time, object.GetDeletionTimestamp() != nil
	for _, list := range lists {
		x.Put(list, item)
	}
	return nil
}

// Forget records that an object was deleted.
func Forget(x *index.Index, object client.Object) {
	lists, _ := place(object)
	for _, list := range lists {
		x.Delete(list, object.GetName())
	}
}

// place returns the lists that have an object, and the content of the answer about it. Objects of the platform are in no list.
func place(object client.Object) (lists []string, content any) {
	switch o := object.(type) {
	case *v1alpha1.Tenant:
		return []string{allTenants, tenantsOf(o.Name)}, tenantOf(o)
	case *v1alpha1.PriceList:
		return []string{allPriceLists}, pricesOf(o)
	case *v1alpha1.Project:
		if tenant, project := Owner(o.Namespace); project == "" && tenant != "" {
			return []string{projectsOf(tenant)}, projectOf(tenant, o)
		}
	case *v1alpha1.App:
		if tenant, project := Owner(o.Namespace); project != "" {
			return []string{appsOf(tenant, project)}, appOf(tenant, project, o)
		}
	}
	return nil, nil
}

// Owner returns the tenant and the project of a namespace; the home namespace of a tenant has no project. It returns "" for namespaces of the
// platform, and for all others. Names of tenants have no dash.
func Owner(namespace string) (tenant, project string) {
	home, is := strings.CutPrefix(namespace, v1alpha1.HomeNamespace(""))
	if tenant, project, _ = strings.Cut(home, "-"); !is || tenant == v1alpha1.PlatformTenant {
		return "", ""
	}
	return tenant, project
}

func encode(name string, content any) (*index.Item, error) {
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(content); err != nil {
		return nil, fmt.Errorf("encoding %s: %w", name, err)
	}
	text := bytes.TrimSuffix(body.Bytes(), []byte("\n"))
	return &index.Item{Name: name, Body: bytes.Clone(text), ETag: etag.Of(text)}, nil
}
