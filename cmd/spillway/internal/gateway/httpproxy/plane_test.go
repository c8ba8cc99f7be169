package httpproxy

import (
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/upstream"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/inflight"
)

// planes are control planes of a test, and what happened to them.
type planes struct{ all []*plane }

type plane struct {
	address string
	open    int // limits that are not closed
	closed  int
}

// limits are the limits of a cluster.
type limits struct {
	*plane

	limiter *inflight.Limiter
	once    bool
}

func (p *planes) connect(x *config.XDS, _ *slog.Logger) (upstream.ControlPlane, error) {
	one := &plane{address: x.Address}
	p.all = append(p.all, one)
	return one, nil
}

func (p *plane) Limits(x config.ClusterXDS) (upstream.Limits, error) {
	if x.Cluster == "bad" {
		return nil, errors.New("a bad name")
	}
	l, err := inflight.New(inflight.Config{MaxInFlight: len(x.Cluster)})
	p.open++
	return &limits{plane: p, limiter: l}, err
}

func (p *plane) Close() error {
	p.closed++
	if p.open != 0 {
		return errors.New("limits are in use")
	}
	return nil
}

func (l *limits) RoundTripper(base http.RoundTripper) http.RoundTripper { return base }
func (l *limits) Egress(c egress.Config) egress.Config {
	c.InFlight = l.limiter
	return c
}

func (l *limits) Close() {
	if !l.once {
		l.once = true
		l.open--
	}
}

// TestControlPlaneComesAndGoes: it is connected with the configuration or not at all, kept
// while it is the same, and closed after the last cluster has stopped using it.
func TestControlPlaneComesAndGoes(t *testing.T) {
	quiet(t)
	var log strings.Builder
	var made planes
	c := config.ForUpstream("127.0.0.1:0", "127.0.0.1:9")
	c.Listeners[0].Name = "main"
	p, err := Start(t.Context(), c, Config{Connect: made.connect, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	limit := func() int { return p.Stats(time.Now()).Clusters["upstream"].Egress.InFlight.MaxInFlight }
	update := func(address, name string, mode config.Mode) error {
		d := *c
		d.Mode, d.Clusters = mode, slices.Clone(c.Clusters)
		d.XDS = &config.XDS{Address: address, Node: config.Node{ID: "a"}}
		d.Clusters[0].XDS = &config.ClusterXDS{Cluster: name}
		d.Clusters[0].Tune = &config.Tune{Latency: time.Second, Limit: config.TuneRate}
		d.Clusters[0].RateLimit.Rate = 1000
		return p.Update(&d)
	}
	for _, step := range []struct {
		address, name string
		mode          config.Mode
		err           string
		planes, limit int
	}{
		{"127.0.0.1:1", "bad", "", "cluster upstream: a bad name", 1, inflight.DefaultMaxInFlight},
		{"127.0.0.1:1", "four", "", "", 2, 4},
		{"127.0.0.1:1", "", "enforce", "", 2, len("upstream")},
		{"127.0.0.1:1", "bad", "", "a bad name", 2, len("upstream")},
		{"127.0.0.1:2", "bad", "", "a bad name", 3, len("upstream")},
		{"127.0.0.1:2", "three", "", "", 4, 5},
	} {
		err := update(step.address, step.name, step.mode)
		if (err == nil) != (step.err == "") || err != nil && !strings.Contains(err.Error(), step.err) {
			t.Errorf("%+v: %v", step, err)
		}
		if got := limit(); len(made.all) != step.planes || got != step.limit {
			t.Errorf("%+v: %d planes, limit %d", step, len(made.all), got)
		}
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	for i, one := range made.all {
		if one.closed != 1 || one.open != 0 {
			t.Errorf("control plane %d: closed %d times, with %d limits in use", i, one.closed, one.open)
		}
	}
	if strings.Contains(log.String(), "leaving the control plane") {
		t.Errorf("left too soon:\n%s", log.String())
	}
}

func TestControlPlaneThatNobodyCanConnectTo(t *testing.T) {
	quiet(t)
	c := config.ForUpstream("127.0.0.1:0", "127.0.0.1:9")
	c.XDS = &config.XDS{Address: "127.0.0.1:1", Node: config.Node{ID: "a"}}
	if p, err := Start(t.Context(), c, Config{}); !errors.Is(err, errNoPlane) {
		t.Errorf("started: %v", err)
		p.Close()
	}
}
