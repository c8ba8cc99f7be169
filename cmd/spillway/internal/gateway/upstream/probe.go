package upstream

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/proto"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
)

// newProbe returns a function that checks one endpoint of a cluster, and a function that
// closes idle connections.
func newProbe(x *config.Cluster, scheme string, secured *tls.Config) (probe func(ctx context.Context, address string) error, closeIdle func()) {
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

// grpc asks as "GRPC Health Checking Protocol" has it.
func (a *asker) grpc(ctx context.Context, address string) error {
	body, err := frame(&healthpb.HealthCheckRequest{Service: a.config.Service})
	if err != nil {
		return err
	}
	got, err := a.do(ctx, http.MethodPost, address, healthpb.Health_Check_FullMethodName, headOfCall(), body)
	if err != nil {
		return err
	}
	status := cmp.Or(got.trailer.Get("Grpc-Status"), got.head.Get("Grpc-Status"))
	switch {
	case got.status != http.StatusOK:
		return fmt.Errorf("answered %d", got.status)
	case status != "0":
		return fmt.Errorf("answered with the status %.32q of gRPC", status)
	}
	message, err := readMessage(bytes.NewReader(got.text))
	if err != nil {
		return fmt.Errorf("answered with %w", err)
	}
	var is healthpb.HealthCheckResponse
	if err := proto.Unmarshal(message, &is); err != nil || is.GetStatus() != healthpb.HealthCheckResponse_SERVING {
		return errors.New("answered that it is not serving")
	}
	return nil
}

// The proxy calls services of endpoints itself: health checks and load reports. Its calls go over the
// connections of a transport of net/http.

// headOfCall returns the header of a call of gRPC.
func headOfCall() http.Header {
	return http.Header{"Content-Type": {"application/grpc"}, "Te": {"trailers"}, "User-Agent": {"spillway"}}
}

// frame returns a message as gRPC sends it.
func frame(m proto.Message) ([]byte, error) {
	message, err := proto.Marshal(m)
	return append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))), message...), err
}

// maxMessage is the maximum length of a message.
const maxMessage = 16 << 10

// readMessage reads one message, which must not be compressed.
func readMessage(from io.Reader) ([]byte, error) {
	var head [5]byte
	if _, err := io.ReadFull(from, head[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head[1:])
	if head[0] != 0 || n > maxMessage {
		return nil, fmt.Errorf("a message of %d bytes (flags %d), must be at most %d and not compressed", n, head[0], maxMessage)
	}
	message := make([]byte, n)
	_, err := io.ReadFull(from, message)
	return message, err
}
