package stage

import (
	"context"
	"crypto/rand"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/gitops/examples"
)

// Samples are the repositories of gitops/examples on the stage's Git server.
type Samples struct{ Docs, Acme, Platform *Repository }

// platformSecret and platformHook name the platform repository's Secrets.
const (
	platformSecret = "platform-git"
	platformHook   = "platform-hook"
)

// CreateSamples creates the sample repositories, fills their clones and gives the operator the credentials. It does not push. The operator must
// exist before, because the Git server needs the address of its hook.
func (s *Stage) CreateSamples(ctx context.Context) (*Samples, error) {
	for _, tag := range []string{"v1", "1.0.0"} {
		if _, err := s.PushHello(ctx, tag); err != nil {
			return nil, err
		}
	}
	if err := s.offerVolume(ctx); err != nil {
		return nil, err
	}
	samples := &Samples{}
	places := map[string]**Repository{"docs": &samples.Docs, "acme": &samples.Acme, "platform": &samples.Platform}
	for _, name := range examples.Names() {
		key := ""
		if name != "docs" {
			key = rand.Text()
		}
		repository, err := s.CreateRepository(ctx, name, key)
		if err != nil {
			return nil, err
		}
		if err := s.fill(repository); err != nil {
			return nil, err
		}
		if err := s.setCredentials(ctx, repository, key); err != nil {
			return nil, err
		}
		*places[name] = repository
	}
	return samples, nil
}

// Push pushes all samples, in an order in which each repository exists before another one needs it.
func (x *Samples) Push(ctx context.Context, message string) error {
	for _, repository := range []*Repository{x.Docs, x.Acme, x.Platform} {
		if err := repository.Push(ctx, message); err != nil {
			return err
		}
	}
	return nil
}

func (s *Stage) fill(r *Repository) error {
	files, err := examples.Repository(r.Name, examples.Places{GitURL: s.GitURL(), Registry: s.Registry()})
	if err != nil {
		return err
	}
	for name, content := range files {
		if err := r.Write(name, content); err != nil {
			return err
		}
	}
	return nil
}

// Registry returns the address of the registry for the operator.
func (s *Stage) Registry() string {
	if s.inPods {
		return s.Cluster.Registry.Pods
	}
	return s.Cluster.Registry.Host
}

// offerVolume creates a volume for the only claim of the samples, because the cluster has no provisioner. It is the node's /tmp, to which every
// user may write, because fsGroup does not apply to hostPath volumes.
func (s *Stage) offerVolume(ctx context.Context) error {
	volume := &corev1.PersistentVolume{}
	volume.Name = "samples"
	volume.Spec = corev1.PersistentVolumeSpec{
		Capacity:                      corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("64Mi")},
		AccessModes:                   []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
		PersistentVolumeSource:        corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/tmp"}},
	}
	if err := client.IgnoreAlreadyExists(s.Client.Create(ctx, volume)); err != nil {
		return fmt.Errorf("offering a volume: %w", err)
	}
	return nil
}

// setCredentials writes the Secrets that the samples name: "<repository>-git" and "<repository>-hook".
func (s *Stage) setCredentials(ctx context.Context, r *Repository, hookKey string) error {
	if hookKey == "" {
		return nil
	}
	err := s.SetSecret(ctx, r.Name+"-git", map[string]string{"username": r.User, "password": r.Password})
	if err != nil {
		return err
	}
	if err := s.SetSecret(ctx, r.Name+"-hook", map[string]string{"token": hookKey}); err != nil {
		return fmt.Errorf("repository %s: %w", r.Name, err)
	}
	return nil
}
