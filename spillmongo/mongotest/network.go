package mongotest

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"sync"
)

// A network is where nodes listen.
type network interface {
	// listen opens address, or an address that it chooses if that is empty.
	listen(address string) (net.Listener, error)
}

func newNetwork(pipes bool) network {
	if pipes {
		return &pipeNetwork{listeners: map[string]*pipeListener{}}
	}
	return loopback{}
}

type loopback struct{}

func (loopback) listen(address string) (net.Listener, error) {
	if address == "" {
		address = "127.0.0.1:0"
	}
	return net.Listen("tcp", address)
}

// A pipeNetwork connects clients and nodes through [net.Pipe]. It is the dialer of its
// clients.
type pipeNetwork struct {
	mu        sync.Mutex
	listeners map[string]*pipeListener
	last      int
}

func (p *pipeNetwork) listen(address string) (net.Listener, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if address == "" {
		p.last++
		address = "node" + strconv.Itoa(p.last) + ".mongotest:27017"
	}
	l := &pipeListener{address: address, accepted: make(chan net.Conn), closed: make(chan struct{})}
	p.listeners[address] = l
	return l, nil
}

// DialContext connects to the node with the address.
func (p *pipeNetwork) DialContext(ctx context.Context, _, address string) (net.Conn, error) {
	p.mu.Lock()
	l := p.listeners[address]
	p.mu.Unlock()
	if l == nil {
		return nil, fmt.Errorf("mongotest: no node has the address %s", address)
	}
	client, server := net.Pipe()
	select {
	case l.accepted <- server:
		return client, nil
	case <-l.closed:
		return nil, fmt.Errorf("mongotest: %s: connection refused", address)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

type pipeListener struct {
	address  string
	accepted chan net.Conn
	once     sync.Once
	closed   chan struct{}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.accepted:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *pipeListener) Addr() net.Addr { return l }

// Network and String make the listener its own address.
func (l *pipeListener) Network() string { return "pipe" }

func (l *pipeListener) String() string { return l.address }
