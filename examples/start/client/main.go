// Client calls a server once. It is the program of docs/start.md.
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
	"github.com/seed90641741/spillway/spillhttp"
)

func main() {
	transport, err := spillhttp.NewTransport(spillhttp.TransportConfig{})
	if err != nil {
		log.Fatal(err)
	}
	client := &http.Client{Transport: transport}

	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	ctx = spillway.WithCriticality(ctx, spillway.Sheddable)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, os.Args[1], nil)
	if err != nil {
		log.Fatal(err)
	}
	resp, err := client.Do(req)
	if errors.Is(err, spillway.ErrRejected) {
		log.Fatal("rejected by this client, not by the server: ", err)
	}
	if err != nil {
		log.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	fmt.Print(resp.Status, " ", string(body))
	if err != nil {
		log.Fatal(err)
	}
}
