// Package charts embeds the CustomResourceDefinitions that the Helm chart installs, so that the operator can check a file by the same rules as
// the API server.
package charts

import "embed"

// CRDs contains kubeop's CustomResourceDefinitions, generated from api/v1alpha1, below "kubeop/crds". The chart installs the same files.
//
//go:embed kubeop/crds/*.yaml
var CRDs embed.FS
