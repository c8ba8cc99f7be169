package drill

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProbe(tripAs(func(*http.Request) (*http.Response, error) {
			time.Sleep(400 * ms)
			return answer(http.StatusOK), nil
		}), 1100*ms)
		p.start = time.Now()
		level := 1.0
		p.look = func() float64 {
			level -= 0.01
			return level
		}
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { p.sample(ctx) })
		for _, attempts := range []int{1, 3} { // one call of one attempt, one of three
			wg.Go(func() {
				req, _ := http.NewRequestWithContext(withRecord(ctx, new(record)), http.MethodGet, "http://127.0.0.1/", nil)
				for range attempts {
					if resp, err := p.RoundTrip(req); err == nil {
						_ = resp.Body.Close()
					}
				}
			})
		}
		time.Sleep(2 * time.Second)
		cancel()
		wg.Wait()

		s := series(nil, p, 7, 2*time.Second)
		for _, row := range []struct {
			name      string
			got, want []int
		}{
			{"attempts", s.Attempts, []int{2, 1, 0, 1, 0}},
			{"retries", s.Retries, []int{0, 1, 0, 1, 0}},
			{"in flight", s.InFlight, []int{2, 2, 1, 1, 1}},
			{"limit", s.Limit, []int{7, 7, 7, 7, 7}},
		} {
			if !slices.Equal(row.got, row.want) {
				t.Errorf("%s %v, want %v", row.name, row.got, row.want)
			}
		}
		if !slices.IsSortedFunc(s.Budget, func(a, b float64) int { return int(1000 * (b - a)) }) || len(s.Budget) != 5 {
			t.Errorf("budget %v, want 5 falling levels", s.Budget)
		}
	})
}
