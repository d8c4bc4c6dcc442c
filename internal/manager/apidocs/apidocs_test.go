package apidocs

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
)

type node struct {
	Name     string  `json:"name" doc:"Of <b>the node</b>."`
	Kind     string  `json:"kind" enum:"leaf,branch"`
	Children []*node `json:"children,omitempty"`
}

type input struct {
	ID   string `path:"id" doc:"Which tree."`
	Body node
}

// TestThePageListsParametersAndNestedFields renders a schema that contains itself, and texts that look like HTML.
func TestThePageListsParametersAndNestedFields(t *testing.T) {
	api := humago.New(http.NewServeMux(), huma.DefaultConfig("forest", "v1"))
	huma.Register(api, huma.Operation{OperationID: "putTree", Method: http.MethodPut, Path: "/trees/{id}", Summary: "Plant <script>"},
		func(context.Context, *input) (*struct{ Body node }, error) { return nil, nil })
	page, err := Render(api.OpenAPI())
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{
		"<code>PUT /trees/{id}</code>", "<td><code>id</code> (required)</td><td>path</td><td>Which tree.</td>", "<code>name</code> (required)</td><td>string</td>",
		"Of &lt;b&gt;the node&lt;/b&gt;.", "leaf | branch", "<td>list of object</td>", "<code>children[].children[].name</code>", "Plant &lt;script&gt;",
	} {
		if !strings.Contains(string(page), part) {
			t.Errorf("the page lacks %s", part)
		}
	}
	if t.Failed() {
		t.Logf("%s", page)
	}
}
