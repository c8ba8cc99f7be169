package main

import (
	"bufio"
	"net"
	"strings"
	"testing"
	"time"
)

func TestCall(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go serve(listener)
	client, err := newClient(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if got := call(t.Context(), client); got != "not in the cache" {
		t.Error(got)
	}
	// A shorter burst than a quarter of a second is no overload for a server that has answered.
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); {
		if strings.Contains(call(t.Context(), client), "never sent") {
			return
		}
	}
	t.Error("no command was rejected while the server had no memory")
}

// serve is a Redis server without keys, which has no memory left after the first command.
func serve(listener net.Listener) {
	answer := "$-1\r\n"
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		for lines := bufio.NewScanner(conn); lines.Scan(); {
			switch line := strings.ToLower(lines.Text()); line {
			case "hello":
				_, _ = conn.Write([]byte("-ERR unknown command\r\n"))
			case "client":
				_, _ = conn.Write([]byte("+OK\r\n"))
			case "get":
				_, _ = conn.Write([]byte(answer))
				answer = "-OOM command not allowed\r\n"
			}
		}
		_ = conn.Close()
	}
}
