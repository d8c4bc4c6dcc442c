package policy

import (
	"cmp"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Violation is an object that an app may not have.
type Violation struct {
	// Object as "<kind>/<name>".
	Object string
	// Rule is the name of the broken rule, one of the names in this package.
	Rule string
	// Why says why the object is refused, in words that follow the object's name.
	Why string
}

// Error returns one line: the object and why it is refused.
func (v *Violation) Error() string { return v.Object + " " + v.Why }

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

func join(found []*Violation) error {
	slices.SortFunc(found, func(a, b *Violation) int {
		return cmp.Or(cmp.Compare(a.Error(), b.Error()), cmp.Compare(a.Rule, b.Rule))
	})
	errs := make([]error, len(found))
	for i, violation := range found {
		errs[i] = violation
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

// NameOf returns the name of an object in a Violation.
func NameOf(object *unstructured.Unstructured) string {
	return oneLine(object.GetKind()) + "/" + oneLine(object.GetName())
}

// maxText is how many characters of a tenant's text a message quotes.
const maxText = 253

func oneLine(text string) string { return OneLine(text, maxText) }

// OneLine returns the beginning of a text from a manifest, which is safe to quote in a message of one line.
func OneLine(text string, most int) string {
	runes := []rune(text)
	for i, r := range runes {
		if r < ' ' || r == 0x7f || (r >= 0x80 && r < 0xa0) || r == 0x2028 || r == 0x2029 {
			runes[i] = '?'
		}
	}
	if len(runes) > most {
		runes = append(runes[:most], '…')
	}
	return string(runes)
}
