package expr

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/fluxcd/pkg/apis/kustomize"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Dependency are the variables of an expression about a dependency.
var Dependency = []string{"dep", "self"}

// parts are the variables of a health expression for the parts of an object that most kinds have. The variable self is the whole object.
var parts = []string{"metadata", "spec", "status", "data"}

// IsSecret reports whether a kind is, or could be taken for, Kubernetes' Secret. Expressions may read nothing of it, because even true or
// false reveals something.
func IsSecret(kind schema.GroupKind) bool {
	return kind.Group == "" && slices.ContainsFunc([]string{"Secret", "Secrets", "SecretList"}, func(spelling string) bool {
		return strings.EqualFold(kind.Kind, spelling)
	})
}

// Health is the verdict of expressions about an object.
type Health int

// The verdicts, which are the same as those of kstatus.
const (
	InProgress Health = iota
	Failed
	Current
)

// Check judges the health of the objects of a kind (Flux RFC 0009, as in Kustomization.spec.healthCheckExprs).
type Check struct {
	Kind schema.GroupKind

	rules []rule
}

type rule struct {
	name    string
	verdict Health
	expr    *Expr
}

// NewCheck compiles the expressions of one kind. An error begins with the name of the field that is wrong.
func NewCheck(spec *kustomize.CustomHealthCheck) (*Check, error) {
	group, err := schema.ParseGroupVersion(spec.APIVersion)
	switch {
	case err != nil:
		return nil, fmt.Errorf("apiVersion: %w", err)
	case spec.Kind == "":
		return nil, errors.New("kind: is required")
	case IsSecret(schema.GroupKind{Group: group.Group, Kind: spec.Kind}):
		return nil, errors.New("kind: no expression may read a Secret")
	case spec.Current == "":
		return nil, errors.New("current: is required")
	}
	check := &Check{Kind: schema.GroupKind{Group: group.Group, Kind: spec.Kind}}
	variables := append([]string{"self", "apiVersion", "kind"}, parts...)
	for _, r := range []struct {
		name, text string
		verdict    Health
	}{{"inProgress", spec.InProgress, InProgress}, {"failed", spec.Failed, Failed}, {"current", spec.Current, Current}} {
		if r.text == "" {
			continue
		}
		compiled, err := Compile(r.text, variables...)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", r.name, err)
		}
		check.rules = append(check.rules, rule{r.name, r.verdict, compiled})
	}
	return check, nil
}

// Judge returns the verdict of the first expression that is true: inProgress, failed, current. An object is in progress if its controller
// has not seen its last change, if no expression is true, or if it lacks a field that is read. An error begins with the name of the
// expression and repeats nothing from the object.
func (c *Check) Judge(ctx context.Context, object *unstructured.Unstructured) (Health, error) {
	observed, found, err := unstructured.NestedInt64(object.Object, "status", "observedGeneration")
	if found && err == nil && observed != object.GetGeneration() {
		return InProgress, nil
	}
	values := map[string]any{"self": object.Object, "apiVersion": object.GetAPIVersion(), "kind": object.GetKind()}
	for _, part := range parts {
		// A missing part counts as an empty object.
		values[part] = map[string]any{}
		if is := object.Object[part]; is != nil {
			values[part] = is
		}
	}
	for _, r := range c.rules {
		holds, err := r.expr.True(ctx, values)
		switch {
		case errors.Is(err, ErrMissing):
		case err != nil:
			return InProgress, fmt.Errorf("%s: %w", r.name, err)
		case holds:
			return r.verdict, nil
		}
	}
	return InProgress, nil
}
