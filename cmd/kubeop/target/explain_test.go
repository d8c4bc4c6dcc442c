package target

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/gitops/identity"
)

func TestAnErrorSaysWhatToDo(t *testing.T) {
	apps := schema.GroupResource{Group: v1alpha1.Group, Resource: "apps"}
	request := func(err error) error { return &url.Error{Op: "Get", URL: "https://localhost:1", Err: err} }
	for name, tc := range map[string]struct {
		namespace string
		err       error
		want      string
	}{
		"no right, without details":     {"", &apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonForbidden, Message: "no"}}, "no. spec.owners in tenants/<tenant>/tenant.yaml"},
		"no object, without details":    {"", &apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonNotFound, Message: "gone"}}, "gone"},
		"no tenant":                     {"kubeop-acme-shop", apierrors.NewNotFound(schema.GroupResource{Group: v1alpha1.Group, Resource: "tenants"}, "beta"), "`kubeop get tenants` shows what there is"},
		"no kubeconfig":                 {"", clientcmd.ErrEmptyConfig, "no cluster is configured"},
		"no kinds":                      {"", fmt.Errorf("listing: %w", &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: v1alpha1.Group, Kind: "App"}}), "the cluster at https://localhost:1 has no kubeop"},
		"no kinds of others":            {"", &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: "apps", Kind: "Deployment"}}, `no matches for kind "Deployment"`},
		"no login":                      {"", apierrors.NewUnauthorized("no"), `does not accept your credentials (context "here"): log in again`},
		"no right":                      {"kubeop-acme-shop", apierrors.NewForbidden(apps, "web", errors.New("no")), "spec.owners in tenants/acme/tenant.yaml of the platform repository"},
		"no right to list":              {"", apierrors.NewForbidden(apps, "", errors.New("no")), "name yours with --tenant"},
		"no right, no tenant":           {"", apierrors.NewForbidden(apps, "web", errors.New("no")), "tenants/<tenant>/tenant.yaml"},
		"no right to read others":       {"", apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("no")), "tenants/<tenant>/tenant.yaml"},
		"no right to list tenants":      {"kubeop-acme-shop", apierrors.NewForbidden(schema.GroupResource{Group: v1alpha1.Group, Resource: "tenants"}, "", errors.New("no")), "list the objects of all tenants: name yours with --tenant"},
		"no right to list repositories": {"kubeop-acme-shop", apierrors.NewForbidden(schema.GroupResource{Group: v1alpha1.Group, Resource: "repositories"}, "", errors.New("no")), "list the objects of all tenants: name yours with --tenant"},
		"no right to list policies":     {"kubeop-acme-shop", apierrors.NewForbidden(schema.GroupResource{Group: v1alpha1.Group, Resource: "policies"}, "", errors.New("no")), "An administrator of the cluster can allow it"},
		"no right to the platform":      {"kubeop-acme-shop", apierrors.NewForbidden(schema.GroupResource{Group: v1alpha1.Group, Resource: "repositories"}, "platform", errors.New("no")), "An administrator of the cluster can allow it"},
		"no right to list own apps":     {"kubeop-acme-shop", apierrors.NewForbidden(apps, "", errors.New("no")), "spec.owners in tenants/acme/tenant.yaml of the platform repository"},
		"no object":                     {"kubeop-acme-shop", apierrors.NewNotFound(apps, "web"), "`kubeop get apps --tenant acme` shows what there is"},
		"no repository":                 {"kubeop-acme-shop", apierrors.NewNotFound(schema.GroupResource{Group: v1alpha1.Group, Resource: "repositories"}, "web"), "`kubeop get repositories` shows what there is"},
		"nothing served":                {"", apierrors.NewNotFound(apps, ""), "has no kubeop: it does not serve apps." + v1alpha1.Group},
		"no other object":               {"", apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, "web"), `pods "web" not found`},
		"no name":                       {"", request(&net.DNSError{Err: "no such host", Name: "api.example"}), "no address is known for api.example"},
		"another authority":             {"", request(x509.UnknownAuthorityError{}), "its certificate is not of the authority in the kubeconfig"},
		"no answer":                     {"", request(os.ErrDeadlineExceeded), "it did not answer in time"},
		"no connection":                 {"", request(errors.New("connection refused")), `the cluster at https://localhost:1 cannot be reached (context "here"): connection refused`},
		"another error":                 {"", errors.New("other"), "other"},
	} {
		t.Run(name, func(t *testing.T) {
			got := in(t, tc.namespace).Explain(tc.err)
			if got == nil || !strings.Contains(got.Error(), tc.want) || strings.Contains(got.Error(), "\n") {
				t.Errorf("got  %v\nwant %s", got, tc.want)
			}
		})
	}
	c := in(t, "")
	if err := c.Explain(nil); err != nil {
		t.Errorf("no error is explained as %v", err)
	}
	if err := c.Explain(context.Canceled); !errors.Is(err, context.Canceled) {
		t.Errorf("an interruption is explained as %v", err)
	}
	platform := in(t, "")
	platform.Tenant = v1alpha1.PlatformTenant
	if err := platform.Explain(apierrors.NewForbidden(apps, "web", errors.New("no"))); err == nil || !strings.HasSuffix(err.Error(), "no. An administrator of the cluster can allow it") {
		t.Errorf("of the platform: %v", err)
	}
	all := in(t, "kubeop-acme-shop")
	all.All = true
	if err := all.Explain(apierrors.NewForbidden(apps, "", errors.New("no"))); err == nil || !strings.HasSuffix(err.Error(), "name yours with --tenant") {
		t.Errorf("of all tenants: %v", err)
	}
	*c.Flags.KubeConfig = filepath.Join(t.TempDir(), "none")
	t.Setenv("KUBECONFIG", *c.Flags.KubeConfig)
	*c.Flags.KubeConfig = ""
	if err := c.Explain(request(errors.New("connection refused"))); !errors.Is(err, errUnconfigured) {
		t.Errorf("without a kubeconfig: %v", err)
	}
}

// TestTheNextCommandsFollowTheState of an object; one that is well needs none.
func TestTheNextCommandsFollowTheState(t *testing.T) {
	web := Object{Kind: App, Ref: identity.Ref{Tenant: "acme", Project: "shop", App: "web"}}
	of := func(token string, set map[string]metav1.ConditionStatus) *v1alpha1.App {
		app := &v1alpha1.App{}
		app.Status.HeldToken = token
		for kind, status := range set {
			app.Status.Conditions = append(app.Status.Conditions, metav1.Condition{Type: kind, Status: status})
		}
		return app
	}
	const yes, no = metav1.ConditionTrue, metav1.ConditionFalse
	for name, tc := range map[string]struct {
		of     Object
		object client.Object
		want   []string
	}{
		"it is well":            {web, of("", map[string]metav1.ConditionStatus{v1alpha1.ReadyCondition: yes}), nil},
		"it is suspended":       {web, of("1", map[string]metav1.ConditionStatus{v1alpha1.ReadyCondition: yes, v1alpha1.SuspendedCondition: yes}), []string{"resume"}},
		"it holds a deletion":   {web, of("1", map[string]metav1.ConditionStatus{v1alpha1.ReadyCondition: yes}), []string{"confirm", "blame"}},
		"it is not ready":       {web, of("", map[string]metav1.ConditionStatus{v1alpha1.ReadyCondition: no}), []string{"blame"}},
		"its pods fail":         {web, of("", map[string]metav1.ConditionStatus{v1alpha1.HealthyCondition: no}), []string{"logs", "blame"}},
		"its release failed":    {web, of("", map[string]metav1.ConditionStatus{v1alpha1.ReleasedCondition: no, v1alpha1.StalledCondition: yes}), []string{"logs", "blame", "force"}},
		"a project":             {Object{Kind: Project, Ref: identity.Ref{Tenant: "acme", Project: "shop"}}, &v1alpha1.Project{}, nil},
		"a repository, holding": {Object{Kind: Repository, Ref: identity.Ref{Tenant: "acme"}}, &v1alpha1.Repository{Status: v1alpha1.RepositoryStatus{HeldToken: "1"}}, []string{"confirm"}},
		"a repository, frozen":  {Object{Kind: Repository, Ref: identity.Ref{Tenant: "acme"}}, &v1alpha1.Repository{Status: v1alpha1.RepositoryStatus{HeldRevision: "main@sha1:1", HeldUntil: &metav1.Time{}}}, []string{"confirm"}},
	} {
		t.Run(name, func(t *testing.T) {
			var commands []string
			for _, line := range Next(tc.of, tc.object) {
				words := strings.Fields(line)
				if !strings.HasPrefix(line, "kubeop "+words[1]+" "+tc.of.Args()+" ") {
					t.Errorf("the command does not name the object: %s", line)
				}
				commands = append(commands, words[1])
			}
			if diff := cmp.Diff(tc.want, commands); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
