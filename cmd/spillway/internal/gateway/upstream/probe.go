package upstream

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"connectrpc.com/connect"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
)

// userAgent is the name of the proxy in its own requests.
const userAgent = "spillway"

// connects is a check that only opens a connection.
func connects(ctx context.Context, address string) error {
	c, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	return c.Close()
}

// newCheckTransport returns a transport that keeps one connection to each endpoint from
// one check to the next.
func newCheckTransport(secured *tls.Config, second bool, interval time.Duration) *http.Transport {
	t := &http.Transport{
		MaxIdleConnsPerHost: 1, IdleConnTimeout: 2 * interval, DisableCompression: true, TLSClientConfig: secured,
		MaxResponseHeaderBytes: maxAnswerHead, Protocols: new(http.Protocols),
	}
	t.Protocols.SetHTTP1(!second)
	t.Protocols.SetHTTP2(second && secured != nil)
	t.Protocols.SetUnencryptedHTTP2(second && secured == nil)
	return t
}

// maxCheckAnswer is the maximum that is read of an answer.
const maxCheckAnswer = 4 << 10

// http requires an answer 2xx.
func (c *checker) http(ctx context.Context, address string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.endpoints.scheme+"://"+address+c.config.Path, nil)
	if err != nil {
		return err
	}
	r.Host = c.config.Host
	r.Header.Set("User-Agent", userAgent)
	resp, err := c.endpoints.checks.RoundTrip(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return fmt.Errorf("answered %d", resp.StatusCode)
	}
	_, err = io.Copy(io.Discard, io.LimitReader(resp.Body, maxCheckAnswer))
	return err
}

// grpc asks as "GRPC Health Checking Protocol" has it.
func (c *checker) grpc(ctx context.Context, address string) error {
	url := c.endpoints.scheme + "://" + address + healthpb.Health_Check_FullMethodName
	_, client := newCall[healthpb.HealthCheckRequest, healthpb.HealthCheckResponse](c.endpoints.checks, url)
	r := connect.NewRequest(&healthpb.HealthCheckRequest{Service: c.config.Service})
	r.Header().Set("Host", c.config.Host)
	got, err := client.CallUnary(ctx, r)
	if err != nil {
		return bad(err)
	}
	if got.Msg.GetStatus() != healthpb.HealthCheckResponse_SERVING {
		return errors.New("answered that it is not serving")
	}
	return nil
}
