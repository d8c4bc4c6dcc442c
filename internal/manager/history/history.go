// Package history has the operations that read the deliveries of an app, and how its files differ between two commits.
package history

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/kubeop/kubeop/internal/manager/access"
	"github.com/kubeop/kubeop/internal/manager/auth"
	"github.com/kubeop/kubeop/internal/manager/filediff"
	"github.com/kubeop/kubeop/internal/manager/problem"
)

// Delivery is one delivery of an app.
type Delivery struct {
	Commit   string    `json:"commit,omitempty" doc:"The commit that was delivered: of the source, or of the file of an app whose source is not in Git."`
	Author   string    `json:"author,omitempty" doc:"The name of its author, as the commit has it."`
	Date     time.Time `json:"date,omitzero" doc:"When the commit was made, as the commit has it."`
	Message  string    `json:"message,omitempty" doc:"The beginning of its message."`
	Revision string    `json:"revision" example:"main@sha1:0123456789012345678901234567890123456789"`
	Image    string    `json:"image,omitempty" doc:"The image that a policy chose."`
	Release  int       `json:"release,omitempty" doc:"The revision of the Helm release."`
	Started  time.Time `json:"started"`
	Finished time.Time `json:"finished,omitzero" doc:"When it was healthy, or when it first failed."`
	Result   string    `json:"result" enum:"Progressing,Succeeded,Failed" doc:"A failed delivery is tried again, and may still succeed."`
	Reason   string    `json:"reason,omitempty" doc:"Why it failed. docs/errors.md explains each."`
}

// History has the deliveries of an app.
type History struct {
	Items []Delivery `json:"items" nullable:"false" doc:"The last deliveries, the newest first. The operator keeps ten."`
	// Incomplete is set, and there is no error, if the repository cannot be read: the deliveries themselves are known without it.
	Incomplete string `json:"incomplete,omitempty" doc:"Why dates and messages of commits are missing."`
}

// Comparison has the differences between the files of an app at two commits.
type Comparison struct {
	From string `json:"from"`
	To   string `json:"to"`
	filediff.Diff
}

// App names an app.
type App struct {
	Tenant  string `path:"tenant" maxLength:"63" pattern:"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"`
	Project string `path:"project" maxLength:"63" pattern:"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"`
	App     string `path:"app" maxLength:"63" pattern:"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"`
}

// Repositories has the history of apps. Each error is a Problem or an unexpected one.
type Repositories interface {
	// History returns the deliveries of an app.
	History(ctx context.Context, of App, ofPlatform bool) (History, error)
	// Diff compares the folder of an app at two commits. to is the newest commit if it is "".
	Diff(ctx context.Context, of App, from, to string, ofPlatform bool) (Comparison, error)
}

// Operations are the operations of this package.
type Operations struct {
	Repositories Repositories
	// Allowed returns an error if the caller may not do something with an app.
	Allowed func(ctx context.Context, verb access.Verb, of App) error
	// OfPlatform reports whether the caller may change the platform repository.
	OfPlatform func(ctx context.Context) bool
}

type (
	diffInput struct {
		App
		From string `query:"from" required:"true" pattern:"^[0-9a-f]{40}$" doc:"A commit."`
		To   string `query:"to" pattern:"^[0-9a-f]{40}$" doc:"Another one. Default: the newest."`
	}
	historyAnswer struct{ Body History }
	diffAnswer    struct{ Body Comparison }
)

// Register registers the operations.
func (o *Operations) Register(api huma.API) {
	huma.Register(api, huma.Operation{
		OperationID: "getAppHistory", Method: http.MethodGet, Path: "/v1/apps/{tenant}/{project}/{app}/history", Summary: "What was delivered of an app, the newest first",
		Description: "Deliveries are those of the app's status. Dates and messages are read from the log of the repository, as far as its last 1,000 commits have them.",
		Tags:        []string{"Apps"}, Security: auth.Required, Errors: problem.Statuses(http.StatusNotFound),
	}, func(ctx context.Context, in *App) (*historyAnswer, error) {
		if err := o.Allowed(ctx, access.Read, *in); err != nil {
			return nil, err
		}
		found, err := o.Repositories.History(ctx, *in, o.OfPlatform(ctx))
		return &historyAnswer{found}, err
	})
	huma.Register(api, huma.Operation{
		OperationID: "getAppDiff", Method: http.MethodGet, Path: "/v1/apps/{tenant}/{project}/{app}/diff", Summary: "How the files of an app differ between two commits",
		Description: "Who may change the app may read its files. Both commits have to be among the last 1,000 of the branch. Files with kind: Secret, as it is usually written, are named and not shown.",
		Tags:        []string{"Apps"}, Security: auth.Required, Errors: problem.Statuses(http.StatusNotFound, http.StatusForbidden, http.StatusConflict),
	}, func(ctx context.Context, in *diffInput) (*diffAnswer, error) {
		if err := o.Allowed(ctx, access.Update, in.App); err != nil {
			return nil, err
		}
		found, err := o.Repositories.Diff(ctx, in.App, in.From, in.To, o.OfPlatform(ctx))
		return &diffAnswer{found}, err
	})
}
