package spillhttp

import (
	"crypto/tls"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// TestServeTLS: a server is the same as one of [http.Server.ServeTLS], with both protocols. All its
// requests count, the exempt ones as well.
func TestServeTLS(t *testing.T) {
	model := httptest.NewUnstartedServer(nil)
	model.StartTLS() // for its certificate
	defer model.Close()
	h := must(NewHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Proto)
	}), HandlerConfig{HealthPaths: []string{"/exempt"}}))
	defer func() { _ = h.Close() }()
	network := must(net.Listen("tcp", "127.0.0.1:0"))
	server := &http.Server{Handler: h, ErrorLog: quiet, TLSConfig: &tls.Config{Certificates: model.TLS.Certificates, MinVersion: tls.VersionTLS13}}
	served := make(chan error)
	go func() { served <- h.ServeTLS(server, network, "", "") }()
	for i, protocol := range []string{"HTTP/1.1", "HTTP/1.1", "HTTP/2.0"} {
		transport := &http.Transport{TLSClientConfig: model.Client().Transport.(*http.Transport).TLSClientConfig.Clone(), Protocols: new(http.Protocols)}
		transport.Protocols.SetHTTP1(protocol == "HTTP/1.1")
		transport.Protocols.SetHTTP2(protocol == "HTTP/2.0")
		answer, err := (&http.Client{Transport: transport}).Get("https://" + network.Addr().String() + []string{"/", "/exempt", "/"}[i])
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		if err := errors.Join(err, answer.Body.Close()); err != nil || string(body) != protocol {
			t.Errorf("%s: answered %q, %v", protocol, body, err)
		}
		transport.CloseIdleConnections()
	}
	if begun, cpu := h.work(time.Now()); begun != 3 || cpu < 0 {
		t.Errorf("%d requests have begun, with %v of the processors", begun, cpu)
	}
	if err := server.Close(); err != nil {
		t.Error(err)
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		t.Errorf("ended with %v", err)
	}
}

// A server without its certificate serves nobody, and has taken no connection from the listener when the certificate is there.
func TestServeTLSAgain(t *testing.T) {
	model := httptest.NewUnstartedServer(nil)
	model.StartTLS() // for its certificate
	defer model.Close()
	h := must(NewHandler(bare, HandlerConfig{}))
	defer func() { _ = h.Close() }()
	network := must(net.Listen("tcp", "127.0.0.1:0"))
	server := &http.Server{Handler: h, ErrorLog: quiet, TLSConfig: &tls.Config{Certificates: model.TLS.Certificates, MinVersion: tls.VersionTLS13}}
	if err := h.ServeTLS(server, network, "absent.pem", "absent.pem"); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("without a certificate: %v", err)
	}
	served := make(chan error)
	go func() { served <- h.ServeTLS(server, network, "", "") }()
	for range 2 {
		transport := &http.Transport{TLSClientConfig: model.Client().Transport.(*http.Transport).TLSClientConfig.Clone()}
		answer, err := (&http.Client{Transport: transport, Timeout: 2 * time.Second}).Get("https://" + network.Addr().String())
		if err != nil {
			t.Error(err)
		} else if err := answer.Body.Close(); err != nil {
			t.Error(err)
		}
		transport.CloseIdleConnections()
	}
	if err := server.Close(); err != nil {
		t.Error(err)
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		t.Errorf("ended with %v", err)
	}
}
