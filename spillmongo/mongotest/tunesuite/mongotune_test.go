package tunesuite_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/seed90641741/spillway/spillmongo/mongotest"
	"github.com/seed90641741/spillway/spillmongo/mongotune"
	"github.com/seed90641741/spillway/tune"
)

var t0 = time.Unix(1_700_000_000, 0)

func connect(t *testing.T, d *mongotest.Deployment, app string) *mongo.Client {
	t.Helper()
	client, err := mongo.Connect(d.Options().SetAppName(app).SetRetryReads(false))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Disconnect(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return client
}

// deployment is a server that does not limit the connection that tunes it.
func deployment(t *testing.T) *mongotest.Deployment {
	return mongotest.Start(t, mongotest.Config{Topology: mongotest.Standalone, Parameters: bson.D{
		{Key: "ingressRequestRateLimiterApplicationExemptions", Value: bson.D{{Key: "appNames", Value: bson.A{"tuner"}}}},
	}})
}

// must returns the value of a call that must not fail.
func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func TestSet(t *testing.T) {
	d := deployment(t)
	for limit, row := range map[mongotune.Limit]struct{ enabled, rate string }{
		mongotune.Requests:    {"ingressRequestRateLimiterEnabled", "ingressRequestAdmissionRatePerSec"},
		mongotune.Connections: {"ingressConnectionEstablishmentRateLimiterEnabled", "ingressConnectionEstablishmentRatePerSec"},
	} {
		client := connect(t, d, "tuner")
		s := must(mongotune.New(t.Context(), mongotune.Config{Client: client, Limit: limit}))(t)
		if err := s.Set(t.Context(), 100); err == nil || !strings.Contains(err.Error(), row.enabled+" is false") {
			t.Errorf("a limiter that is off: %v", err)
		}
		s = must(mongotune.New(t.Context(), mongotune.Config{Client: client, Limit: limit, Enable: true}))(t)
		for rate, want := range map[float64]float64{123.4: 123, 0.2: 1, 1e12: math.MaxInt32} {
			if err := s.Set(t.Context(), rate); err != nil {
				t.Fatal(err)
			}
			is := must(s.Settings(t.Context()))(t)
			if is != (mongotune.Settings{Enabled: true, Rate: want, BurstSeconds: 1}) {
				t.Errorf("%s is set to %v: %+v", row.rate, rate, is)
			}
		}
		for _, bad := range []float64{0, -1, math.NaN()} {
			if err := s.Set(t.Context(), bad); err == nil {
				t.Errorf("set to %v", bad)
			}
		}
	}
}

func TestRead(t *testing.T) {
	d := deployment(t)
	tuner, user := connect(t, d, "tuner"), connect(t, d, "user")
	s := must(mongotune.New(t.Context(), mongotune.Config{Client: tuner, Enable: true}))(t)
	if err := s.Set(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	first := must(s.Read(t.Context(), t0))(t)
	if !math.IsNaN(first.Used) || !math.IsNaN(first.Latency) || first.Connections < 2 || first.Queued != 0 || first.Restarted {
		t.Errorf("first reading: %+v", first)
	}
	c := user.Database("x").Collection("y")
	rejected := 0
	for range 20 {
		if _, err := c.CountDocuments(t.Context(), bson.D{}); err != nil {
			rejected++
		}
	}
	r := must(s.Read(t.Context(), t0.Add(2*time.Second)))(t)
	if want := float64(20-rejected) / 2; r.Used != want || rejected == 0 || math.Abs(r.Rejected-float64(rejected)/20) > 1e-9 || !(r.Latency < 1000) {
		t.Errorf("%d of 20 rejected: %+v", rejected, r)
	}
	again := must(s.Read(t.Context(), t0.Add(2*time.Second)))(t)
	if !math.IsNaN(again.Used) {
		t.Errorf("no time has passed: %+v", again)
	}
}

// TestRestartedServer detects a restart by the start time in the server status. The reading after
// it compares nothing with the former process.
func TestRestartedServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := mongotest.Start(t, mongotest.Config{Pipes: true, Topology: mongotest.Standalone})
		s := must(mongotune.New(t.Context(), mongotune.Config{Client: connect(t, d, "tuner")}))(t)
		must(s.Read(t.Context(), time.Now()))(t)
		time.Sleep(time.Minute)
		if r := must(s.Read(t.Context(), time.Now()))(t); r.Restarted || math.IsNaN(r.Used) {
			t.Errorf("before: %+v", r)
		}
		d.Node(0).Stop()
		time.Sleep(time.Second)
		if err := d.Node(0).Restart(); err != nil {
			t.Fatal(err)
		}
		r, err := s.Read(t.Context(), time.Now())
		for tries := 0; err != nil && tries < 10; tries++ { // over connections to the former process
			time.Sleep(time.Second)
			r, err = s.Read(t.Context(), time.Now())
		}
		if err != nil || !r.Restarted || !math.IsNaN(r.Used) {
			t.Errorf("%+v, %v", r, err)
		}
		time.Sleep(time.Second)
		if r := must(s.Read(t.Context(), time.Now()))(t); r.Restarted || math.IsNaN(r.Used) {
			t.Errorf("afterwards: %+v", r)
		}
	})
}

// TestOlderServer: a server without the parameters answers that an option is invalid.
func TestOlderServer(t *testing.T) {
	d := deployment(t)
	s := must(mongotune.New(t.Context(), mongotune.Config{Client: connect(t, d, "tuner")}))(t)
	if _, err := d.Node(0).RunCommand("admin", bson.D{
		{Key: "configureFailPoint", Value: "failCommand"}, {Key: "mode", Value: "alwaysOn"},
		{Key: "data", Value: bson.D{{Key: "failCommands", Value: bson.A{"getParameter", "setParameter"}}, {Key: "errorCode", Value: 72}}}, // InvalidOptions
	}); err != nil {
		t.Fatal(err)
	}
	_, err := s.Settings(t.Context())
	if !errors.Is(err, mongotune.ErrUnsupported) || !strings.Contains(err.Error(), "version 8.2.0 has no parameter ingressRequestAdmissionRatePerSec") {
		t.Errorf("error %v", err)
	}
	if err := s.Set(t.Context(), 10); !errors.Is(err, mongotune.ErrUnsupported) {
		t.Errorf("Set: %v", err)
	}
}

func TestWrongConfig(t *testing.T) {
	d := deployment(t)
	client := connect(t, d, "tuner")
	for _, row := range []struct {
		config mongotune.Config
		want   string
	}{
		{mongotune.Config{}, "Client is nil"},
		{mongotune.Config{Client: client, Limit: 7}, "Limit is 7"},
		{mongotune.Config{Client: client, BurstSeconds: -1}, "BurstSeconds is -1"},
		{mongotune.Config{Client: client, BurstSeconds: math.NaN()}, "BurstSeconds is NaN"},
	} {
		if _, err := mongotune.New(t.Context(), row.config); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("error %v, want %q", err, row.want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := mongotune.New(ctx, mongotune.Config{Client: client}); !errors.Is(err, context.Canceled) {
		t.Errorf("without time: %v", err)
	}
}

// TestServerFollows makes a server slow and quick again. Its limit follows, in simulated time,
// and each change is in force when it is reported.
func TestServerFollows(t *testing.T) {
	d := deployment(t)
	s := must(mongotune.New(t.Context(), mongotune.Config{Client: connect(t, d, "tuner"), Enable: true}))(t)
	engine := must(tune.New(tune.Config{
		Limit: 1000, Persist: -1, Enforce: true,
		Signals: []tune.Signal{{Name: "latency", Unit: "ms", Target: 10}},
	}))(t)
	if err := s.Set(t.Context(), engine.Limit()); err != nil {
		t.Fatal(err)
	}
	user := connect(t, d, "user").Database("x").Collection("y")
	now := t0
	rounds := func(n int) {
		for range n {
			for range 3 {
				_, _ = user.CountDocuments(t.Context(), bson.D{}) // what is rejected is counted too
			}
			now = now.Add(time.Second)
			r := must(s.Read(t.Context(), now))(t)
			m, ok := engine.Read(now, math.Max(r.Used, engine.Limit()), r.Latency) // as if the limit were used
			if !ok {
				continue
			}
			if err := s.Set(t.Context(), m.To); err != nil {
				t.Fatal(err)
			}
			if is := must(s.Settings(t.Context()))(t); is.Rate != math.Round(m.To) {
				t.Errorf("%v, but the server has %+v", m, is)
			}
		}
	}
	slow := func(mode any) {
		if _, err := d.Node(0).RunCommand("admin", bson.D{
			{Key: "configureFailPoint", Value: "failCommand"}, {Key: "mode", Value: mode},
			{Key: "data", Value: bson.D{{Key: "failCommands", Value: bson.A{"aggregate"}}, {Key: "blockConnection", Value: true}, {Key: "blockTimeMS", Value: 40}}},
		}); err != nil {
			t.Fatal(err)
		}
	}
	rounds(1)
	slow("alwaysOn")
	rounds(6)
	low := engine.Limit()
	slow("off")
	rounds(6)
	if high := engine.Limit(); low > 800 || high <= low {
		t.Errorf("slow: %v, quick again: %v\n%s", low, high, fmt.Sprint(engine.Stats(now).Moves))
	}
}
