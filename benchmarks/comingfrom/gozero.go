package comingfrom

import (
	"net/http"

	"github.com/zeromicro/go-zero/core/load"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/spillhttp"
)

func beforeShedder(next http.Handler) http.Handler {
	shedder := load.NewAdaptiveShedder(load.WithCpuThreshold(900))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		promise, err := shedder.Allow()
		if err != nil {
			http.Error(w, "overloaded", http.StatusServiceUnavailable)
			return
		}
		defer promise.Pass()
		next.ServeHTTP(w, r)
	})
}

func afterShedder(next http.Handler) (*spillhttp.Handler, error) {
	return spillhttp.NewHandler(next, spillhttp.HandlerConfig{
		HealthPaths: []string{"/healthz"},
		Classify: func(r *http.Request) (c spillway.Call) {
			if r.URL.Path == "/report" {
				c.Criticality = spillway.Sheddable
			}
			return c
		},
	})
}
