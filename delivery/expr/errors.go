package expr

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
)

// CEL quotes values in its errors: the key that a map lacks, the text that is no number. An expression can put anything that it
// may read there, and its error is in a status that others read. So each error is worded anew, with nothing in it but
// fixed words and what stands in the expression itself. CEL has no types for its errors, only texts.

// fixed are errors of CEL that hold no value.
var fixed = []string{
	"division by zero", "modulus by zero", "integer overflow", "unsigned integer overflow", "duration overflow", "timestamp overflow",
	"NaN values cannot be ordered", "optional.none() dereference",
}

// errHiddenValue stands for an error of CEL that may hold a value.
var errHiddenValue = errors.New("a value that the expression reads is not of the form that it needs; which value is not shown, as it may be confidential")

// worded returns an error of an evaluation without the values that it holds.
func (e *Expr) worded(err error) error {
	text := err.Error()
	switch {
	case strings.Contains(text, "cost limit exceeded"):
		return fmt.Errorf("the expression costs more than the limit of %d", MaxCost)
	case strings.HasPrefix(text, "no such overload"):
		return errors.New("no such overload") // The types of values are no secret, but no help either.
	case slices.Contains(fixed, text):
		return errors.New(text)
	}
	for _, prefix := range []string{"no such key: ", "index out of bounds: ", "no such attribute"} {
		if !strings.Contains(text, prefix) {
			continue
		}
		if name, ok := strings.CutPrefix(text, prefix); ok && e.literals[name] {
			return fmt.Errorf("%w: %s%s", ErrMissing, prefix, name)
		}
		return ErrMissing
	}
	return errHiddenValue
}

// literalsOf lists the fields, keys and numbers by which an expression reads values. It is nil where the expression also reads by
// what it computes: then it is not known whether the key that a value lacks is the expression's own word.
func literalsOf(compiled *cel.Ast) map[string]bool {
	found, computed := map[string]bool{}, false
	ast.PreOrderVisit(compiled.NativeRep().Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		switch e.Kind() {
		case ast.SelectKind:
			found[e.AsSelect().FieldName()] = true
		case ast.CallKind:
			call := e.AsCall()
			if f := call.FunctionName(); f != operators.Index && f != operators.OptIndex && f != operators.OptSelect {
				return
			}
			if key := call.Args()[1]; key.Kind() == ast.LiteralKind {
				found[fmt.Sprint(key.AsLiteral().Value())] = true
			} else {
				computed = true
			}
		}
	}))
	if computed {
		return nil
	}
	return found
}
