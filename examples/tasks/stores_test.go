package tasks

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"
	"github.com/labstack/echo/v4"

	"github.com/seed90641741/spillway"
)

func TestRouters(t *testing.T) {
	ok := func(http.ResponseWriter, *http.Request) {}
	c := chi.NewRouter()
	c.Get("/users/{id}", ok)
	c.Get("/healthz", ok)
	e := echo.New()
	e.GET("/users/:id", echo.WrapHandler(http.HandlerFunc(ok)))
	e.GET("/healthz", echo.WrapHandler(http.HandlerFunc(ok)))
	checkRouter(t, func() (http.Handler, error) { return afterChi(c) })
	checkRouter(t, func() (http.Handler, error) { return afterEcho(e) })
}

func checkRouter(t *testing.T, made func() (http.Handler, error)) {
	t.Helper()
	h, err := made()
	if err != nil {
		t.Fatal(err)
	}
	if a, b, c := status(h, "/users/7", "", ""), status(h, "/healthz", "", ""), status(h, "/none", "", ""); a != 200 || b != 200 || c != 404 {
		t.Errorf("%d, %d and %d", a, b, c)
	}
}

// A database that is not there is tried again.
func TestSQL(t *testing.T) {
	db, err := afterSQL("host=127.0.0.1 port=1")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.PingContext(t.Context()); err == nil || !strings.Contains(err.Error(), "gave up after 3 attempts") {
		t.Error(err)
	}
}

// A server that is busy with a script is throttled.
func TestRedis(t *testing.T) {
	addr := listen(t)
	client, err := afterRedis(addr)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	checkThrottled(t, func() error { return client.Set(t.Context(), "key", "value", 0).Err() })
	other, err := afterRueidis(addr)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	checkThrottled(t, func() error { return other.Do(t.Context(), other.B().Set().Key("key").Value("value").Build()).Error() })
}

// checkThrottled checks that most of 300 calls are rejected.
func checkThrottled(t *testing.T, call func() error) {
	t.Helper()
	rejected := 0
	for range 300 {
		if errors.Is(call(), spillway.ErrRejected) {
			rejected++
		}
	}
	if rejected < 100 {
		t.Errorf("%d of 300 commands are rejected", rejected)
	}
}

// listen starts a server, and returns its address.
func listen(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go answer(conn)
		}
	}()
	return listener.Addr().String()
}

// answer is a server that is busy with a script, and knows no handshake.
func answer(conn net.Conn) {
	defer conn.Close()
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		text := ""
		switch strings.ToLower(lines.Text()) {
		case "hello":
			text = "-ERR unknown command 'HELLO'\r\n"
		case "cluster":
			text = "-ERR This instance has cluster support disabled\r\n"
		case "ping":
			text = "+PONG\r\n"
		case "client":
			text = "+OK\r\n"
		case "set":
			text = "-BUSY a script\r\n"
		}
		if _, err := io.WriteString(conn, text); err != nil {
			return
		}
	}
}
