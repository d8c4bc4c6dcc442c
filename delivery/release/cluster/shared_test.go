package cluster

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/kube"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/rest/fake"
)

const (
	classOfShop = `{"apiVersion": "networking.k8s.io/v1", "kind": "IngressClass", "metadata": {"name": "web", "uid": "1", "resourceVersion": "VERSION",
		"labels": {"paas.kubeop.io/tenant": "acme", "paas.kubeop.io/project": "shop", "paas.kubeop.io/app": "web"},
		"annotations": {"meta.helm.sh/release-name": "web", "meta.helm.sh/release-namespace": "kubeop-acme-shop"}}}`
	conflict = `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Conflict", "code": 409, "message": "it changed"}`
	missing  = `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404, "message": "not found"}`
	refused  = `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403, "message": "no"}`
	done     = `{"kind": "Status", "apiVersion": "v1", "status": "Success"}`
)

// TestASharedObjectIsDeletedInTheVersionThatWasChecked: an object that changed meanwhile is checked again before it is deleted, and only a
// few times.
func TestASharedObjectIsDeletedInTheVersionThatWasChecked(t *testing.T) {
	ours := func(version string) string { return strings.Replace(classOfShop, "VERSION", version, 1) }
	theirs := strings.Replace(ours("8"), `"acme"`, `"other"`, 1)
	tests := map[string]struct {
		// reads and deletions are the answers, one after the other; the last is repeated.
		reads, deletions []string
		spare            bool
		// versions are those that the deletions asked for.
		versions []string
		fails    string
	}{
		"it is the release's":               {reads: []string{ours("7")}, deletions: []string{done}, versions: []string{"7"}},
		"it is gone":                        {reads: []string{missing}},
		"it goes meanwhile":                 {reads: []string{ours("7")}, deletions: []string{missing}, versions: []string{"7"}},
		"it changes meanwhile":              {reads: []string{ours("7"), ours("8")}, deletions: []string{conflict, done}, versions: []string{"7", "8"}},
		"it becomes another's meanwhile":    {reads: []string{ours("7"), theirs}, deletions: []string{conflict}, versions: []string{"7"}},
		"it is another's":                   {reads: []string{theirs}},
		"it is spared":                      {reads: []string{ours("7")}, spare: true},
		"the user may not delete it":        {reads: []string{ours("7")}, deletions: []string{refused}, versions: []string{"7"}, fails: "IngressClass/web"},
		"it changes before each deletion":   {reads: []string{ours("7")}, deletions: []string{conflict}, versions: []string{"7", "7", "7", "7", "7"}, fails: "changes all the time"},
		"administrators removed its labels": {reads: []string{strings.Replace(ours("7"), "paas.kubeop.io/app", "former", 1)}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var versions []string
			next := func(answers *[]string) string {
				answer := (*answers)[0]
				if len(*answers) > 1 {
					*answers = (*answers)[1:]
				}
				return answer
			}
			requests := fake.CreateHTTPClient(func(r *http.Request) (*http.Response, error) {
				answer := ""
				if r.Method == http.MethodDelete {
					options := metav1.DeleteOptions{}
					if err := json.NewDecoder(r.Body).Decode(&options); err != nil {
						return nil, err
					}
					versions = append(versions, *options.Preconditions.ResourceVersion)
					answer = next(&test.deletions)
				} else {
					answer = next(&test.reads)
				}
				status := struct{ Code int }{}
				_ = json.Unmarshal([]byte(answer), &status)
				return &http.Response{
					StatusCode: max(status.Code, http.StatusOK), Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(answer)),
				}, nil
			})
			gv := schema.GroupVersion{Group: "networking.k8s.io", Version: "v1"}
			info := &resource.Info{
				Name:    "web",
				Client:  &fake.RESTClient{NegotiatedSerializer: resource.UnstructuredPlusDefaultContentConfig().NegotiatedSerializer, GroupVersion: gv, VersionedAPIPath: "/apis/networking.k8s.io/v1", Client: requests},
				Mapping: &meta.RESTMapping{Resource: gv.WithResource("ingressclasses"), GroupVersionKind: gv.WithKind("IngressClass"), Scope: meta.RESTScopeRoot},
			}
			c := &Client{
				Client:  &kube.Client{Log: t.Logf},
				Release: Objects{Release: types.NamespacedName{Namespace: "kubeop-acme-shop", Name: "web"}, App: "web"},
			}
			err := c.deleteShared(info, metav1.DeletePropagationBackground, func(any) bool { return test.spare })
			if (err != nil) != (test.fails != "") || err != nil && !strings.Contains(err.Error(), test.fails) {
				t.Errorf("got %v, want %q", err, test.fails)
			}
			if diff := cmp.Diff(test.versions, versions); diff != "" {
				t.Errorf("the versions that were deleted (-want +got):\n%s", diff)
			}
		})
	}
}

// TestASharedObjectThatTheUserMayNotReadIsReadByTheOperator: it may be gone or another's by now, and then nothing is left to delete.
func TestASharedObjectThatTheUserMayNotReadIsReadByTheOperator(t *testing.T) {
	away := errors.New("no connection of the operator")
	live := liveObject(t, configMapKind, "", "")
	forbidden, broken := map[string]*apierrors.StatusError{"GET": errForbidden}, map[string]*apierrors.StatusError{"GET": errConflict}
	for name, tc := range map[string]struct {
		user, operator *fakeAPI
		// connects is the error of connecting as the operator.
		connects    error
		seen        bool
		says        string
		untouchable bool
	}{
		"the user reads it":                {user: &fakeAPI{live: live}, operator: &fakeAPI{fails: forbidden}, seen: true},
		"the user finds it gone":           {user: &fakeAPI{}, operator: &fakeAPI{live: live}},
		"reading it as the user fails":     {user: &fakeAPI{fails: broken}, operator: &fakeAPI{live: live}, says: "it changed"},
		"the operator reads it":            {user: &fakeAPI{fails: forbidden}, operator: &fakeAPI{live: live}, seen: true},
		"the operator finds it gone":       {user: &fakeAPI{fails: forbidden}, operator: &fakeAPI{}},
		"the operator may not read it":     {user: &fakeAPI{fails: forbidden}, operator: &fakeAPI{fails: forbidden}, says: "platform repository, or an administrator of the cluster may run: kubectl delete configmap a", untouchable: true},
		"reading it as the operator fails": {user: &fakeAPI{fails: forbidden}, operator: &fakeAPI{fails: broken}, says: "it changed"},
		"the operator cannot connect":      {user: &fakeAPI{fails: forbidden}, operator: &fakeAPI{}, connects: away, says: away.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			c, operator := tc.user.client(t), tc.operator.client(t)
			c.operator = func() (*restClients, error) {
				if tc.connects != nil {
					return nil, tc.connects
				}
				return operator.rest, nil
			}
			got, err := c.lookShared(target(t, c, live.DeepCopy()))
			if (got != nil) != tc.seen {
				t.Errorf("got %v, want an object: %t", got, tc.seen)
			}
			if (err != nil) != (tc.says != "") || err != nil && !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %v, want %q", err, tc.says)
			}
			if errors.As(err, new(*untouchable)) != tc.untouchable || apierrors.IsForbidden(err) != tc.untouchable {
				t.Errorf("%v is untouchable: %t, want %t", err, !tc.untouchable, tc.untouchable)
			}
		})
	}
}
