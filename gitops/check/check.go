// Package check validates a document of a repository: whether it fits the path of its file, and whether it fits the
// CustomResourceDefinition of its kind.
package check

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/gitops/code"
	"github.com/kubeop/kubeop/gitops/document"
	"github.com/kubeop/kubeop/gitops/identity"
	"github.com/kubeop/kubeop/gitops/layout"
)

// Result is a checked document.
type Result struct {
	*document.Document
	// Object is the typed object that the document declares; nil if its place, its fields or its values are wrong.
	Object client.Object
	// faults are the fields that are wrong by themselves. A finding that only follows from one of them is not reported.
	faults []fault
	// schema is that of the object's kind; nil for kubeop.yaml.
	schema *schema.Structural
}

// Version checks the document of kubeop.yaml, which names the layout of the repository.
func Version(document *document.Document) *Result {
	d := &Result{Document: document}
	if len(d.Findings) > 0 {
		return d
	}
	for _, key := range slices.Sorted(maps.Keys(d.Value)) {
		if key != "layout" {
			d.addUnknown(key, key, []string{"layout"})
		}
	}
	if v := d.Value["layout"]; v != layout.Version {
		d.AddAt(code.UnknownLayout, "layout", "layout is %s; this operator reads %q", orMissing(v), layout.Version)
	}
	return d
}

// Object checks the document of the object that its path names, and returns the typed object. accepted: the API server has already accepted
// this content, so the schema and the CEL rules are not checked again.
func (kinds Kinds) Object(document *document.Document, at identity.Ref, accepted bool) *Result {
	d := &Result{Document: document}
	if len(d.Findings) > 0 || !d.isKind(at) {
		return d
	}
	k := kinds[at.Kind()]
	d.schema = k.schema
	for _, key := range slices.Sorted(maps.Keys(d.Value)) {
		if key != "metadata" && key != "status" { // These have checks of their own.
			d.unknownField(key, key, d.Value[key], k.schema)
		}
	}
	d.identify(at)
	d.checkPlatform(at)
	if !accepted {
		d.validate(k, at.Key().Name)
	}
	d.checkImage()
	if len(d.Findings) > 0 {
		return d
	}
	object := k.empty()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(d.Value, object); err != nil {
		d.AddAt(code.InvalidValue, "spec", "reading the %s: %s", at.Kind(), err)
		return d
	}
	switch object := object.(type) {
	case *v1alpha1.App:
		d.checkOrder(object)
	case *v1alpha1.Tenant:
		d.checkFreeze(object)
		d.checkBudget(object)
	case *v1alpha1.Project:
		d.checkQuota(object)
	case *v1alpha1.Policy:
		d.checkPolicy(object)
	case *v1alpha1.PriceList:
		d.checkPrices(object)
	}
	d.Object = object
	return d
}

// Name says why no object can have the name of the folder or, for a kind that has a file for each object, of the file; "" if one can.
func (kinds Kinds) Name(at identity.Ref) string {
	why := cmp.Or(kinds[at.Kind()].wrongName(at.Key().Name), reservedNamespace(at))
	if why == "" {
		return ""
	}
	if rule, ok := strings.CutPrefix(why, "name "); ok {
		return fmt.Sprintf("the %s's name %s", placeOf(at), rule)
	}
	return fmt.Sprintf("the %s's name: %s", placeOf(at), why)
}
