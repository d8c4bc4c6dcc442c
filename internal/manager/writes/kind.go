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

// kind describes the operations about one kind of object.
type kind struct {
	api         huma.API
	o           *Operations
	name        string
	parent, one string
}

type accepted struct {
	Status   int
	Location string `header:"Location" doc:"The path that answers whether the operator applied the commit."`
	Body     Written
}

// answer makes a change or a dry run, and answers with its result.
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

// mayDryRun adds the answer of a dry run to the description.
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
