package plan

import (
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
const whichRepository = "name of the Repository (default: that of --tenant, or the one with the name of the clone's folder, or with its URL)"

// find reads the Repository: that of the flags, or the one with the name of the clone's folder, or with its URL.
func (p *command) find(ctx context.Context, c client.Client, commit *snapshot) (*v1alpha1.Repository, error) {
	name := p.repository
	if name == "" {
		name = p.Within().Tenant
	}
	if name == "" {
		name = filepath.Base(commit.root)
		if info, err := os.Stat(filepath.Join(commit.root, "tenants")); err == nil && info.IsDir() {
			name = v1alpha1.PlatformRepository
		}
	}
	repository := &v1alpha1.Repository{}
	err := c.Get(ctx, client.ObjectKey{Name: name}, repository)
	if err == nil || p.repository != "" || p.Within().Tenant != "" {
		return repository, unread(name, err)
	}
	found, unfound := followed(ctx, c, commit.root)
	if found == nil {
		return nil, errors.Join(unread(name, err), unfound)
	}
	return found, nil
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
