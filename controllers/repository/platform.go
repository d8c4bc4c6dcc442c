package repository

import (
	"context"
	"fmt"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/internal/config"
)

// DeclarePlatform applies the Repository named platform from the operator's configuration. Without a URL it does nothing.
func DeclarePlatform(ctx context.Context, c client.Client, platform config.Platform) error {
	if platform.URL == "" {
		return nil
	}
	repository := &v1alpha1.Repository{
		ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.PlatformRepository},
		Spec: v1alpha1.RepositorySpec{
			URL: platform.URL, Path: platform.Path,
			SecretRef: secretRef(platform.Secret), HookSecretRef: secretRef(platform.HookSecret),
			Schedule: v1alpha1.Schedule{Interval: metav1.Duration{Duration: platform.Interval}},
		},
	}
	repository.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.RepositoryKind))
	if platform.Branch != "" {
		repository.Spec.Ref = &sourcev1.GitRepositoryRef{Branch: platform.Branch}
	}
	u, err := declared(repository)
	if err != nil {
		return err
	}
	owner := client.FieldOwner(v1alpha1.FieldManager)
	if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), owner, client.ForceOwnership); err != nil {
		return fmt.Errorf("declaring the platform repository: %w", err)
	}
	return nil
}

func secretRef(name string) *v1alpha1.LocalSecretReference {
	if name == "" {
		return nil
	}
	return &v1alpha1.LocalSecretReference{Name: name}
}
