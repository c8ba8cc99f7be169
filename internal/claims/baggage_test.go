package claims

import (
	"slices"
	"strings"
	"testing"

	"github.com/seed90641741/spillway"
)

// members returns a baggage of n members, which takes some bytes each.
func members(n, bytes int) string {
	return strings.TrimSuffix(strings.Repeat("k="+strings.Repeat("v", bytes-3)+",", n), ",")
}

func TestSetBaggage(t *testing.T) {
	const ours = "criticality=SHEDDABLE"
	for _, row := range []struct {
		name         string
		values, want []string
	}{
		{"none", nil, []string{ours}},
		{"empty", []string{""}, []string{ours}},
		{"others", []string{"a=1,b=2;p=x"}, []string{ours + ",a=1,b=2;p=x"}},
		{"several values", []string{"a=1", " b=2 , c=3"}, []string{ours + ",a=1,b=2,c=3"}},
		{"the same", []string{"a=1,criticality=SHEDDABLE"}, []string{"a=1,criticality=SHEDDABLE"}},
		{"another class", []string{"a=1,criticality=CRITICAL_PLUS,b=2"}, []string{ours + ",a=1,b=2"}},
		{"with properties", []string{"criticality=CRITICAL_PLUS;p=1,b=2"}, []string{ours + ",b=2"}},
		{"with spaces", []string{"criticality = CRITICAL_PLUS ,b=2"}, []string{ours + ",b=2"}},
		{"duplicates", []string{"criticality=SHEDDABLE,criticality=CRITICAL_PLUS", "criticality=CRITICAL"}, []string{ours}},
		{"encoded values are left alone", []string{"a=%ZZ%,b=%"}, []string{ours + ",a=%ZZ%,b=%"}},
		{"what looks like ours", []string{"xcriticality=1,criticality,Criticality=2"}, []string{ours + ",xcriticality=1,criticality,Criticality=2"}},
		{"empty members", []string{",,a=1,,"}, []string{ours + ",a=1"}},
		{"63 members", []string{members(63, 5)}, []string{ours + "," + members(63, 5)}},
		{"64 members", []string{members(64, 5)}, []string{members(64, 5)}},
		{"64 members, one of them ours", []string{members(63, 5) + ",criticality=CRITICAL"}, []string{ours + "," + members(63, 5)}},
		{"10,000 members", []string{members(10000, 5)}, []string{members(10000, 5)}},
		{"10,000 members and another class", []string{members(10000, 5) + ",criticality=CRITICAL_PLUS"}, []string{members(10000, 5)}},
		{"as many bytes as fit", []string{"k=" + strings.Repeat("v", 8192-2-len(ours)-1)}, []string{ours + ",k=" + strings.Repeat("v", 8192-2-len(ours)-1)}},
		{"one byte more", []string{"k=" + strings.Repeat("v", 8192-1-len(ours)-1)}, []string{"k=" + strings.Repeat("v", 8192-1-len(ours)-1)}},
		{"too long, with another class", []string{"criticality=CRITICAL_PLUS,k=" + strings.Repeat("v", 8190)}, []string{"k=" + strings.Repeat("v", 8190)}},
	} {
		got := SetBaggage(row.values, spillway.Sheddable)
		if !slices.Equal(got, row.want) {
			t.Errorf("%s: %.200q, want %.200q", row.name, got, row.want)
		}
		again := SetBaggage(got, spillway.Sheddable)
		if !slices.Equal(again, got) {
			t.Errorf("%s: set again it is %.200q", row.name, again)
		}
	}
}

func TestRemoveBaggage(t *testing.T) {
	for _, row := range []struct{ values, want []string }{
		{nil, nil},
		{[]string{"a=1, b=2"}, []string{"a=1, b=2"}},
		{[]string{"criticality=CRITICAL"}, nil},
		{[]string{"criticality=x;y", "criticality=CRITICAL"}, nil},
		{[]string{"a=1, criticality=CRITICAL,b=2"}, []string{"a=1,b=2"}},
	} {
		if got := RemoveBaggage(row.values); !slices.Equal(got, row.want) {
			t.Errorf("%q: %q, want %q", row.values, got, row.want)
		}
	}
}

// TestReplaceBaggage: a change is reported, and only a change.
func TestReplaceBaggage(t *testing.T) {
	for _, row := range []struct {
		values, set, removed []string
	}{
		{nil, []string{"criticality=SHEDDABLE"}, nil},
		{[]string{"a=1"}, []string{"criticality=SHEDDABLE,a=1"}, []string{"a=1"}},
		{[]string{"a=1,criticality=SHEDDABLE"}, []string{"a=1,criticality=SHEDDABLE"}, []string{"a=1"}},
		{[]string{"criticality=CRITICAL"}, []string{"criticality=SHEDDABLE"}, nil},
		{[]string{members(64, 5)}, []string{members(64, 5)}, []string{members(64, 5)}},
	} {
		for labelled, want := range map[bool][]string{true: row.set, false: row.removed} {
			got, changed := ReplaceBaggage(row.values, spillway.Sheddable, labelled, 0)
			header := map[string][]string{"baggage": row.values}
			Put(header, "baggage", got)
			_, there := header["baggage"]
			if !slices.Equal(got, want) || changed == slices.Equal(row.values, want) || there != (len(want) > 0) || !slices.Equal(header["baggage"], want) {
				t.Errorf("%.40q, labelled %v: %.40q, changed %v, in %.80v", row.values, labelled, got, changed, header)
			}
		}
	}
}

func TestBaggageAllocatesNothing(t *testing.T) {
	same := []string{"a=1,criticality=SHEDDABLE"}
	if n := testing.AllocsPerRun(100, func() {
		SetBaggage(nil, spillway.Sheddable)
		SetBaggage(same, spillway.Sheddable)
		RemoveBaggage(nil)
		HasBaggage(same)
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// Whatever a baggage holds, all members of others are there afterwards, in order,
// and a limit that was kept before is kept.
func FuzzBaggage(f *testing.F) {
	f.Add("a=1,criticality=CRITICAL_PLUS;x", "b=%zz,,")
	f.Add(members(64, 100), members(100, 200))
	f.Fuzz(func(t *testing.T, a, b string) {
		values := []string{a, b}
		got := SetBaggage(values, spillway.CriticalPlus)
		if x, y := others(values), others(got); !slices.Equal(x, y) {
			t.Fatalf("%q became %q", x, y)
		}
		before, after := scan(values), scan(got)
		if after.members > max(maxBaggageMembers, before.members) || after.bytes > max(maxBaggage, before.bytes) {
			t.Fatalf("%+v became %+v", before, after)
		}
		if after.ours > 0 {
			if c, ok := Criticality(nil, got); before.bytes <= maxBaggage && (!ok || c != spillway.CriticalPlus) {
				t.Fatalf("%q says %v", got, c)
			}
		}
		if HasBaggage(RemoveBaggage(values)) {
			t.Fatalf("%q remains", RemoveBaggage(values))
		}
	})
}

func others(values []string) (all []string) {
	for _, v := range values {
		for m := range strings.SplitSeq(v, ",") {
			if m = strings.Trim(m, " \t"); m != "" && !isOurs(m) {
				all = append(all, m)
			}
		}
	}
	return all
}

func TestRatio(t *testing.T) {
	for _, row := range []struct {
		values []string
		ratio  float64
		ok     bool
	}{
		{nil, 0, false},
		{[]string{"0.1"}, 0.1, true},
		{[]string{" 0 "}, 0, true},
		{[]string{"0.1", "0.5", "0.2"}, 0.5, true},
		{[]string{"0.1", "2", "-1", "NaN", "Inf", "x", "", strings.Repeat("0", 10000)}, 0.1, true},
		{[]string{"1"}, 1, true},
		{[]string{"1.0001"}, 0, false},
	} {
		if r, ok := Ratio(row.values); r != row.ratio || ok != row.ok {
			t.Errorf("%.40q: %v %v", row.values, r, ok)
		}
	}
}
