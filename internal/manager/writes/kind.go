package writes

import (
	"context"
	"net/http"
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/kubeop/kubeop/internal/manager/auth"
	"github.com/kubeop/kubeop/internal/manager/problem"
)

// kind is where the operations about objects of a kind are.
type kind struct {
	api         huma.API
	o           *Operations
	name        string
	parent, one string
}

type accepted struct {
	Status   int
	Location string `header:"Location" doc:"Where to read what became of the commit."`
	Body     Written
}

// answer writes, and answers what was written, or would be.
func (k kind) answer(ctx context.Context, w wanted) (*accepted, error) {
	written, err := k.o.write(ctx, w)
	if err != nil {
		return nil, err
	}
	status := http.StatusAccepted
	if w.DryRun {
		status = http.StatusOK
	}
	return &accepted{Status: status, Location: written.Follow, Body: written}, nil
}

// mayDryRun describes the answer to a dry run.
func (k kind) mayDryRun(op *huma.Operation) {
	body := &huma.MediaType{Schema: k.api.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[Written](), true, "")}
	op.Responses = map[string]*huma.Response{"200": {Description: "Nothing was committed: the plan of the commit, see dryRun.", Content: map[string]*huma.MediaType{"application/json": body}}}
}

func (k kind) operation(id, method, path, summary string, further ...int) huma.Operation {
	if strings.Contains(path, "{") {
		further = append(further, http.StatusNotFound)
	}
	return huma.Operation{OperationID: id, Method: method, Path: path, Summary: summary, Tags: []string{k.name + "s"}, Security: auth.Required, Errors: problem.Statuses(further...)}
}
