package hints

import (
	"testing"
	"time"

	"github.com/seed90641741/spillway/fault"
)

// TestUnitsOfShortNumbers: short numbers, which are read more quickly, mean the same as in a long text.
func TestUnitsOfShortNumbers(t *testing.T) {
	for _, text := range []string{"", "0", "5", "007", "999999", "1000000", "0000001", "12345678901234567890", " 5", "5 ", "\t5", "5x", "x5", "-1", "+1", "1.5", "٣"} {
		for _, unit := range []time.Duration{0, 1, time.Millisecond, time.Second, time.Hour} {
			got, ok := Units(text, unit)
			want, wantOK := unitsInLong(text, unit)
			if got != want || ok != wantOK {
				t.Errorf("%q times %v: %v, %v; want %v, %v", text, unit, got, ok, want, wantOK)
			}
		}
	}
}

func TestPushback(t *testing.T) {
	for _, row := range []struct {
		values []string
		want   time.Duration
		ok     bool
	}{
		{nil, 0, false},
		{[]string{"30"}, 30 * time.Millisecond, true},
		{[]string{"0"}, 0, true},
		{[]string{"-1"}, 0, false},
		{[]string{"-0"}, 0, false},
		{[]string{"+1"}, 0, false},
		{[]string{" 1"}, 0, false},
		{[]string{"soon"}, 0, false},
		{[]string{"1", "2"}, 0, false},
		{[]string{"9223372036854775807"}, Max, true},
		{[]string{"9223372036854775808"}, 0, false},
	} {
		if got, ok := Pushback(row.values); got != row.want || ok != row.ok {
			t.Errorf("%q: %v, %v; want %v, %v", row.values, got, ok, row.want, row.ok)
		}
	}
}

// TestScope: the scope counts for an overload only, and a customer stays one.
func TestScope(t *testing.T) {
	type f = fault.Failure
	for _, row := range []struct {
		before f
		text   string
		want   f
	}{
		{f{Overload: true}, "task", f{Overload: true, Scope: fault.ScopeTask, Unprocessed: true}},
		{f{Overload: true}, "Service", f{Overload: true, Scope: fault.ScopeService, DontRetry: true}},
		{f{Overload: true}, "customer", f{Overload: true, Scope: fault.ScopeCustomer}},
		{f{Overload: true, Scope: fault.ScopeCustomer}, "task", f{Overload: true, Scope: fault.ScopeCustomer}},
		{f{Overload: true}, "all", f{Overload: true}},
		{f{Overload: true}, "", f{Overload: true}},
		{f{}, "task", f{}},
	} {
		got := row.before
		if Scope(&got, row.text); got != row.want {
			t.Errorf("%+v, %q: %+v, want %+v", row.before, row.text, got, row.want)
		}
	}
}
