package fleet

import (
	"bytes"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestReportsAndLevelsReadAsWritten(t *testing.T) {
	head := report{incarnation: 5, seq: 77, config: 1 << 60}
	usages := []usage{
		{name: "mail", age: 300, used: 1e12 + 0.5, wants: [4]float64{0, 1.5, 0, 1000}},
		{name: "", used: -3},
		{name: strings.Repeat("x", maxName), wants: [4]float64{1, 2, 3, 4}},
	}
	b := newReport(head)
	for i := range usages {
		b = appendUsage(b, &usages[i])
	}
	var read []usage
	got, err := parseReport(b, func(name []byte, u *usage) {
		c := *u
		c.name = string(name)
		read = append(read, c)
	})
	if err != nil || got != head || !reflect.DeepEqual(read, usages) {
		t.Errorf("read %+v %+v, %v; want %+v %+v", got, read, err, head, usages)
	}
	for i := range b { // no part of it is a report, unless it ends between customers
		n := 0
		if _, err := parseReport(b[:i], func([]byte, *usage) { n++ }); err == nil && n != 0 && n != 1 && n != 2 {
			t.Errorf("the first %d bytes are a report of %d customers", i, n)
		}
	}
	l := &Levels{Version: Version{3, 4}, Tasks: 20, config: 9, weight: 7, unlisted: 8, customers: map[string]Level{
		"mail": {Rate: 1000, Debt: 12, Marginal: 2, Share: 50, name: "mail"},
		"":     {Rate: 10, Marginal: -1, Share: 0.5},
	}}
	if got, err := parseLevels(encodeLevels(l), l); err != nil || !reflect.DeepEqual(got, l) {
		t.Errorf("read %+v, %v; want %+v", got, err, l)
	}
}

// Values that arithmetic could stumble over are rejected with an error.
func TestMessagesOutOfRange(t *testing.T) {
	good := Level{Rate: 1, Marginal: -1, Share: 1}
	for name, b := range map[string][]byte{
		"empty":        nil,
		"version":      append([]byte{9}, encoded(Version{1, 1}, 1, 1, 1, good)[1:]...),
		"epoch 0":      encoded(Version{0, 1}, 1, 1, 1, good),
		"epoch":        encoded(Version{maxEpoch + 1, 1}, 1, 1, 1, good),
		"no number":    encoded(Version{1, 0}, 1, 1, 1, good),
		"no tasks":     encoded(Version{1, 1}, 0, 1, 1, good),
		"many tasks":   encoded(Version{1, 1}, maxTasks+1, 1, 1, good),
		"not a number": encoded(Version{1, 1}, 1, math.NaN(), 1, good),
		"negative":     encoded(Version{1, 1}, 1, 1, 1, Level{Rate: -1, Marginal: -1}),
		"class":        encoded(Version{1, 1}, 1, 1, 1, Level{Rate: 1, Marginal: 4}),
	} {
		if l, err := parseLevels(b, nil); err == nil {
			t.Errorf("%s: read %+v, want an error", name, l)
		}
	}
	infinite := appendUsage(newReport(report{seq: 1}), &usage{name: "a"})
	copy(infinite[len(infinite)-8:], []byte{0, 0, 0, 0, 0, 0, 0xf0, 0x7f})
	for name, b := range map[string][]byte{
		"empty": nil, "seq 0": newReport(report{}), "infinite use": infinite,
		"age": append(newReport(report{seq: 1}), append([]byte{1, 'a', 0}, bytes.Repeat([]byte{0xff}, 20)...)...),
	} {
		if head, err := parseReport(b, func([]byte, *usage) {}); err == nil {
			t.Errorf("%s: read %+v, want an error", name, head)
		}
	}
}

func FuzzLevels(f *testing.F) {
	f.Add(encoded(Version{1, 1}, 20, 1, 0, Level{Rate: 100, Marginal: 2, Share: 5}))
	f.Add([]byte{wireVersion})
	f.Fuzz(func(t *testing.T, b []byte) {
		l, err := parseLevels(b, nil)
		if err != nil {
			return
		}
		again, err := parseLevels(encodeLevels(l), l)
		if err != nil || !reflect.DeepEqual(again, l) {
			t.Fatalf("read %+v, written and read again %+v, %v", l, again, err)
		}
		for _, c := range l.customers {
			if rate, least := c.grant(&[4]float64{1, 2, 3, 4}, l.Tasks); !(rate >= 0) || math.IsInf(rate, 0) || least < 0 || least > 2 {
				t.Fatalf("%+v grants %v from class %d", c, rate, least)
			}
		}
	})
}

// A table makes levels that can be read, whatever the reports are.
func FuzzReports(f *testing.F) {
	b := appendUsage(newReport(report{incarnation: 1, seq: 1}), &usage{name: "mail", used: 5, wants: [4]float64{2: 10}})
	f.Add(b, b, int64(200*ms))
	f.Add([]byte{wireVersion}, b, int64(-1))
	f.Fuzz(func(t *testing.T, first, second []byte, step int64) {
		c := mail(1000)
		c.Limits.Capacity, c.Limits.DefaultLimit.Rate = 5000, 10
		table, err := NewTable(c, nil)
		if err != nil {
			t.Fatal(err)
		}
		now := time.Duration(0)
		for i := range 6 {
			now += time.Duration(step)
			reports := []Stamped{{"a", now, first}, {"b", now - time.Second, second}}
			if i%2 == 1 {
				reports[0].Report, reports[1].Report = second, first
			}
			l, _ := table.Levels(now, reports)
			l.Epoch = 1
			if _, err := parseLevels(encodeLevels(l), nil); err != nil {
				t.Fatalf("levels %+v: %v", l, err)
			}
		}
	})
}
