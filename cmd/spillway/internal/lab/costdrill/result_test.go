package costdrill

import (
	"strings"
	"testing"
	"time"

	"github.com/seed90641741/spillway/cost"
)

func TestVerdicts(t *testing.T) {
	side := func(use, cheap float64) Side { return Side{ExpensiveUse: use, CheapAnswered: cheap} }
	for name, row := range map[string]struct {
		requests, learned Side
		compares, passed  bool
		text              string
	}{
		"held":                 {side(500, 1), side(52, 1), true, true, "passed"},
		"not held":             {side(500, 1), side(100, 1), true, false, "failed"},
		"starved by its quota": {side(500, 1), side(10, 1), true, false, "failed"},
		"cheap rejected":       {side(500, 1), side(52, 0.5), true, false, "failed"},
		"machine too slow":     {side(200, 1), side(52, 1), false, true, "no comparison"},
		"cheap calls lost":     {side(500, 0.9), side(52, 1), false, true, "no comparison"},
	} {
		r := Result{Share: 50, Requests: row.requests, Learned: row.learned}
		if r.Compares() != row.compares || r.Passed() != row.passed {
			t.Errorf("%s: compares %v, passed %v", name, r.Compares(), r.Passed())
		}
		var text strings.Builder
		if err := r.WriteTable(&text); err != nil || !strings.Contains(text.String(), row.text) {
			t.Errorf("%s: %v, and in the table %q is missing:\n%s", name, err, row.text, &text)
		}
	}
}

func TestTable(t *testing.T) {
	r := Result{Share: 50, Requests: Side{ExpensiveUse: 495, CheapAnswered: 1}, Learned: Side{ExpensiveUse: 51, CheapAnswered: 0.995, Costs: []cost.KeyStats{
		{Key: "expensive", Cost: 10123 * time.Microsecond, StandardError: 400 * time.Microsecond},
	}}}
	var text strings.Builder
	if err := r.WriteTable(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"9.90", "1.02", "495", "51", "99.5 %", "a call of expensive takes 10.12ms ± 400µs"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is missing:\n%s", want, &text)
		}
	}
}
