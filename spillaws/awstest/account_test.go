package awstest

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed90641741/spillway/internal/race"
	"github.com/seed90641741/spillway/retry"
	"github.com/seed90641741/spillway/spillaws"
)

// A ledger is a service that fails at random, and knows what has to be in the
// budget: it sees which retries were sent, and their results.
type ledger struct{ balance atomic.Int64 }

// A trip is what the ledger knows of one call. It travels in its context.
type trip struct {
	random   *rand.Rand
	sent     int
	answered bool  // the last attempt that came to an end did so with an answer
	price    int64 // of a retry, after that attempt
}

type tripKey struct{}

// Do implements the SDK's HTTPClient.
func (l *ledger) Do(req *http.Request) (*http.Response, error) {
	trip := req.Context().Value(tripKey{}).(*trip)
	trip.sent++
	price := trip.price
	if trip.sent > 1 {
		l.balance.Add(-price)
	}
	select {
	case <-time.After(tick * time.Duration(trip.random.IntN(4))):
	case <-req.Context().Done():
		return nil, req.Context().Err()
	}
	trip.answered = true
	switch trip.random.IntN(4) {
	case 0:
		if trip.sent > 1 {
			l.balance.Add(price)
		} else {
			l.balance.Add(1)
		}
		return reply(req, http.StatusOK, "{}"), nil
	case 1:
		trip.price = 5
		return reply(req, http.StatusBadRequest, `{"__type":"ThrottlingException"}`), nil
	case 2:
		trip.answered, trip.price = false, 14
		return nil, io.ErrUnexpectedEOF // a broken connection
	default:
		trip.price = 14
		return reply(req, http.StatusServiceUnavailable, ""), nil
	}
}

func reply(req *http.Request, status int, body string) *http.Response {
	return &http.Response{
		StatusCode: status, Header: http.Header{}, Request: req,
		Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
	}
}

// tick is the unit of all times, so that many things happen at one moment.
const tick = 10 * time.Millisecond

// TestEveryTokenIsAccountedFor makes many calls that leave at random, before,
// during and between their attempts, and compares what is left in the budget with
// what the service saw.
func TestEveryTokenIsAccountedFor(t *testing.T) {
	const workers = 100
	calls := 100
	if testing.Short() || race.Enabled {
		calls = 10
	}
	inBothBehaviours(t, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			const begin = 500_000
			tokens := bucket(2*begin, begin)
			strategy := must(retry.NewAWSStandard(retry.AWSStandardConfig{
				MaxAttempts: 4, OverloadBase: 50 * time.Millisecond, Budget: tokens,
				Rand: func() float64 { return float64(rand.IntN(6)) / 5 },
			}))
			service := new(ledger)
			client := database(must(spillaws.New(spillaws.Config{Strategy: strategy, MaxAttempts: 4})), service)
			var lost, left atomic.Int64
			var wg sync.WaitGroup
			for worker := range workers {
				wg.Go(func() {
					if race.Enabled {
						// Timers that fire at one moment on two processors crash it (go.dev/issue/78156).
						time.Sleep(time.Duration(worker))
					}
					random := rand.New(rand.NewPCG(8, uint64(worker)))
					for range calls {
						trip := &trip{random: random}
						ctx, cancel := leaving(context.WithValue(t.Context(), tripKey{}, trip), random)
						err := get(ctx, client)
						cancel()
						if err != nil && trip.answered && statusOf(err) == 0 {
							lost.Add(1)
						}
						if errors.Is(err, context.Canceled) {
							left.Add(1)
						}
					}
				})
			}
			wg.Wait()
			if got, want := tokens.Stats(time.Now()).Tokens, float64(begin+service.balance.Load()); got != want {
				t.Errorf("%v tokens are left, the service knows of %v", got, want)
			}
			if n := lost.Load(); n > 0 {
				t.Errorf("%d calls lost what the service had answered", n)
			}
			stats := strategy.Stats(time.Now())
			if stats.UnsentTotal < workers || left.Load() < workers || stats.RetriesTotal-stats.UnsentTotal < workers {
				t.Errorf("only %d calls left, %d of them while they waited, of %d", left.Load(), stats.UnsentTotal, stats.RetriesTotal)
			}
			t.Logf("%d calls, %d left, %d retries, %d of them never sent", workers*calls, left.Load(), stats.RetriesTotal, stats.UnsentTotal)
		})
	})
}

// leaving returns a context that most likely ends early, in one way or another.
func leaving(ctx context.Context, random *rand.Rand) (context.Context, context.CancelFunc) {
	after := tick * time.Duration(random.IntN(40))
	switch random.IntN(4) {
	case 0:
		return context.WithTimeout(ctx, after)
	case 1:
		return context.WithCancel(ctx)
	default:
		ctx, cancel := context.WithCancel(ctx)
		time.AfterFunc(after, cancel)
		return ctx, cancel
	}
}
