package controllers

import (
	"cmp"
	"context"
	"fmt"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/controllers/declared"
)

// Platform is the platform repository from the operator's configuration.
type Platform struct {
	URL, Branch, Path string
	// Secret and HookSecret name Secrets in the operator's namespace; "" for none.
	Secret, HookSecret string
	// Interval between two polls.
	Interval time.Duration
	// VerifySecret names a Secret in the operator's namespace with the keys that sign commits. History is a HistoryPolicy. If one is "", the
	// Repository keeps what administrators set there.
	VerifySecret, History string
}

// retryDeclaring is the pause after the platform repository could not be declared.
const retryDeclaring = 5 * time.Second

// Keep applies the Repository named platform, and applies it again whenever it is deleted or changed, until the context ends. Without a URL
// it does nothing, because then a person applies that Repository.
func (p Platform) Keep(ctx context.Context, c client.Client, objects cache.Informers) error {
	if p.URL == "" {
		return nil
	}
	informer, err := objects.GetInformer(ctx, &v1alpha1.Repository{})
	if err != nil {
		return fmt.Errorf("watching the platform repository: %w", err)
	}
	changed := make(chan struct{}, 1)
	notify := func(object any) {
		if o, ok := object.(metav1.Object); ok && o.GetName() != v1alpha1.PlatformRepository {
			return
		}
		select {
		case changed <- struct{}{}:
		default: // A change is already queued.
		}
	}
	registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		UpdateFunc: func(_, now any) { notify(now) }, DeleteFunc: notify,
	})
	if err != nil {
		return fmt.Errorf("watching the platform repository: %w", err)
	}
	defer func() { _ = informer.RemoveEventHandler(registration) }() // It fails only for an unknown registration.
	for ctx.Err() == nil {
		// It returns an error only if the context has ended.
		_ = wait.PollUntilContextCancel(ctx, retryDeclaring, true, func(ctx context.Context) (bool, error) {
			err := p.Declare(ctx, c)
			if err != nil {
				ctrl.LoggerFrom(ctx).Error(err, "Declaring the platform repository; it is tried again", "after", retryDeclaring)
			}
			return err == nil, nil
		})
		select {
		case <-ctx.Done():
		case <-changed:
		}
	}
	return nil
}

// Declare applies the Repository named platform if it differs from the configuration.
func (p Platform) Declare(ctx context.Context, c client.Client) error {
	repository := &v1alpha1.Repository{
		ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.PlatformRepository},
		Spec: v1alpha1.RepositorySpec{
			URL: p.URL, Path: p.Path,
			SecretRef: secretRef(p.Secret), HookSecretRef: secretRef(p.HookSecret),
			Polling: v1alpha1.Polling{Interval: metav1.Duration{Duration: p.Interval}},
		},
	}
	repository.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.RepositoryKind))
	if p.Branch != "" {
		repository.Spec.Ref = &sourcev1.GitRepositoryRef{Branch: p.Branch}
	}
	repository.Spec.History = v1alpha1.HistoryPolicy(p.History)
	if p.VerifySecret != "" {
		repository.Spec.Verify = &v1alpha1.GitVerification{Mode: sourcev1.ModeGitHEAD, SecretRef: *secretRef(p.VerifySecret)}
	}
	if there, err := p.declaredBefore(ctx, c, repository); there || err != nil {
		return err
	}
	u, err := declared.Manifest(repository)
	if err != nil {
		return err
	}
	owner := client.FieldOwner(v1alpha1.FieldManager)
	if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), owner, client.ForceOwnership); err != nil {
		return fmt.Errorf("declaring the platform repository: %w", err)
	}
	return nil
}

// declaredBefore reports whether the Repository exists as configured. If so, a start writes nothing. It adds to want what administrators set and
// the configuration does not.
func (p Platform) declaredBefore(ctx context.Context, c client.Reader, want *v1alpha1.Repository) (bool, error) {
	live := &v1alpha1.Repository{}
	err := c.Get(ctx, client.ObjectKeyFromObject(want), live)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("reading the platform repository: %w", err)
	}
	want.Spec.History = cmp.Or(want.Spec.History, live.Spec.History)
	want.Spec.Verify = cmp.Or(want.Spec.Verify, live.Spec.Verify)
	is, should := live.Spec, want.Spec
	same := is.URL == should.URL && is.Path == should.Path && is.Interval == should.Interval && is.History == should.History &&
		equality.Semantic.DeepEqual(is.Ref, should.Ref) && equality.Semantic.DeepEqual(is.SecretRef, should.SecretRef) &&
		equality.Semantic.DeepEqual(is.Verify, should.Verify) &&
		equality.Semantic.DeepEqual(is.HookSecretRef, should.HookSecretRef)
	return err == nil && same, nil
}

func secretRef(name string) *v1alpha1.LocalSecretReference {
	if name == "" {
		return nil
	}
	return &v1alpha1.LocalSecretReference{Name: name}
}
