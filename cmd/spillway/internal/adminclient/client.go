// Package adminclient asks processes of Spillway over their admin addresses: proxies, services of quotas, and programs
// that use the library.
//
// An answer is bounded in time and size, and redirects are not followed: the token is for the process alone.
package adminclient

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/seed90641741/spillway/internal/admin/access"
)

// Config configures a [Client].
type Config struct {
	// Token is sent with each request, and read for each. Nil: no token is sent.
	Token access.Token
	// TLS verifies processes. Nil means by the CA certificates of this host, and from TLS 1.2 on.
	TLS *tls.Config
	// Timeout is how long an answer may take, its body included. It must be positive.
	Timeout time.Duration
	// MaxBody is how many bytes the body of an answer may have. It must be positive.
	MaxBody int
}

// A Target is a process to ask. Targets that are equal are the same process.
type Target struct {
	// URL has the scheme, the host, and what precedes all paths of the process, without a slash at its end.
	URL string
	// Dial is where to connect to, HOST:PORT or unix: and a path. Empty means the host of the URL.
	Dial string
	// ServerName is the name in the certificate. Empty means the host of the URL.
	ServerName string
}

// A Client asks processes. It is safe for concurrent use; make one with [New].
type Client struct {
	config Config

	mu      sync.Mutex
	clients map[Target]*http.Client // by what the connections of targets have in common
}

// New returns a Client. It must be closed.
func New(c Config) *Client {
	if c.TLS == nil {
		c.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	return &Client{config: c, clients: make(map[Target]*http.Client)}
}

// Close closes idle connections.
func (c *Client) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, client := range c.clients {
		client.CloseIdleConnections()
	}
}

// ErrTooLarge says that an answer has more than [Config].MaxBody bytes.
var ErrTooLarge = errors.New("the answer is too large")

// A TokenError is why the token could not be read.
type TokenError struct{ error }

// Unwrap returns the error without its mark.
func (e TokenError) Unwrap() error { return e.error }

// A StatusError is an answer that is not 200.
type StatusError struct {
	Status int
	Text   string // the beginning of the body
}

func (e *StatusError) Error() string {
	return strings.TrimSpace(fmt.Sprintf("it answers %d: %s", e.Status, e.Text))
}

// Do sends a request and returns the body of the answer. The error is a [TokenError], a [*StatusError], [ErrTooLarge], or
// of the connection.
func (c *Client) Do(ctx context.Context, t Target, method, path, body string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, c.config.Timeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, t.URL+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	if c.config.Token != nil {
		token, err := c.config.Token()
		if err != nil {
			return nil, TokenError{err}
		}
		r.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := c.via(t).Do(r)
	if failed, ok := errors.AsType[*url.Error](err); ok {
		return nil, failed.Err // callers name the process themselves
	}
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	return read(answer, c.config.MaxBody)
}

// read returns the body of an answer.
func read(answer *http.Response, most int) ([]byte, error) {
	if answer.StatusCode != http.StatusOK {
		const enough = 4 << 10
		text, _ := io.ReadAll(io.LimitReader(answer.Body, enough)) // what has arrived is enough
		return nil, &StatusError{answer.StatusCode, string(text)}
	}
	text, err := io.ReadAll(io.LimitReader(answer.Body, int64(most)+1))
	if len(text) > most {
		return nil, ErrTooLarge
	}
	return text, err
}

// Bounds of what a process may take.
const (
	maxHeaders = 64 << 10
	maxIdle    = time.Minute
)

// via returns the client for the connections to a target.
func (c *Client) via(t Target) *http.Client {
	t.URL = ""
	c.mu.Lock()
	defer c.mu.Unlock()
	if known, ok := c.clients[t]; ok {
		return known
	}
	rules := c.config.TLS.Clone()
	rules.ServerName = t.ServerName
	client := &http.Client{
		Transport: &http.Transport{
			DialContext:            t.dialer(c.config.Timeout),
			TLSClientConfig:        rules,
			MaxIdleConnsPerHost:    1,
			IdleConnTimeout:        maxIdle,
			MaxResponseHeaderBytes: maxHeaders,
			DisableCompression:     true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	c.clients[t] = client
	return client
}

// dialer returns what connects to the target, whose URL has the address unless Dial has one.
func (t Target) dialer(timeout time.Duration) func(ctx context.Context, network, address string) (net.Conn, error) {
	d := &net.Dialer{Timeout: timeout} // a request that has ended does not end it
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if path, ok := strings.CutPrefix(t.Dial, "unix:"); ok {
			return d.DialContext(ctx, "unix", path)
		}
		return d.DialContext(ctx, network, cmp.Or(t.Dial, address))
	}
}
