package cluster

import (
	"errors"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart"

	"github.com/kubeop/kubeop/delivery/release/fault"
)

func TestChartsDefineNoKindOfThePlatform(t *testing.T) {
	text := "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: apps.paas.kubeop.io}\nspec: {group: paas.kubeop.io}\n"
	crds := []chart.CRD{{Filename: "web/crds/a.yaml", File: &chart.File{Data: []byte(text)}}}
	_, err := (&Client{}).definitions(crds, "")
	if !errors.As(err, new(*fault.NotAllowed)) || !strings.Contains(err.Error(), "CustomResourceDefinition/apps.paas.kubeop.io in web/crds/a.yaml belongs to the API group paas.kubeop.io") {
		t.Errorf("got %v", err)
	}
}
