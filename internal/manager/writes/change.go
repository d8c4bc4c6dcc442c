// Package writes has the operations that change tenants, projects and apps. Each change is a commit in the repository that declares them, as if it was pushed by hand.
package writes

import (
	"context"
	"time"

	"github.com/kubeop/kubeop/internal/manager/access"
	"github.com/kubeop/kubeop/internal/manager/progress"
)

// Object names a tenant, a project of one, or an app of one.
type Object struct{ Tenant, Project, App string }

// Resource returns which kind it is.
func (o Object) Resource() access.Resource {
	switch {
	case o.App != "":
		return access.Apps
	case o.Project != "":
		return access.Projects
	}
	return access.Tenants
}

// Path is how the API and messages name it: acme, acme/shop or acme/shop/web.
func (o Object) Path() string {
	path := o.Tenant
	for _, name := range []string{o.Project, o.App} {
		if name != "" {
			path += "/" + name
		}
	}
	return path
}

// How an object is changed.
const (
	Create  = "create"
	Replace = "replace"
	Patch   = "patch"
	Delete  = "delete"
	// Rollback restores the folder of an app as it was at an earlier commit.
	Rollback = "rollback"
)

// Change is what a caller may change, and wants to.
type Change struct {
	// How is Create, Replace, Patch, Delete or Rollback.
	How string
	Of  Object
	// Spec is that of the file after Create and Replace, and a merge patch of it for Patch.
	Spec map[string]any
	// To is the commit of a Rollback, "" for the newest one that was delivered successfully before what is delivered now.
	To string
	// DryRun: nothing is committed.
	DryRun bool
	// Match has the ETags of the file that the caller saw, without quotes; nil for any.
	Match []string
	// ID names the request in the trailer of the commit. A change with the ID of an earlier one is that one.
	ID string
	// Author is who requested it.
	Author Person
	// OfPlatform: the caller may change the platform repository.
	OfPlatform bool
	// Allowed, if set, asks again whether the caller may write, right before the commit is pushed. Its error is that of the change.
	Allowed func() error
	// Alone, if set, is called when the commit was pushed and the caller had left before. Its argument has no Request and Follow.
	Alone func(Written)
}

// Sees is of what a caller may read what a Repository says about itself: it names files of all projects.
type Sees struct{ Platform, Tenant bool }

// Person is the author of a commit.
type Person struct{ Name, Email string }

// Written is what became of a change.
type Written struct {
	Commit     string `json:"commit" doc:"The hash of the commit; of the newest one if nothing changed, and of a dry run."`
	Changed    bool   `json:"changed" doc:"Whether there is a commit for this request, or would be. It is false if the file is so already."`
	Repository string `json:"repository" doc:"The Repository that declares the object."`
	File       string `json:"file" doc:"The file in it." example:"projects/shop/apps/web/app.yaml"`
	Request    string `json:"request" doc:"The id in the trailer Kubeop-Request of the commit."`
	Follow     string `json:"follow,omitempty" doc:"Where to read what became of the commit. A dry run has none." example:"/v1/apps/acme/shop/web/commits/0123456789012345678901234567890123456789"`
	Plan       *Plan  `json:"plan,omitempty" doc:"Of a dry run: what the commit would do."`
}

// File is the file that declares an object, in the newest commit.
type File struct {
	Repository string `json:"repository" doc:"The Repository that declares the object."`
	Path       string `json:"path" doc:"The path in it."`
	Commit     string `json:"commit" doc:"The newest commit."`
	Text       string `json:"text" doc:"The file, with its comments."`
	// ETag is made of the text.
	ETag string `json:"-"`
}

// Repositories are those that declare the objects. Its errors are problems, or unexpected.
type Repositories interface {
	// Write commits a change.
	Write(ctx context.Context, c Change) (Written, error)
	// File reads the file of an object.
	File(ctx context.Context, of Object, ofPlatform bool) (File, error)
	// Progress returns what became of a commit, as far as it is about an object.
	Progress(ctx context.Context, of Object, commit string, sees Sees) (progress.Report, error)
}

// keyLife is how long the answer for an Idempotency-Key is kept.
const keyLife = 7 * 24 * time.Hour
