package spillredis

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed90641741/spillway/egress"
)

// go-redis repeats the whole pipeline of a node if its connection breaks, or if its first command was
// rejected. It must not: where that is safe, the hook repeats it as the retry strategy says.
func TestClusterPipeline(t *testing.T) {
	const moved, again, loading, done, breaks = "-MOVED 1 127.0.0.1:6379\r\n", "-TRYAGAIN x\r\n", "-LOADING x\r\n", "$1\r\nv\r\n", ""
	for _, c := range []struct {
		name   string
		a, b   string // the answers to two commands
		reads  bool
		first  int // how often the commands arrive
		second int
	}{
		{"served", done, done, false, 1, 1},
		{"the connection breaks", done, breaks, false, 1, 1},
		{"the connection breaks at once", breaks, done, false, 1, 0},
		{"the first one is rejected", again, done, false, 1, 1},
		{"the first one is rejected, the second one has moved", again, moved, false, 1, 4},
		{"both have moved", moved, moved, false, 4, 4},
		{"none was executed", loading, loading, false, 3, 3},
		{"reads", done, breaks, true, 3, 3},
		{"reads, the first one has moved", moved, breaks, true, 4, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &server{seen: make(map[string]int)}
				seen := make(map[string]int)
				s.answer = func(args []string) string {
					if args[0] == "cluster" {
						return "*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:6379\r\n"
					}
					if len(args) < 2 {
						return "-ERR unknown command\r\n"
					}
					s.mu.Lock()
					defer s.mu.Unlock()
					seen[args[1]]++
					return map[string]string{"a": c.a, "b": c.b}[args[1]]
				}
				client, err := NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:6379"}, Dialer: s.dial}, egress.Config{})
				if err != nil {
					t.Fatal(err)
				}
				cmds, err := client.Pipelined(t.Context(), func(p redis.Pipeliner) error {
					for _, key := range []string{"a", "b"} {
						if c.reads {
							p.Get(t.Context(), key)
						} else {
							p.GetSet(t.Context(), key, "v")
						}
					}
					return nil
				})
				failed := [2]bool{c.a != done, c.b != done || c.a == breaks}
				if got := [2]bool{cmds[0].Err() != nil, cmds[1].Err() != nil}; got != failed || (err != nil) != (failed[0] || failed[1]) {
					t.Errorf("error %v; %v", err, cmds)
				}
				if seen["a"] != c.first || seen["b"] != c.second {
					t.Errorf("sent %d and %d times, want %d and %d: %v", seen["a"], seen["b"], c.first, c.second, err)
				}
				_ = client.Close()
				time.Sleep(time.Minute) // goroutines of go-redis end
			})
		})
	}
}
