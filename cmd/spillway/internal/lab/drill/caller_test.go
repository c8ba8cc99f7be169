package drill

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/lab/load"
)

func answer(status int) *http.Response {
	return &http.Response{StatusCode: status, Body: io.NopCloser(bytes.NewReader(nil))}
}

func TestNaive(t *testing.T) {
	for _, row := range []struct {
		name     string
		answers  []int // the last one is repeated; 0 is a broken connection
		attempts int
		status   int
	}{
		{"answered", []int{200}, 1, 200},
		{"not found is an answer", []int{404}, 1, 404},
		{"overloaded", []int{503}, 4, 503},
		{"over quota", []int{429}, 4, 429},
		{"broken", []int{0}, 4, 0},
		{"better at last", []int{500, 0, 503, 200}, 4, 200},
	} {
		attempts := 0
		n := endpoint{url: "http://127.0.0.1/", deadline: time.Second, client: &http.Client{
			Transport: tripAs(func(*http.Request) (*http.Response, error) {
				status := row.answers[min(attempts, len(row.answers)-1)]
				attempts++
				if status == 0 {
					return nil, errors.New("broken")
				}
				return answer(status), nil
			}),
		}}
		status, err := n.naive(3)(t.Context(), time.Now())
		if attempts != row.attempts || status != row.status || (err != nil) != (row.status == 0) {
			t.Errorf("%s: %d attempts, status %d, %v", row.name, attempts, status, err)
		}
	}
}

// Both callers label their calls.
func TestCallersLabel(t *testing.T) {
	probe := newProbe(tripAs(func(r *http.Request) (*http.Response, error) {
		if got := r.Header.Get("X-Request-Criticality"); got != "SHEDDABLE_PLUS" {
			t.Errorf("labelled %q", got)
		}
		return answer(200), nil
	}), time.Second)
	transport, _, err := protect(probe, 10, spillway.ModeEnforce)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []caller{
		endpoint{&http.Client{Transport: probe}, load.Format{}, "http://127.0.0.1/", time.Second}.naive(0),
		endpoint{&http.Client{Transport: transport}, load.Format{}, "http://127.0.0.1/", time.Second}.call,
	} {
		probe.start = time.Now()
		ctx := spillway.WithCriticality(withRecord(t.Context(), new(record)), spillway.SheddablePlus)
		if status, err := c(ctx, time.Now()); status != 200 || err != nil {
			t.Errorf("status %d, %v", status, err)
		}
	}
}

// Clients share nothing: what one of them has in flight leaves the others room.
func TestClientsAreOnTheirOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const clients, limit = 3, 12
		d := &drill{config: small(), result: &Result{Settings: Settings{MaxInFlight: limit}}}
		d.config.Clients = clients
		probe := newProbe(hangs, time.Second)
		c, err := d.callers(side{protect: ProtectCallers}, "http://127.0.0.1/", probe)
		if err != nil {
			t.Fatal(err)
		}
		calls := every(0, 10)
		for i := range calls {
			calls[i].client = max(0, i-7) // eight of the first, one of each other
		}
		probe.start = time.Now()
		records := newGenerator(c, 100*ms, 400*ms, calls).run(t.Context(), probe.start)
		if got := outcomes(records); got[timedOut] != limit/clients+2 || got[rejectedInflight] != 8-limit/clients {
			t.Errorf("%v, want %d rejected", got, 8-limit/clients)
		}
		if records[8].outcome != timedOut || records[9].outcome != timedOut {
			t.Error("what one client has in flight hinders another")
		}
		if got := probe.look(); got < 0 || got > 1 {
			t.Errorf("%v of the budgets is left", got)
		}
	})
}

func TestTransportsAreOfOneClientEach(t *testing.T) {
	all := transportsOf(load.Format{}, 3, 257)
	defer all.close()
	for i, one := range all {
		if one.MaxConnsPerHost != 85 || i > 0 && one == all[0] {
			t.Errorf("client %d has %d connections", i, one.MaxConnsPerHost)
		}
	}
	if got := share(257, 1000); got != minInFlight {
		t.Errorf("%d connections for each of 1000, want %d", got, minInFlight)
	}
}

// hangs answers nothing until the context of the request ends.
var hangs = tripAs(func(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
})

func TestNaiveWaitsTheDeadlineInEachAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		call := endpoint{&http.Client{Transport: hangs}, load.Format{}, "http://127.0.0.1/", 100 * ms}.naive(3)
		start := time.Now()
		_, err := call(t.Context(), start)
		if took := time.Since(start); took != 400*ms || classifyError(t.Context(), err) != timedOut {
			t.Errorf("took %v, %v", took, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 150*ms)
		defer cancel()
		start = time.Now()
		_, _ = call(ctx, start) // only how long it takes counts here
		if took := time.Since(start); took != 150*ms {
			t.Errorf("went on for %v, want to stop when interrupted after 150ms", took)
		}
	})
}

// All attempts of a protected call share the one deadline, which counts from the
// intended send.
func TestProtectedKeepsItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		probe := newProbe(hangs, time.Second)
		transport, _, err := protect(probe, 10, spillway.ModeEnforce)
		if err != nil {
			t.Fatal(err)
		}
		p := endpoint{&http.Client{Transport: transport}, load.Format{}, "http://127.0.0.1/", 100 * ms}
		start := time.Now()
		probe.start = start
		r := new(record)
		_, err = p.call(withRecord(t.Context(), r), start.Add(-30*ms))
		if took := time.Since(start); took != 70*ms || r.attempts != 1 || classifyError(t.Context(), err) != timedOut {
			t.Errorf("took %v and %d attempts, %v", took, r.attempts, err)
		}
	})
}

func TestProtectBoundsWhatIsInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit, calls = 3, 5
		probe := newProbe(hangs, time.Second)
		transport, look, err := protect(probe, limit, spillway.ModeEnforce)
		if err != nil {
			t.Fatal(err)
		}

		p := endpoint{&http.Client{Transport: transport}, load.Format{}, "http://127.0.0.1/", 100 * ms}
		probe.start = time.Now()
		g := newGenerator([]caller{p.call}, 100*ms, 400*ms, every(0, calls))
		records := g.run(t.Context(), probe.start)
		if got := outcomes(records); got[timedOut] != limit || got[rejectedInflight] != calls-limit {
			t.Errorf("%v, want %d timed out and %d rejected", got, limit, calls-limit)
		}
		if got := look(); got < 0 || got > 1 {
			t.Errorf("%v of the budget is left", got)
		}
		if got := probe.slots[0].inFlight.Load(); got != limit {
			t.Errorf("%d in flight, want %d", got, limit)
		}
	})
}
