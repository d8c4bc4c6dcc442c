package plan

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/delivery/fetch/folder"
	"github.com/kubeop/kubeop/gitops/tree"
)

// TestAPlanHasTheProjectsOfTheClusterOnly, also for owners, who may not list Clusters. A project that moves away is held, and not deleted.
func TestAPlanHasTheProjectsOfTheClusterOnly(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := errors.Join(v1alpha1.AddToScheme(scheme), corev1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	project := func(name, spec string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte("apiVersion: paas.kubeop.io/v1alpha1\nkind: Project\nmetadata: {name: " + name + "}\nspec: {" + spec + "}\n")}
	}
	commit := Commit{Revision: "main@sha1:1", Root: folder.FromFS(fstest.MapFS{
		"kubeop.yaml": {Data: []byte("layout: v1\n")}, "projects/shop/project.yaml": project("shop", "cluster: west"), "projects/far/project.yaml": project("far", "cluster: east"), "projects/first/project.yaml": project("first", ""),
	}).Folder(".")}
	away := errors.New("the API server is away")
	for name, c := range map[string]struct {
		status  v1alpha1.RepositoryStatus
		fails   error
		want    []string
		wrong   string
		problem string
	}{
		"an administrator": {status: v1alpha1.RepositoryStatus{Cluster: "east", LastAttemptedRevision: "main@sha1:0"}, want: []string{"create Project kubeop-acme/far", "hold Project kubeop-acme/shop"}},
		"an owner": {status: v1alpha1.RepositoryStatus{Cluster: "east", LastAttemptedRevision: "main@sha1:0"}, want: []string{"create Project kubeop-acme/far", "hold Project kubeop-acme/shop"},
			fails: apierrors.NewForbidden(schema.GroupResource{Group: v1alpha1.Group, Resource: "clusters"}, "", errors.New("no"))},
		"before the operator": {want: []string{"create Project kubeop-acme/far", "create Project kubeop-acme/first", "update Project kubeop-acme/shop"}},
		"without an answer":   {status: v1alpha1.RepositoryStatus{LastAttemptedRevision: "main@sha1:0"}, fails: away, wrong: "listing the clusters: the API server is away"},
		"without a name":      {status: v1alpha1.RepositoryStatus{LastAttemptedRevision: "main@sha1:0"}, problem: "clusters: the operator of this cluster has no name"},
	} {
		t.Run(name, func(t *testing.T) {
			objects := []client.Object{
				&v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "acme"}, Spec: v1alpha1.TenantSpec{Clusters: []string{"west", "east"}}}, newProject("shop"),
				&v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east"}}, &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "west"}, Spec: v1alpha1.ClusterSpec{Default: true}},
			}
			api := fake.NewClientBuilder().WithScheme(scheme).WithReturnManagedFields().WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
				List: func(ctx context.Context, api client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
					if _, is := list.(*v1alpha1.ClusterList); is && c.fails != nil {
						return c.fails
					}
					return api.List(ctx, list, opts...)
				},
			}).Build()
			p := &Planner{Client: api, Direct: api, Limits: budget.Default()}
			repository := &v1alpha1.Repository{ObjectMeta: metav1.ObjectMeta{Name: "acme"}, Spec: v1alpha1.RepositorySpec{Tenant: "acme"}, Status: c.status}
			got, err := p.compare(t.Context(), repository, commit)
			if c.wrong != "" {
				if err == nil || err.Error() != c.wrong {
					t.Errorf("%v, want %s", err, c.wrong)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var problems []string
			got.tree.All(func(problem tree.Problem) bool {
				problems = append(problems, problem.String())
				return true
			})
			if len(problems) > 1 || !strings.HasPrefix(strings.Join(problems, ""), c.problem) || c.problem == "" && len(problems) > 0 {
				t.Fatalf("problems are %v", problems)
			}
			if c.problem != "" {
				return
			}
			changes, _, err := got.changes(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var all []string
			for _, change := range changes {
				all = append(all, string(change.Action)+" "+change.Object)
			}
			if diff := cmp.Diff(c.want, all); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
