//go:build thorough

package queue

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/ingress"
)

// broker starts a NATS server with a stream, and returns a consumer of it.
func broker(t *testing.T) (jetstream.JetStream, jetstream.Consumer) {
	t.Helper()
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: t.TempDir(), NoLog: true, NoSigs: true})
	if err != nil {
		t.Fatal(err)
	}
	go s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(30 * time.Second) {
		t.Fatal("the broker does not start")
	}
	conn, err := nats.Connect(s.ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "jobs", Subjects: []string{"jobs.>"}})
	if err != nil {
		t.Fatal(err)
	}
	consumer, err := stream.CreateConsumer(t.Context(), jetstream.ConsumerConfig{AckPolicy: jetstream.AckExplicitPolicy, MaxAckPending: 16})
	if err != nil {
		t.Fatal(err)
	}
	return js, consumer
}

// Messages pass the gates: no more are handled at once than MaxInFlight, rejected and failed ones are delivered again, and each is
// handled in the class that its publisher has set.
func TestNATS(t *testing.T) {
	js, consumer := broker(t)
	rejected := make(chan struct{}, 1000)
	gates := newServer(t, ingress.Config{MaxInFlight: 1, RetryAfter: 20 * time.Millisecond, Observer: spillway.ObserverFunc(func(e spillway.Event) {
		if e.Rejected {
			rejected <- struct{}{}
		}
	})})
	for _, text := range []string{"a", "b", "c", "d", "e"} {
		m := nats.NewMsg("jobs." + text)
		m.Header.Set("X-Request-Criticality", "SHEDDABLE_PLUS")
		if _, err := js.PublishMsg(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	var mu sync.Mutex
	var now, most, runs int
	left := map[string]bool{"jobs.a": true, "jobs.b": true, "jobs.c": true, "jobs.d": true, "jobs.e": true}
	broken, all := errors.New("broken"), make(chan struct{})
	running, err := consumer.Consume(Handler(t.Context(), gates, func(ctx context.Context, m jetstream.Msg) error {
		if class := spillway.CriticalityFrom(ctx); class != spillway.SheddablePlus {
			t.Errorf("class %v", class)
		}
		mu.Lock()
		runs, now, most = runs+1, now+1, max(most, now+1)
		first := runs == 1
		mu.Unlock()
		if first {
			<-rejected // the others are
		}
		mu.Lock()
		defer mu.Unlock()
		if now--; first {
			return broken
		}
		if delete(left, m.Subject()); len(left) == 0 {
			close(all)
		}
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	defer running.Stop()
	select {
	case <-all:
	case <-time.After(30 * time.Second):
		t.Fatalf("not handled: %v", left)
	}
	if mu.Lock(); most != 1 || runs != 6 {
		t.Errorf("at most %d at once, %d runs; want 1 and 6", most, runs)
	}
	mu.Unlock()
	for {
		info, err := consumer.Info(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if info.NumAckPending == 0 && info.NumPending == 0 {
			return // else the last acknowledgment is still on its way
		}
	}
}
