package main

import (
	"fmt"
	"go/parser"
	"testing"
)

// TestVariants: half and double of a constant have its type.
func TestVariants(t *testing.T) {
	for source, want := range map[string]string{
		"32":                   "[16 64]",
		"1":                    "[1 2]",
		"5.0":                  "[2.5 10.0]",
		"4.0":                  "[2.0 8.0]",
		"0.4":                  "[0.2 0.8]",
		"0.75":                 "[0.875 0.5]",
		"5 * time.Millisecond": "[(5 * time.Millisecond) / 2 (5 * time.Millisecond) * 2]",
		"turns / doubled":      "[]",
		`"text"`:               "[]",
	} {
		value, err := parser.ParseExpr(source)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(variants(source, value)); got != want {
			t.Errorf("%s: %s, want %s", source, got, want)
		}
	}
}
