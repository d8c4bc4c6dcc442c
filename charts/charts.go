// Package charts carries what the Helm chart installs, so that the operator can judge a file by the very rules of the
// API server that will receive it.
package charts

import "embed"

// CRDs holds kubeop's CustomResourceDefinitions, as generated from api/v1alpha1, below "kubeop/crds". The chart
// installs the same files.
//
//go:embed kubeop/crds/*.yaml
var CRDs embed.FS
