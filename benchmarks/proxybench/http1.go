package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
)

// The messages of HTTP/1.1 are made ahead, and read no further than is needed to find
// their ends.

const answer1 = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 13\r\n\r\nhello, world\n"

var endOfHead = []byte("\r\n\r\n")

// serveHTTP1 answers all requests to a free port.
func serveHTTP1() (server, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go answerHTTP1(c)
		}
	}()
	return ln, nil
}

// answerHTTP1 answers requests without a body, until the client leaves.
func answerHTTP1(c net.Conn) {
	defer c.Close()
	b, have := make([]byte, 8<<10), 0
	for {
		n, err := c.Read(b[have:])
		if err != nil {
			return
		}
		have += n
		if bytes.HasSuffix(b[:have], endOfHead) {
			have = 0
			if _, err := io.WriteString(c, answer1); err != nil {
				return
			}
		}
	}
}

// client1 is a connection.
type client1 struct {
	net.Conn
	in      *bufio.Reader
	request []byte
}

func dialHTTP1(ctx context.Context, address string) (client, error) {
	c, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return &client1{c, bufio.NewReader(c), []byte("GET /some/path HTTP/1.1\r\nHost: " + address + "\r\nUser-Agent: proxybench\r\nAccept: */*\r\n\r\n")}, nil
}

func (c *client1) do() (served bool, err error) {
	if _, err := c.Write(c.request); err != nil {
		return false, err
	}
	status, err := c.in.ReadSlice('\n')
	if err != nil {
		return false, err
	}
	served = bytes.HasPrefix(status, []byte("HTTP/1.1 200 "))
	if !served && !bytes.HasPrefix(status, []byte("HTTP/1.1 503 ")) {
		return false, fmt.Errorf("answered %q", status)
	}
	length := -1
	for {
		line, err := c.in.ReadSlice('\n')
		if err != nil {
			return false, err
		}
		if len(line) <= 2 {
			break
		}
		if name, value, _ := bytes.Cut(line, []byte(":")); bytes.EqualFold(name, []byte("Content-Length")) {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil {
				return false, err
			}
		}
	}
	if length < 0 {
		return false, errors.New("answered without Content-Length")
	}
	_, err = c.in.Discard(length)
	return served, err
}
