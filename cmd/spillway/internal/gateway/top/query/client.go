package query

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/seed90641741/spillway/internal/admin/access"
)

// Bounds of an answer.
const (
	maxBody    = 2 << 20
	maxHeaders = 64 << 10
	maxIdle    = time.Minute
)

// Config configures a [Client].
type Config struct {
	// TokenFile has the token for reading. It is read for each request. Empty: no token is sent.
	TokenFile string
	// CAFile has the CA certificates that verify processes. Empty means the CA certificates of this host.
	CAFile string
	// Timeout is how long an answer may take, its body included. It must be positive.
	Timeout time.Duration
}

// A Client asks processes for their state. It is safe for concurrent use; make one with [New].
type Client struct {
	config Config
	roots  *x509.CertPool

	mu      sync.Mutex
	clients map[Target]*http.Client // by what the connections of targets have in common
}

// New returns a Client. The error names a file that cannot be used.
func New(c Config) (*Client, error) {
	client := &Client{config: c, clients: make(map[Target]*http.Client)}
	if _, err := client.token(); err != nil {
		return nil, err
	}
	if c.CAFile != "" {
		text, err := os.ReadFile(c.CAFile)
		if err != nil {
			return nil, fmt.Errorf("--ca-file: %w", err)
		}
		client.roots = x509.NewCertPool()
		if !client.roots.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("--ca-file: %s has no certificate in PEM", c.CAFile)
		}
	}
	return client, nil
}

// token returns the token to send, empty for none.
func (c *Client) token() (string, error) {
	if c.config.TokenFile == "" {
		return "", nil
	}
	token, err := access.File(c.config.TokenFile)()
	if err != nil {
		return "", fmt.Errorf("--token-file: %w", err)
	}
	return token, nil
}

// via returns the client for the connections to a target.
func (c *Client) via(t Target) *http.Client {
	key := Target{socket: t.socket, server: t.server}
	c.mu.Lock()
	defer c.mu.Unlock()
	if known, ok := c.clients[key]; ok {
		return known
	}
	transport := &http.Transport{
		DialContext:            (&net.Dialer{Timeout: c.config.Timeout}).DialContext,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: c.roots, ServerName: t.server},
		MaxIdleConnsPerHost:    1,
		IdleConnTimeout:        maxIdle,
		MaxResponseHeaderBytes: maxHeaders,
		DisableCompression:     true,
	}
	if t.socket != "" {
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", t.socket)
		}
	}
	client := &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // the token is for this process alone
	}
	c.clients[key] = client
	return client
}

// Close closes idle connections.
func (c *Client) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, client := range c.clients {
		client.CloseIdleConnections()
	}
}

// Fetch returns the state of a process, or why there is none.
func (c *Client) Fetch(ctx context.Context, t Target) (*State, *Problem) {
	token, err := c.token()
	if err != nil {
		return nil, &Problem{Kind: Unauthorized, Text: Plain(err.Error(), maxText), Do: "Correct the file."}
	}
	ctx, cancel := context.WithTimeout(ctx, c.config.Timeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, t.url, nil)
	if err != nil {
		return nil, notSpillway("the address is wrong")
	}
	r.Header.Set("Accept", "application/json")
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := c.via(t).Do(r)
	if err != nil {
		return nil, ofError(err, c.config.Timeout)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, ofStatus(answer.StatusCode, firstLine(answer.Body), token != "")
	}
	return Decode(answer.Body)
}

// firstLine returns the first line of a text, and at most 200 bytes.
func firstLine(body io.Reader) string {
	const most = 200
	text, _ := io.ReadAll(io.LimitReader(body, most)) // what has arrived is enough
	line, _, _ := strings.Cut(string(text), "\n")
	return Plain(line, most)
}

// errTooLarge ends the reading of an answer.
var errTooLarge = errors.New("too large")

// bounded reads at most so many bytes.
type bounded struct {
	from io.Reader
	left int
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTooLarge
	}
	n, err := b.from.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

// Decode reads the answer of a process.
func Decode(body io.Reader) (*State, *Problem) {
	s := new(State)
	err := json.NewDecoder(&bounded{body, maxBody}).Decode(s)
	switch {
	case errors.Is(err, errTooLarge):
		return nil, &Problem{
			Kind: TooLarge, Text: fmt.Sprintf("its answer has more than %d MiB", maxBody>>20),
			Do: "Give its admin address; if it is one, report a bug.",
		}
	case isTimeout(err):
		return nil, &Problem{Kind: Timeout, Text: "its answer does not end", Do: "Look at its host and its network."}
	case err != nil || s.Time.IsZero():
		return nil, notSpillway("its answer is not the state of a process")
	case s.Counts == nil:
		return nil, &Problem{Kind: Outdated, Text: "its version is too old: no counts", Do: "Install this version there."}
	}
	s.tidy()
	return s, nil
}
