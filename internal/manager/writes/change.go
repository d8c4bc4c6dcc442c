// Package writes has the operations that change tenants, projects and apps. Each change is a commit in the repository that declares them, as if
// somebody had pushed it.
package writes

import (
	"context"

	"github.com/kubeop/kubeop/internal/manager/access"
	"github.com/kubeop/kubeop/internal/manager/progress"
)

// Object names a tenant, a project or an app.
type Object struct{ Tenant, Project, App string }

// Resource returns the kind of the object.
func (o Object) Resource() access.Resource {
	switch {
	case o.App != "":
		return access.Apps
	case o.Project != "":
		return access.Projects
	}
	return access.Tenants
}

// Path is the name of the object in the API and in messages: acme, acme/shop or acme/shop/web.
func (o Object) Path() string {
	path := o.Tenant
	for _, name := range []string{o.Project, o.App} {
		if name != "" {
			path += "/" + name
		}
	}
	return path
}

// The values of Change.How.
const (
	Create  = "create"
	Replace = "replace"
	Patch   = "patch"
	Delete  = "delete"
	// Rollback restores the folder of an app as it was at an earlier commit.
	Rollback = "rollback"
)

// Change is a change that a caller requests, and may make.
type Change struct {
	// How is Create, Replace, Patch, Delete or Rollback.
	How string
	Of  Object
	// Spec is the new spec for Create and Replace, and a merge patch of the spec for Patch.
	Spec map[string]any
	// To is the commit of a Rollback. If it is "", it is the newest commit that was delivered successfully before the current one.
	To string
	// DryRun is true if nothing is committed.
	DryRun bool
	// Match has the ETags, without quotes, of the versions of the file that may be changed; nil for any.
	Match []string
	// ID identifies the request, in a trailer of the commit. A change with the ID of an earlier one is not made again.
	ID string
	// Author is the person who requested the change.
	Author Person
	// OfPlatform is true if the caller may change the platform repository.
	OfPlatform bool
	// Allowed, unless nil, checks the rights of the caller again, right before the commit is pushed. If it fails, the change fails with its error.
	Allowed func() error
	// Alone, unless nil, is called if the caller disconnected before the commit was pushed. Its argument has no Request and Follow.
	Alone func(Written)
}

// Sees says in which Repositories the caller may read the report about the repository itself, which names files of all projects.
type Sees struct{ Platform, Tenant bool }

// Person is the author of a commit.
type Person struct{ Name, Email string }

// Written is the result of a change.
type Written struct {
	Commit     string `json:"commit" doc:"The hash of the commit; of the newest one if nothing changed, and of a dry run."`
	Changed    bool   `json:"changed" doc:"Whether the request made a commit, or would make one. It is false if the file has this content already."`
	Repository string `json:"repository" doc:"The Repository that declares the object."`
	File       string `json:"file" doc:"The file in it." example:"projects/shop/apps/web/app.yaml"`
	Request    string `json:"request" doc:"The id in the trailer Kubeop-Request of the commit."`
	Follow     string `json:"follow,omitempty" doc:"The path that answers whether the operator applied the commit. A dry run has none." example:"/v1/apps/acme/shop/web/commits/0123456789012345678901234567890123456789"`
	Plan       *Plan  `json:"plan,omitempty" doc:"Of a dry run: what the commit would do."`
}

// File is the file that declares an object, in the newest commit.
type File struct {
	Repository string `json:"repository" doc:"The Repository that declares the object."`
	Path       string `json:"path" doc:"The path in it."`
	Commit     string `json:"commit" doc:"The newest commit."`
	Text       string `json:"text" doc:"The file, with its comments."`
	// ETag is derived from the text.
	ETag string `json:"-"`
}

// Repositories has the repositories that declare the objects. Each error is a Problem or an unexpected one.
type Repositories interface {
	// Write commits a change.
	Write(ctx context.Context, c Change) (Written, error)
	// File reads the file of an object.
	File(ctx context.Context, of Object, ofPlatform bool) (File, error)
	// Progress says how far the cluster has come with a commit, for one object.
	Progress(ctx context.Context, of Object, commit string, sees Sees) (progress.Report, error)
}
