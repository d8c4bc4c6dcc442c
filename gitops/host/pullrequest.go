package host

import (
	"context"

	"github.com/drone/go-scm/scm"
)

// PullRequest is a proposal to merge one branch into another; GitLab calls it a merge request.
type PullRequest struct {
	Title, Body string
	// From and Into are branches of the same repository.
	From, Into string
}

// OpenPullRequest opens a pull request, and returns its number and web page.
func (r *Repository) OpenPullRequest(ctx context.Context, p PullRequest) (number int, link string, err error) {
	err = r.call(ctx, "opening a pull request", func(ctx context.Context) (*scm.Response, error) {
		opened, res, err := r.api.PullRequests.Create(ctx, r.name, &scm.PullRequestInput{Title: p.Title, Body: p.Body, Source: p.From, Target: p.Into})
		if err == nil {
			number, link = opened.Number, opened.Link
		}
		return res, err
	})
	return number, link, err
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
