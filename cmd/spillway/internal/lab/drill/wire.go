package drill

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

// A wire is how calls are sent. The zero wire sends GET over HTTP/1.1.
type wire struct {
	http2 bool
	body  []byte // of a POST; none: GET
}

func (c Config) wire() wire { return wire{c.HTTP2, make([]byte, c.Body)} }

// words says it for people.
func (w wire) words() string {
	protocol, method := "HTTP/1.1", "GET"
	if w.http2 {
		protocol = "HTTP/2"
	}
	if len(w.body) > 0 {
		method = fmt.Sprintf("POST of %d bytes", len(w.body))
	}
	return method + " over " + protocol
}

// transport returns the transport below both callers: keep-alive, a pool that never
// closes a connection which could be used again, and as many connections as calls
// that the backend could finish in four deadlines. Without such a bound an overloaded
// caller opens connections until there are no ports left, which would say little
// about the backend.
func (w wire) transport(conns int) *http.Transport {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(!w.http2)
	protocols.SetUnencryptedHTTP2(w.http2)
	return &http.Transport{
		Protocols:           protocols,
		MaxConnsPerHost:     conns,
		MaxIdleConnsPerHost: conns,
		IdleConnTimeout:     time.Minute,
		DisableCompression:  true,
	}
}

func (w wire) send(ctx context.Context, client *http.Client, url string) (status int, err error) {
	method, body := http.MethodGet, io.Reader(nil)
	if len(w.body) > 0 {
		method, body = http.MethodPost, bytes.NewReader(w.body)
	}
	req, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		return 0, err
	}
	// An ordinary caller labels its calls by hand, just as Spillway would.
	if class, ok := spillway.LookupCriticality(ctx); ok {
		req.Header.Set("X-Request-Criticality", class.String())
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		_, err = io.Copy(io.Discard, resp.Body)
		return resp.StatusCode, err
	}
	text, err := io.ReadAll(resp.Body)
	if r := recordFrom(ctx); r != nil {
		_, _ = fmt.Sscanf(string(text), process.Answer, &r.work) // stays unknown if the answer is not of a backend
	}
	return resp.StatusCode, err
}
