package upstream

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
)

// checked answers health checks: GET /healthz, and gRPC checks of the service a.B. Others are not serving,
// unknown, or broken in some way.
func checked(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/grpc.health.v1.Health/Check" {
		return
	}
	body, _ := io.ReadAll(r.Body)
	w.Header().Set("Content-Type", "application/grpc")
	w.Header().Set("Trailer", "Grpc-Status")
	status, message := "0", "\x00\x00\x00\x00\x02\x08\x02"
	switch service := strings.TrimPrefix(string(body[5:]), "\x0a\x03"); service {
	case "a.B":
		message = "\x00\x00\x00\x00\x02\x08\x01"
	case "404":
		w.WriteHeader(http.StatusNotFound)
	case "unk":
		status, message = "5", ""
	case "zip":
		message = "\x01\x00\x00\x00\x02\x08\x01"
	case "big":
		message = "\x00\x00\xf0\x00\x00" + strings.Repeat("\x00", 0xf00000)
	}
	_, _ = io.WriteString(w, message)
	w.Header().Set("Grpc-Status", status)
}

func TestProbes(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(checked))
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetHTTP1(true)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	defer server.Close()
	here := server.Listener.Addr().String()
	const gone = "127.0.0.1:1"
	silent, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close() // connects, but answers nothing
	for _, row := range []struct {
		health  config.Health
		address string
		want    string // part of the error; empty: none
	}{
		{config.Health{Type: "tcp"}, here, ""},
		{config.Health{Type: "tcp"}, gone, "connection refused"},
		{config.Health{Type: "http", Path: "/healthz"}, here, ""},
		{config.Health{Type: "http", Path: "/healthz"}, gone, "connection refused"},
		{config.Health{Type: "http", Path: "/healthz"}, silent.Addr().String(), "no answer within"},
		{config.Health{Type: "grpc", Service: "a.B"}, here, ""},
		{config.Health{Type: "grpc", Service: "a.C"}, here, "not serving"},
		{config.Health{Type: "grpc"}, here, "not serving"},
		{config.Health{Type: "grpc", Service: "404"}, here, "HTTP status 404"},
		{config.Health{Type: "grpc", Service: "unk"}, here, `answered with the status "not_found" of gRPC`},
		{config.Health{Type: "grpc", Service: "zip"}, here, "compress"},
		{config.Health{Type: "grpc", Service: "big"}, here, "a message of more than 16384 bytes"},
		{config.Health{Type: "grpc"}, gone, "connection refused"},
		{config.Health{Type: "grpc"}, silent.Addr().String(), "no answer within"},
	} {
		row.health.Timeout = 2 * time.Second
		if row.address == silent.Addr().String() {
			row.health.Timeout = 50 * time.Millisecond
		}
		c := newChecker(&endpoints{scheme: "http"}, &config.Cluster{Health: &row.health}, nil)
		err := c.check(t.Context(), row.address)
		if (err != nil) != (row.want != "") || err != nil && !strings.Contains(err.Error(), row.want) {
			t.Errorf("%+v at %s: %v, want %q", row.health, row.address, err, row.want)
		}
	}
}
