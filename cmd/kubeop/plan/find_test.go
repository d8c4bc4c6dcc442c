package plan

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/cmd/kubeop/call"
	"github.com/kubeop/kubeop/internal/testenv/memory"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

func TestTheRepositoryOfACloneIsFoundByFlagFolderOrURL(t *testing.T) {
	repo := sources.NewGitRepo(t)
	repo.Git("remote", "set-url", "origin", "git@git.example.com:acme/fleet.git")
	folder := filepath.Base(repo.Work)
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "repositories"}, "", errors.New("no"))
	for name, tc := range map[string]struct {
		there       map[string]string // the URLs of Repositories
		flag        string
		list        error
		want, fails string
	}{
		"the flag":          {map[string]string{"a": "https://git.example.com/acme/fleet", folder: "https://x"}, folder, nil, folder, ""},
		"another flag":      {map[string]string{"a": "https://git.example.com/acme/fleet"}, "b", nil, "", "reading repository b, which can be named by --repository"},
		"the folder":        {map[string]string{"a": "https://git.example.com/acme/fleet", folder: "https://x"}, "", nil, folder, ""},
		"the URL":           {map[string]string{"a": "https://git.example.com/acme/fleet", "b": "https://git.example.com/acme/other"}, "", nil, "a", ""},
		"no URL":            {map[string]string{"b": "https://git.example.com/acme/other"}, "", nil, "", "reading repository " + folder},
		"two of the URL":    {map[string]string{"a": "https://git.example.com/acme/fleet", "b": "ssh://git@git.example.com/acme/fleet.git"}, "", nil, "", "the repositories a and b have the URL of this clone"},
		"an owner":          {map[string]string{"a": "https://git.example.com/acme/fleet"}, "", forbidden, "", "reading repository " + folder},
		"a list that fails": {nil, "", errors.New("away"), "", "listing the repositories: away"},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := v1alpha1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			build := fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{
				List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
					return errors.Join(tc.list, c.List(ctx, list, options...))
				},
			})
			for name, url := range tc.there {
				build.WithObjects(&v1alpha1.Repository{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.RepositorySpec{URL: url}})
			}
			p := &command{Call: call.New(genericiooptions.NewTestIOStreamsDiscard(), clocktesting.NewFakeClock(time.Now())), repository: tc.flag}
			got, err := p.find(t.Context(), build.Build(), &snapshot{root: repo.Work})
			if (err != nil) != (tc.fails != "") || err != nil && !strings.Contains(err.Error(), tc.fails) {
				t.Fatalf("the error is %v, want %q", err, tc.fails)
			}
			if err == nil && got.Name != tc.want {
				t.Errorf("got %s, want %s", got.Name, tc.want)
			}
		})
	}
}

// TestTheNamespaceOfTheKubeconfigNamesARepositoryLast: the clone of another tenant is not planned against it.
func TestTheNamespaceOfTheKubeconfigNamesARepositoryLast(t *testing.T) {
	repo := sources.NewGitRepo(t)
	folder := filepath.Base(repo.Work)
	const fleet, other = "https://git.example.com/acme/fleet", "https://git.example.com/beta/fleet"
	for name, tc := range map[string]struct {
		there       map[string]string // the URLs of Repositories
		remote      string            // that of the clone; "" for none
		namespace   string            // of the flag -n
		want, fails string
	}{
		"the folder":              {map[string]string{"acme": fleet, folder: other}, other, "", folder, ""},
		"the URL":                 {map[string]string{"acme": fleet, "beta": other}, other, "", "beta", ""},
		"the kubeconfig":          {map[string]string{"acme": fleet}, "git@git.example.com:acme/fleet.git", "", "acme", ""},
		"the kubeconfig, no URL":  {map[string]string{"acme": fleet}, "", "", "acme", ""},
		"a clone of another":      {map[string]string{"acme": fleet}, other, "", "", "repository acme, which is that of the kubeconfig's namespace, has another URL than this clone: " + fleet},
		"no Repository of it":     {nil, "", "", "", "reading repository acme, which can be named by --repository or --tenant"},
		"the flag of the command": {map[string]string{"acme": fleet, "beta": other, folder: other}, other, "kubeop-acme-shop", "acme", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if repo.Git("remote", "remove", "origin"); tc.remote != "" {
				repo.Git("remote", "add", "origin", tc.remote)
			}
			defer func() {
				if tc.remote == "" {
					repo.Git("remote", "add", "origin", fleet)
				}
			}()
			var there []client.Object
			for name, url := range tc.there {
				there = append(there, &v1alpha1.Repository{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.RepositorySpec{URL: url}})
			}
			s := memory.Serve(t, there...)
			text, err := os.ReadFile(s.Kubeconfig)
			if err != nil {
				t.Fatal(err)
			}
			text = bytes.Replace(text, []byte(`"user": "memory"}}`), []byte(`"user": "memory", "namespace": "kubeop-acme-shop"}}`), 1)
			if err := os.WriteFile(s.Kubeconfig, text, 0o600); err != nil {
				t.Fatal(err)
			}
			p := &command{Call: call.New(genericiooptions.NewTestIOStreamsDiscard(), clocktesting.NewFakeClock(time.Now()))}
			p.Flags.KubeConfig, p.Flags.Namespace = &s.Kubeconfig, &tc.namespace
			got, err := p.find(t.Context(), s, &snapshot{root: repo.Work})
			if (err != nil) != (tc.fails != "") || err != nil && !strings.Contains(err.Error(), tc.fails) {
				t.Fatalf("the error is %v, want %q", err, tc.fails)
			}
			if err == nil && got.Name != tc.want {
				t.Errorf("got %s, want %s", got.Name, tc.want)
			}
		})
	}
}

func TestTheAPIServerIsAskedOnceWhoMayActAsDeployers(t *testing.T) {
	for name, tc := range map[string]struct {
		allowed bool
		fails   error
		want    string
	}{
		"an administrator": {true, nil, "true <nil>"},
		"a tenant":         {false, nil, "false <nil>"},
		"nobody knows":     {true, errors.New("away"), "false asking what you may do: away"},
	} {
		t.Run(name, func(t *testing.T) {
			api := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
				Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
					review := o.(*authorizationv1.SelfSubjectAccessReview)
					want := authorizationv1.ResourceAttributes{Verb: "impersonate", Resource: "serviceaccounts", Name: "kubeop-deployer"}
					if asked := review.Spec.ResourceAttributes; *asked != want {
						t.Errorf("asked about %+v", asked)
					}
					review.Status.Allowed = tc.allowed
					return tc.fails
				},
			}).Build()
			itself, err := mayImpersonate(t.Context(), api)
			if got := fmt.Sprint(itself, " ", err); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}
