package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
)

// message is a message of gRPC with 64 bytes.
var message = append([]byte{0, 0, 0, 0, 64}, bytes.Repeat([]byte{'x'}, 64)...)

// unencrypted returns the protocols of h2c.
func unencrypted() *http.Protocols {
	p := new(http.Protocols)
	p.SetUnencryptedHTTP2(true)
	return p
}

type serverGRPC struct {
	http.Server
	ln net.Listener
}

func (s *serverGRPC) Addr() net.Addr { return s.ln.Addr() }

// serveGRPC answers calls with what they say.
func serveGRPC() (server, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &serverGRPC{ln: ln}
	s.Protocols = unencrypted()
	s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		h := w.Header()
		h["Content-Type"] = []string{"application/grpc"}
		h["Trailer"] = []string{"Grpc-Status"}
		_, _ = w.Write(text) // a client that has left is noticed there
		h["Grpc-Status"] = []string{"0"}
	})
	go func() { _ = s.Serve(ln) }() // ends when it is closed
	return s, nil
}

// clientGRPC is a connection.
type clientGRPC struct {
	transport *http.Transport
	url       *url.URL
	ctx       context.Context //nolint:containedctx // of all calls
}

func dialGRPC(ctx context.Context, address string) (client, error) {
	return &clientGRPC{
		transport: &http.Transport{Protocols: unencrypted(), DisableCompression: true},
		url:       &url.URL{Scheme: "http", Host: address, Path: "/bench.Echo/Say"},
		ctx:       ctx,
	}, nil
}

func (c *clientGRPC) Close() error {
	c.transport.CloseIdleConnections()
	return nil
}

func (c *clientGRPC) do() (served bool, err error) {
	r := (&http.Request{
		Method: http.MethodPost, URL: c.url, Host: c.url.Host, ContentLength: -1, Body: io.NopCloser(bytes.NewReader(message)),
		Header: http.Header{"Content-Type": {"application/grpc"}, "Te": {"trailers"}, "User-Agent": {"proxybench"}},
	}).WithContext(c.ctx)
	resp, err := c.transport.RoundTrip(r)
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return false, err
	}
	switch {
	case resp.Header.Get("Grpc-Status") == "14":
		return false, nil
	case resp.StatusCode != http.StatusOK || resp.Trailer.Get("Grpc-Status") != "0" || !bytes.Equal(text, message):
		return false, errors.New("answered " + resp.Status + ", status of gRPC " + resp.Trailer.Get("Grpc-Status"))
	}
	return true, nil
}
