// Xds is a control plane to try Spillway with: it sets max_requests of clusters and
// prints the load reports of their clients.
//
//	go run ./examples/xds
//
// shows it at work with an HTTP client and a local backend.
//
//	go run ./examples/xds -listen 127.0.0.1:18000
//
// serves any client, with limits read from the standard input, one to a line
// ("users 20"). The bootstrap that it prints goes into GRPC_XDS_BOOTSTRAP_CONFIG of
// the client.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/inflight"
	"github.com/seed90641741/spillway/spillhttp"
	"github.com/seed90641741/spillway/spillxds"
)

func main() {
	listen := flag.String("listen", "", "address to serve at; empty shows a demonstration")
	flag.Parse()
	var err error
	if *listen == "" {
		err = demonstrate(os.Stdout, 2*time.Second)
	} else {
		err = serve(*listen, os.Stdin, os.Stdout)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// bootstrap is what a client needs to find the control plane.
func bootstrap(addr net.Addr) string {
	return fmt.Sprintf(`{"xds_servers":[{"server_uri":%q,"channel_creds":[{"type":"insecure"}]}],"node":{"id":"example"}}`, addr)
}

// serve sets the limits that it reads from in.
func serve(addr string, in io.Reader, out io.Writer) error {
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	p := newPlane(listener, out, 10*time.Second)
	defer p.close()
	fmt.Fprintln(out, bootstrap(listener.Addr()))
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		var cluster string
		var limit uint32
		if _, err := fmt.Sscan(lines.Text(), &cluster, &limit); err != nil {
			fmt.Fprintln(out, "usage: a cluster and its max_requests, such as: users 20")
			continue
		}
		if err := p.set(cluster, limit); err != nil {
			return err
		}
	}
	return lines.Err()
}

// demonstrate runs a control plane, a backend, and a client that sends more than
// the control plane grants, for as long with each limit.
func demonstrate(out io.Writer, each time.Duration) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	p := newPlane(listener, out, each)
	defer p.close()
	boot, err := spillxds.ParseBootstrap([]byte(bootstrap(listener.Addr())))
	if err != nil {
		return err
	}
	client, err := spillxds.New(spillxds.Config{Bootstrap: boot})
	if err != nil {
		return err
	}
	caller, err := newCaller(client)
	if err != nil {
		return errors.Join(err, client.Close())
	}
	defer caller.backend.Close()
	for _, limit := range []uint32{20, 5, 40} {
		if err := p.set("users", limit); err != nil {
			return err
		}
		if err := caller.users.Ready(context.Background()); err != nil { // before, all clusters have the default
			return err
		}
		served, rejected := caller.run(each)
		p.mu.Lock()
		fmt.Fprintf(out, "client: max_requests %d: %d served, %d rejected here\n", limit, served, rejected)
		p.mu.Unlock()
	}
	return client.Close()
}

// caller makes calls to a backend that takes 50 ms for each.
type caller struct {
	users   *spillxds.Cluster
	http    *http.Client
	backend *httptest.Server
}

// newCaller returns a caller with the limits that client has for the cluster users.
func newCaller(client *spillxds.Client) (*caller, error) {
	users, err := client.Cluster(inflight.Key{Cluster: "users"})
	if err != nil {
		return nil, err
	}
	transport, err := spillhttp.NewTransport(spillhttp.TransportConfig{
		Egress: users.Egress(egress.Config{}),
		Base:   users.RoundTripper(nil),
	})
	if err != nil {
		return nil, err
	}
	return &caller{users, &http.Client{Transport: transport}, httptest.NewServer(http.HandlerFunc(slow))}, nil
}

func slow(_ http.ResponseWriter, r *http.Request) {
	select {
	case <-time.After(50 * time.Millisecond):
	case <-r.Context().Done():
	}
}

// run has 30 callers call again and again for d.
func (c *caller) run(d time.Duration) (served, rejected uint64) {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	var all [2]atomic.Uint64
	var callers sync.WaitGroup
	for range 30 {
		callers.Go(func() {
			for ctx.Err() == nil {
				switch err := c.call(ctx); {
				case err == nil:
					all[0].Add(1)
				case errors.Is(err, spillway.ErrRejected):
					all[1].Add(1)
					<-time.After(20 * time.Millisecond)
				}
			}
		})
	}
	callers.Wait()
	return all[0].Load(), all[1].Load()
}

func (c *caller) call(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.backend.URL, http.NoBody)
	if err != nil {
		return err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}
