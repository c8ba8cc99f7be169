package clients

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/quota"
)

// TestBill replays the life of connections.
func TestBill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		local, err := quota.NewLocal(quota.LocalConfig{DefaultLimit: quota.Limit{Rate: 1}})
		if err != nil {
			t.Fatal(err)
		}
		server, err := ingress.New(ingress.Config{Quota: quota.Config{Allocator: local, BurstSeconds: 3600}})
		if err != nil {
			t.Fatal(err)
		}
		defer server.Close()
		paid := func(customer string) float64 {
			for _, s := range server.Stats(time.Now()).Quota {
				if s.Customer == customer {
					return s.Debt * 3600
				}
			}
			return 0
		}
		h := house{New(100, 0), t}
		h.SetCosts(100, 10)
		silent, c := h.connect("192.0.2.1"), h.connect("192.0.2.2")
		time.Sleep(time.Second) // 10, until the first request
		x := h.ask(c, 0)
		r := httptest.NewRequestWithContext(context.WithValue(t.Context(), clientKey{}, c), http.MethodGet, "/", nil)
		Charge(r, server, "a")
		Charge(r, server, "a")
		if got := paid("a"); got != 110 {
			t.Errorf("the first request costs %v, want 110", got)
		}
		y := h.ask(c, 0)
		time.Sleep(100 * time.Second) // at work; 100 are paid
		h.End(x)
		time.Sleep(10 * time.Second)
		h.End(y)
		time.Sleep(time.Second)
		if got := paid("a"); got != 0 {
			t.Errorf("%v left, want 0: a connection with a request is not idle", got)
		}
		h.State(c.conn, http.StateClosed)
		h.State(silent.conn, http.StateClosed)
		if got := paid("a"); got != 10 {
			t.Errorf("an idle second costs %v, want 10", got)
		}
		if n := len(server.Stats(time.Now()).Quota); n != 2 {
			t.Errorf("%d customers were charged, want one: that of a silent connection is unknown", n-1)
		}
	})
}
