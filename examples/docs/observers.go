package docs

import (
	"context"
	"log"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"

	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/spilladmin"
	"github.com/seed90641741/spillway/spillhttp"
	"github.com/seed90641741/spillway/spillotel"
	"github.com/seed90641741/spillway/spillprom"
	"github.com/seed90641741/spillway/spillslog"
)

func prom(mux *http.ServeMux) (*ingress.Server, *spillhttp.Transport, error) {
	metrics, err := spillprom.New(spillprom.Config{})
	if err != nil {
		return nil, nil, err
	}
	prometheus.MustRegister(metrics)
	mux.Handle("/metrics", promhttp.Handler())

	server, err := ingress.New(ingress.Config{Observer: metrics}) // decisions of the server
	if err != nil {
		return nil, nil, err
	}
	metrics.AddServer("main", server) // its levels
	client, err := spillhttp.NewTransport(spillhttp.TransportConfig{Egress: egress.Config{Observer: metrics}})
	if err != nil {
		return nil, nil, err
	}
	metrics.AddClient(client)
	return server, client, nil
}

func operatorsPage() (*ingress.Server, *spillhttp.Transport, error) {
	page, err := spilladmin.New(spilladmin.Config{})
	if err != nil {
		return nil, nil, err
	}
	gates, err := ingress.New(ingress.Config{Observer: page})
	if err != nil {
		return nil, nil, err
	}
	page.AddServer("shop", gates)
	transport, err := spillhttp.NewTransport(spillhttp.TransportConfig{Egress: egress.Config{Observer: page}})
	if err != nil {
		return nil, nil, err
	}
	page.AddClient(transport)
	operators := &http.Server{Addr: "127.0.0.1:8001", Handler: page, ReadHeaderTimeout: 5 * time.Second}
	go func() { log.Print(operators.ListenAndServe()) }()
	return gates, transport, nil
}

func telemetry() (*spillotel.Observer, *ingress.Server, *spillhttp.Transport, error) {
	observer, err := spillotel.New(spillotel.Config{}) // uses the global MeterProvider
	if err != nil {
		return nil, nil, nil, err
	}
	server, err := ingress.New(ingress.Config{Observer: observer})
	if err != nil {
		return nil, nil, nil, err
	}
	observer.AddServer("main", server)
	client, err := spillhttp.NewTransport(spillhttp.TransportConfig{Egress: egress.Config{Observer: observer}})
	if err != nil {
		return nil, nil, nil, err
	}
	observer.AddClient(client)

	otel.SetTextMapPropagator(propagation.NewCompositeTextMapPropagator(
		propagation.TraceContext{}, spillotel.Propagator{})) // in place of propagation.Baggage{}
	return observer, server, client, nil
}

type requestIDKey struct{}

func logs() (*ingress.Server, error) {
	logs, err := spillslog.New(spillslog.Config{
		RequestID: func(ctx context.Context) string {
			id, _ := ctx.Value(requestIDKey{}).(string)
			return id
		},
	})
	if err != nil {
		return nil, err
	}
	return ingress.New(ingress.Config{Observer: logs})
}
