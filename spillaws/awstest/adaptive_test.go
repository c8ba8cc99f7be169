package awstest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/retry"
	"github.com/seed90641741/spillway/spillaws"
)

// An event is an answer of the service, and at which rate the limiter lets
// attempts through after it.
type event struct {
	throttle bool
	at       time.Duration
	rate     float64
}

// eventOf reads a row of the vectors: kind, time, perhaps more, rate.
func eventOf(t *testing.T, row []any) event {
	kind, ok := row[0].(string)
	if !ok || kind != "ok" && kind != "throttle" {
		t.Fatalf("bad row %v", row)
	}
	return event{
		throttle: kind == "throttle",
		at:       time.Duration(row[1].(float64) * float64(time.Second)),
		rate:     row[len(row)-1].(float64),
	}
}

// TestAdaptiveVectors replays the vectors of the adaptive mode. The limiter is the
// SDK's; what is shown is that it hears of all attempts, at the right time, and
// that they wait for it. Its rate binds from the first throttled answer on.
func TestAdaptiveVectors(t *testing.T) {
	var facts struct {
		Cubic []struct {
			Name  string
			Steps [][]any
		}
		EndToEnd [][]any `json:"end_to_end"`
	}
	vectors(t, conformance+"aws_adaptive.json", &facts)
	inBothBehaviours(t, func(t *testing.T) {
		for _, c := range facts.Cubic {
			t.Run(c.Name, func(t *testing.T) {
				events, checked := history(), false
				for _, row := range c.Steps {
					e := eventOf(t, row)
					e.at -= 3 * time.Second // the limiter begins at 3 s
					events = append(events, e)
					checked = true
					checkRate(t, events, false)
					if !e.throttle { // more of the same, as the rate is at most twice that of the answers
						for range 79 {
							events = append(events, e)
						}
					}
				}
				if !checked {
					t.Error("no rows")
				}
			})
		}
		for _, retried := range []bool{false, true} {
			t.Run(fmt.Sprintf("end to end, retried: %v", retried), func(t *testing.T) {
				var events []event
				bound := false
				for _, row := range facts.EndToEnd {
					events = append(events, eventOf(t, row))
					bound = bound || events[len(events)-1].throttle
					if bound && (!retried || !events[len(events)-1].throttle) {
						checkRate(t, events, retried)
					}
				}
				if !bound {
					t.Error("no rows")
				}
			})
		}
	})
}

// history is what leads to a last maximum of 10 per second, throttled 2 s after
// the limiter began: 0.8 times 25 answers in 2 s.
func history() (events []event) {
	for range 24 {
		events = append(events, event{at: 100 * time.Millisecond})
	}
	return append(events, event{at: 2 * time.Second, throttle: true})
}

// checkRate makes a call for each event at once, which ends when the event is due,
// and checks the rate after the last one. If retried is set, what comes after a
// throttled answer is the retry of the same call.
func checkRate(t *testing.T, events []event, retried bool) {
	t.Helper()
	attempts := 1
	if retried {
		attempts = 2
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		s := &tide{events: events, begun: time.Now(), attempts: make([]atomic.Int32, len(events))}
		r := must(spillaws.New(spillaws.Config{Mode: aws.RetryModeAdaptive, MaxAttempts: attempts, Strategy: must(retry.NewAWSStandard(retry.AWSStandardConfig{
			MaxAttempts: attempts, Rand: func() float64 { return 0 },
		}))}))
		p := &prober{client: database(r, serve(t, s.ServeHTTP)), let: &s.let}
		for i := 0; i < len(events); i++ {
			go getFrom(ctx, p.client, strconv.Itoa(i))
			if retried && events[i].throttle {
				i++
			}
		}
		last := events[len(events)-1]
		<-time.After(last.at)
		synctest.Wait()
		p.check(ctx, t, last.rate)
		cancel()
		synctest.Wait()
	})
}

// A tide is a service that answers each request when its event is due, and some
// never.
type tide struct {
	events   []event
	begun    time.Time
	attempts []atomic.Int32
	let      atomic.Int32 // requests through that are never answered
}

func (s *tide) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	var body struct{ TableName string }
	json.NewDecoder(req.Body).Decode(&body)
	i, err := strconv.Atoi(body.TableName)
	if err != nil {
		s.let.Add(1)
		<-req.Context().Done()
		return
	}
	e := s.events[i+int(s.attempts[i].Add(1))-1]
	<-time.After(time.Until(s.begun.Add(e.at)))
	if e.throttle {
		answer(w, http.StatusBadRequest, "ThrottlingException")
	} else {
		answer(w, http.StatusOK, "")
	}
}

// A prober finds out by trying when the next attempt is let through.
type prober struct {
	client *dynamodb.Client
	let    *atomic.Int32
}

// through reports whether an attempt is let through at this moment. The limiter
// learns nothing from it, other than that it is under way.
func (p *prober) through(ctx context.Context) bool {
	before := p.let.Load()
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer cancel()
		getFrom(ctx, p.client, "never")
	}()
	synctest.Wait()
	if p.let.Load() > before {
		return true // and is under way until the end
	}
	cancel()
	<-done
	return false
}

// next waits in steps until an attempt is let through.
func (p *prober) next(ctx context.Context, step time.Duration) {
	for !p.through(ctx) {
		<-time.After(step)
	}
}

// check empties the bucket of the limiter and measures how fast it fills.
func (p *prober) check(ctx context.Context, t *testing.T, rate float64) {
	t.Helper()
	const coarse, fine = time.Millisecond, 10 * time.Microsecond
	period := time.Duration(float64(time.Second) / rate)
	<-time.After(137 * time.Microsecond) // where it is a rounding error short of a token, it loops in a bubble
	for p.through(ctx) {
	}
	p.next(ctx, coarse)
	<-time.After(period - 2*coarse)
	p.next(ctx, fine)
	<-time.After(period - 2*fine)
	if p.through(ctx) {
		t.Errorf("the rate is above %v per second", rate)
	}
	<-time.After(3 * fine)
	if !p.through(ctx) {
		t.Errorf("the rate is below %v per second", rate)
	}
}

// throttling returns a prober of a client in adaptive mode, whose service answers 429 with a code to requests that it
// answers. reject makes the client reject requests by itself.
func throttling(t *testing.T, code string) (p *prober, reject *atomic.Bool) {
	p, reject = &prober{let: new(atomic.Int32)}, new(atomic.Bool)
	service := serve(t, func(w http.ResponseWriter, req *http.Request) {
		var body struct{ TableName string }
		json.NewDecoder(req.Body).Decode(&body)
		if body.TableName != "never" {
			answer(w, http.StatusTooManyRequests, code)
			return
		}
		p.let.Add(1)
		<-req.Context().Done()
	})
	r := must(spillaws.New(spillaws.Config{Mode: aws.RetryModeAdaptive, MaxAttempts: 1}))
	p.client = database(r, clientFunc(func(req *http.Request) (*http.Response, error) {
		if reject.Load() {
			return nil, &spillway.RejectedError{Policy: "throttle"}
		}
		return service.Do(req)
	}))
	return p, reject
}

type clientFunc func(*http.Request) (*http.Response, error)

func (f clientFunc) Do(req *http.Request) (*http.Response, error) { return f(req) }

// TestAdaptiveHearsOfAllThrottling: a 429 is one whatever its code, as services have it that are only compatible.
func TestAdaptiveHearsOfAllThrottling(t *testing.T) {
	for _, code := range []string{"ThrottlingException", "TooManyRequests"} {
		inBubbles(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			p, _ := throttling(t, code)
			if err := get(ctx, p.client); err == nil {
				t.Error("no error")
			}
			if p.through(ctx) {
				t.Errorf("%s: the next attempt does not wait for the limiter", code)
			}
		})
	}
}

// TestAdaptiveCountsWhatIsSent: attempts that another policy of this process rejects are no sign of what the service
// can do.
func TestAdaptiveCountsWhatIsSent(t *testing.T) {
	inBubbles(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		p, reject := throttling(t, "ThrottlingException")
		reject.Store(true)
		for range 100 {
			if err := get(ctx, p.client); !errors.Is(err, spillway.ErrRejected) {
				t.Error(err)
			}
		}
		reject.Store(false)
		<-time.After(2 * time.Second)
		if err := get(ctx, p.client); err == nil {
			t.Error("no error")
		}
		<-time.After(time.Second)
		if p.through(ctx) {
			t.Error("one attempt was sent, and the limiter lets through more than one per second")
		}
	})
}
