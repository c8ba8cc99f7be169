package main

import (
	"net"
	"testing"
	"time"
)

// Connections above the limit are reset, and a place is free again once one of the others
// is closed, however often.
func TestConnectionLimiter(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	limited, err := limitConnections(l, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer limited.Close()
	accepted := make(chan net.Conn)
	go func() {
		for {
			c, err := limited.Accept()
			if err != nil {
				close(accepted)
				return
			}
			accepted <- c
		}
	}()
	dial := func() (net.Conn, error) { return new(net.Dialer).DialContext(t.Context(), "tcp", l.Addr().String()) }
	open := func() net.Conn { // returns the other end
		c, err := dial()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return <-accepted
	}
	isReset := func() bool {
		c, err := dial()
		if err == nil {
			defer c.Close()
			if err := c.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
				t.Fatal(err)
			}
			_, err = c.Read(make([]byte, 1))
		}
		return outcomeOf(0, err) == reset
	}
	first := open()
	if !isReset() {
		t.Error("a connection above the limit was not reset")
	}
	for range 2 {
		_ = first.Close()
	}
	second := open()
	if !isReset() {
		t.Error("two closes of one connection made room for two")
	}
	_ = second.Close()
}
