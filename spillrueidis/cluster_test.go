package spillrueidis

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/egress"
)

const (
	first  = "127.0.0.1:7001" // has the slots 0 to 8191
	second = "127.0.0.1:7002" // has the others
	// The keys "foo" (slot 12182) and "bar" (5061) are from the cluster specification.
	ofFirst, ofSecond = "bar", "foo"
)

// cluster returns a cluster of two nodes, and a client of it.
func cluster(t *testing.T, c egress.Config, answer func(node string, args []string) string) (*server, *Client) {
	t.Helper()
	s := &server{seen: make(map[string]int)}
	s.answer = func(node string, args []string) string {
		if args[0] == "CLUSTER" {
			row := func(from, to, port int) string {
				return fmt.Sprintf("*3\r\n:%d\r\n:%d\r\n*2\r\n$9\r\n127.0.0.1\r\n:%d\r\n", from, to, port)
			}
			return "*2\r\n" + row(0, 8191, 7001) + row(8192, 16383, 7002)
		}
		return answer(node, args)
	}
	return s, s.client(t, c, rueidis.ClientOption{InitAddress: []string{first}})
}

// A shard that hangs takes no place in flight of another, and rejections by one throttle no other.
func TestShards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		held := make(chan struct{})
		_, client := cluster(t, egress.Config{MaxInFlight: 10}, func(node string, args []string) string {
			switch {
			case node == first:
				<-held
			case args[0] == "SET":
				return "-OOM x\r\n"
			}
			return "$1\r\nv\r\n"
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var all sync.WaitGroup
		rejected := 0
		for range 10 {
			all.Go(func() { _, _ = client.get(ctx, ofFirst) })
		}
		synctest.Wait()
		for range 10 {
			if _, err := client.get(ctx, ofFirst); errors.Is(err, spillway.ErrRejected) {
				rejected++
			}
		}
		if v, err := client.get(ctx, ofSecond); rejected != 10 || v != "v" || err != nil {
			t.Errorf("%d of 10 commands to a full shard are rejected; the other one: %q, %v", rejected, v, err)
		}
		mixed := client.DoMulti(ctx, client.B().Get().Key(ofFirst).Build(), client.B().Get().Key(ofSecond).Build(), client.B().Get().Key(ofSecond).Build())
		if !errors.Is(mixed[0].Error(), spillway.ErrRejected) || mixed[1].Error() != nil || mixed[2].Error() != nil {
			t.Error(mixed)
		}
		stats := client.Stats(time.Now())
		if stats[first].InFlight.InFlight != 10 || stats[second].InFlight.InFlight != 0 {
			t.Errorf("%+v", stats)
		}
		all.Wait()
		close(held)
		client.idle(t)
		end(client)
	})
}

// A node passes the policies of its shard.
func TestNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen events
		_, client := cluster(t, egress.Config{Observer: &seen}, func(string, []string) string { return "$1\r\nv\r\n" })
		nodes := client.Nodes()
		if len(nodes) != 2 {
			t.Fatal(nodes)
		}
		if err := nodes[second].Do(t.Context(), client.B().Get().Key(ofSecond).Build()).Error(); err != nil {
			t.Error(err)
		}
		if _, n := seen.first("retry"); n != 1 {
			t.Errorf("%d calls", n)
		}
		if all := client.DoMulti(t.Context(), client.B().Multi().Build(), client.B().Get().Key(ofSecond).Build(), client.B().Exec().Build()); len(all) != 3 || all[1].Error() != nil {
			t.Error(all)
		}
		if s := client.Stats(time.Now()); s[second].Throttle[spillway.Critical.Index()].Requests != 2 {
			t.Errorf("%+v", s)
		}
		end(client)
	})
}

// Two nodes each say that the other has the slot: a storm of redirections. Each call ends after
// three of them, and the retries of other failures are paid by the budget.
func TestRedirections(t *testing.T) {
	for answer, row := range map[string]struct{ least, most int }{
		"-MOVED 5061 %s\r\n":                {400, 400}, // one and three redirections
		"-ASK 5061 %s\r\n":                  {400, 400},
		"-TRYAGAIN slot is moving\r\n":      {100, 130},
		"-CLUSTERDOWN Hash slot not served": {100, 130},
		"-LOADING x\r\n":                    {100, 130},
		"-READONLY x\r\n":                   {100, 130},
		"-WRONGTYPE x\r\n":                  {100, 100},
	} {
		synctest.Test(t, func(t *testing.T) {
			s, client := cluster(t, egress.Config{}, func(node string, args []string) string {
				if args[0] == "ASKING" {
					return "+OK\r\n"
				}
				other := map[string]string{first: second, second: first}[node]
				text := strings.ReplaceAll(strings.TrimSuffix(answer, "\r\n"), "%s", other) + "\r\n"
				return text
			})
			for range 100 {
				if err := client.set(t.Context(), ofFirst); err == nil {
					t.Fatal("no error")
				}
			}
			if n := s.count("SET"); n < row.least || n > row.most {
				t.Errorf("%q: sent %d times, want %d to %d", answer, n, row.least, row.most)
			}
			for name, s := range client.Stats(time.Now()) {
				if p := s.Throttle[spillway.Critical.Index()].Probability; p > 0 {
					t.Errorf("%q: %s is throttled: %v", answer, name, p)
				}
			}
			client.idle(t)
			end(client)
		})
	}
}

// What a server says of its shards is not believed blindly.
func TestParse(t *testing.T) {
	for _, row := range []struct {
		answer string
		want   string // of the key "bar"
	}{
		{"*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$1\r\na\r\n:1\r\n", "a:1"},
		{"*1\r\n*3\r\n:5061\r\n:5061\r\n*2\r\n_\r\n:1\r\n", ":1"},
		{"*1\r\n*3\r\n:5062\r\n:16383\r\n*2\r\n$1\r\na\r\n:1\r\n", first},
		{"*1\r\n*3\r\n:-1\r\n:99999\r\n*2\r\n$1\r\na\r\n:1\r\n", first},
		{"*1\r\n*3\r\n:9\r\n:1\r\n*2\r\n$1\r\na\r\n:1\r\n", first},
		{"*2\r\n+x\r\n*1\r\n:1\r\n", first},
		{"*1\r\n*3\r\n:0\r\n:16383\r\n*1\r\n$1\r\na\r\n", first},
		{"+OK\r\n", first},
	} {
		synctest.Test(t, func(t *testing.T) {
			asked := 0
			s := &server{seen: make(map[string]int)}
			s.answer = func(_ string, args []string) string {
				if args[0] != "CLUSTER" {
					return "$1\r\nv\r\n"
				}
				if asked++; asked == 1 { // by rueidis itself
					return "*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:7001\r\n"
				}
				return row.answer
			}
			client := s.client(t, egress.Config{}, rueidis.ClientOption{InitAddress: []string{first}})
			if _, err := client.get(t.Context(), ofFirst); err != nil {
				t.Error(err)
			}
			if s := client.Stats(time.Now()); len(s) != 1 || s[row.want].Throttle[spillway.Critical.Index()].Requests != 1 {
				t.Errorf("%q: %+v, want %q", row.answer, s, row.want)
			}
			end(client)
		})
	}
}

// The shards are read again every minute until Close.
func TestRefresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, client := cluster(t, egress.Config{}, func(string, []string) string { return "$1\r\nv\r\n" })
		before := s.count("CLUSTER")
		time.Sleep(10*time.Minute + time.Second)
		if n := s.count("CLUSTER") - before; n != 10 {
			t.Errorf("read %d times in 10 minutes", n)
		}
		end(client)
		before = s.count("CLUSTER")
		time.Sleep(10 * time.Minute)
		if n := s.count("CLUSTER") - before; n != 0 {
			t.Errorf("read %d times after Close", n)
		}
	})
}
