package spillhttp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/spillhttp"
)

// newBackend returns a server that reports what it knows of a request.
func newBackend() *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "criticality %q", r.Header.Get("X-Request-Criticality"))
	}))
}

// A client that backs off when a backend is overloaded.
func Example() {
	backend := newBackend()
	defer backend.Close()

	transport, err := spillhttp.NewTransport(spillhttp.TransportConfig{})
	if err != nil {
		fmt.Println(err)
		return
	}
	client := &http.Client{Transport: transport, Timeout: 10 * time.Second}

	ctx := spillway.WithCriticality(context.Background(), spillway.SheddablePlus)
	req, _ := http.NewRequestWithContext(ctx, http.MethodGet, backend.URL, nil)
	resp, err := client.Do(req)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	answer, _ := io.ReadAll(resp.Body)
	fmt.Printf("%s", answer)
	// Output: criticality "SHEDDABLE_PLUS"
}

// What is rejected here never reaches the network.
func ExampleTransport_rejection() {
	backend := newBackend()
	defer backend.Close()
	transport, _ := spillhttp.NewTransport(spillhttp.TransportConfig{Egress: egress.Config{MaxInFlight: 1}})
	client := &http.Client{Transport: transport}

	first, err := client.Get(backend.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer first.Body.Close()
	_, err = client.Get(backend.URL) // while the first answer is still being read
	fmt.Println(errors.Is(err, spillway.ErrRejected))
	// Output: true
}

// Services of others do not learn how much a request matters.
func ExampleTransportConfig_internal() {
	stranger := newBackend()
	defer stranger.Close()
	transport, _ := spillhttp.NewTransport(spillhttp.TransportConfig{
		External: func(req *http.Request) bool { return !strings.HasSuffix(req.URL.Hostname(), ".internal.example") },
	})
	client := &http.Client{Transport: transport}

	resp, err := client.Get(stranger.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	answer, _ := io.ReadAll(resp.Body)
	fmt.Printf("%s", answer)
	// Output: criticality ""
}
