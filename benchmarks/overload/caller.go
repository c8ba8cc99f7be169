package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"syscall"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/spillhttp"
)

// A caller makes calls to a server. It is safe for concurrent use.
type caller interface {
	// call makes a call, and returns how it ended. The error says why it is not good, where the
	// outcome does not.
	call(ctx context.Context, class spillway.Criticality) (outcome, error)
	close()
}

// caller returns a new one with so many connections at most. It uses Spillway if protect is set.
func (p *process) caller(connections int, protect bool) (caller, error) {
	if p.wire.grpc {
		return dialGRPC(p.addr, protect)
	}
	below := p.wire.transport(connections, p.roots)
	c := &httpCaller{client: http.Client{Transport: below}, url: p.wire.scheme() + "://" + p.addr + "/", body: p.wire.body}
	if protect {
		t, err := spillhttp.NewTransport(spillhttp.TransportConfig{Base: below})
		if err != nil {
			return nil, err
		}
		c.client.Transport = t
	}
	return c, nil
}

// An httpCaller makes calls over HTTP.
type httpCaller struct {
	client http.Client
	url    string
	body   int // bytes that a call sends
}

// payload is what bodies are made of.
var payload [1 << 12]byte

func (c *httpCaller) call(ctx context.Context, class spillway.Criticality) (outcome, error) {
	status, err := c.send(ctx, class)
	o := outcomeOf(status, err)
	if o == failed && err == nil {
		err = fmt.Errorf("status %d", status)
	}
	return o, err
}

// send returns the status of the answer once the body was read.
func (c *httpCaller) send(ctx context.Context, class spillway.Criticality) (status int, err error) {
	method, body := http.MethodGet, io.Reader(http.NoBody)
	if c.body > 0 {
		method, body = http.MethodPost, bytes.NewReader(payload[:c.body])
	}
	req, err := http.NewRequestWithContext(ctx, method, c.url, body)
	if err != nil {
		return 0, err
	}
	req.Header.Set("X-Request-Criticality", class.String())
	resp, err := c.client.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, err
}

func (c *httpCaller) close() { c.client.CloseIdleConnections() }

func outcomeOf(status int, err error) outcome {
	switch {
	case err == nil && status >= 200 && status <= 299:
		return good
	case err == nil && (status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests):
		return rejected
	case err == nil:
		return failed
	case rejectedHere(err):
		return rejected
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return lost
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, io.EOF), errors.Is(err, syscall.EPIPE):
		return reset
	}
	return failed
}

// rejectedHere reports whether the client rejected the call: it was not sent, or not again.
func rejectedHere(err error) bool { return errors.Is(err, spillway.ErrRejected) }
