package host

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/drone/go-scm/scm"
)

const (
	// maxPullRequests is how many open pull requests are listed: those that the host lists first, the newest.
	maxPullRequests = 100
	// pageSize is within what every host allows: Gitea and Bitbucket Cloud at most 50.
	pageSize = 20
)

// PullRequests lists the open pull requests, at most 100.
func (r *Repository) PullRequests(ctx context.Context) ([]PullRequest, error) {
	list := map[Type]func(context.Context, int) ([]PullRequest, *scm.Response, error){
		GitLab: listed[gitLabPullRequest](r, "api/v4/projects/%s/merge_requests?state=opened&per_page=%d&page=%d", url.PathEscape(r.name)),
		Gitea:  listed[giteaPullRequest](r, "api/v1/repos/%s/pulls?state=open&limit=%d&page=%d", r.name),
	}[r.kind]
	switch {
	case r.kind == BitbucketServer:
		list = r.listAtBitbucketServer
	case list == nil:
		list = r.listByLibrary
	}
	var open []PullRequest
	for page := 1; len(open) < maxPullRequests; page++ {
		err := r.call(ctx, "listing the open pull requests", func(ctx context.Context) (*scm.Response, error) {
			found, res, err := list(ctx, page)
			open = append(open, found...)
			return res, err
		})
		if err != nil {
			return nil, err
		}
		if len(open) < page*pageSize {
			break
		}
	}
	return open[:min(len(open), maxPullRequests)], nil
}

// listByLibrary lists a page of pull requests at GitHub or Bitbucket Cloud. Of the other hosts the library does not say which come from forks.
func (r *Repository) listByLibrary(ctx context.Context, page int) (open []PullRequest, res *scm.Response, err error) {
	found, res, err := r.api.PullRequests.List(ctx, r.name, scm.PullRequestListOptions{Page: page, Size: pageSize, Open: true})
	for _, p := range found {
		open = append(open, PullRequest{
			Number: p.Number, Title: p.Title, From: p.Source, Into: p.Target, Commit: p.Sha, Fork: !strings.EqualFold(p.Fork, r.name), Link: p.Link,
		})
	}
	return open, res, err
}

// listed returns a function that lists a page of pull requests by a path with the repository, the size and the number of a page.
func listed[P interface{ open() PullRequest }](r *Repository, path, name string) func(context.Context, int) ([]PullRequest, *scm.Response, error) {
	return func(ctx context.Context, page int) (open []PullRequest, res *scm.Response, err error) {
		var found []P
		res, err = r.get(ctx, fmt.Sprintf(path, name, pageSize, page), &found)
		for _, p := range found {
			open = append(open, p.open())
		}
		return open, res, err
	}
}

// gitLabPullRequest is a merge request in GitLab's API.
type gitLabPullRequest struct {
	Number        int    `json:"iid"`
	Title         string `json:"title"`
	Commit        string `json:"sha"`
	Source        string `json:"source_branch"`
	Target        string `json:"target_branch"`
	SourceProject int    `json:"source_project_id"`
	TargetProject int    `json:"target_project_id"`
	Link          string `json:"web_url"`
}

func (p gitLabPullRequest) open() PullRequest {
	fork := p.SourceProject == 0 || p.SourceProject != p.TargetProject
	return PullRequest{Number: p.Number, Title: p.Title, From: p.Source, Into: p.Target, Commit: p.Commit, Fork: fork, Link: p.Link}
}

// giteaPullRequest is a pull request in Gitea's API.
type giteaPullRequest struct {
	Number int         `json:"number"`
	Title  string      `json:"title"`
	Head   giteaBranch `json:"head"`
	Base   giteaBranch `json:"base"`
	Link   string      `json:"html_url"`
}

type giteaBranch struct {
	Name       string `json:"ref"`
	Commit     string `json:"sha"`
	Repository struct {
		Name string `json:"full_name"`
	} `json:"repo"`
}

func (p giteaPullRequest) open() PullRequest {
	fork := p.Head.Repository.Name == "" || p.Head.Repository != p.Base.Repository
	return PullRequest{Number: p.Number, Title: p.Title, From: p.Head.Name, Into: p.Base.Name, Commit: p.Head.Commit, Fork: fork, Link: p.Link}
}

// bitbucketServerBranch is an end of a pull request in Bitbucket Server's API.
type bitbucketServerBranch struct {
	Name       string `json:"displayId"`
	Commit     string `json:"latestCommit"`
	Repository struct {
		Slug    string `json:"slug"`
		Project struct {
			Key string `json:"key"`
		} `json:"project"`
	} `json:"repository"`
}

func (r *Repository) listAtBitbucketServer(ctx context.Context, page int) (open []PullRequest, res *scm.Response, err error) {
	var found struct {
		Values []struct {
			Number int                   `json:"id"`
			Title  string                `json:"title"`
			From   bitbucketServerBranch `json:"fromRef"`
			Into   bitbucketServerBranch `json:"toRef"`
			Links  struct {
				Self []struct {
					Href string `json:"href"`
				} `json:"self"`
			} `json:"links"`
		} `json:"values"`
	}
	owner, name := scm.Split(r.name)
	res, err = r.get(ctx, fmt.Sprintf("rest/api/1.0/projects/%s/repos/%s/pull-requests?state=OPEN&limit=%d&start=%d", owner, name, pageSize, (page-1)*pageSize), &found)
	for _, p := range found.Values {
		fork := p.From.Repository.Slug == "" || p.From.Repository != p.Into.Repository
		o := PullRequest{Number: p.Number, Title: p.Title, From: p.From.Name, Into: p.Into.Name, Commit: p.From.Commit, Fork: fork}
		for _, link := range p.Links.Self {
			o.Link = cmp.Or(o.Link, link.Href)
		}
		open = append(open, o)
	}
	return open, res, err
}

// get reads JSON from the API.
func (r *Repository) get(ctx context.Context, path string, out any) (*scm.Response, error) {
	res, err := r.api.Do(ctx, &scm.Request{Method: http.MethodGet, Path: path})
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if res.Status < http.StatusMultipleChoices {
		return res, json.NewDecoder(res.Body).Decode(out)
	}
	answer, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return res, err
	}
	return res, errors.New(string(answer))
}
