package cluster

import (
	"errors"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubeop/kubeop/api/v1alpha1"
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

// withCRDs returns a chart with a file of CRDs.
func withCRDs(text string) *chart.Chart {
	of := &chart.Chart{Metadata: &chart.Metadata{Name: "web"}}
	if text != "" {
		of.Files = []*chart.File{{Name: "crds/a.yaml", Data: []byte(text)}}
	}
	return of
}

// refreshed is a discovery that reads everything again at once.
type refreshed struct{ discovered }

func (refreshed) Invalidate() {}

// TestDefinitionsOfAChartAreInstalledAsThePolicySays, unless they are someone else's and differ.
func TestDefinitionsOfAChartAreInstalledAsThePolicySays(t *testing.T) {
	definition := func(metadata, change string) string {
		text := strings.Replace(definitionOfDatabases, "{name: databases.example.org}", "{name: databases.example.org"+metadata+"}", 1)
		return strings.Replace(text, "kind: Database,", "kind: Database"+change+",", 1)
	}
	const ours, singular = ", uid: old, resourceVersion: '7', " + ofRelease, ", singular: database"
	for name, c := range map[string]struct {
		policy   v1alpha1.CRDsPolicy
		file     string
		live     string
		fails    map[string]*apierrors.StatusError
		lost     bool // The new kind is served, but discovery does not show it.
		requests string
		refused  bool
		says     string
	}{
		"new":                                 {requests: "GET,POST,GET"},
		"new, and existing ones are kept":     {policy: v1alpha1.CRDsCreate, requests: "GET,POST,GET"},
		"none":                                {file: "-"},
		"skipped":                             {policy: v1alpha1.CRDsSkip},
		"an empty file":                       {file: "# nothing\n"},
		"changed":                             {live: definition(ours, ""), file: definition("", singular), requests: "GET,PATCH,GET"},
		"changed, but existing ones are kept": {policy: v1alpha1.CRDsCreate, live: definition(ours, ""), file: definition("", singular), requests: "GET"},
		"another's, and the same":             {live: definition(", uid: old", ""), requests: "GET"},
		"another's, and it differs": {
			live: definition(", uid: old", ""), file: definition("", singular), requests: "GET", refused: true,
			says: "CustomResourceDefinition/databases.example.org (web/crds/a.yaml) exists, does not belong to this release and differs from the chart's: set spec.helm.crds: Create to keep it",
		},
		"it may not be created": {
			fails: map[string]*apierrors.StatusError{"POST": errForbidden}, requests: "GET,POST", refused: true,
			says: "the chart brings CustomResourceDefinition/databases.example.org (web/crds/a.yaml), which the whole cluster shares and the project's deployer may not write",
		},
		"several may not be created": {
			file: strings.ReplaceAll(definitionOfDatabases, "databases", "tables") + "---\n" + definitionOfDatabases, fails: map[string]*apierrors.StatusError{"POST": errForbidden}, requests: "GET,POST", refused: true,
			says: "the chart brings CustomResourceDefinition/databases.example.org (web/crds/a.yaml), CustomResourceDefinition/tables.example.org (web/crds/a.yaml), which ",
		},
		"its quota is used up": {
			fails: map[string]*apierrors.StatusError{"POST": apierrors.NewForbidden(objects, "a", errors.New("exceeded quota: kubeop, requested: a=1, used: a=1, limited: a=1"))}, requests: "GET,POST", says: "exceeded quota",
		},
		"it may not be read": {fails: map[string]*apierrors.StatusError{"GET": errForbidden}, requests: "GET", refused: true, says: "the chart brings "},
		"it cannot be read":  {fails: map[string]*apierrors.StatusError{"GET": errConflict}, requests: "GET", says: "web/crds/a.yaml: "},
		"created meanwhile": {
			fails: map[string]*apierrors.StatusError{"POST": apierrors.NewAlreadyExists(objects, "a")}, requests: "GET,POST", says: "web/crds/a.yaml: it was created by someone else just now: ",
		},
		"it is invalid": {fails: map[string]*apierrors.StatusError{"POST": errImmutable}, requests: "GET,POST", says: "web/crds/a.yaml: "},
		"it may not be changed": {
			live: definition(ours, ""), file: definition("", singular), fails: map[string]*apierrors.StatusError{"PATCH": errConflict}, requests: "GET,PATCH", says: "web/crds/a.yaml: ",
		},
		"discovery is late":    {lost: true, requests: "GET,POST,GET", says: "CustomResourceDefinition/databases.example.org: discovery did not show its kind within 1m0s"},
		"another kind":         {file: configMapKind + nameA, refused: true, says: "ConfigMap/a in web/crds/a.yaml is no CustomResourceDefinition; it belongs into templates/"},
		"it cannot be parsed":  {file: "a: [", says: "web/crds/a.yaml: "},
		"a kind of Kubernetes": {file: strings.ReplaceAll(definitionOfDatabases, "example.org", "rbac.authorization.k8s.io"), refused: true, says: "belongs to the API group rbac.authorization.k8s.io, which no app may define"},
	} {
		t.Run(name, func(t *testing.T) {
			api := &fakeAPI{fails: c.fails}
			if c.live != "" {
				api.live = object(t, c.live)
			}
			api.written = func(_ string, live *unstructured.Unstructured) {
				_ = unstructured.SetNestedSlice(live.Object, []any{map[string]any{"type": "Established", "status": "True"}}, "status", "conditions")
			}
			mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{{Group: "example.org", Version: "v1"}})
			mapper.Add(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}, meta.RESTScopeRoot)
			if !c.lost {
				mapper.Add(schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Database"}, meta.RESTScopeNamespace)
			}
			client := api.client(t)
			client.kinds, client.clock = NewKinds(refreshed{}, mapper), &pauses{late: c.lost || c.says != ""}
			file := c.file
			switch file {
			case "":
				file = definitionOfDatabases
			case "-":
				file = ""
			}
			err := client.InstallCRDs(t.Context(), withCRDs(file), c.policy)
			if (err != nil) != (c.says != "") || err != nil && !strings.Contains(err.Error(), c.says) || errors.As(err, new(*fault.NotAllowed)) != c.refused {
				t.Errorf("got  %v\nwant %q, refused: %t", err, c.says, c.refused)
			}
			if got := strings.Join(api.requests, ","); got != c.requests {
				t.Errorf("the requests are %s, want %s", got, c.requests)
			}
			if wrote := strings.HasSuffix(c.requests, ",GET"); wrote && !client.Release.owns(api.live) {
				t.Errorf("the definition is not the release's: %v", api.live.GetAnnotations())
			}
		})
	}
}
