package plan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/cmd/kubeop/git"
	"github.com/kubeop/kubeop/cmd/kubeop/migrate/address"
)

// whichRepository describes the flag that names the Repository.
const whichRepository = "name of the Repository (default: that of --tenant, or the one with the name of the clone's folder, or with its URL, or that of the namespace)"

// find reads the Repository: that of the flags, or the one with the name of the clone's folder, or with its URL. If there is none, and the clone has
// no other URL, it is that of the tenant of the kubeconfig's namespace.
func (p *command) find(ctx context.Context, c client.Client, commit *snapshot) (*v1alpha1.Repository, error) {
	named := cmp.Or(p.repository, p.Tenant)
	if named == "" && *p.Flags.Namespace != "" {
		named = p.Within().Tenant
	}
	name := cmp.Or(named, filepath.Base(commit.root))
	if info, err := os.Stat(filepath.Join(commit.root, "tenants")); named == "" && err == nil && info.IsDir() {
		name = v1alpha1.PlatformRepository
	}
	repository := &v1alpha1.Repository{}
	err := c.Get(ctx, client.ObjectKey{Name: name}, repository)
	if err == nil || named != "" {
		return repository, unread(name, err)
	}
	found, unfound := followed(ctx, c, commit.root)
	if found == nil && unfound == nil {
		found, unfound = p.ofKubeconfig(ctx, c, commit.root)
	}
	if found == nil {
		return nil, errors.Join(unread(name, err), unfound)
	}
	return found, nil
}

// ofKubeconfig returns the Repository of the tenant of the kubeconfig's namespace; nil if there is no tenant.
func (p *command) ofKubeconfig(ctx context.Context, c client.Client, clone string) (*v1alpha1.Repository, error) {
	tenant := p.Within().Tenant
	if tenant == "" {
		return nil, nil
	}
	repository := &v1alpha1.Repository{}
	if err := c.Get(ctx, client.ObjectKey{Name: tenant}, repository); err != nil {
		return nil, unread(tenant, err)
	}
	if url, err := git.RemoteURL(ctx, clone); err == nil && !address.Same(repository.Spec.URL, url) {
		return nil, fmt.Errorf("repository %s, which is that of the kubeconfig's namespace, has another URL than this clone: %s", tenant, repository.Spec.URL)
	}
	return repository, nil
}

// unread explains why a Repository could not be read; nil if it could.
func unread(name string, err error) error {
	if err != nil {
		return fmt.Errorf("reading repository %s, which can be named by --repository or --tenant: %w", name, err)
	}
	return nil
}

// followed returns the only Repository with the URL of a clone; nil if there is none, or the person may not list them. Several are an error.
func followed(ctx context.Context, c client.Client, clone string) (*v1alpha1.Repository, error) {
	url, err := git.RemoteURL(ctx, clone)
	if err != nil {
		return nil, nil // The folder is no clone, or has no remote.
	}
	list := &v1alpha1.RepositoryList{}
	if err := c.List(ctx, list); apierrors.IsForbidden(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("listing the repositories: %w", err)
	}
	var found []*v1alpha1.Repository
	var names []string
	for i := range list.Items {
		if address.Same(list.Items[i].Spec.URL, url) {
			found, names = append(found, &list.Items[i]), append(names, list.Items[i].Name)
		}
	}
	if len(found) > 1 {
		return nil, fmt.Errorf("the repositories %s have the URL of this clone", strings.Join(names, " and "))
	}
	if len(found) == 0 {
		return nil, nil
	}
	return found[0], nil
}
