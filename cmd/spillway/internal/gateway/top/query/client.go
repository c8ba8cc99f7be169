package query

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/adminclient"
	"github.com/seed90641741/spillway/internal/admin/access"
)

// maxBody bounds an answer.
const maxBody = 2 << 20

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
	client   *adminclient.Client
	timeout  time.Duration
	hasToken bool
}

// New returns a Client. The error names a file that cannot be used.
func New(c Config) (*Client, error) {
	token := access.File(c.TokenFile)
	if token != nil {
		if _, err := token(); err != nil {
			return nil, fmt.Errorf("--token-file: %w", err)
		}
	}
	rules := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.CAFile != "" {
		text, err := os.ReadFile(c.CAFile)
		if err != nil {
			return nil, fmt.Errorf("--ca-file: %w", err)
		}
		rules.RootCAs = x509.NewCertPool()
		if !rules.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("--ca-file: %s has no certificate in PEM", c.CAFile)
		}
	}
	client := adminclient.New(adminclient.Config{Token: token, TLS: rules, Timeout: c.Timeout, MaxBody: maxBody})
	return &Client{client: client, timeout: c.Timeout, hasToken: token != nil}, nil
}

// Close closes idle connections.
func (c *Client) Close() { c.client.Close() }

// Fetch returns the state of a process, or why there is none.
func (c *Client) Fetch(ctx context.Context, t Target) (*State, *Problem) {
	text, err := c.client.Do(ctx, t.at, http.MethodGet, path, "")
	if err != nil {
		return nil, c.problem(err)
	}
	return Decode(text)
}

// problem returns the problem of a request that failed.
func (c *Client) problem(err error) *Problem {
	if wrong, ok := errors.AsType[adminclient.TokenError](err); ok {
		return &Problem{Kind: Unauthorized, Text: Plain("--token-file: "+wrong.Error(), maxText), Do: "Correct the file."}
	}
	if answer, ok := errors.AsType[*adminclient.StatusError](err); ok {
		return ofStatus(answer.Status, firstLine(answer.Text), c.hasToken)
	}
	return ofError(err, c.timeout)
}

// Decode reads the answer of a process.
func Decode(text []byte) (*State, *Problem) {
	s := new(State)
	if err := json.Unmarshal(text, s); err != nil || s.Time.IsZero() {
		return nil, notSpillway("its answer is not the state of a process")
	}
	if s.Counts == nil {
		return nil, &Problem{Kind: Outdated, Text: "its version is too old: no counts", Do: "Install this version there."}
	}
	s.tidy()
	return s, nil
}
