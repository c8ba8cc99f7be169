package spilladmin_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/seed90641741/spillway/egress"
	"github.com/seed90641741/spillway/ingress"
	"github.com/seed90641741/spillway/spilladmin"
	"github.com/seed90641741/spillway/spillhttp"
)

// A server and a client of one process, and their page at a separate address.
func Example() {
	if err := run(); err != nil {
		fmt.Println(err)
	}
	// Output: shop-1 library true
}

func run() error {
	page, err := spilladmin.New(spilladmin.Config{Name: "shop-1"})
	if err != nil {
		return err
	}
	defer page.Close()
	gates, err := ingress.New(ingress.Config{Observer: page})
	if err != nil {
		return err
	}
	defer gates.Close()
	page.AddServer("shop", gates)
	transport, err := spillhttp.NewTransport(spillhttp.TransportConfig{Egress: egress.Config{Observer: page}})
	if err != nil {
		return err
	}
	page.AddClient(transport)

	cart := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "a cart") })
	handler, err := spillhttp.NewHandler(cart, spillhttp.HandlerConfig{Ingress: gates})
	if err != nil {
		return err
	}
	shop := httptest.NewServer(handler)
	defer shop.Close()
	operators := httptest.NewServer(page) // in a program: http.ListenAndServe("127.0.0.1:8001", page)
	defer operators.Close()

	client := &http.Client{Transport: transport}
	if resp, err := client.Get(shop.URL); err == nil {
		resp.Body.Close()
	}
	resp, err := http.Get(operators.URL + "/api/v1/state")
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	var state struct {
		Name, Program string
		Ready         bool
	}
	if err := json.NewDecoder(resp.Body).Decode(&state); err != nil {
		return err
	}
	fmt.Println(state.Name, state.Program, state.Ready)
	return nil
}
