package check

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/gitops/code"
	"github.com/kubeop/kubeop/gitops/document"
	"github.com/kubeop/kubeop/gitops/identity"
)

// isKind checks that the document has the apiVersion and kind that its path requires. Without them, no schema applies.
func (d *Result) isKind(at identity.Ref) bool {
	if d.writtenOtherwise("apiVersion") || d.writtenOtherwise("kind") {
		return false
	}
	if instead := insteadOf(d.Value["apiVersion"], d.Value["kind"]); instead != "" {
		d.AddAt(code.OtherTool, "kind", "kind %s is of another tool; instead of it, kubeop has %s", d.Value["kind"], instead)
		return false
	}
	if at.Kind() != d.Value["kind"] {
		d.wrongKind(at)
		return false
	}
	if v := d.Value["apiVersion"]; v != v1alpha1.GroupVersion.String() {
		d.AddAt(code.WrongVersion, "apiVersion", "apiVersion is %s; it must be %q", orMissing(v), v1alpha1.GroupVersion)
		return false
	}
	return true
}

// writtenOtherwise reports a misspelt top-level field instead of a missing one.
func (d *Result) writtenOtherwise(name string) bool {
	if d.Value[name] != nil {
		return false
	}
	for _, key := range slices.Sorted(maps.Keys(d.Value)) {
		if _, ok := Nearest(key, []string{name}); ok && key != name {
			d.addUnknown(key, key, []string{name})
			return true
		}
	}
	return false
}

// identify checks that the document names the object of its path, and sets no field that the path or kubeop decides.
func (d *Result) identify(at identity.Ref) {
	if _, ok := d.Value["status"]; ok {
		d.AddAt(code.ReservedField, "status", "status is written by kubeop; remove it")
	}
	meta, ok := d.Value["metadata"].(map[string]any)
	if !ok {
		if !d.misspelt("metadata") {
			d.AddAt(code.RequiredField, "metadata", "metadata.name is missing; add \"metadata: {name: %s}\"", at.Key().Name)
		}
		return
	}
	d.checkName(meta["name"], at)
	d.checkMetadata(meta, at)
}

// placeOf is what gives an object its name: the folder that its file is in, or the file itself.
func placeOf(at identity.Ref) string {
	if at.OneFile() {
		return "file"
	}
	return "folder"
}

func (d *Result) wrongKind(at identity.Ref) {
	kind := d.Value["kind"]
	if kind == v1alpha1.PolicyKind && d.Value["apiVersion"] == v1alpha1.GroupVersion.String() {
		d.AddAt(code.WrongKind, "kind", "Policies are declared in policies/<policy>.yaml of the platform repository only")
		return
	}
	if kind == v1alpha1.RegistryKind && d.Value["apiVersion"] == v1alpha1.GroupVersion.String() {
		d.AddAt(code.WrongKind, "kind", "Registries are declared in registries/<registry>.yaml of the platform repository only")
		return
	}
	if kind == v1alpha1.PriceListKind && d.Value["apiVersion"] == v1alpha1.GroupVersion.String() {
		d.AddAt(code.WrongKind, "kind", "PriceLists are declared in prices/<pricelist>.yaml of the platform repository only")
		return
	}
	if kind == v1alpha1.ClusterKind && d.Value["apiVersion"] == v1alpha1.GroupVersion.String() {
		d.AddAt(code.WrongKind, "kind", "Clusters are declared in clusters/<cluster>.yaml of the platform repository only")
		return
	}
	if kind == v1alpha1.TenantKind {
		d.AddAt(code.WrongKind, "kind", "Tenants are declared in tenants/<tenant>/tenant.yaml of the platform repository only")
		return
	}
	d.AddAt(code.WrongKind, "kind", "kind is %s; at this path it must be %q%s", orMissing(kind), at.Kind(), d.manifestsPlace(at))
}

// orMissing shows a value of any type from a file; "missing" for nil.
func orMissing(value any) string {
	if value == nil {
		return "missing"
	}
	return document.Show(value)
}

func (d *Result) checkName(name any, at identity.Ref) {
	place, wanted := placeOf(at), at.Key().Name
	switch name {
	case wanted:
	case nil:
		d.AddAt(code.RequiredField, "metadata.name", "metadata.name is missing; its %s is %q", place, wanted)
	default:
		d.AddAt(code.NameMismatch, "metadata.name", "metadata.name is %s, but its %s is %q: give both the same name", document.Show(name), place, wanted)
	}
}

// writtenByPath are the fields of metadata that a file may not set, and the reasons.
var writtenByPath = map[string]string{
	"namespace":       "the path decides the namespace; remove it",
	"finalizers":      "finalizers are kubeop's; remove them",
	"ownerReferences": "owners are decided in the cluster; remove them",
}

func (d *Result) checkMetadata(meta map[string]any, at identity.Ref) {
	for _, key := range slices.Sorted(maps.Keys(meta)) {
		path := "metadata." + key
		why, decided := writtenByPath[key]
		switch {
		case key == "name":
		case key == "labels" || key == "annotations":
			d.checkStamps(path, meta[key], at)
		case decided:
			d.AddAt(code.ReservedField, path, "%s: %s", path, why)
		default:
			d.notForFiles(path, key)
		}
	}
}

func (d *Result) notForFiles(path, key string) {
	written := []string{"name", "labels", "annotations"}
	if _, ok := Nearest(key, written); ok {
		d.addUnknown(path, key, written)
		return
	}
	d.AddAt(code.ReservedField, path, "%s: only name, labels and annotations are written in files; remove it", path)
}

// checkStamps checks labels or annotations: their values are text, they are well formed, and kubeop's own are not among them.
func (d *Result) checkStamps(path string, value any, at identity.Ref) {
	stamps, ok := value.(map[string]any)
	if !ok {
		if value != nil {
			d.AddAt(code.WrongType, path, "%s must be a map of text", path)
		}
		return
	}
	for _, key := range slices.Sorted(maps.Keys(stamps)) {
		s, isText := stamps[key].(string)
		switch own := strings.HasPrefix(key, v1alpha1.Group+"/"); {
		case !isText:
			d.AddAt(code.WrongType, path+"."+key, "%s: the value of %s must be text; put it in quotes", path, document.Quote(key))
		case own:
			d.AddAt(code.ReservedField, path+"."+key, "%s: %s", path, ownStamp(key, s, at))
		default:
			d.checkForm(path, key, s)
		}
	}
}

// ownStamp says why a file may not set a label or annotation of kubeop. A tenant label with another tenant's name has its own message.
func ownStamp(key, value string, at identity.Ref) string {
	if key == v1alpha1.TenantLabel && value != at.Tenant && at.Tenant != "" {
		return fmt.Sprintf("%s names the tenant %s, but the file belongs to %q; remove it", key, document.Quote(value), at.Tenant)
	}
	return fmt.Sprintf("%s is written by kubeop; remove it", document.Quote(key))
}

// checkForm applies the API server's rules for labels and annotations.
func (d *Result) checkForm(path, key, value string) {
	wrong := validation.IsQualifiedName(key)
	if path == "metadata.annotations" {
		wrong = validation.IsQualifiedName(strings.ToLower(key))
	}
	if len(wrong) > 0 {
		d.AddAt(code.InvalidLabel, path+"."+key, "%s: the key %s: %s", path, document.Quote(key), withoutExample(wrong[0]))
		return
	}
	if wrong = validation.IsValidLabelValue(value); path == "metadata.labels" && len(wrong) > 0 {
		d.AddAt(code.InvalidLabel, path+"."+key, "%s: the value of %s: %s", path, document.Quote(key), withoutExample(wrong[0]))
	}
}

// withoutExample cuts the examples and the pattern off a rule: they are longer than the rule.
func withoutExample(rule string) string {
	rule, _, _ = strings.Cut(rule, " (e.g. ")
	return rule
}
