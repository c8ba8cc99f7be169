package spillrueidis

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/egress"
)

const address = "127.0.0.1:6379"

// A server answers commands as a func says, in RESP3.
type server struct {
	answer func(node string, args []string) string // empty closes the connection

	mu    sync.Mutex
	seen  map[string]int // by node and command
	dials int
	slow  atomic.Int64 // how long a dial takes
	mute  atomic.Bool  // it answers no HELLO
}

// dial takes as long as the Dialer allows, as a [tls.Dialer] does.
func (s *server) dial(ctx context.Context, node string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
	s.mu.Lock()
	s.dials++
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, d.Timeout)
	defer cancel()
	select {
	case <-time.After(time.Duration(s.slow.Load())):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	client, conn := net.Pipe()
	go s.serve(node, conn)
	return client, nil
}

func (s *server) serve(node string, conn net.Conn) {
	defer conn.Close()
	r := bufio.NewReader(conn)
	for {
		args, err := readCommand(r)
		if err != nil {
			return
		}
		var answer string
		switch args[0] {
		case "HELLO":
			if s.mute.Load() {
				continue
			}
			answer = "%1\r\n$5\r\nproto\r\n:3\r\n"
		case "CLIENT", "UNSUBSCRIBE", "PUNSUBSCRIBE", "SUNSUBSCRIBE", "DISCARD":
			answer = "+OK\r\n"
		case "PING":
			answer = "+PONG\r\n"
		default:
			s.mu.Lock()
			s.seen[args[0]]++
			s.seen[node+" "+args[0]]++
			s.mu.Unlock()
			answer = s.answer(node, args)
		}
		if answer == "" {
			return
		}
		if _, err := io.WriteString(conn, answer); err != nil {
			return
		}
	}
}

// count returns how often a command has arrived.
func (s *server) count(command string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen[command]
}

func readCommand(r *bufio.Reader) ([]string, error) {
	n, err := readSize(r, '*')
	if err != nil {
		return nil, err
	}
	args := make([]string, n)
	for i := range args {
		size, err := readSize(r, '$')
		if err != nil {
			return nil, err
		}
		word := make([]byte, size+2)
		if _, err := io.ReadFull(r, word); err != nil {
			return nil, err
		}
		args[i] = string(word[:size])
	}
	return args, nil
}

func readSize(r *bufio.Reader, mark byte) (int, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return 0, err
	}
	if line[0] != mark {
		return 0, io.ErrUnexpectedEOF
	}
	return strconv.Atoi(strings.TrimSpace(line[1:]))
}

// start returns a server, and a client of it. It is for bubbles.
func start(t *testing.T, c egress.Config, answer func(args []string) string) (*server, *Client) {
	t.Helper()
	s := &server{answer: func(_ string, args []string) string { return answer(args) }, seen: make(map[string]int)}
	return s, s.client(t, c, rueidis.ClientOption{InitAddress: []string{address}, ForceSingleClient: true})
}

// client returns a client of s.
func (s *server) client(t *testing.T, c egress.Config, opt rueidis.ClientOption) *Client {
	t.Helper()
	opt.DialCtxFn = s.dial
	opt.RingScaleEachConn = 8 // as many goroutines wait at once as there are places
	client, err := NewClient(opt, c)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// end closes a client, and waits until the goroutines of rueidis have ended.
func end(c *Client) {
	c.Close()
	time.Sleep(time.Minute)
}

func always(answer string) func([]string) string { return func([]string) string { return answer } }

func (c *Client) set(ctx context.Context, key string) error {
	return c.Do(ctx, c.B().Set().Key(key).Value("v").Build()).Error()
}

func (c *Client) get(ctx context.Context, key string) (string, error) {
	return c.Do(ctx, c.B().Get().Key(key).Build()).ToString()
}

// events keeps the decisions of the policies.
type events struct {
	mu  sync.Mutex
	all []spillway.Event
}

func (e *events) Observe(event spillway.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, event)
}

// first returns the first outcome that a policy settled, and how many it did.
func (e *events) first(policy string) (first spillway.Outcome, n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, event := range e.all {
		if event.Policy == policy {
			if n++; n == 1 {
				first = event.Outcome
			}
		}
	}
	return first, n
}
