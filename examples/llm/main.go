// Llm protects a language model: answers are streams of 30 s, the first byte comes after one, and what an answer costs is known at
// its end, in tokens. The model is simulated.
//
//	go run ./llm &
//	curl -N -X POST -H 'X-Customer: mail' http://127.0.0.1:8080/generate
//	curl -N -X POST -H 'X-Request-Criticality: SHEDDABLE' http://127.0.0.1:8080/generate
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/concurrency"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/quota"
	"github.com/seed90641741/spillway/shed"
	"github.com/seed90641741/spillway/spillhttp"
)

func main() {
	address := flag.String("listen", "127.0.0.1:8080", "address of the server")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	listener, err := net.Listen("tcp", *address)
	if err != nil {
		log.Fatal(err)
	}
	log.Print("listening on ", listener.Addr())
	if err := serve(ctx, listener); err != nil {
		log.Fatal(err)
	}
}

// serve serves until ctx ends.
func serve(ctx context.Context, listener net.Listener) error {
	handler, gates, err := protected(newModel(slots))
	if err != nil {
		return err
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	drained := make(chan error, 1)
	context.AfterFunc(ctx, func() { drained <- server.Shutdown(context.Background()) })
	if err := handler.Serve(server, listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return errors.Join(<-drained, gates.Close()) // the last stream has ended
}

const (
	slots    = 32  // answers that the model generates at once
	estimate = 300 // tokens of a usual answer
)

// protected returns the service in front of a model.
func protected(m *model) (*spillhttp.Handler, *ingress.Server, error) {
	tokens, err := quota.NewLocal(quota.LocalConfig{
		Customers:    map[string]quota.Limit{"mail": {Rate: 200}}, // tokens per second
		DefaultLimit: quota.Limit{Rate: 50},
	})
	if err != nil {
		return nil, nil, err
	}
	gates, err := ingress.New(ingress.Config{
		// A request costs the estimate when it is admitted; at the end it is charged what it has cost beyond that.
		Quota: quota.Config{Allocator: tokens, Cost: estimate, BurstSeconds: 60},
		// How many answers the model generates at once is known. So nothing has to be learned, also not by a process
		// that starts into an overload. The others wait here, the most critical first, and not in the model.
		Concurrency: concurrency.Config{Fixed: true, MaxInFlight: cap(m.slots)},
		Shed:        shed.Config{MaxWait: 5 * time.Second},
		ProxyOnly:   true, // the work is done by the model, and not by the processors of this process
	})
	if err != nil {
		return nil, nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /generate", m.generate)
	handler, err := spillhttp.NewHandler(mux, spillhttp.HandlerConfig{Ingress: gates, Classify: classify})
	return handler, gates, err
}

// classify says whose request it is. Take the customer from what you have verified, such as a
// token or a certificate: any client can send this header.
func classify(r *http.Request) spillway.Call {
	return spillway.Call{Customer: r.Header.Get("X-Customer")}
}

// A model generates as many answers at once as it has slots.
type model struct{ slots chan struct{} }

func newModel(slots int) *model { return &model{make(chan struct{}, slots)} }

// generate sends the tokens of an answer as they come. A client that leaves ends it: its slot is free at once, and
// its customer pays for what was generated.
func (m *model) generate(w http.ResponseWriter, r *http.Request) {
	ctx, used := r.Context(), 0
	defer func() { spillhttp.Charge(ctx, float64(used-estimate)) }()
	most, err := strconv.Atoi(cmp.Or(r.FormValue("max_tokens"), "300"))
	if err != nil {
		http.Error(w, "max_tokens: "+err.Error(), http.StatusBadRequest)
		return
	}
	select {
	case m.slots <- struct{}{}:
		defer func() { <-m.slots }()
	case <-ctx.Done():
		return
	}
	flush := http.NewResponseController(w)
	for used < most {
		select {
		case <-time.After(time.Second): // to read the prompt, and then for each ten tokens
		case <-ctx.Done():
			return
		}
		used = min(used+10, most)
		fmt.Fprintln(w, used, "tokens")
		if flush.Flush() != nil {
			return
		}
	}
}
