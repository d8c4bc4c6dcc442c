package host

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/drone/go-scm/scm"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
)

// PullRequest is a proposal to merge one branch into another; GitLab calls it a merge request.
type PullRequest struct {
	Title, Body string
	// From is the branch that it proposes, and Into the one it would be merged into.
	From, Into string
	// Number, Commit, Fork and Link are set by the host. Commit is the newest commit of From; Bitbucket Cloud shortens its hash to 12 digits. Fork:
	// From is a branch of another repository, or the host does not say of which.
	Number int
	Commit string
	Fork   bool
	Link   string
}

// OpenPullRequest opens a pull request between two branches of the repository, and returns its number and web page. If one of the same branches is open already, it is that.
func (r *Repository) OpenPullRequest(ctx context.Context, p PullRequest) (number int, link string, err error) {
	err = r.call(ctx, "opening a pull request", func(ctx context.Context) (*scm.Response, error) {
		opened, res, err := r.api.PullRequests.Create(ctx, r.name, &scm.PullRequestInput{Title: p.Title, Body: p.Body, Source: p.From, Target: p.Into})
		if err == nil {
			number, link = opened.Number, opened.Link
		}
		return res, err
	})
	if !errors.Is(err, failure.ErrInvalid) {
		return number, link, err
	}
	open, failed := r.openPullRequest(ctx, p)
	if failed != nil || open == nil {
		return 0, "", errors.Join(err, failed)
	}
	return open.Number, open.Link, nil
}

// openPullRequest returns the open pull request of the same branches; nil if there is none.
func (r *Repository) openPullRequest(ctx context.Context, p PullRequest) (*PullRequest, error) {
	open, err := r.PullRequests(ctx)
	at := slices.IndexFunc(open, func(o PullRequest) bool { return o.From == p.From && o.Into == p.Into && !o.Fork })
	if err != nil || at < 0 {
		return nil, err
	}
	return &open[at], nil
}

// Comment adds a comment, in Markdown, to a pull request.
func (r *Repository) Comment(ctx context.Context, number int, body string) error {
	return r.call(ctx, "commenting on a pull request", func(ctx context.Context) (*scm.Response, error) {
		input := &scm.CommentInput{Body: body}
		if r.kind == GitLab {
			return r.commentAtGitLab(ctx, number, body)
		}
		if r.kind == Gitea { // In Gitea's API a comment on a pull request is one on the issue of the same number.
			_, res, err := r.api.Issues.CreateComment(ctx, r.name, number, input)
			return accepted(res, err)
		}
		_, res, err := r.api.PullRequests.CreateComment(ctx, r.name, number, input)
		return accepted(res, err)
	})
}

// maxComments is how many comments of a pull request are searched for an earlier one.
const maxComments = 100

// ReplaceComment adds a comment that begins with a mark to a pull request, after deleting the earlier ones that do. A comment that these
// credentials may not delete stays, and so do all at Bitbucket, whose comments the library cannot list.
func (r *Repository) ReplaceComment(ctx context.Context, number int, mark, body string) error {
	var comments []*scm.Comment
	err := r.call(ctx, "listing the comments of a pull request", func(ctx context.Context) (*scm.Response, error) {
		list := r.api.PullRequests.ListComments
		if r.kind == Gitea {
			list = r.api.Issues.ListComments
		}
		found, res, err := list(ctx, r.name, number, scm.ListOptions{Size: maxComments})
		comments = found
		if errors.Is(err, scm.ErrNotSupported) {
			err = nil
		}
		return res, err
	})
	for _, c := range comments {
		if err == nil && strings.HasPrefix(c.Body, mark) {
			err = r.deleteComment(ctx, number, c.ID)
		}
	}
	if err != nil {
		return err
	}
	return r.Comment(ctx, number, mark+body)
}

// deleteComment deletes a comment. One that is gone, or that is another's, is no error.
func (r *Repository) deleteComment(ctx context.Context, number, id int) error {
	return r.call(ctx, "deleting a comment of a pull request", func(ctx context.Context) (*scm.Response, error) {
		remove := r.api.PullRequests.DeleteComment
		if r.kind == Gitea {
			remove = r.api.Issues.DeleteComment
		}
		res, err := remove(ctx, r.name, number, id)
		if res != nil && (res.Status == http.StatusNotFound || res.Status == http.StatusForbidden) {
			return res, nil
		}
		return accepted(res, err)
	})
}
