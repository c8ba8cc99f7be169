package upstream

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
)

// newProbe returns a function that checks one endpoint of a cluster, and a function that
// closes idle connections.
func newProbe(x *config.Cluster, secured *tls.Config) (probe func(ctx context.Context, address string) error, closeIdle func()) {
	scheme := "http"
	if secured != nil {
		scheme = "https"
	}
	if x.Health.Type == "tcp" {
		return connects, func() {}
	}
	t := newCheckTransport(secured, x.Health.Type == "grpc" || x.Protocol == "http2", x.Health.Interval)
	a := &asker{t, scheme, x.Health}
	if x.Health.Type == "grpc" {
		return a.grpc, t.CloseIdleConnections
	}
	return a.http, t.CloseIdleConnections
}

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

// An asker checks with a request.
type asker struct {
	transport *http.Transport
	scheme    string
	config    *config.Health
}

// maxCheckAnswer is the maximum that is read of an answer.
const maxCheckAnswer = 4 << 10

// A reply has the relevant parts of an answer.
type reply struct {
	status        int
	head, trailer http.Header
	text          []byte
}

func (a *asker) do(ctx context.Context, method, address, path string, head http.Header, body []byte) (reply, error) {
	r, err := http.NewRequestWithContext(ctx, method, a.scheme+"://"+address+path, bytes.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	r.Header, r.Host = head, a.config.Host
	resp, err := a.transport.RoundTrip(r)
	if err != nil {
		return reply{}, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxCheckAnswer))
	return reply{resp.StatusCode, resp.Header, resp.Trailer, text}, err
}

// http requires an answer 2xx.
func (a *asker) http(ctx context.Context, address string) error {
	got, err := a.do(ctx, http.MethodGet, address, a.config.Path, http.Header{"User-Agent": {"spillway"}}, nil)
	if err == nil && (got.status < 200 || got.status > 299) {
		err = fmt.Errorf("answered %d", got.status)
	}
	return err
}

// grpc asks as "GRPC Health Checking Protocol" has it. The two messages of it that are
// needed have one field each.
func (a *asker) grpc(ctx context.Context, address string) error {
	var message []byte
	if name := a.config.Service; name != "" {
		message = append(binary.AppendUvarint([]byte{1<<3 | 2}, uint64(len(name))), name...) // service = 1, a string
	}
	body := append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))), message...)
	head := http.Header{"Content-Type": {"application/grpc"}, "Te": {"trailers"}, "User-Agent": {"spillway"}}
	got, err := a.do(ctx, http.MethodPost, address, "/grpc.health.v1.Health/Check", head, body)
	if err != nil {
		return err
	}
	status := got.trailer.Get("Grpc-Status")
	if status == "" {
		status = got.head.Get("Grpc-Status")
	}
	switch {
	case got.status != http.StatusOK:
		return fmt.Errorf("answered %d", got.status)
	case status != "0":
		return fmt.Errorf("answered with the status %.32q of gRPC", status)
	case !bytes.Equal(got.text, serving):
		return errors.New("answered that it is not serving")
	}
	return nil
}

// serving is the answer of an endpoint that is healthy: status = 1, SERVING.
var serving = []byte{0, 0, 0, 0, 2, 1 << 3, 1}
