// Httpclient calls a URL through a protected http.Client, a few times, and says
// the result of each call.
//
//	go run ./examples/httpclient http://127.0.0.1:8080/
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/spillhttp"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: httpclient URL")
	}
	client, err := newClient()
	if err != nil {
		log.Fatal(err)
	}
	for range 5 {
		fmt.Println(call(context.Background(), client, os.Args[1]))
	}
}

// newClient returns a client with all policies: it throttles itself when the backend rejects
// requests, has at most 64 requests in flight to each host, and retries within a budget.
func newClient() (*http.Client, error) {
	transport, err := spillhttp.NewTransport(spillhttp.TransportConfig{
		Egress: egress.Config{MaxInFlight: 64},
	})
	if err != nil {
		return nil, err
	}
	return &http.Client{Transport: transport}, nil
}

// call makes one call of batch work, which is rejected before user-facing calls.
func call(ctx context.Context, client *http.Client, url string) string {
	ctx = spillway.WithCriticality(ctx, spillway.SheddablePlus)
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err.Error()
	}
	resp, err := client.Do(req)
	if errors.Is(err, spillway.ErrRejected) {
		return "rejected here, never sent: " + err.Error()
	}
	if err != nil {
		return "failed: " + err.Error()
	}
	defer resp.Body.Close()
	n, err := io.Copy(io.Discard, resp.Body)
	if err != nil {
		return "failed: " + err.Error()
	}
	return fmt.Sprintf("%s, %d bytes", resp.Status, n)
}
