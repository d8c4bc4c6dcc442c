package evaluate

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"k8s.io/client-go/rest"

	"github.com/kubeop/kubeop/delivery/message"
)

// TestLookupsOfTemplatesAreAskedOfTheParent and what does not exist is empty, as with Helm.
func TestLookupsOfTemplatesAreAskedOfTheParent(t *testing.T) {
	for name, c := range map[string]struct {
		template string
		answer   any
		fails    error
		asked    *lookup
		want     string
		says     string
	}{
		"an object": {
			`{{(lookup "v1" "Secret" "team" "web").data.a}}`, map[string]any{"data": map[string]any{"a": "x"}}, nil, &lookup{"v1", "Secret", "team", "web"}, "x", "",
		},
		"a shared object": {
			`{{(lookup "v1" "Namespace" "" "web").kind}}`, map[string]any{"kind": "Namespace"}, nil, &lookup{"v1", "Namespace", "", "web"}, "Namespace", "",
		},
		"a list": {
			`{{range (lookup "v1" "Secret" "team" "").items}}{{.kind}};{{end}}`, map[string]any{"items": []any{map[string]any{"kind": "A"}, map[string]any{"kind": "B"}}}, nil,
			&lookup{"v1", "Secret", "team", ""}, "A;B;", "",
		},
		"a list of no objects":    {`{{lookup "v1" "Secret" "team" ""}}`, map[string]any{"items": []any{"a"}}, nil, &lookup{"v1", "Secret", "team", ""}, "", "an item of the list is no object"},
		"an object that is not":   {`{{lookup "v1" "Secret" "team" "web" | len}}`, map[string]any{}, nil, &lookup{"v1", "Secret", "team", "web"}, "0", ""},
		"a list that is not":      {`{{lookup "v1" "Thing" "team" "" | len}}`, map[string]any{}, nil, &lookup{"v1", "Thing", "team", ""}, "0", ""},
		"it cannot be answered":   {`{{lookup "v1" "Secret" "team" "web"}}`, nil, errors.New("the API server is away"), &lookup{"v1", "Secret", "team", "web"}, "", "the API server is away"},
		"a list without answer":   {`{{lookup "v1" "Secret" "team" ""}}`, nil, errors.New("the API server is away"), &lookup{"v1", "Secret", "team", ""}, "", "the API server is away"},
		"an answer of other type": {`{{lookup "v1" "Secret" "team" "web"}}`, "text", nil, &lookup{"v1", "Secret", "team", "web"}, "", "cannot unmarshal"},
		"no lookup":               {"x", nil, nil, nil, "x", ""},
	} {
		t.Run(name, func(t *testing.T) {
			chrt := &chart.Chart{Metadata: &chart.Metadata{Name: "web"}, Templates: []*chart.File{{Name: "templates/a.yaml", Data: []byte(c.template)}}}
			var asked *lookup
			ask := func(question []byte) ([]byte, error) {
				asked = &lookup{}
				if err := reader.Read(question, asked); err != nil {
					t.Error(err)
				}
				answer, err := message.Write(c.answer)
				return answer, errors.Join(err, c.fails)
			}
			values := chartutil.Values{"Values": map[string]any{}}
			out, err := engine.RenderWithClientProvider(chrt, values, clients{ask: ask, marks: newMarks(chrt, func(string) {})})
			if (err != nil) != (c.says != "") || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Fatalf("got %v, want %q", err, c.says)
			}
			if got := out["web/templates/a.yaml"]; err == nil && got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if diff := cmp.Diff(c.asked, asked); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAnswersToLookupsAreThoseOfTheAPIServer, of a bounded size.
func TestAnswersToLookupsAreThoseOfTheAPIServer(t *testing.T) {
	answers := map[string]string{
		"/api/v1":                               `{"kind": "APIResourceList", "groupVersion": "v1", "resources": [{"name": "secrets", "namespaced": true, "kind": "Secret"}]}`,
		"/api/v1/namespaces/team/secrets/web":   `{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "web"}}`,
		"/api/v1/namespaces/team/secrets/large": `{"apiVersion": "v1", "kind": "Secret", "data": {"a": "` + strings.Repeat("x", maxLookupBytes) + `"}}`,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		text, ok := answers[r.URL.Path]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
			text = `{"apiVersion": "v1", "kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404, "details": {"name": "none"}}`
		}
		_, _ = w.Write([]byte(text))
	}))
	defer server.Close()
	for name, want := range map[string]map[string]any{
		"web": {"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "web"}}, "none": {}, "large": nil,
	} {
		question, err := message.Write(lookup{"v1", "Secret", "team", name})
		if err != nil {
			t.Fatal(err)
		}
		text, err := Answer(&rest.Config{Host: server.URL}, question)
		if want == nil {
			if err == nil || err.Error() != "looking up v1 Secret: the answer is larger than 16 MiB" {
				t.Errorf("%s: got %v", name, err)
			}
			continue
		}
		var got map[string]any
		if err := errors.Join(err, reader.Read(text, &got)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if _, err := Answer(&rest.Config{Host: server.URL}, []byte("no message")); err == nil || !strings.HasPrefix(err.Error(), "reading what to look up: ") {
		t.Errorf("a question that cannot be read: %v", err)
	}
}
