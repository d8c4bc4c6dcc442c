package host

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/drone/go-scm/scm"
)

// setGitLabStatus is the library's call with a description, which the library leaves out. GitLab refuses a status with the state that the
// commit has already; that is no error.
func (r *Repository) setGitLabStatus(ctx context.Context, commit string, in *scm.StatusInput) (*scm.Response, error) {
	state := map[scm.State]string{scm.StatePending: "pending", scm.StateSuccess: "success", scm.StateCanceled: "canceled", scm.StateFailure: "failed"}[in.State]
	return r.postGitLab(ctx, "statuses/"+url.PathEscape(commit), map[string]string{
		"state": state, "name": in.Label, "description": in.Desc, "target_url": in.Target,
	})
}

// commentAtGitLab is the library's call with the text in the body: the library writes it into the URL, which is then too long for a server.
func (r *Repository) commentAtGitLab(ctx context.Context, number int, body string) (*scm.Response, error) {
	return r.postGitLab(ctx, fmt.Sprintf("merge_requests/%d/notes", number), map[string]string{"body": body})
}

// postGitLab sends JSON to a path of the project.
func (r *Repository) postGitLab(ctx context.Context, path string, in map[string]string) (*scm.Response, error) {
	body, err := json.Marshal(in)
	if err != nil {
		return nil, err
	}
	res, err := r.api.Do(ctx, &scm.Request{
		Method: http.MethodPost, Path: fmt.Sprintf("api/v4/projects/%s/%s", url.PathEscape(r.name), path),
		Header: http.Header{"Content-Type": {"application/json"}}, Body: bytes.NewReader(body),
	})
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if res.Status < http.StatusMultipleChoices {
		return res, nil
	}
	answer, err := io.ReadAll(res.Body)
	switch {
	case err != nil:
		return res, err
	case res.Status == http.StatusBadRequest && bytes.Contains(answer, []byte("Cannot transition status")):
		return res, errUnchanged
	}
	return res, errors.New(string(answer))
}
