package strict

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

type file struct {
	Name  string        `yaml:"name"`
	Wait  time.Duration `yaml:"wait"`
	Even  even          `yaml:"even"`
	Parts []part        `yaml:"parts"`
	Most  int           `yaml:"most"`
	Bytes int64         `yaml:"bytes"`
	Seed  uint64        `yaml:"seed"`
}

type part struct {
	Weight float64 `yaml:"weight"`
	Inner  *part   `yaml:"inner"`
}

type even int

var evens = Text(func(s string) (even, error) {
	if s == "2" || s == "two" {
		return 2, nil
	}
	return 0, errors.New("must be 2")
})

const good = "name: a\nwait: 20ms\neven: 'two'\nparts:\n  - weight: 1\n    inner: {weight: 2}\n"

func TestDecode(t *testing.T) {
	var f file
	if err := (Source{"f", []byte(good)}).Decode(&f, 1000, evens); err != nil {
		t.Fatal(err)
	}
	if f.Wait != 20*time.Millisecond || f.Even != 2 || f.Parts[0].Inner.Weight != 2 {
		t.Errorf("%+v", f)
	}
	const mark = "\ufeff" // before the text
	if err := (Source{"f", []byte(mark + good)}).Decode(&f, 1000, evens); err != nil {
		t.Error(err)
	}
	if e := (Source{"f", []byte(mark + good)}).At("name", "is wrong"); e.Error() != "f:1: name is wrong\n>    1 | name: a\n     2 | wait: 20ms" {
		t.Error(e)
	}
	for name, row := range map[string]struct{ from, to, want string }{
		"unknown":   {"name:", "nane:", "f:1: nane is no field here; did you mean name?\n>    1 | nane: a\n"},
		"far off":   {"name:", "length:", "f:1: length is no field here\n"},
		"number":    {"weight: 1", "weight: heavy", `f:5: parts[0].weight is "heavy": must be a number` + "\n"},
		"time":      {"20ms", "soon", `f:2: wait is "soon": must be a length of time, such as 150ms or 1m30s` + "\n"},
		"a part":    {"even:", "most: 5.5\neven:", `f:3: most is "5.5": must be a whole number` + "\n"},
		"too great": {"even:", "most: 1e30\neven:", `f:3: most is "1e30": must be a whole number of at most 9e15` + "\n"},
		"no number": {"even:", "bytes: many\neven:", `f:3: bytes is "many": must be a whole number` + "\n"},
		"negative":  {"even:", "seed: -1\neven:", `f:3: seed is "-1": must be a whole number that is not negative` + "\n"},
		"own":       {"'two'", "3", `f:3: even is "3": must be 2` + "\n     1 | name: a\n     2 | wait: 20ms\n>    3 | even: 3\n     4 | parts:"},
		"twice":     {"wait:", "name:", "f:2: name is given twice"},
		"no YAML":   {"name: a", "name: [", "f:"},
		"empty":     {"inner: {weight: 2}", "inner:", "f:6: parts[0].inner is empty, must be left out, or have fields; {} has the default of each\n"},
		"tagged":    {"\n  - weight: 1\n    inner: {weight: 2}\n", " !tag ", "f:4: parts has the tag !tag, must have none"},
		"long":      {"name: a", "name: " + strings.Repeat("a", 1000), "f: has 1"},
		"within":    {"{weight: 2}", "{wait: 2}", "f:6: parts[0].inner.wait is no field here\n"},
		"brackets":  {"name: a", "name: " + strings.Repeat("[", 20_000), "f: is not YAML: exceeded max depth"},
		"dashes":    {"name: a", "name: a\nb:\n  " + strings.Repeat("- ", 20_000), "f:2: is not YAML: exceeded max depth"},
		"deep":      {"{weight: 2}", strings.Repeat("{inner: ", 200) + "{}" + strings.Repeat("}", 200), "f:6: is nested more than 100 deep"},
		"own alias": {"{weight: 2}", "&a {inner: *a}", "f:6: is nested more than 100 deep"},
		"own merge": {"{weight: 2}", "&a {<<: *a}", "f:6: is nested more than 100 deep"},
		"documents": {"parts:", "---\nparts:", "f:4: a second document begins here; a file must have one"},
		"two problems": {"wait: 20ms\neven: 'two'", "wait: 20\neven: 3", `f:2: wait is "20": must be a length of time, such as 150ms or 1m30s
     1 | name: a
>    2 | wait: 20
     3 | even: 3
f:3: even is "3": must be 2
`},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(good, row.from, row.to, 1)
			most := 1000
			if row.want != "f: has 1" {
				most = 1 << 16
			}
			err := Source{"f", []byte(text)}.Decode(new(file), most, evens)
			e, ok := errors.AsType[*Error](err)
			if !ok || e.Problem == "" || !strings.HasPrefix(err.Error(), row.want) {
				t.Errorf("got  %v\nwant %s", err, row.want)
			}
		})
	}
}

// TestTree reads documents of others: a short one must not expand to many values.
func TestTree(t *testing.T) {
	for text, want := range map[string]string{
		`{"a": [1, 2.5, true, null, "x", "3"], "b": {"c": {}}}`:        `map[a:[1 2.5 true <nil> x 3] b:map[c:map[]]]`,
		"{\n\t\"a\": [\n\t\t1\n\t]\n}":                                 `map[a:[1]]`,
		"a: &a {x: 1, y: 2}\nb: {<<: *a, y: 3}\nc: {<<: [*a, {z: 4}]}": `map[a:map[x:1 y:2] b:map[x:1 y:3] c:map[x:1 y:2 z:4]]`,
		"a: 2026-11-23\nb: 12345678901234567890":                       `map[a:2026-11-23 b:12345678901234567890]`,
		"":                                                             `<nil>`,
		"1: a":                                                         `map[1:a]`,
		`{"a": 1, "a": 2}`:                                             "f:1: a is given twice\n>    1 | {\"a\": 1, \"a\": 2}",
		"{[1]: 2}":                                                     "f:1: has a key that is a list, must be a single value\n>    1 | {[1]: 2}",
		"&a [*a]":                                                      "f:1: is nested more than 100 deep\n>    1 | &a [*a]",
		bomb(9):                                                        "f:",
		"? &a {<<: [*a]}: 1":                                           "f:",
	} {
		var v any
		err := Source{"f", []byte(text)}.Decode(&v, 1<<16)
		got := fmt.Sprint(v)
		if err != nil {
			got = err.Error()
		}
		if got != want && (want != "f:" || err == nil) {
			t.Errorf("%s\ngot  %s\nwant %s", text, got, want)
		}
	}
}

// bomb returns a text in which the last of n lists has 10 to the power of n values.
func bomb(n int) string {
	var b strings.Builder
	b.WriteString("l0: &l0 1\n")
	for i := range n {
		fmt.Fprintf(&b, "l%d: &l%d [%s]\n", i+1, i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*l%d, ", i), 10), ", "))
	}
	return b.String()
}

func TestWholeNumbers(t *testing.T) {
	for text, want := range map[string]int64{"5": 5, "-5": -5, "5.0": 5, "1e6": 1_000_000, "0x10": 16, "1e10": 10_000_000_000, "-2e15": -2_000_000_000_000_000, "4294967296": 1 << 32, "": 0, "null": 0} {
		var f file
		if err := (Source{"f", []byte("bytes: " + text)}).Decode(&f, 1000); err != nil || f.Bytes != want {
			t.Errorf("%q: %d, %v", text, f.Bytes, err)
		}
	}
}

// TestNested reads what looks nested, or long, and is not.
func TestNested(t *testing.T) {
	for name, text := range map[string]string{
		"text":  "name: '" + strings.Repeat("[{- : ", 200) + "'",
		"notes": "name: a # " + strings.Repeat("[{- : ", 200),
		"list":  "parts:\n" + strings.Repeat("  - weight: 1\n    inner: {weight: 2}\n", 500),
		"line":  `{"parts": [` + strings.Repeat(`{"weight": 1, "inner": {"weight": 2}}, `, 500) + "{weight: 3}]}",
	} {
		if err := (Source{"f", []byte(text)}).Decode(new(file), 1<<20, evens); err != nil {
			t.Errorf("%s: %.200s", name, err)
		}
	}
}

func TestAt(t *testing.T) {
	s := Source{"f", []byte(good)}
	for field, line := range map[string]int{"wait": 2, "parts[0].weight": 5, "parts[0].inner.none": 6, "parts[7]": 5, "none": 1} {
		e := s.At(field, "is wrong")
		if e.Line != line || e.Field != field || !strings.Contains(e.Excerpt, ">") {
			t.Errorf("%s: %v, want line %d", field, e, line)
		}
	}
	if e := (&Error{Problem: "is wrong"}); e.Error() != "is wrong" {
		t.Error(e)
	}
}

func TestNoErrorsHaveNoText(t *testing.T) {
	if text := (Errors{}).Error(); text != "" {
		t.Errorf("%q", text)
	}
	if err := (Errors{}).Err(); err != nil {
		t.Errorf("%v", err)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(good))
	f.Add([]byte("a: &a [*a]"))
	f.Add([]byte("parts: [{inner: {inner: {weight: x}}}]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		err := Source{"f", text}.Decode(new(file), 1<<16, evens)
		if err == nil {
			return
		}
		if e, ok := errors.AsType[*Error](err); !ok || e.Problem == "" || e.Error() == "" {
			t.Fatalf("an error that says nothing: %#v", err)
		}
	})
}
