package policyconf

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"

	"github.com/seed90641741/spillway/load"
)

// A combination computes a utilization from readings.
type combination = func([]load.Reading) float64

// The bounds of a formula. They keep its evaluation, ten times a second, below a
// few microseconds.
const (
	maxFormula = 1000 // bytes
	maxNesting = 20
)

// parseCombination returns the function of a formula: nil for the maximum, which is the default of
// package load. A formula has the syntax of an expression in Go, with numbers, names of measures,
// + - * / and parentheses, max() and min(). The value of a name is the share of the measure. A
// measure that is not known counts as 0, and so does a division by 0.
func parseCombination(text string) (combination, error) {
	if t := strings.TrimSpace(text); t == "" || t == "max" {
		return nil, nil //nolint:nilnil // the default needs no function
	}
	if len(text) > maxFormula {
		return nil, fmt.Errorf("has %d bytes, must have at most %d", len(text), maxFormula)
	}
	tree, err := parser.ParseExpr(strings.ReplaceAll(text, "\n", " ")) // a line may end anywhere
	if err != nil {
		return nil, fmt.Errorf("is not a formula: %w", err)
	}
	return compile(tree, 0)
}

// compile returns the function of an expression.
func compile(e ast.Expr, depth int) (combination, error) {
	if depth > maxNesting {
		return nil, fmt.Errorf("has more than %d levels of parentheses", maxNesting)
	}
	switch e := e.(type) {
	case *ast.ParenExpr:
		return compile(e.X, depth+1)
	case *ast.Ident:
		return share(e.Name)
	case *ast.BasicLit:
		if v, err := strconv.ParseFloat(e.Value, 64); err == nil {
			return func([]load.Reading) float64 { return v }, nil
		}
	case *ast.BinaryExpr:
		return operation(e, depth)
	case *ast.CallExpr:
		return extreme(e, depth+1)
	}
	return nil, fmt.Errorf("has something at column %d that is no number, no name of a measure, no + - * /, no max() and no min()", e.Pos())
}

// operation returns the function of a sum, a difference, a product or a quotient.
func operation(e *ast.BinaryExpr, depth int) (combination, error) {
	a, errA := compile(e.X, depth)
	b, errB := compile(e.Y, depth)
	if err := errors.Join(errA, errB); err != nil {
		return nil, err
	}
	switch e.Op {
	case token.ADD:
		return func(r []load.Reading) float64 { return a(r) + b(r) }, nil
	case token.SUB:
		return func(r []load.Reading) float64 { return a(r) - b(r) }, nil
	case token.MUL:
		return func(r []load.Reading) float64 { return a(r) * b(r) }, nil
	case token.QUO:
		return func(r []load.Reading) float64 { return divide(a(r), b(r)) }, nil
	default:
		return nil, fmt.Errorf("has %v, must have + - * / only", e.Op)
	}
}

func divide(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// extreme returns the function of max() or min().
func extreme(e *ast.CallExpr, depth int) (combination, error) {
	pick, ok := map[string]func([]float64) float64{"max": slices.Max[[]float64], "min": slices.Min[[]float64]}[nameOf(e.Fun)]
	if !ok || len(e.Args) == 0 || e.Ellipsis.IsValid() {
		return nil, errors.New("has a call that is not max() or min() of something")
	}
	all := make([]combination, len(e.Args))
	for i, arg := range e.Args {
		var err error
		if all[i], err = compile(arg, depth); err != nil {
			return nil, err
		}
	}
	return func(r []load.Reading) float64 {
		values := make([]float64, len(all))
		for i, f := range all {
			values[i] = f(r)
		}
		return pick(values)
	}, nil
}

func nameOf(e ast.Expr) string {
	if name, ok := e.(*ast.Ident); ok {
		return name.Name
	}
	return ""
}

// share returns the share of a measure.
func share(name string) (combination, error) {
	var names []string
	for m := range load.Measure(load.Measures) {
		names = append(names, m.String())
	}
	if !slices.Contains(names, name) {
		return nil, fmt.Errorf("has %.20q where a number or one of %s must be", name, strings.Join(names, ", "))
	}
	return func(readings []load.Reading) float64 {
		for i := range readings {
			if readings[i].Name == name {
				return readings[i].Share
			}
		}
		return 0
	}, nil
}
