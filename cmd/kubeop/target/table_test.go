package target

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// tablesOf reads tables from an API server that answers every request with a text, and records the requests.
func tablesOf(t *testing.T, status int, answer string) (tables *Tables, asked *[]string) {
	t.Helper()
	asked = &[]string{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*asked = append(*asked, r.URL.RequestURI())
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = fmt.Fprint(w, answer)
	}))
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "config")
	text := `{apiVersion: v1, kind: Config, current-context: a, clusters: [{name: a, cluster: {server: "` + server.URL + `"}}], contexts: [{name: a, context: {cluster: a, user: a}}], users: [{name: a}]}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c := New()
	*c.Flags.KubeConfig = file
	tables, err := c.Tables()
	if err != nil {
		t.Fatal(err)
	}
	return tables, asked
}

func TestATableIsReadOfWhatIsSelected(t *testing.T) {
	const status = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"no"}`
	for name, tc := range map[string]struct {
		of     Selection
		status int
		answer string
		path   string
		fails  func(error) bool
	}{
		"all":           {Selection{Kind: App}, 200, `{"rows":[{"cells":["web"]}]}`, "/apis/paas.kubeop.io/v1alpha1/apps", nil},
		"a namespace":   {Selection{Kind: App, Namespace: "shop"}, 200, `{"rows":[{"cells":["web"]}]}`, "/apis/paas.kubeop.io/v1alpha1/namespaces/shop/apps", nil},
		"one":           {Selection{Kind: App, Namespace: "shop", Name: "web"}, 200, `{"rows":[{"cells":["web"]}]}`, "/apis/paas.kubeop.io/v1alpha1/namespaces/shop/apps/web", nil},
		"of no right":   {Selection{Kind: Tenant}, 403, status, "/apis/paas.kubeop.io/v1alpha1/tenants", apierrors.IsForbidden},
		"of no content": {Selection{Kind: Tenant}, 200, `[]`, "/apis/paas.kubeop.io/v1alpha1/tenants", func(err error) bool { return err != nil }},
	} {
		t.Run(name, func(t *testing.T) {
			tables, asked := tablesOf(t, tc.status, tc.answer)
			table, err := tables.Read(t.Context(), tc.of)
			if tc.fails == nil && (err != nil || len(table.Rows) != 1) || tc.fails != nil && !tc.fails(err) {
				t.Errorf("got %+v, %v", table, err)
			}
			if diff := cmp.Diff([]string{tc.path}, *asked); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAWatchEndsWithTheStreamOrAnError(t *testing.T) {
	const row = `{"type":"%s","object":{"rows":[{"cells":["%s"]}]}}` + "\n"
	gone := `{"type":"ERROR","object":{"kind":"Status","status":"Failure","reason":"Expired","code":410,"message":"too old"}}`
	for name, tc := range map[string]struct {
		answer string
		want   []string
		fails  func(error) bool
	}{
		"the stream ends":  {fmt.Sprintf(row, "ADDED", "a") + fmt.Sprintf(row, "DELETED", "b"), []string{"a false", "b true"}, func(err error) bool { return err == nil }},
		"cut in an event":  {fmt.Sprintf(row, "ADDED", "a") + `{"type":`, []string{"a false"}, func(err error) bool { return err == nil }},
		"the version left": {fmt.Sprintf(row, "MODIFIED", "a") + gone, []string{"a false"}, apierrors.IsResourceExpired},
		"no event":         {"<html>", nil, func(err error) bool { return err != nil }},
		"no table":         {`{"type":"ADDED","object":[]}`, nil, func(err error) bool { return err != nil }},
	} {
		t.Run(name, func(t *testing.T) {
			tables, asked := tablesOf(t, 200, tc.answer)
			var got []string
			err := tables.Watch(t.Context(), Selection{Kind: App, Namespace: "shop", Name: "web"}, "7", func(r metav1.TableRow, deleted bool) {
				got = append(got, fmt.Sprint(r.Cells[0], " ", deleted))
			})
			if !tc.fails(err) {
				t.Errorf("the watch ended with %v", err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("rows (-want +got):\n%s", diff)
			}
			want := []string{"/apis/paas.kubeop.io/v1alpha1/namespaces/shop/apps?fieldSelector=metadata.name%3Dweb&resourceVersion=7&watch=true"}
			if diff := cmp.Diff(want, *asked); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
	tables, _ := tablesOf(t, 200, "")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := tables.Watch(ctx, Selection{Kind: App}, "", func(metav1.TableRow, bool) {}); !errors.Is(err, context.Canceled) {
		t.Errorf("an interrupted watch ended with %v", err)
	}
}
