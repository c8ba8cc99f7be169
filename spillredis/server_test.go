package spillredis

import (
	"bufio"
	"context"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/seed90641741/spillway/egress"
)

// A server answers commands as a func says, in RESP2. It rejects HELLO, as old servers do.
type server struct {
	answer func(args []string) string // empty closes the connection

	mu   sync.Mutex
	seen map[string]int
}

func (s *server) dial(context.Context, string, string) (net.Conn, error) {
	client, conn := net.Pipe()
	go s.serve(conn)
	return client, nil
}

func (s *server) serve(conn net.Conn) {
	defer conn.Close()
	r := bufio.NewReader(conn)
	for {
		args, err := readCommand(r)
		if err != nil {
			return
		}
		answer := "-ERR unknown command\r\n"
		switch args[0] {
		case "hello":
		case "client":
			answer = "+OK\r\n"
		default:
			s.mu.Lock()
			s.seen[args[0]]++
			s.mu.Unlock()
			answer = s.answer(args)
		}
		if answer == "" {
			return
		}
		if _, err := io.WriteString(conn, answer); err != nil {
			return
		}
	}
}

// sets returns how many SET commands have arrived.
func (s *server) sets() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen["set"]
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
	args[0] = strings.ToLower(args[0])
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

// start returns a server, and an installed client of it.
func start(t *testing.T, c egress.Config, answer func(args []string) string) (*server, *redis.Client, *egress.Pool) {
	t.Helper()
	s := &server{answer: answer, seen: make(map[string]int)}
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379", Dialer: s.dial, MaxRetries: -1, DialerRetries: 1})
	t.Cleanup(func() { _ = client.Close() })
	pool, err := Install(client, c)
	if err != nil {
		t.Fatal(err)
	}
	return s, client, pool
}

func always(answer string) func([]string) string { return func([]string) string { return answer } }
