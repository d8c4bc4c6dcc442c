// Package access decides who may do what: scopes of tokens, and one table from role, resource and verb to yes or no.
package access

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Role is what the holder of a scope may act as.
type Role string

// The roles. docs/api/roles.md has what each may do.
const (
	Admin         Role = "admin"
	TenantView    Role = "tenant:view"
	TenantEdit    Role = "tenant:edit"
	TenantAdmin   Role = "tenant:admin"
	ProjectView   Role = "project:view"
	ProjectEdit   Role = "project:edit"
	ProjectDeploy Role = "project:deploy"
)

// Scope is a role and the place where it counts: Admin counts everywhere, a role of tenants in one Tenant, a role of projects in one Project of a
// Tenant.
type Scope struct {
	Role            Role
	Tenant, Project string
}

// Names follow the rules of gitops/layout: the name of a tenant has no dash, and the name of a project is a DNS label.
var scopePattern = regexp.MustCompile(`^(?:admin|tenant:([a-z][a-z0-9]{0,19}):(view|edit|admin)|project:([a-z][a-z0-9]{0,19})/([a-z0-9](?:[-a-z0-9]{0,33}[a-z0-9])?):(view|edit|deploy))$`)

// noTenants are names that no Tenant may have.
var noTenants = []string{"platform", "system"}

// errNoScope does not repeat the text, which may be a secret.
var errNoScope = errors.New("is no scope; it may be admin, tenant:<tenant>:view|edit|admin or project:<tenant>/<project>:view|edit|deploy")

// ParseScope reads a scope: admin, tenant:<tenant>:view|edit|admin or project:<tenant>/<project>:view|edit|deploy.
func ParseScope(text string) (Scope, error) {
	m := scopePattern.FindStringSubmatch(text)
	switch {
	case m == nil, slices.Contains(noTenants, m[1]), slices.Contains(noTenants, m[3]):
		return Scope{}, errNoScope
	case m[1] != "":
		return Scope{Role: Role("tenant:" + m[2]), Tenant: m[1]}, nil
	case m[3] != "":
		return Scope{Role: Role("project:" + m[5]), Tenant: m[3], Project: m[4]}, nil
	}
	return Scope{Role: Admin}, nil
}

// String returns the scope as ParseScope reads it.
func (s Scope) String() string {
	kind, level, _ := strings.Cut(string(s.Role), ":")
	switch kind {
	case "tenant":
		return "tenant:" + s.Tenant + ":" + level
	case "project":
		return "project:" + s.Tenant + "/" + s.Project + ":" + level
	}
	return string(s.Role)
}

// reaches reports whether the scope counts at a place. The place is the platform if tenant is "", and a whole tenant if project is "".
func (s Scope) reaches(tenant, project string) bool {
	return s.Role == Admin || s.Tenant == tenant && (s.Project == "" || s.Project == project)
}

// Grant has all scopes of a caller.
type Grant []Scope

// Parse reads scopes.
func Parse(texts []string) (Grant, error) {
	var all Grant
	for i, text := range texts {
		scope, err := ParseScope(text)
		if err != nil {
			return nil, fmt.Errorf("number %d %w", i+1, err)
		}
		all = append(all, scope)
	}
	return all, nil
}

// Tenant returns the tenant of all scopes, "" for Admin. It reports false if the scopes belong to several tenants, if Admin is not the only scope, or
// if there is no scope.
func (g Grant) Tenant() (string, bool) {
	if len(g) == 0 {
		return "", false
	}
	for _, scope := range g[1:] {
		if scope.Role == Admin || scope.Tenant != g[0].Tenant {
			return "", false
		}
	}
	return g[0].Tenant, true
}

// Tenants returns the tenants of the scopes, each once. For Admin it contains "".
func (g Grant) Tenants() (all []string) {
	for _, scope := range g {
		if !slices.Contains(all, scope.Tenant) {
			all = append(all, scope.Tenant)
		}
	}
	return all
}

// May reports whether the caller may do something at a place.
func (g Grant) May(resource Resource, verb Verb, tenant, project string) bool {
	for _, scope := range g {
		if scope.reaches(tenant, project) && table[resource][verb][scope.Role] {
			return true
		}
	}
	return false
}

// Knows reports whether any of the scopes counts in a tenant or in one of its projects.
func (g Grant) Knows(tenant string) bool {
	return slices.ContainsFunc(g, func(s Scope) bool { return s.Role == Admin || s.Tenant == tenant })
}

// Covers reports whether the caller may give a scope to somebody else: administrators may give any scope, administrators of a tenant the scopes of
// their tenant.
func (g Grant) Covers(wanted Scope) bool {
	for _, scope := range g {
		if scope.Role == Admin || scope.Role == TenantAdmin && wanted.Tenant == scope.Tenant {
			return true
		}
	}
	return false
}
