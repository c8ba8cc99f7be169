package httpproxy

import (
	"context"
	"net/http"
	"testing"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
)

// TestServicesLearnTheDegradation: a service gets the level of the proxy. What a client says of it counts only at an internal boundary,
// where it is the level of the proxy before, and only if it is higher.
func TestServicesLearnTheDegradation(t *testing.T) {
	quiet(t)
	const name = "X-Request-Degradation"
	for _, row := range []struct {
		own            spillway.DegradationLevel
		boundary, came string
		want           string
	}{
		{spillway.DegradationNone, "edge", "", ""},
		{spillway.DegradationNone, "edge", "high", ""},
		{spillway.DegradationMedium, "edge", "", "medium"},
		{spillway.DegradationLow, "edge", "high", "low"},
		{spillway.DegradationNone, "internal", "high", "high"},
		{spillway.DegradationHigh, "internal", "low", "high"},
		{spillway.DegradationNone, "internal", "HUGE", ""},
		{spillway.DegradationNone, "internal", "none", ""},
	} {
		got := make(chan []string, 1)
		address, _ := upstreamAt(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got <- r.Header[name] }))
		c := config.ForUpstream("127.0.0.1:0", address)
		if c.Listeners[0].Boundary = row.boundary; row.boundary == "internal" {
			c.Listeners[0].Peers = []string{"127.0.0.0/8"}
		}
		p, err := Start(spillway.WithDegradation(context.Background(), row.own), c, Config{}) // as the gate has it for an admitted request
		if err != nil {
			t.Fatal(err)
		}
		var came []string
		if row.came != "" {
			came = []string{name, row.came}
		}
		do(t, client(t, false), http.MethodGet, "http://"+p.Addr("").String(), "", came...)
		var want []string
		if row.want != "" {
			want = []string{row.want}
		}
		if values := <-got; len(values) != len(want) || len(want) > 0 && values[0] != want[0] {
			t.Errorf("%+v: the service gets %q", row, values)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
}
