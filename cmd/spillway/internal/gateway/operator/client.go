// Package operator has the commands that change a running proxy over its address for operators.
package operator

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/adminclient"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/internal/admin/access"
)

// A client is a client of the address for operators of a running proxy.
type client struct {
	address string            // as in the configuration
	tls     *config.ServerTLS // of that address; nil: in the clear
	token   string            // empty: none
}

// Bounds of an answer.
const (
	answerTimeout = 10 * time.Second
	mostAnswer    = 64 << 20
)

// ask returns the body of an answer. An answer that is not 200 is an error.
func (c *client) ask(ctx context.Context, method, path, body string) (string, error) {
	proxy := adminclient.New(adminclient.Config{Token: access.Text(c.token), TLS: c.pinned(), Timeout: answerTimeout, MaxBody: mostAnswer})
	defer proxy.Close()
	var text []byte
	to, err := c.target()
	if err == nil {
		text, err = proxy.Do(ctx, to, method, path, body)
	}
	if answer, ok := errors.AsType[*adminclient.StatusError](err); ok {
		return "", fmt.Errorf("%s answers %d: %s", c.address, answer.Status, strings.TrimSpace(answer.Text))
	}
	if err != nil {
		return "", fmt.Errorf("the proxy does not answer at %s: %w; --admin names its address for operators", c.address, err)
	}
	return string(text), nil
}

// target returns the address that the proxy listens on. An unspecified address is reached over loopback.
func (c *client) target() (adminclient.Target, error) {
	t := adminclient.Target{URL: "http://localhost", Dial: c.address} // each proxy knows this name
	if c.tls != nil {
		t.URL = "https://localhost"
	}
	if strings.HasPrefix(c.address, "unix:") {
		return t, nil
	}
	host, port, err := net.SplitHostPort(c.address)
	if ip, wrong := netip.ParseAddr(host); host == "" || wrong == nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	t.Dial = net.JoinHostPort(host, port)
	return t, err
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
