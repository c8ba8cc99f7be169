package drill

import (
	"errors"
	"net"
	"net/http"
	"os/exec"
	"testing"
	"time"
)

func TestTrialIsAsked(t *testing.T) {
	sound := Trial{
		Backend: Backend{Kind: BackendCPU, Rounds: 1}, Deadline: ms, Capacity: 100,
		Load: []Stretch{{Load: 1, Length: time.Second}},
	}
	for _, row := range []struct {
		name   string
		change func(*Trial)
		ok     bool
	}{
		{"sound", func(*Trial) {}, true},
		{"no rounds", func(t *Trial) { t.Backend.Rounds = 0 }, false},
		{"no capacity", func(t *Trial) { t.Capacity = 0 }, false},
		{"no deadline", func(t *Trial) { t.Deadline = 0 }, false},
		{"no load", func(t *Trial) { t.Load = []Stretch{{Length: time.Second}} }, false},
		{"settles all the time", func(t *Trial) { t.Load = []Stretch{{1, time.Second, time.Second}} }, false},
		{"settles for less than nothing", func(t *Trial) { t.Load = []Stretch{{1, time.Second, -1}} }, false},
		{"too many calls", func(t *Trial) { t.Load = []Stretch{{Load: 100, Length: time.Hour}} }, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			trial := sound
			row.change(&trial)
			if _, err := trial.phases(); (err == nil) != row.ok {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestStretchesFollowOneAnother(t *testing.T) {
	trial := Trial{
		Backend: Backend{Rounds: 1}, Deadline: ms, Capacity: 200,
		Load: []Stretch{{Load: 0.5, Length: time.Second}, {Load: 3, Length: 2 * time.Second}},
	}
	phases, err := trial.phases()
	if err != nil {
		t.Fatal(err)
	}
	want := []Phase{{Start: 0, End: 1, Load: 0.5, OfferedRPS: 100}, {Start: 1, End: 3, Load: 3, OfferedRPS: 600}}
	if len(phases) != 2 || phases[0] != want[0] || phases[1] != want[1] {
		t.Errorf("%+v, want %+v", phases, want)
	}
}

// story returns a call every 10 ms from start on, of which those are good that
// want says so of, by the tenth of a second that they are in.
func story(start time.Duration, tenths int, want func(tenth int) bool) []record {
	all := make([]record, 10*tenths)
	for i := range all {
		all[i].at = start + time.Duration(i)*10*ms
		all[i].outcome = timedOut
		if want(i / 10) {
			all[i].outcome = good
		}
	}
	return all
}

func TestReady(t *testing.T) {
	const start = 5 * time.Second
	for _, row := range []struct {
		name string
		load float64
		good func(tenth int) bool
		want float64 // -1: never
	}{
		{"at once", 2, func(int) bool { return true }, 0},
		{"never", 2, func(int) bool { return false }, -1},
		{"from 0.7 s on", 2, func(n int) bool { return n >= 7 }, 0.2}, // its first half second is within that one
		{"falls again", 2, func(n int) bool { return n < 20 }, -1},
		{"recovers", 0.5, func(n int) bool { return n >= 5 }, 0.5},
		{"does not", 0.5, func(n int) bool { return n < 5 }, -1},
	} {
		t.Run(row.name, func(t *testing.T) {
			trial := Trial{Capacity: 100}
			got := trial.ready(Stretch{Load: row.load}, story(start, 30, row.good), start, start+3*time.Second)
			if row.want < 0 && got != nil || row.want >= 0 && (got == nil || *got != row.want) {
				t.Errorf("%v, want %v", got, row.want)
			}
		})
	}
}

func TestStretchCountsWhatIsLeftAfterSettling(t *testing.T) {
	trial := Trial{Capacity: 200, Load: []Stretch{{Load: 2, Length: 3 * time.Second, Settle: time.Second}}}
	var result TrialResult
	trial.summarize(&result, []Phase{{End: 3}}, story(0, 30, func(n int) bool { return n >= 20 }))
	got := result.Stretches[0]
	if got.Seconds != 2 || got.Offered != 200 || got.Goodput != 100 || got.TimedOut != 100 || got.GoodputRatio != 0.25 {
		t.Errorf("%+v", got)
	}
}

// A real trial, of a protected backend: all that is offered ends somehow, and what
// is too much is refused.
func TestTrial(t *testing.T) {
	launched := false
	trial := Trial{
		Backend: Backend{Kind: BackendBlocking, Protect: true, Service: ms, Rounds: 1},
		Launch: func(cmd *exec.Cmd, start func() error) error {
			launched = cmd.Process == nil
			return start()
		},
		Deadline: Deadline(BackendBlocking), Capacity: slots / slotHold.Seconds(), Seed: 1,
		Load: []Stretch{{Load: 0.3, Length: 300 * ms}, {Load: 5, Length: 2 * time.Second, Settle: 100 * ms}},
	}
	result, err := trial.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range result.Stretches {
		if ends := s.Goodput + s.Late + s.Refused() + s.TimedOut + s.Failed + s.DroppedSends + s.Unfinished; ends != s.Offered || ends == 0 {
			t.Errorf("at %v: %d calls offered, %d ended", s.Load, s.Offered, ends)
		}
	}
	if calm := result.Stretches[0]; calm.Goodput == 0 {
		t.Errorf("none of %d calls was answered in the calm", calm.Offered)
	}
	if over := result.Stretches[1]; over.RefusedByBackend == 0 {
		t.Errorf("none of %d calls was refused in overload", over.Offered)
	}
	if !launched {
		t.Error("the backend was not launched as asked")
	}
}

func TestTrialThatCannotBegin(t *testing.T) {
	broken := errors.New("broken")
	trial := Trial{
		Backend: Backend{Rounds: 1}, Deadline: ms, Capacity: 1, Load: []Stretch{{Load: 1, Length: ms}},
		Launch: func(*exec.Cmd, func() error) error { return broken },
	}
	if _, err := trial.Run(t.Context()); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
}

func TestMeasure(t *testing.T) {
	if testing.Short() {
		t.Skip("needs some seconds")
	}
	capacity, b, err := Backend{Kind: BackendBlocking, Service: ms}.Measure(t.Context())
	if best := slots / slotHold.Seconds(); err != nil || capacity <= 0 || capacity > 1.1*best || b.Rounds < 1 {
		t.Errorf("capacity %.0f/s of at most %.0f/s, %d rounds, %v", capacity, best, b.Rounds, err)
	}
}

// What stands in front sees a call before the handler does.
func TestFront(t *testing.T) {
	b := Backend{Front: func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	}}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error)
	go func() { served <- b.serve(ln, http.NotFoundHandler()) }()
	defer func() {
		_ = ln.Close()
		<-served
	}()
	if status, err := (wire{}).send(t.Context(), http.DefaultClient, "http://"+ln.Addr().String()); err != nil || status != http.StatusTeapot {
		t.Errorf("status %d, %v", status, err)
	}
}
