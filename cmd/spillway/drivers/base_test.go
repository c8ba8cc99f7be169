package drivers

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/mongoproxy"
	"github.com/seed90641741/spillway/spillmongo/mongotest"
)

// A setup is a deployment with a proxy in front of it.
type setup struct {
	*testing.T

	backend *mongotest.Deployment
	proxy   *mongoproxy.Proxy
	config  *config.Config
}

// start starts both. The listener is called "m"; change may change its settings.
func start(t *testing.T, backend mongotest.Config, change func(*config.Mongo)) *setup {
	t.Helper()
	s := &setup{T: t, backend: mongotest.Start(t, backend)}
	m := config.Mongo{Name: "m", Address: "127.0.0.1:0"}
	for i := range max(1, backend.Nodes) {
		m.Endpoints = append(m.Endpoints, s.backend.Node(i).Addr())
	}
	if change != nil {
		change(&m)
	}
	s.config = &config.Config{Mode: "enforce", Mongo: []config.Mongo{m}}
	s.proxy = mongoproxy.New(context.Background(), mongoproxy.Config{Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})
	s.update()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := s.proxy.Drain(ctx); err != nil {
			t.Error("draining:", err)
		}
	})
	return s
}

// update puts the configuration in place.
func (s *setup) update() {
	s.Helper()
	if err := s.config.Check(); err != nil {
		s.Fatal(err)
	}
	change, err := s.proxy.Prepare(s.config.Defaulted())
	if err != nil {
		s.Fatal(err)
	}
	change.Commit()
}

func (s *setup) addr() string { return s.proxy.Addr("m").String() }

// stats returns the statistics of the listener.
func (s *setup) stats() mongoproxy.Stats { return s.proxy.Stats(time.Now())[0] }

// client is one of today's driver, through the proxy.
func (s *setup) client(change ...func(*options.ClientOptions)) *mongo.Client {
	s.Helper()
	o := options.Client().ApplyURI(fmt.Sprintf("mongodb://%s/?serverSelectionTimeoutMS=3000", s.addr()))
	for _, f := range change {
		f(o)
	}
	c, err := mongo.Connect(o)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = c.Disconnect(context.Background()) })
	return c
}
