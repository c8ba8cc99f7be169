// Package operator has the commands that change a running proxy over its address for operators.
package operator

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
)

// A client is a client of the address for operators of a running proxy.
type client struct {
	address string            // as in the configuration
	tls     *config.ServerTLS // of that address; nil: in the clear
	token   string            // empty: none
}

// answerTimeout is the time for one answer.
const answerTimeout = 10 * time.Second

// mostAnswer bounds what is read of an answer.
const mostAnswer = 64 << 20

// ask returns the body of an answer. An answer that is not 200 is an error.
func (c *client) ask(ctx context.Context, method, path, body string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	scheme := "http"
	if c.tls != nil {
		scheme = "https"
	}
	req, err := http.NewRequestWithContext(ctx, method, scheme+"://localhost"+path, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	transport := &http.Transport{DialContext: c.dial, TLSClientConfig: c.pinned(), DisableKeepAlives: true}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return "", fmt.Errorf("the proxy does not answer at %s: %w; --admin names its address for operators", c.address, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, mostAnswer))
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s answers %d: %s", c.address, resp.StatusCode, bytes.TrimSpace(text))
	}
	return string(text), err
}

// dial connects to the address that the proxy listens on. An unspecified address is reached over loopback.
func (c *client) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	var d net.Dialer
	if path, ok := strings.CutPrefix(c.address, "unix:"); ok {
		return d.DialContext(ctx, "unix", path)
	}
	host, port, err := net.SplitHostPort(c.address)
	if err != nil {
		return nil, err
	}
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return d.DialContext(ctx, "tcp", net.JoinHostPort(host, port))
}

// pinned trusts the certificate of the configuration and no other: the address has no name that it could be for.
func (c *client) pinned() *tls.Config {
	if c.tls == nil {
		return nil
	}
	file := c.tls.Certificate
	return &tls.Config{InsecureSkipVerify: true, VerifyConnection: func(s tls.ConnectionState) error { //nolint:gosec // verified by VerifyConnection
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if block, _ := pem.Decode(text); block == nil || !bytes.Equal(block.Bytes, s.PeerCertificates[0].Raw) {
			return errors.New("the certificate is not that in " + file)
		}
		return nil
	}}
}
