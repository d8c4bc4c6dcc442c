package host

import (
	"context"
	"strings"

	"github.com/drone/go-scm/scm"

	"github.com/kubeop/kubeop/delivery/few"
)

// State of a commit.
type State string

// The states. Canceled is for a commit that another one replaced before it was healthy; hosts without such a state show it as an error.
const (
	Pending  State = "pending"
	Success  State = "success"
	Failure  State = "failure"
	Canceled State = "canceled"
)

var states = map[State]scm.State{
	Pending: scm.StatePending, Success: scm.StateSuccess, Failure: scm.StateFailure, Canceled: scm.StateCanceled,
}

// Status is what a Git host shows beside a commit.
type Status struct {
	// Commit is the whole hash, and Context the name of the status: a later one with the same name replaces it.
	Commit, Context string
	State           State
	// Description is one line. Link may be empty.
	Description, Link string
}

// MaxDescription is the length of a description, in characters, that all hosts take: GitHub's.
const MaxDescription = 140

// SetStatus sets the status of a commit.
func (r *Repository) SetStatus(ctx context.Context, s Status) error {
	input := &scm.StatusInput{
		State: states[s.State], Label: s.Context, Title: s.Context, Desc: Shortened(s.Description), Target: s.Link,
	}
	if input.Target == "" && (r.kind == Bitbucket || r.kind == BitbucketServer) { // Both require a link.
		input.Target = r.page()
	}
	return r.call(ctx, "setting the commit status", func(ctx context.Context) (*scm.Response, error) {
		if r.kind == GitLab {
			return r.setGitLabStatus(ctx, s.Commit, input)
		}
		_, res, err := r.api.Repositories.CreateStatus(ctx, r.name, s.Commit, input)
		return accepted(res, err)
	})
}

// page is the web page of the repository.
func (r *Repository) page() string {
	if r.kind == Bitbucket {
		return "https://bitbucket.org/" + r.name
	}
	owner, name, _ := strings.Cut(r.name, "/")
	return r.origin.JoinPath("projects", owner, "repos", name).String()
}

// Shortened makes a text one line of at most MaxDescription characters.
func Shortened(text string) string { return few.Line(text, MaxDescription) }
