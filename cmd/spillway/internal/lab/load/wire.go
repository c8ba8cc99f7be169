package load

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/lab/process"
)

// A Format is how calls are sent. The zero Format sends GET over HTTP/1.1.
type Format struct {
	HTTP2 bool
	Body  []byte // of a POST; none: GET
}

// String says it for people.
func (f Format) String() string {
	protocol, method := "HTTP/1.1", "GET"
	if f.HTTP2 {
		protocol = "HTTP/2"
	}
	if len(f.Body) > 0 {
		method = fmt.Sprintf("POST of %d bytes", len(f.Body))
	}
	return method + " over " + protocol
}

// Transport returns the transport below both callers: keep-alive, a pool that never
// closes a connection which could be used again, and as many connections as calls
// that the backend could finish in four deadlines. Without such a bound an overloaded
// caller opens connections until there are no ports left, which would say little
// about the backend.
func (f Format) Transport(conns int) *http.Transport {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(!f.HTTP2)
	protocols.SetUnencryptedHTTP2(f.HTTP2)
	return &http.Transport{
		Protocols:           protocols,
		MaxConnsPerHost:     conns,
		MaxIdleConnsPerHost: conns,
		IdleConnTimeout:     time.Minute,
		DisableCompression:  true,
	}
}

// An Answer is what came back.
type Answer struct {
	Status int
	Work   float64 // processor time of the work, relative to the calibration; 0: unknown
}

// Send sends a call and reads its answer.
func (f Format) Send(ctx context.Context, client *http.Client, url string) (a Answer, err error) {
	method, body := http.MethodGet, io.Reader(nil)
	if len(f.Body) > 0 {
		method, body = http.MethodPost, bytes.NewReader(f.Body)
	}
	req, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		return a, err
	}
	// An ordinary caller labels its calls by hand, just as Spillway would.
	if class, ok := spillway.LookupCriticality(ctx); ok {
		req.Header.Set("X-Request-Criticality", class.String())
	}
	resp, err := client.Do(req)
	if err != nil {
		return a, err
	}
	defer resp.Body.Close()
	a.Status = resp.StatusCode
	if a.Status != http.StatusOK {
		_, err = io.Copy(io.Discard, resp.Body)
		return a, err
	}
	text, err := io.ReadAll(resp.Body)
	_, _ = fmt.Sscanf(string(text), process.Answer, &a.Work) // stays unknown if the answer is not of a backend
	return a, err
}
