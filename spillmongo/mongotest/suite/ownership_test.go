package suite_test

import (
	"context"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/description"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/topology"

	"github.com/seed90641741/spillway/spillmongo"
	"github.com/seed90641741/spillway/spillmongo/mongotest"
)

// Documents and the memory of commands are the driver's and the caller's again when an operation has returned, also if the caller has left
// between or during attempts. Each command that the server receives is of one piece.
func TestDocumentsAreTheCallersAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var received, torn, calls atomic.Int64
		mc := pipes
		mc.Observe = func(c mongotest.Command) {
			if c.Name != "find" {
				return
			}
			received.Add(1)
			text, _ := c.Body.Lookup("filter", "text").StringValueOK()
			if text == "" || strings.Trim(text, text[:1]) != "" {
				torn.Add(1)
			}
		}
		r := setUp(t, mc, spillmongo.Config{Rand: fixed(0.1)}, func(o *options.ClientOptions) { o.SetMonitor(nil) })
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				text := make([]byte, 200+100*i)
				for n := range 50 {
					for j := range text {
						text[j] = byte('a' + (i+n)%26)
					}
					doc, err := bson.Marshal(bson.D{{Key: "text", Value: string(text)}})
					if err != nil {
						t.Error(err)
						return
					}
					if calls.Add(1)%3 == 0 {
						r.fail(0, times(2), overload("find"))
					}
					ctx, leave := context.WithTimeout(t.Context(), time.Duration(1+n%7)*5*time.Millisecond)
					_, _ = r.coll.Find(ctx, bson.Raw(doc))
					leave()
					copy(doc[len(doc)/2:], "????????") // it is the caller's again
				}
			})
		}
		all.Wait()
		if received.Load() < 300 || torn.Load() > 0 {
			t.Errorf("%d of %d commands are torn", torn.Load(), received.Load())
		}
	})
}

// everyServer selects all.
type everyServer struct{}

func (everyServer) SelectServer(_ description.Topology, all []description.Server) ([]description.Server, error) {
	return all, nil
}

// What a Retrier puts in place of the driver's has each optional interface that the driver looks for there (client.go and operation.go).
func TestOptionalInterfaces(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := setUp(t, pipes, spillmongo.Config{})
		if err := r.client.Ping(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		deployment := r.retrier.ClientOptions().Deployment //nolint:staticcheck // the driver marks it, as what is below x/
		server, err := deployment.SelectServer(t.Context(), everyServer{})
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range []struct{ wanted, bare, ours reflect.Type }{
			{reflect.TypeFor[driver.Connector](), reflect.TypeFor[*topology.Topology](), reflect.TypeOf(deployment)},
			{reflect.TypeFor[driver.Disconnector](), reflect.TypeFor[*topology.Topology](), reflect.TypeOf(deployment)},
			{reflect.TypeFor[driver.Subscriber](), reflect.TypeFor[*topology.Topology](), reflect.TypeOf(deployment)},
			{reflect.TypeFor[driver.ErrorProcessor](), reflect.TypeFor[*topology.SelectedServer](), reflect.TypeOf(server)},
		} {
			if bare, ours := row.bare.Implements(row.wanted), row.ours.Implements(row.wanted); !bare || !ours {
				t.Errorf("%v is a %v: %v, %v is: %v", row.ours, row.wanted, ours, row.bare, bare)
			}
		}
	})
}

// Cursors that nobody reads take no connection and no place in the queue: others are served at once, as with the driver alone.
func TestIdleCursors(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := setUp(t, pipes, spillmongo.Config{}, onePooled)
		r.insertSome()
		for range 10 {
			cur, err := r.coll.Find(t.Context(), bson.D{}, options.Find().SetBatchSize(2))
			if err != nil {
				t.Fatal(err)
			}
			defer cur.Close(t.Context())
		}
		time.Sleep(time.Minute)
		begun := time.Now()
		if _, err := r.coll.InsertOne(t.Context(), bson.D{}); err != nil || time.Since(begun) > 0 {
			t.Errorf("%v after %v", err, time.Since(begun))
		}
	})
}
