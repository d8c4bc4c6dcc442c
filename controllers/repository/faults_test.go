package repository

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/usage"
	"github.com/kubeop/kubeop/delivery/fetch/folder"
	"github.com/kubeop/kubeop/internal/testenv/steptest"
)

// TestASyncReturnsTheErrorOfEachRequest: one that passes over an error would report the commit as applied.
func TestASyncReturnsTheErrorOfEachRequest(t *testing.T) {
	for name, c := range map[string]struct {
		objects func() []client.Object
		change  func(*scope)
		most    int
	}{
		"new objects, and an app that left": {func() []client.Object {
			return []client.Object{fromAcme(app("kubeop-acme-shop", "old")), fromAcme(app("kubeop-acme-shop", "web")), fromAcme(project("kubeop-acme", "shop"))}
		}, func(*scope) {}, 30},
		"a confirmed deletion with its claims": {func() []client.Object {
			blog := fromAcme(project("kubeop-acme", "blog"), func(p *v1alpha1.Project) { p.Spec.ClaimDeletionPolicy = v1alpha1.ClaimDelete })
			return []client.Object{blog, namespace("kubeop-acme-blog"), &corev1.PersistentVolumeClaim{
				ObjectMeta: metav1.ObjectMeta{Namespace: "kubeop-acme-blog", Name: "data", UID: "uid-data"}, Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "pv"},
			}}
		}, func(s *scope) {
			s.repository.Annotations = map[string]string{v1alpha1.ConfirmAnnotation: s.verdict.Token}
		}, 38},
	} {
		t.Run(name, func(t *testing.T) {
			var token string
			run := func(f *steptest.Failing) error {
				tenant := acme()
				tenant.Spec.Budget, tenant.Spec.Quota, tenant.Spec.Policies = cpus("10"), cpus("10"), []string{"large"}
				k := reading(t, append(c.objects(), tenant, namespace("kubeop-acme"), namespace("kubeop-acme-shop"), policyOf("large", "platform"))...)
				s := k.scope(nil)
				s.repository.UID, s.progress, s.verdict.Token = "uid", nil, token
				c.change(s)
				k.create(s.repository)
				all := acmeFiles(map[string]string{"web": nginx, "api": nginx})
				s.commit.Root = folder.FromFS(inMemory(all).MapFS).Folder(".")
				faulty := f.Client(k.api)
				k.Client, k.Direct, k.Usage = faulty, faulty, &usage.Counter{Reader: faulty, Limits: k.Usage.Limits, Budgets: &usage.Budgets{Reader: faulty, Kinds: k.Usage.Budgets.Kinds}}
				err := k.sync(t.Context(), s)
				token = s.verdict.Token
				return err
			}
			_ = run(&steptest.Failing{}) // It finds out the token of the confirmation.
			if requests := steptest.EachRequest(t, run); requests < c.most {
				t.Errorf("there were %d requests, want at least %d", requests, c.most)
			}
		})
	}
}
