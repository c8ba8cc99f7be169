package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/seed90641741/spillway/budget"
)

func TestCall(t *testing.T) {
	busy := false
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		if busy {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		io.WriteString(w, `{"TableNames":["users"]}`)
	}))
	defer server.Close()
	shared, err := budget.New(budget.Config{Empty: true})
	if err != nil {
		t.Fatal(err)
	}
	client, err := newClient(t.Context(), server.URL, shared)
	if err != nil {
		t.Fatal(err)
	}
	if got := call(t.Context(), client); got != "1 tables" {
		t.Error(got)
	}
	busy = true
	if got := call(t.Context(), client); !strings.Contains(got, "retry budget exhausted: 1 of 500 tokens left") {
		t.Error(got)
	}
}
