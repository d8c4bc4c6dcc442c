package expr

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/interpreter"
)

// CEL quotes values in its errors, such as the key that a map lacks, or the text that is not a number. An expression can put any value that
// it may read there, and its error is shown in a status. So each error is replaced by fixed words and parts of the expression's own text.
// But for the limit of cost, CEL's errors have no types, only texts.

// fixed are errors of CEL that contain no value.
var fixed = []string{
	"division by zero", "modulus by zero", "integer overflow", "unsigned integer overflow", "duration overflow", "timestamp overflow",
	"NaN values cannot be ordered", "optional.none() dereference",
}

// errHiddenValue replaces an error of CEL that may contain a value.
var errHiddenValue = errors.New("a value that the expression reads is not of the form that it needs; which value is not shown, as it may be confidential")

// worded returns an error of an evaluation without the values that it may contain.
func (e *Expr) worded(err error) error {
	var cancelled interpreter.EvalCancelledError
	text := err.Error()
	switch {
	case errors.As(err, &cancelled) && cancelled.Cause == interpreter.CostLimitExceeded:
		return fmt.Errorf("the expression costs more than the limit of %d", MaxCost)
	case strings.HasPrefix(text, "no such overload"):
		return errors.New("no such overload") // The types of values are not secret, but do not help either.
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

// literalsOf lists the fields, keys and numbers that an expression names literally. It is nil if the expression also computes keys: then a
// missing key may be a value, and not a word of the expression.
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
