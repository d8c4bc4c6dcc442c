package plan

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
)

// sent records the request that is sent.
type sent struct{ request *http.Request }

func (s *sent) RoundTrip(request *http.Request) (*http.Response, error) {
	s.request = request
	return &http.Response{StatusCode: http.StatusOK}, nil
}

func TestNoRequestOfAPlanChangesTheCluster(t *testing.T) {
	for method, want := range map[string]string{
		http.MethodGet: "", http.MethodPost: "All", http.MethodPut: "All", http.MethodPatch: "All", http.MethodDelete: "not sent",
	} {
		next := &sent{}
		request, err := http.NewRequestWithContext(t.Context(), method, "https://api.example/api/v1/pods?fieldManager=kubeop", strings.NewReader(""))
		if err != nil {
			t.Fatal(err)
		}
		_, err = dryRun{next: next, itself: true}.RoundTrip(request)
		got := "not sent"
		if next.request != nil {
			got = next.request.URL.Query().Get("dryRun")
		}
		if got != want || (want == "not sent") != errors.Is(err, errNotDeleted) {
			t.Errorf("%s: dryRun is %q, want %q; error %v", method, got, want, err)
		}
	}
}

func TestAPersonWhoMayNotImpersonateTheDeployerStaysThePerson(t *testing.T) {
	for name, c := range map[string]struct {
		dryRun
		user   string
		groups []string
		extra  string
	}{
		"as the deployer":         {dryRun{itself: true}, "deployer", nil, ""},
		"as the person":           {dryRun{}, "", nil, ""},
		"as whom the person says": {dryRun{as: rest.ImpersonationConfig{UserName: "ann", Groups: []string{"a", "b"}, Extra: map[string][]string{"example.com/team": {"shop"}}}}, "ann", []string{"a", "b"}, "shop"},
	} {
		next := &sent{}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://api.example/api/v1/pods", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Impersonate-User", "deployer")
		c.next = next
		if _, err := c.RoundTrip(request); err != nil {
			t.Fatal(err)
		}
		if user := next.request.Header.Get("Impersonate-User"); user != c.user {
			t.Errorf("%s: the user is %q, want %q", name, user, c.user)
		}
		if extra := next.request.Header.Get("Impersonate-Extra-Example.com%2fteam"); extra != c.extra {
			t.Errorf("%s: the team is %q, want %q", name, extra, c.extra)
		}
		if diff := cmp.Diff(c.groups, next.request.Header.Values("Impersonate-Group")); diff != "" {
			t.Errorf("%s: the groups (-want +got):\n%s", name, diff)
		}
	}
}
