// Package expr evaluates the CEL expressions that tenants write about objects. An expression may be hostile: its length, its nesting and
// the cost of one evaluation are limited, and functions whose cost CEL does not count are left out.
package expr

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/env"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

const (
	// MaxLength is the maximum length of an expression in bytes.
	MaxLength = 2048
	// MaxCost limits the cost of one evaluation, in CEL's units: a twentieth of what the API server allows a rule of a
	// CustomResourceDefinition, up to a tenth of a second and 5 MiB, most of it garbage. Iterating over the conditions of an object costs
	// about ten for each condition.
	MaxCost = 50_000
	// maxDepth limits the nesting of an expression.
	maxDepth = 50
	// maxLoops limits the loops (all, exists, exists_one, map, filter), and maxMade the literals of lists and maps. To compile each takes
	// up to a hundred microseconds, and nested literals take longer with each level.
	maxLoops, maxMade = 24, 64
	// maxTime limits the time of one evaluation. It stops operations whose cost is counted too low, such as comparing large objects.
	maxTime = time.Second
	// checkEvery is after how many iterations of a loop an evaluation checks the time.
	checkEvery = 10
)

// ErrMissing means that the object lacks a field, key or item, maybe only now, that the expression reads without calling has() first.
var ErrMissing = errors.New("a field is not there")

// Expr is a compiled expression. It is safe for concurrent use.
type Expr struct {
	program cel.Program
	// literals are the fields, keys and numbers in the expression's own text, which an error may repeat.
	literals map[string]bool
}

// vocabulary is CEL's standard library and optional values. Functions that compare everything with everything, regular expressions and sets
// are left out: their cost is counted only at the end, and they cannot be interrupted. So are the extended strings, because replace can
// multiply its input, and the macros optMap and optFlatMap, which contain their operand twice: a chain of twenty would be a million
// expressions.
var vocabulary = sync.OnceValues(func() (*cel.Env, error) {
	return cel.NewCustomEnv(
		cel.StdLib(cel.StdLibSubset(&env.LibrarySubset{ExcludeFunctions: []*env.Function{env.NewFunction("matches")}})),
		cel.OptionalTypes(), cel.ClearMacros(), cel.Macros(cel.StandardMacros...),
		cel.CrossTypeNumericComparisons(true), cel.DefaultUTCTimeZone(true),
		cel.ParserRecursionLimit(maxDepth), cel.ParserExpressionSizeLimit(MaxLength),
	)
})

// Compile compiles an expression with variables of any type. The error is one line, with the position as "line:column: why".
func Compile(text string, variables ...string) (*Expr, error) {
	if len(text) > MaxLength {
		return nil, fmt.Errorf("the expression has %d bytes, more than the limit of %d", len(text), MaxLength)
	}
	words, err := vocabulary()
	if err != nil {
		return nil, fmt.Errorf("making the CEL environment: %w", err)
	}
	var declared []cel.EnvOption
	for _, name := range variables {
		declared = append(declared, cel.Variable(name, cel.DynType))
	}
	if words, err = words.Extend(declared...); err != nil {
		return nil, fmt.Errorf("declaring %s: %w", strings.Join(variables, ", "), err)
	}
	parsed, issues := words.Parse(text)
	if issues.Err() != nil {
		return nil, located(issues)
	}
	if err := few(parsed); err != nil {
		return nil, err
	}
	checked, issues := words.Check(parsed)
	if issues.Err() != nil {
		return nil, located(issues)
	}
	if t := checked.OutputType(); !t.IsExactType(cel.BoolType) && !t.IsExactType(cel.DynType) {
		return nil, fmt.Errorf("1:1: the expression makes a %s; it must be true or false", t)
	}
	program, err := words.Program(checked, cel.CostTracking(sizes{}), cel.CostLimit(MaxCost), cel.InterruptCheckFrequency(checkEvery))
	if err != nil {
		return nil, fmt.Errorf("planning the expression: %w", err)
	}
	return &Expr{program: program, literals: literalsOf(checked)}, nil
}

// few refuses expressions that take long to compile.
func few(parsed *cel.Ast) error {
	loops, made := 0, 0
	ast.PreOrderVisit(parsed.NativeRep().Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		switch e.Kind() {
		case ast.ComprehensionKind:
			loops++
		case ast.ListKind, ast.MapKind:
			made++
		}
	}))
	switch {
	case loops > maxLoops:
		return fmt.Errorf("the expression has %d loops (all, exists, exists_one, map, filter), more than the limit of %d", loops, maxLoops)
	case made-loops > maxMade: // Each loop creates at most one list.
		return fmt.Errorf("the expression makes more lists and maps than the limit of %d", maxMade)
	}
	return nil
}

// located formats the first error; later ones mostly follow from it.
func located(issues *cel.Issues) error {
	first := issues.Errors()[0]
	why := strings.ReplaceAll(first.Message, "\n", " ")
	return fmt.Errorf("%d:%d: %s", first.Location.Line(), first.Location.Column()+1, strings.TrimSuffix(why, " (in container '')"))
}

// True reports whether the expression is true for the values of its variables. It returns ErrMissing if a value lacks a field that the
// expression reads. An error may repeat the expression's text, but never a value.
func (e *Expr) True(ctx context.Context, values map[string]any) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, maxTime)
	defer cancel()
	result, _, err := e.program.ContextEval(ctx, values)
	switch {
	case err == nil:
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return false, fmt.Errorf("the expression takes longer than the limit of %s", maxTime)
	case ctx.Err() != nil:
		return false, ctx.Err()
	default:
		return false, e.worded(err)
	}
	truth, ok := result.(types.Bool)
	if !ok {
		return false, fmt.Errorf("the expression makes a %s; it must be true or false", result.Type().TypeName())
	}
	return bool(truth), nil
}

// sizes adds the cost of the values that a call reads. CEL counts texts only if it knows their type beforehand, which it never does here,
// and the entries of lists and maps, but not the content of the entries.
type sizes struct{}

// CallCost returns the cost of a call. An item of a list or map is no call: CEL counts one for it, however much is beside it.
func (sizes) CallCost(function, _ string, args []ref.Val, result ref.Val) *uint64 {
	cost := uint64(1)
	switch {
	case function == overloads.Size:
		if text, ok := args[0].(types.String); ok { // The argument's length counts.
			cost += uint64(len(text)) / 10
		}
	case function == operators.Add && result.Type() != types.StringType && result.Type() != types.BytesType && len(args) == 2:
		// Appending one item, as every map() does, is cheap however long the list is.
		cost += min(sizeOf(args[0]), sizeOf(args[1])) / 10
	case function == operators.Add:
		cost += sizeOf(result) / 10
	default:
		if slow[function] {
			cost += slowCost
		}
		budget := 10 * MaxCost
		for _, arg := range args {
			budget = deduct(budget, arg)
		}
		cost += uint64(10*MaxCost-budget) / 10
	}
	return &cost
}

// slow are functions that parse or format their argument, or read the rules of a time zone. Each takes some microseconds, whatever the
// length.
var slow = map[string]bool{
	overloads.TypeConvertDuration: true, overloads.TypeConvertTimestamp: true, overloads.TypeConvertString: true, overloads.TypeConvertDouble: true,
	overloads.TimeGetFullYear: true, overloads.TimeGetMonth: true, overloads.TimeGetDayOfYear: true, overloads.TimeGetDate: true,
	overloads.TimeGetDayOfMonth: true, overloads.TimeGetDayOfWeek: true, overloads.TimeGetHours: true, overloads.TimeGetMinutes: true,
	overloads.TimeGetSeconds: true, overloads.TimeGetMilliseconds: true,
}

// slowCost is the cost of a call of a slow function.
const slowCost = 50

// deduct deducts the cost of reading a value from a budget, 1 for each byte and 10 for each entry, until nothing is left.
func deduct(budget int, value any) int {
	if of, ok := value.(ref.Val); ok {
		value = of.Value()
	}
	switch v := value.(type) {
	case string:
		budget -= len(v)
	case []byte:
		budget -= len(v)
	case []any:
		for i := 0; i < len(v) && budget > 0; i++ {
			budget = deduct(budget-10, v[i])
		}
	case []ref.Val:
		for i := 0; i < len(v) && budget > 0; i++ {
			budget = deduct(budget-10, v[i])
		}
	case map[string]any:
		for key, each := range v {
			if budget = deduct(budget-10-len(key), each); budget <= 0 {
				break
			}
		}
	case map[ref.Val]ref.Val:
		for key, each := range v {
			if budget = deduct(deduct(budget-10, key), each); budget <= 0 {
				break
			}
		}
	}
	return max(budget, 0)
}

func sizeOf(value ref.Val) uint64 {
	sized, ok := value.(interface{ Size() ref.Val })
	if !ok {
		return 1
	}
	size, _ := sized.Size().(types.Int)
	return uint64(max(size, 1))
}
