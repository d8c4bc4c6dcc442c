package main

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/charts"
	"github.com/kubeop/kubeop/internal/definitions"
)

// applyDefinitions applies the CustomResourceDefinitions of this version. The chart runs it in a Job before it installs or upgrades anything.
func applyDefinitions(ctx context.Context) error {
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("finding the cluster: %w", err)
	}
	c, err := client.New(config, client.Options{Scheme: runtime.NewScheme()})
	if err != nil {
		return fmt.Errorf("connecting to the cluster: %w", err)
	}
	return definitions.Apply(ctx, c, charts.CRDs, "kubeop/crds/*.yaml")
}
