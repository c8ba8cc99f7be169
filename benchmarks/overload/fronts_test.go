package main

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/failsafe-go/failsafe-go/adaptivelimiter"
	"github.com/failsafe-go/failsafe-go/failsafehttp"
	"github.com/go-kratos/aegis/ratelimit/bbr"
	zeroload "github.com/zeromicro/go-zero/core/load"
	"github.com/zeromicro/go-zero/core/logx"
)

// A room is a handler whose calls stay until it is opened, but for the quick ones.
type room struct {
	entered chan struct{}
	open    chan struct{}
}

func (h *room) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/quick" {
		return
	}
	h.entered <- struct{}{}
	<-h.open
	w.WriteHeader(http.StatusOK)
}

func ask(h http.Handler, path string) int {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, http.NoBody))
	return w.Code
}

// Each front lets calls through while there are few, rejects one when there are
// many, and forgets calls that have ended. Two wait until the CPU is busy, and see
// that it is.
func TestFrontsReject(t *testing.T) {
	logx.Disable()
	for _, row := range []struct {
		name   string
		inside int // how many calls are inside when it rejects
		status int
		front  func(http.Handler) http.Handler
	}{
		{"static", 3, http.StatusServiceUnavailable, func(next http.Handler) http.Handler { return limited(3, next) }},
		{"failsafe-go", 20, http.StatusTooManyRequests, func(next http.Handler) http.Handler {
			return failsafehttp.NewHandler(next, adaptivelimiter.NewWithDefaults[*http.Response]())
		}},
		{"go-zero", 100, http.StatusServiceUnavailable, func(next http.Handler) http.Handler {
			return shedding(zeroload.NewAdaptiveShedder(zeroload.WithCpuThreshold(0)), next)
		}},
		{"aegis", 2, http.StatusServiceUnavailable, func(next http.Handler) http.Handler {
			return limiting(bbr.NewLimiter(bbr.WithCPUThreshold(0)), next)
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			inside := &room{make(chan struct{}), make(chan struct{})}
			h := row.front(inside)
			var wg sync.WaitGroup
			for range row.inside {
				wg.Go(func() {
					if status := ask(h, "/"); status != http.StatusOK {
						t.Errorf("status %d", status)
					}
				})
				<-inside.entered
			}
			if row.name == "go-zero" { // looks at an average, which only the end of a call changes
				for range 20 {
					_ = ask(h, "/quick")
				}
			}
			if status := ask(h, "/quick"); status != row.status {
				t.Errorf("status %d with %d calls inside, want %d", status, row.inside, row.status)
			}
			close(inside.open)
			wg.Wait()
			if status := ask(h, "/quick"); status != http.StatusOK {
				t.Errorf("status %d with no call inside", status)
			}
		})
	}
}

func TestEachFrontHasAName(t *testing.T) {
	for i := range fronts {
		if f, ok := frontNamed(fronts[i].name); !ok || f.name != fronts[i].name {
			t.Errorf("%q is not found", fronts[i].name)
		}
	}
	if _, ok := frontNamed("nonesuch"); ok {
		t.Error("found what is none")
	}
}
