package message

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/seed90641741/spillway/internal/race"
)

var uuid = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)

// TestIdentify: only a trusted client names the id of a request, and only with a word that fits into
// a line of a log. The header has one value in any case.
func TestIdentify(t *testing.T) {
	for _, row := range []struct {
		came    []string
		trusted bool
		kept    bool
	}{
		{nil, true, false},
		{nil, false, false},
		{[]string{"id-1"}, true, true},
		{[]string{"id-1"}, false, false},
		{[]string{"id-1", "id-2"}, true, true},
		{[]string{"id-1", "id-2"}, false, false},
		{[]string{""}, true, false},
		{[]string{"two words"}, true, false},
		{[]string{"a\x1b[31m"}, true, false},
		{[]string{"caf\u00e9"}, true, false},
		{[]string{strings.Repeat("x", 128)}, true, true},
		{[]string{strings.Repeat("x", 129)}, true, false},
	} {
		h := http.Header{}
		if row.came != nil {
			h[RequestID] = row.came
		}
		got := Identify(h, row.trusted)
		if sent := h[RequestID]; len(got) != 1 || len(sent) != 1 || sent[0] != got[0] {
			t.Errorf("%q: the id is %q, and %q is sent", row.came, got, sent)
		}
		if row.kept && got[0] != row.came[0] || !row.kept && !uuid.MatchString(got[0]) {
			t.Errorf("%q, trusted %v: the id is %q", row.came, row.trusted, got)
		}
	}
}

// TestIDsDiffer: all bits but the six of version and variant are random.
func TestIDsDiffer(t *testing.T) {
	const n = 2000
	var ones [36 * 4]int
	seen := make(map[string]bool)
	for range n {
		id := newID()
		seen[id] = true
		for i := range id {
			digit := strings.IndexByte("0123456789abcdef", id[i])
			for bit := range 4 {
				if digit >= 0 && digit>>bit&1 == 1 {
					ones[4*i+bit]++
				}
			}
		}
	}
	random := 0
	for _, k := range ones {
		if k > n/2-7*23 && k < n/2+7*23 { // seven standard deviations
			random++
		}
	}
	if len(seen) != n || random != 122 {
		t.Errorf("%d ids of %d, and %d random bits, want 122", len(seen), n, random)
	}
}

// TestIdentifyAllocates: a new id costs two allocations, one that is kept costs none.
func TestIdentifyAllocates(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	h := http.Header{RequestID: {"id-1"}}
	if n := testing.AllocsPerRun(100, func() { Identify(h, true) }); n != 0 {
		t.Errorf("an id that is kept costs %v allocations", n)
	}
	if n := testing.AllocsPerRun(100, func() { Identify(h, false) }); n != 2 {
		t.Errorf("a new id costs %v allocations, want 2: its text and the values of its header", n)
	}
}

func BenchmarkIdentify(b *testing.B) {
	h := http.Header{}
	b.ReportAllocs()
	for b.Loop() {
		Identify(h, false)
	}
}
