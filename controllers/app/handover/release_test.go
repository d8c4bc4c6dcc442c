package handover

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/release/fault"
)

// TestAnAppAwaitsTheReleaseThatAnotherAppLeaves: the release "site" belongs to app api, and app web is to have it. The end of app api wakes app web in any
// case.
func TestAnAppAwaitsTheReleaseThatAnotherAppLeaves(t *testing.T) {
	site := func(api *v1alpha1.App) {
		api.Spec = v1alpha1.AppSpec{Type: v1alpha1.AppHelm, Helm: &v1alpha1.HelmSource{ReleaseName: "site"}}
	}
	cases := map[string]struct {
		api    func(*v1alpha1.App)
		change func(*project)
		waits  bool
	}{
		"its owner stays": {api: site},
		"its owner is being deleted": {api: func(api *v1alpha1.App) {
			site(api)
			api.Finalizers, api.DeletionTimestamp = []string{v1alpha1.Finalizer}, &metav1.Time{Time: time.Unix(1_000_000, 0)}
		}, waits: true},
		"its owner has another release name": {api: func(api *v1alpha1.App) { site(api); api.Spec.Helm.ReleaseName = "" }, waits: true},
		"its owner is no Helm app any more":  {api: has(), waits: true},
		"its owner is gone since a moment":   {api: func(api *v1alpha1.App) { api.Name = "else" }, waits: true},
		"its owner has long been gone": {api: func(api *v1alpha1.App) { api.Name = "else" }, change: func(p *project) {
			p.web.Waited("release site")
			p.after(step.Quiet)
		}},
		"the repository may still delete its owner": {api: site, change: func(p *project) {
			p.web.App.Labels = map[string]string{v1alpha1.RepositoryLabel: "acme"}
			p.web.App.Annotations = map[string]string{v1alpha1.RevisionAnnotation: "two"}
			p.Client = interceptor.NewClient(p.writer.(client.WithWatch), interceptor.Funcs{
				Get: func(_ context.Context, _ client.WithWatch, _ client.ObjectKey, o client.Object, _ ...client.GetOption) error {
					o.(*v1alpha1.Repository).Status.LastAttemptedRevision = "one"
					return nil
				},
			})
		}, waits: true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := newProject(t, c.api)
			if c.change != nil {
				c.change(p)
			}
			refused := step.Stop(v1alpha1.ReleaseTakenReason, &fault.Taken{Release: "site", App: "api"})
			if got := p.AwaitRelease(t.Context(), p.web, refused); step.Waits(got) != c.waits || !c.waits && got != refused { //nolint:errorlint // the same one
				t.Errorf("got %v, want a wait: %t", got, c.waits)
			}
			if p.Forget(p.api); !slices.Equal(p.woken(), []string{"web"}) {
				t.Error("the app is not woken when the owner is gone")
			}
		})
	}
}

func TestOtherErrorsOfAReleaseStay(t *testing.T) {
	p := newProject(t, has())
	for _, err := range []error{nil, errors.New("away"), fault.ErrTaken} {
		if got := p.AwaitRelease(t.Context(), p.web, err); got != err { //nolint:errorlint // the same one
			t.Errorf("%v became %v", err, got)
		}
	}
	p.Direct = interceptor.NewClient(p.writer.(client.WithWatch), interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return errors.New("down")
		},
	})
	if got := p.AwaitRelease(t.Context(), p.web, &fault.Taken{Release: "site", App: "api"}); got == nil || step.Ended(got) {
		t.Errorf("the owner cannot be read, and the error is %v", got)
	}
}
