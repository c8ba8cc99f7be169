package board

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed90641741/spillway/internal/freeport"
)

// port returns the port of a server.
func (s *server) port() string {
	_, port, _ := net.SplitHostPort(s.addr)
	return port
}

// until waits until a condition holds.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("not within 30 s: %s", what)
		}
		<-time.After(20 * time.Millisecond)
	}
}

// replicate makes s a replica of another server, and waits until it has its data.
func (s *server) replicate(of *server) {
	c := s.client(redis.UniversalOptions{})
	if err := c.Do(context.Background(), "replicaof", "127.0.0.1", of.port()).Err(); err != nil {
		s.t.Fatal(err)
	}
	until(s.t, "the replica is in step", func() bool {
		role, err := c.Do(context.Background(), "role").Slice()
		return err == nil && len(role) > 3 && role[3] == "connected"
	})
}

// sentinel starts a Sentinel that watches a server and needs no other, and returns its address.
func sentinel(t *testing.T, of *server) string {
	t.Helper()
	addr := freeport.Address(t)
	_, port, _ := net.SplitHostPort(addr)
	dir := t.TempDir()
	file := filepath.Join(dir, "sentinel.conf") // which the program rewrites
	text := fmt.Sprintf("port %s\nbind 127.0.0.1\ndir %s\nsentinel monitor fleet 127.0.0.1 %s 1\n"+
		"sentinel down-after-milliseconds fleet 500\nsentinel failover-timeout fleet 3000\n", port, dir, of.port())
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := &exec.Cmd{Path: binary(t), Args: []string{"redis-sentinel", file, "--sentinel"}}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	c := redis.NewSentinelClient(&redis.Options{Addr: addr})
	t.Cleanup(func() { _ = c.Close() })
	until(t, "the sentinel knows the replica", func() bool {
		all, err := c.Replicas(context.Background(), "fleet").Result()
		return err == nil && len(all) == 1
	})
	return addr
}

// The server is killed, and Sentinel promotes its replica.
func TestSentinelPromotesAReplica(t *testing.T) {
	if !*measure {
		t.Skip("starts three servers and takes 20 s; run with -measure")
	}
	master, replica := newServer(t), newServer(t)
	replica.replicate(master)
	addr := sentinel(t, master)
	r := newRun(t, func() redis.UniversalClient {
		c := Connect(redis.UniversalOptions{MasterName: "fleet", Addrs: []string{addr}})
		t.Cleanup(func() { _ = c.Close() })
		return c
	})
	r.drive(5 * time.Second)
	before := r.fleets[0].Stats(time.Now())
	master.kill()
	r.drive(15 * time.Second)
	for from := 4 * time.Second; from+time.Second <= 15*time.Second; from += 200 * time.Millisecond {
		within(t, fmt.Sprint("second from ", from), r.share(from, from+time.Second), 0.85, 1.15)
	}
	within(t, "all", r.share(5*time.Second, 15*time.Second), 0.95, 1.05)
	for i, f := range r.fleets {
		if st := f.Stats(time.Now()); st.Age > time.Second || st.ErrorsTotal == 0 || st.Epoch < before.Epoch {
			t.Errorf("task %d: %+v, want errors, and new levels", i, st)
		}
	}
	if n := replica.client(redis.UniversalOptions{}).HLen(t.Context(), "spillway:{fleet}:reports").Val(); n != tasks+1 { // and when they began
		t.Errorf("%d tasks report to the replica, want %d", n, tasks)
	}
}

// The node of a cluster that has the slot is killed, and its replica takes over.
func TestClusterFailsOver(t *testing.T) {
	if !*measure {
		t.Skip("starts four servers and takes 20 s; run with -measure")
	}
	cluster := []string{"--cluster-enabled", "yes", "--cluster-node-timeout", "500", "--cluster-require-full-coverage", "no"}
	var nodes []*server
	var addrs []string
	for range 4 {
		s := newServer(t, cluster...)
		nodes, addrs = append(nodes, s), append(addrs, s.addr)
	}
	do := func(s *server, args ...any) {
		t.Helper()
		if err := s.client(redis.UniversalOptions{}).Do(t.Context(), args...).Err(); err != nil {
			t.Fatal(args, err)
		}
	}
	for i, slots := range [][2]int{{0, 16381}, {16382, 16382}, {16383, 16383}} {
		do(nodes[i], "cluster", "addslotsrange", slots[0], slots[1])
		do(nodes[i], "cluster", "set-config-epoch", i+1)
	}
	for _, s := range nodes[1:] {
		do(nodes[0], "cluster", "meet", "127.0.0.1", s.port())
	}
	id, err := nodes[0].client(redis.UniversalOptions{}).Do(t.Context(), "cluster", "myid").Text()
	if err != nil {
		t.Fatal(err)
	}
	replica := nodes[3].client(redis.UniversalOptions{})
	until(t, "the node is a replica", func() bool { return replica.Do(t.Context(), "cluster", "replicate", id).Err() == nil })
	until(t, "the replica is in step", func() bool {
		role, err := replica.Do(t.Context(), "role").Slice()
		return err == nil && len(role) > 3 && role[3] == "connected"
	})
	for _, s := range nodes[1:] {
		until(t, "all nodes know all slots", func() bool {
			slots, err := s.client(redis.UniversalOptions{}).ClusterSlots(t.Context()).Result()
			return err == nil && len(slots) == 3 && len(slots[0].Nodes)+len(slots[1].Nodes)+len(slots[2].Nodes) == 4
		})
	}
	r := newRun(t, func() redis.UniversalClient {
		c := Connect(redis.UniversalOptions{Addrs: addrs})
		t.Cleanup(func() { _ = c.Close() })
		return c
	})
	r.drive(5 * time.Second)
	nodes[0].kill()
	r.drive(15 * time.Second)
	for from := 4 * time.Second; from+time.Second <= 15*time.Second; from += 200 * time.Millisecond {
		within(t, fmt.Sprint("second from ", from), r.share(from, from+time.Second), 0.85, 1.15)
	}
	within(t, "all", r.share(5*time.Second, 15*time.Second), 0.95, 1.05)
	for i, f := range r.fleets {
		if st := f.Stats(time.Now()); st.Age > time.Second || st.ErrorsTotal == 0 {
			t.Errorf("task %d: %+v, want errors, and new levels", i, st)
		}
	}
}
