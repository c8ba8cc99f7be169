package spillxds_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/seed90641741/spillway/spilltest"
	"github.com/seed90641741/spillway/spillxds"
)

// connected is a body that can be written to, and a base with idle connections.
type connected struct {
	io.ReadCloser
	io.Writer

	closed int
}

func (c *connected) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusSwitchingProtocols, Body: c}, nil
}

func (c *connected) CloseIdleConnections() { c.closed++ }

// What net/http looks for in a transport and in a body is there through RoundTripper, too. The error of the base is the same.
func TestOptionalInterfaces(t *testing.T) {
	played(t, spillxds.Config{}, func(t *testing.T, _ *script, c *spillxds.Client) {
		users := must(c.Cluster(key("users")))
		req := must(http.NewRequestWithContext(t.Context(), http.MethodGet, "http://users.example", nil))
		var text strings.Builder
		base := &connected{ReadCloser: io.NopCloser(strings.NewReader("")), Writer: &text}
		rt := users.RoundTripper(base)
		(&http.Client{Transport: rt}).CloseIdleConnections()
		resp := must(rt.RoundTrip(req))
		if _, err := io.WriteString(resp.Body.(io.Writer), "upgraded"); err != nil || text.String() != "upgraded" || base.closed != 1 {
			t.Errorf("%v: wrote %q, closed idle connections %d times", err, text.String(), base.closed)
		}
		_ = resp.Body.Close()
		_, err := users.RoundTripper(baseFunc(func(*http.Request) (*http.Response, error) { return nil, io.ErrUnexpectedEOF })).RoundTrip(req)
		if !errors.Is(err, io.ErrUnexpectedEOF) || users.InProgress() != 0 {
			t.Errorf("%v, %d in progress", err, users.InProgress())
		}
	})
}

func TestPromises(t *testing.T) {
	spilltest.TestPromises(t, spilltest.Promises{
		Ownership:  spilltest.Promise{Not: "requests and answers are passed on; what is kept of one is how it has ended"},
		Interfaces: spilltest.Promise{Tests: []func(*testing.T){TestOptionalInterfaces}},
		Panics:     spilltest.Promise{Tests: []func(*testing.T){testPanics, TestObserverThatAlwaysPanics, TestPanicOfTheBase}},
		Churn:      spilltest.Promise{Not: "requests go through the transport or the channel of the host; to the control plane there is one connection"},
		Idle:       spilltest.Promise{Not: "an open answer is in flight: max_requests counts it, as in Envoy and gRPC, whose limit this is"},
	})
}
