package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestCall(t *testing.T) {
	var criticality string
	busy := false
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		criticality = r.Header.Get("X-Request-Criticality")
		if busy {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		w.Write([]byte("hello"))
	}))
	defer server.Close()
	client, err := newClient()
	if err != nil {
		t.Fatal(err)
	}
	if got := call(t.Context(), client, server.URL); got != "200 OK, 5 bytes" {
		t.Error(got)
	}
	if criticality != "SHEDDABLE_PLUS" {
		t.Errorf("the server saw criticality %q", criticality)
	}
	busy = true
	// A shorter burst than a quarter of a second is no overload for a backend that has accepted calls.
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); {
		if strings.HasPrefix(call(t.Context(), client, server.URL), "rejected here, never sent") {
			return
		}
	}
	t.Error("a backend that rejects everything was called for ten seconds")
}
