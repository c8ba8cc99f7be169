package policyconf

import (
	"math"
	"strings"
	"testing"

	"github.com/seed90641741/spillway/load"
)

var readings = []load.Reading{{Name: "cpu", Share: 0.5}, {Name: "memory", Share: 0.25}, {Name: "executor", Share: 2}}

func TestCombination(t *testing.T) {
	for _, row := range []struct {
		text string
		want float64
	}{
		{"cpu", 0.5},
		{" 2 * cpu + memory ", 1.25},
		{"2*(cpu+memory)", 1.5},
		{"1 - cpu - memory", 0.25},
		{"cpu / memory / 2", 1},
		{"max(cpu, memory, executor/8)", 0.5},
		{"min(cpu, memory) + 1000", 1000.25},
		{"cpu / queue", 0}, // which is not known
		{"quota", 0},
		{"max(memory, 0.7*cpu + 0.3*executor)", 0.95},
		{"((((cpu))))", 0.5},
		{"max(cpu,\n memory\n)", 0.5},
		{"cpu\n + memory", 0.75},
		{strings.Repeat("1+", 400) + "1", 401}, // 801 bytes, one level
	} {
		f, err := parseCombination(row.text)
		if err != nil {
			t.Errorf("%s: %v", row.text, err)
			continue
		}
		if got := f(readings); math.Abs(got-row.want) > 1e-12 {
			t.Errorf("%s = %v, want %v", row.text, got, row.want)
		}
	}
	for _, text := range []string{"", "max", " max "} {
		if f, err := parseCombination(text); f != nil || err != nil {
			t.Errorf("%q is not the default: %v", text, err)
		}
	}
}

func TestBadCombination(t *testing.T) {
	for _, row := range []struct{ text, want string }{
		{"disk", `has "disk" where a number or one of executor, cpu`},
		{"cpu +", "is not a formula: 1:6: expected operand"},
		{"cpu memory", "is not a formula: 1:5"},
		{"(cpu", "is not a formula: 1:5"},
		{"max(cpu", "is not a formula: 1:8"},
		{"max + 1", `has "max" where a number`},
		{"max()", "has a call that is not max() or min() of something"},
		{"abs(cpu)", "has a call that is not max() or min() of something"},
		{"max(cpu...)", "has a call that is not max() or min() of something"},
		{"cpu % 2", "has %, must have + - * / only"},
		{"-cpu", "has something at column 1"},
		{`"cpu"`, "has something at column 1"},
		{"1 + cpu.x", "has something at column 5"},
		{"func() {}", "has something at column 1"},
		{"Inf", `has "Inf" where a number`},
		{"NaN", `has "NaN" where a number`},
		{strings.Repeat("(", 490) + "1" + strings.Repeat(")", 490), "has more than 20 levels"},
		{strings.Repeat("max(", 190) + "1" + strings.Repeat(")", 190), "has more than 20 levels"},
		{strings.Repeat("1+", 600) + "1", "has 1201 bytes, must have at most 1000"},
	} {
		if _, err := parseCombination(row.text); err == nil || !strings.HasPrefix(err.Error(), row.want) {
			t.Errorf("%.40q: %v, want %s", row.text, err, row.want)
		}
	}
}

func FuzzCombination(f *testing.F) {
	f.Add("max(memory, 0.7*cpu + 0.3*executor)")
	f.Add("((1/0)-cpu)*min(1,2,3)")
	f.Fuzz(func(t *testing.T, text string) {
		if c, err := parseCombination(text); err == nil && c != nil {
			_ = c(readings)
			_ = c(nil)
		}
	})
}
