package policy

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubeop/kubeop/delivery/few"
	"github.com/kubeop/kubeop/delivery/render/manifests"
	"github.com/kubeop/kubeop/delivery/yamlcheck"
)

// Violation is an object that an app may not have.
type Violation struct {
	// Object as "<kind>/<name>".
	Object string
	// Rule is the name of the broken rule, one of the names in this package.
	Rule string
	// Why says why the object is refused, in words that follow the object's name.
	Why string
	// Remedies say what to do about it.
	Remedies []Remedy
	// At is where the manifest of the object begins; the zero Place if that is not known.
	At Place
}

// Place is a line of a file of the app's source.
type Place = manifests.Place

// Remedy says what to do about violations.
type Remedy struct {
	// About names the violations in a message in which several have this remedy, such as "cluster-scoped objects".
	About string
	// Text follows a semicolon after the object and why it is refused.
	Text string
}

// Error returns one line: where the object is, the object, why it is refused, and what to do.
func (v *Violation) Error() string {
	text := v.Object + " " + v.Why
	if v.At != (Place{}) {
		text = yamlcheck.Position{Line: v.At.Line}.In(v.At.File) + ": " + text
	}
	for _, r := range v.Remedies {
		text += "; " + r.Text
	}
	return text
}

// Once takes the remedies that several violations have out of them, and returns each of these once, in the form of a Violation.
func Once(found []*Violation) (remedies []*Violation) {
	times, said := map[Remedy]int{}, map[Remedy]bool{}
	for _, v := range found {
		for _, r := range v.Remedies {
			times[r]++
		}
	}
	for _, v := range found {
		var own []Remedy
		for _, r := range v.Remedies {
			switch {
			case times[r] == 1:
				own = append(own, r)
			case !said[r]:
				said[r] = true
				remedies = append(remedies, &Violation{Object: "for " + r.About + ":", Rule: v.Rule, Why: strings.TrimPrefix(r.Text, "or ")})
			}
		}
		v.Remedies = own
	}
	return remedies
}

// Rules that need to know what the API server says about a kind. The other rules are in the tables of rules.
const (
	// ClusterScoped: the kind is cluster-scoped, so the object would affect everyone.
	ClusterScoped = "ClusterScoped"
	// UnknownKind: the API server does not serve the kind. Apps cannot define it, but a platform team may install it.
	UnknownKind = "UnknownKind"
	// MisspelledKind: the API server serves the kind with another spelling.
	MisspelledKind = "MisspelledKind"
	// UnkeptKind: the API server does not serve the verbs that an app needs for objects of the kind.
	UnkeptKind = "UnkeptKind"
	// Malformed: the object is a List with an item that is not an object.
	Malformed = "Malformed"
)

// Rules that depend on the settings of a Tenant, as ClusterScoped does.
const (
	// Toleration: pods tolerate a taint that is not in spec.taints.
	Toleration = "Toleration"
	// IngressAnnotation: an Ingress has an annotation that is not in spec.ingressAnnotations.
	IngressAnnotation = "IngressAnnotation"
	// VolumeType: a pod has an inline volume of a CSI driver that is not in spec.csiDrivers, or storage that no claim has.
	VolumeType = "VolumeType"
	// PriorityClass: pods have a PriorityClass that is not in spec.priorityClasses, and not the cluster's default.
	PriorityClass = "PriorityClass"
	// GracePeriod: pods may take longer to end than spec.maxTerminationGracePeriod.
	GracePeriod = "GracePeriod"
)

func join(found []*Violation) error {
	slices.SortFunc(found, func(a, b *Violation) int {
		return cmp.Compare(a.Error(), b.Error())
	})
	var errs []error
	for _, violation := range append(found, Once(found)...) {
		errs = append(errs, violation)
	}
	return errors.Join(errs...)
}

// Join joins what Check and a check of another kind returned. Violations of both are on lines of their own, those of Check first.
func Join(refused, also error) error {
	switch {
	case refused == nil:
		return also
	case also == nil:
		return refused
	}
	return errors.Join(refused, also)
}

// Without returns an error of Check without the violations of some rules; nil if no other is left. An error that is about something else, too,
// is returned as it is.
func Without(err error, rules ...string) error {
	all := leaves(err)
	if slices.ContainsFunc(all, func(err error) bool { return !errors.As(err, new(*Violation)) }) {
		return err
	}
	return errors.Join(slices.DeleteFunc(all, func(err error) bool {
		var violation *Violation
		return errors.As(err, &violation) && slices.Contains(rules, violation.Rule)
	})...)
}

// maxLocated is how many objects Located looks for.
const maxLocated = 100

// Located returns an error of Check with the places of refused objects that have none, if it is about nothing else. find is called once, with the names of
// the objects, and returns the places that are known.
func Located(err error, find func(objects []string) map[string]Place) error {
	if err == nil {
		return nil
	}
	all, objects := leaves(err), []string(nil)
	for _, each := range all {
		v, is := each.(*Violation) //nolint:errorlint // A wrapped one would lose the text around it.
		if !is {
			return err
		}
		// Names without a kind are what Once returns.
		if v.At == (Place{}) && len(objects) < maxLocated && strings.Contains(v.Object, "/") && !slices.Contains(objects, v.Object) {
			objects = append(objects, v.Object)
		}
	}
	if len(objects) == 0 {
		return err
	}
	known := find(objects)
	for i, each := range all {
		located := *each.(*Violation) //nolint:errorlint // see above
		located.At = cmp.Or(located.At, known[located.Object])
		all[i] = &located
	}
	return errors.Join(all...)
}

// Violations returns the violations that an error is made of, and what else is in it.
func Violations(err error) (found []*Violation, other error) {
	for _, each := range leaves(err) {
		var v *Violation
		if errors.As(each, &v) {
			found = append(found, v)
			continue
		}
		other = errors.Join(other, each)
	}
	return found, other
}

// leaves returns the errors that were joined into err, at any depth.
func leaves(err error) []error {
	var joined interface{ Unwrap() []error }
	if !errors.As(err, &joined) || len(joined.Unwrap()) == 0 {
		return []error{err}
	}
	var all []error
	for _, each := range joined.Unwrap() {
		all = append(all, leaves(each)...)
	}
	return all
}

// NameOf returns the name of an object in a Violation.
func NameOf(object *unstructured.Unstructured) string {
	return oneLine(object.GetKind()) + "/" + oneLine(object.GetName())
}

// maxText is how many characters of a tenant's text a message quotes.
const maxText = 253

func oneLine(text string) string { return few.Line(text, maxText) }

// notEmpty reports whether a field is set to something.
func notEmpty(value any) bool {
	list, ok := value.([]any)
	return value != nil && value != "" && (!ok || len(list) > 0)
}
