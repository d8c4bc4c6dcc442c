package changes

import (
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/internal/manager/live"
)

// subject identifies an object whose changes cause messages.
type subject struct {
	// kind is tenant, project, app or claim.
	kind string
	// path is the name without the kind, such as acme/shop/web.
	path string
}

// kinds has all kinds, in the order of their messages.
var kinds = []string{"tenant", "project", "app", "claim"}

// String returns the key of the object in the store and in messages.
func (s subject) String() string { return s.kind + "/" + s.path }

func subjectAt(key string) subject {
	kind, path, _ := strings.Cut(key, "/")
	return subject{kind, path}
}

// subjectOf returns the subject of an object. It reports false for objects of the platform, whose changes cause no messages.
func subjectOf(object client.Object) (subject, bool) {
	switch o := object.(type) {
	case *v1alpha1.Tenant:
		return subject{"tenant", o.Name}, o.Name != v1alpha1.PlatformTenant
	case *v1alpha1.Project:
		if tenant, project := live.Owner(o.Namespace); tenant != "" && project == "" {
			return subject{"project", tenant + "/" + o.Name}, true
		}
	case *v1alpha1.App:
		if tenant, project := live.Owner(o.Namespace); project != "" {
			return subject{"app", tenant + "/" + project + "/" + o.Name}, true
		}
	case *v1alpha1.HostnameClaim:
		return subject{"claim", o.Name}, o.Spec.Tenant != v1alpha1.PlatformTenant
	}
	return subject{}, false
}

// names returns the tenant, the project and the app in the path.
func (s subject) names() (tenant, project, app string) {
	if s.kind == "claim" {
		return "", "", ""
	}
	tenant, rest, _ := strings.Cut(s.path, "/")
	project, app, _ = strings.Cut(rest, "/")
	return tenant, project, app
}

func (s subject) data() data {
	tenant, project, app := s.names()
	about := data{Tenant: tenant, Project: project, App: app}
	if s.kind == "claim" {
		// A HostnameClaim has the name of its host.
		about.Hostname = strings.Replace(s.path, "wildcard--of.", "*.", 1)
	}
	return about
}

// object returns an empty object of the kind, and its key in the cluster.
func (s subject) object() (client.Object, client.ObjectKey) {
	tenant, project, app := s.names()
	switch s.kind {
	case "tenant":
		return &v1alpha1.Tenant{}, client.ObjectKey{Name: tenant}
	case "project":
		return &v1alpha1.Project{}, client.ObjectKey{Namespace: v1alpha1.HomeNamespace(tenant), Name: project}
	case "app":
		return &v1alpha1.App{}, client.ObjectKey{Namespace: v1alpha1.ProjectNamespace(tenant, project), Name: app}
	}
	return &v1alpha1.HostnameClaim{}, client.ObjectKey{Name: s.path}
}

// list returns an empty list of the kind.
func list(kind string) client.ObjectList {
	return map[string]client.ObjectList{
		"tenant": &v1alpha1.TenantList{}, "project": &v1alpha1.ProjectList{}, "app": &v1alpha1.AppList{}, "claim": &v1alpha1.HostnameClaimList{},
	}[kind]
}
