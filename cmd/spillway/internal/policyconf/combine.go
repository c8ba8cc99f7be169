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
		if operator, ok := operators[e.Op]; ok {
			return fold(operator, depth, e.X, e.Y)
		}
		return nil, fmt.Errorf("has %v, must have + - * / only", e.Op)
	case *ast.CallExpr:
		if name, ok := e.Fun.(*ast.Ident); ok && functions[name.Name] != nil && len(e.Args) > 0 && !e.Ellipsis.IsValid() {
			return fold(functions[name.Name], depth+1, e.Args...)
		}
		return nil, errors.New("has a call that is not max() or min() of something")
	}
	return nil, fmt.Errorf("has something at column %d that is no number, no name of a measure, no + - * /, no max() and no min()", e.Pos())
}

// The operations of a formula.
var (
	operators = map[token.Token]func(a, b float64) float64{
		token.ADD: func(a, b float64) float64 { return a + b },
		token.SUB: func(a, b float64) float64 { return a - b },
		token.MUL: func(a, b float64) float64 { return a * b },
		token.QUO: divide,
	}
	functions = map[string]func(a, b float64) float64{
		"max": func(a, b float64) float64 { return max(a, b) },
		"min": func(a, b float64) float64 { return min(a, b) },
	}
)

func divide(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// fold returns the function that applies an operation to the first two operands, then to the
// result and the next one.
func fold(operation func(a, b float64) float64, depth int, operands ...ast.Expr) (combination, error) {
	result, err := compile(operands[0], depth)
	for _, operand := range operands[1:] {
		before := result
		next, bad := compile(operand, depth)
		err = errors.Join(err, bad)
		result = func(r []load.Reading) float64 { return operation(before(r), next(r)) }
	}
	return result, err
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
