package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/spillgrpc"
	"github.com/seed90641741/spillway/spillhttp"
)

// A front is a task of the front service: for each request it calls the back service so many times.
type front struct {
	call   func(context.Context) error
	calls  int
	atOnce bool
	closes []func()
}

// startFront starts a front that calls the back service at some addresses, and returns its own.
func (t *trial) startFront(wire string, backs []string) (f *front, addr string, err error) {
	f = &front{calls: t.calls, atOnce: t.way == atOnce}
	if wire == overGRPC {
		err = f.dialGRPC(backs)
	} else {
		err = f.dialHTTP(backs)
	}
	if err != nil {
		return nil, "", err
	}
	c := inside
	c.ShedMode = spillway.ModeOff // it has no work of its own
	gates, err := ingress.New(c)
	if err != nil {
		return nil, "", err
	}
	h, err := spillhttp.NewHandler(f, spillhttp.HandlerConfig{Ingress: gates})
	if err != nil {
		return nil, "", err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", err
	}
	s, served := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}, make(chan struct{})
	go func() {
		defer close(served)
		_ = s.Serve(l) // until it is closed
	}()
	f.closes = append(f.closes, func() {
		_ = s.Close() // its connections are done with
		<-served
		_ = gates.Close() // likewise
	})
	return f, l.Addr().String(), nil
}

func (f *front) close() {
	for i := range f.closes {
		f.closes[len(f.closes)-1-i]()
	}
}

// ServeHTTP does a task.
func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := f.task(r.Context()); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

// task makes the calls of a task. With the first that fails the others are given up.
func (f *front) task(ctx context.Context) error {
	if !f.atOnce {
		for range f.calls {
			if err := f.call(ctx); err != nil {
				return err
			}
		}
		return nil
	}
	all, ctx := errgroup.WithContext(ctx)
	for range f.calls {
		all.Go(func() error { return f.call(ctx) })
	}
	return all.Wait()
}

func (f *front) dialHTTP(backs []string) error {
	client, closes, err := newClient(backs)
	if err != nil {
		return err
	}
	f.closes = append(f.closes, closes)
	f.call = func(ctx context.Context) error { return get(ctx, client) }
	return nil
}

func (f *front) dialGRPC(backs []string) error {
	policies, err := spillgrpc.NewClient(spillgrpc.ClientConfig{
		Classify: func(context.Context, string) spillway.Call { return spillway.Call{Kind: spillway.KindRead} },
	})
	if err != nil {
		return err
	}
	tasks := manual.NewBuilderWithScheme("tasks")
	var state resolver.State
	for _, addr := range backs {
		state.Addresses = append(state.Addresses, resolver.Address{Addr: addr})
	}
	tasks.InitialState(state)
	cc, err := grpc.NewClient("tasks:///back", append(policies.DialOptions(), grpc.WithResolvers(tasks),
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultServiceConfig(`{"loadBalancingConfig":[{"round_robin":{}}]}`))...)
	if err != nil {
		return err
	}
	f.closes = append(f.closes, func() { _ = cc.Close() }) // nothing is under way
	f.call = func(ctx context.Context) error {
		return cc.Invoke(ctx, "/"+grpcService+"/"+grpcMethod, new(emptypb.Empty), new(emptypb.Empty))
	}
	return nil
}

// A spread sends the attempts to one address after the other.
type spread struct {
	*http.Transport

	addrs []string
	turn  atomic.Uint32
}

// RoundTrip implements [http.RoundTripper].
func (s *spread) RoundTrip(r *http.Request) (*http.Response, error) {
	to, u := *r, *r.URL
	u.Host = s.addrs[int(s.turn.Add(1))%len(s.addrs)]
	to.URL = &u
	return s.Transport.RoundTrip(&to)
}

// newClient returns a client of a service, and what closes it.
func newClient(addrs []string) (*http.Client, func(), error) {
	base := &spread{Transport: &http.Transport{MaxIdleConnsPerHost: 1000}, addrs: addrs}
	policies, err := spillhttp.NewTransport(spillhttp.TransportConfig{Base: base})
	if err != nil {
		return nil, nil, err
	}
	return &http.Client{Transport: policies}, base.CloseIdleConnections, nil
}

// get makes a call, and reads its answer.
func get(ctx context.Context, client *http.Client) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://service/", nil)
	if err != nil {
		return err
	}
	answer, err := client.Do(r)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, answer.Body)
	_ = answer.Body.Close() // it was read
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %s", answer.Status)
	}
	return err
}
