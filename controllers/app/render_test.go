package app

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/app/inputs"
	"github.com/kubeop/kubeop/controllers/step"
	"github.com/kubeop/kubeop/delivery/build"
	"github.com/kubeop/kubeop/delivery/build/scheduler"
	"github.com/kubeop/kubeop/delivery/decrypt"
	"github.com/kubeop/kubeop/delivery/render"
	"github.com/kubeop/kubeop/delivery/trials"
)

func TestTheErrorOfABuildDecidesTheReason(t *testing.T) {
	about := func(err error) error { return fmt.Errorf("a.yaml: %w", err) }
	tests := map[string]struct {
		err  error
		want error
	}{
		"what ended the step":        {step.Soon(time.Second), step.Soon(time.Second)},
		"no Secret with keys yet":    {about(inputs.ErrNoKeys), step.Fail(v1alpha1.DecryptionFailedReason, about(inputs.ErrNoKeys))},
		"a missing variable object":  {about(render.ErrMissing), step.Fail(v1alpha1.ValuesFailedReason, about(render.ErrMissing))},
		"a failed read":              {about(inputs.ErrReading), step.Fail(v1alpha1.ValuesFailedReason, about(inputs.ErrReading))},
		"the wrong keys":             {about(decrypt.ErrKeys), step.Stop(v1alpha1.DecryptionFailedReason, about(decrypt.ErrKeys))},
		"a silent key service":       {about(decrypt.ErrService), step.Fail(v1alpha1.DecryptionFailedReason, about(decrypt.ErrService))},
		"a damaged file":             {about(decrypt.ErrDamaged), step.Stop(v1alpha1.DecryptionFailedReason, about(decrypt.ErrDamaged))},
		"a killed process":           {about(build.ErrUnfit), step.Fail(v1alpha1.RenderFailedReason, about(build.ErrUnfit))},
		"a limit":                    {about(render.ErrTooLarge), step.Stop(v1alpha1.RenderFailedReason, about(render.ErrTooLarge))},
		"a build that took too long": {about(scheduler.ErrTimeout), step.Stop(v1alpha1.RenderFailedReason, about(scheduler.ErrTimeout))},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := renderOutcome(tc.err); !reflect.DeepEqual(got, tc.want) {
				t.Errorf("got %#v, want %#v", got, tc.want)
			}
		})
	}
}

// TestTheBuildOfADeletedAppStops.
func TestTheBuildOfADeletedAppStops(t *testing.T) {
	b := newFixture(t, webApp(), interceptor.Funcs{})
	b.renderer.builder = &build.Builder{Trials: trials.New(t.TempDir(), "build")}
	stopped := make(chan struct{})
	_, err := b.renderer.builds.Do(scheduler.Task[made]{
		Key: string(b.app.UID), Input: "1", Tenant: "acme", Within: time.Minute, Wake: func() {},
		Run: func(ctx context.Context) (made, error) {
			<-ctx.Done()
			close(stopped)
			return made{}, ctx.Err()
		},
	})
	if !errors.Is(err, scheduler.ErrUnfinished) {
		t.Fatalf("the build ended: %v", err)
	}
	b.renderer.retried.Get(b.app).request = "1"
	b.renderer.Forget(b.app)
	select {
	case <-stopped:
	case <-time.After(10 * time.Second):
		t.Error("the build goes on")
	}
	if got := b.renderer.retried.Get(b.app).request; got != "" {
		t.Errorf("the request %q of the App is still known", got)
	}
}
