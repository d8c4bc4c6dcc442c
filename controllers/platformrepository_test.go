package controllers

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/internal/testenv/watchtest"
)

var errAway = errors.New("the API server is away")

// newAPI returns an API server that fails to read while the error is set.
func newAPI(t *testing.T) (client.WithWatch, *error) {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	mapper := watchtest.Mapper(scheme, "Repository")
	var fails error
	return fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper).WithTypeConverters(managedfields.NewDeducedTypeConverter()).
		WithInterceptorFuncs(interceptor.Funcs{
			Get: func(ctx context.Context, api client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
				if fails != nil {
					return fails
				}
				return api.Get(ctx, key, o, opts...)
			},
		}).Build(), &fails
}

func TestThePlatformRepositoryIsWrittenOnlyWhereItDiffers(t *testing.T) {
	p := Platform{URL: "https://git.example.com/platform", Branch: "main", Path: "p", Secret: "git", HookSecret: "hook", Interval: time.Minute, VerifySecret: "signers", History: "Any"}
	api, fails := newAPI(t)
	if err := p.Declare(t.Context(), api); err != nil {
		t.Fatal(err)
	}
	live := &v1alpha1.Repository{}
	if err := api.Get(t.Context(), client.ObjectKey{Name: "platform"}, live); err != nil {
		t.Fatal(err)
	}
	if live.Spec.URL != p.URL || live.Spec.Ref.Branch != "main" || live.Spec.Path != "p" || live.Spec.SecretRef.Name != "git" || live.Spec.HookSecretRef.Name != "hook" || live.Spec.Interval.Duration != time.Minute ||
		live.Spec.History != v1alpha1.HistoryAny || *live.Spec.Verify != (v1alpha1.GitVerification{Mode: "HEAD", SecretRef: v1alpha1.LocalSecretReference{Name: "signers"}}) {
		t.Errorf("spec is %+v", live.Spec)
	}
	for name, change := range map[string]func(*Platform){
		"nothing": func(*Platform) {}, "the URL": func(p *Platform) { p.URL += "2" }, "the branch": func(p *Platform) { p.Branch = "" }, "the path": func(p *Platform) { p.Path = "" },
		"the Secret": func(p *Platform) { p.Secret = "" }, "the hook's Secret": func(p *Platform) { p.HookSecret = "x" }, "the interval": func(p *Platform) { p.Interval++ },
		"the keys": func(p *Platform) { p.VerifySecret = "x" }, "the history": func(p *Platform) { p.History = "FastForward" },
	} {
		other := p
		change(&other)
		var before, after v1alpha1.Repository
		err := errors.Join(p.Declare(t.Context(), api), api.Get(t.Context(), client.ObjectKey{Name: "platform"}, &before),
			other.Declare(t.Context(), api), api.Get(t.Context(), client.ObjectKey{Name: "platform"}, &after))
		if wrote := before.ResourceVersion != after.ResourceVersion; err != nil || wrote != (name != "nothing") {
			t.Errorf("%s changed: written %t (%v)", name, wrote, err)
		}
	}
	*fails = errAway
	if err := p.Declare(t.Context(), api); !errors.Is(err, errAway) {
		t.Errorf("one that cannot be read: %v", err)
	}
	if err := (Platform{}).Keep(t.Context(), nil, nil); err != nil {
		t.Errorf("without a URL: %v", err)
	}
}

// TestAdministratorsDecideWhichCommitsOfThePlatformCount where the configuration does not say it: the Repository keeps what they set.
func TestAdministratorsDecideWhichCommitsOfThePlatformCount(t *testing.T) {
	p := Platform{URL: "https://git.example.com/platform", Interval: time.Minute}
	api, _ := newAPI(t)
	live := &v1alpha1.Repository{}
	if err := errors.Join(p.Declare(t.Context(), api), api.Get(t.Context(), client.ObjectKey{Name: "platform"}, live)); err != nil {
		t.Fatal(err)
	}
	if live.Spec.Verify != nil || live.Spec.History != "" {
		t.Errorf("the first one has %+v", live.Spec)
	}
	set := v1alpha1.GitVerification{Mode: "HEAD", SecretRef: v1alpha1.LocalSecretReference{Name: "ours"}}
	live.Spec.Verify, live.Spec.History = &set, v1alpha1.HistoryAny
	moved := p
	moved.URL += "2"
	if err := errors.Join(api.Update(t.Context(), live), moved.Declare(t.Context(), api), api.Get(t.Context(), client.ObjectKey{Name: "platform"}, live)); err != nil {
		t.Fatal(err)
	}
	if live.Spec.URL != moved.URL || live.Spec.History != v1alpha1.HistoryAny || live.Spec.Verify == nil || *live.Spec.Verify != set {
		t.Errorf("after another URL it has %+v", live.Spec)
	}
}
