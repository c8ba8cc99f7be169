package mongoproxy

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/mongoproxy/wire"
	"github.com/seed90641741/spillway/internal/mongowire"
)

// relay is a minimal proxy: it copies bytes, in the kernel where possible.
func relay(l net.Listener, to string) {
	for {
		down, err := l.Accept()
		if err != nil {
			return
		}
		up, err := net.Dial("tcp", to)
		if err != nil {
			_ = down.Close()
			continue
		}
		carry := func(to, from net.Conn) {
			_, _ = io.Copy(to, from)
			_ = to.Close()
			_ = from.Close()
		}
		go carry(up, down)
		go carry(down, up)
	}
}

// what and where, in the environment, make the test binary one of the two.
const what, where = "MONGOPROXY_IS", "MONGOPROXY_UPSTREAM"

func TestMain(m *testing.M) {
	if os.Getenv(what) == "" {
		os.Exit(m.Run())
	}
	if err := serveAs(os.Getenv(what), os.Getenv(where)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// serveAs runs as a separate process until its input ends. It prints its address.
func serveAs(what, to string) error {
	keepApart(true)
	if what == "relay" {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		fmt.Fprintln(os.Stdout, l.Addr())
		go relay(l, to)
	} else {
		all := &config.Config{Mode: config.Mode(what), Mongo: []config.Mongo{{
			Name: "m", Address: "127.0.0.1:0", Endpoints: []string{to},
			Parameters: config.MongoParameters{RequestEnabled: true, RequestRate: 1e6},
		}}}
		p := New(context.Background(), Config{})
		if err := p.Update(all.Defaulted()); err != nil {
			return err
		}
		fmt.Fprintln(os.Stdout, p.Addr("m"))
	}
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

// process starts the test binary as one of the two, and returns where it listens.
func process(b *testing.B, is, to string) string {
	b.Helper()
	cmd := exec.CommandContext(b.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), what+"="+is, where+"="+to)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = in.Close() // which ends it
		_ = cmd.Wait()
	})
	addr, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	return strings.TrimSpace(addr)
}

// find is a command as drivers send them.
var find = msg(9, 0, doc(func(b *mongowire.Builder) {
	b.Text("find", "orders")
	b.Value("filter", mongowire.Value{Kind: mongowire.KindDocument, Data: doc(func(b *mongowire.Builder) { b.Int("_id", 4711) })})
	b.Int("limit", 1)
	b.Bool("singleBatch", true)
	b.Value("lsid", mongowire.Value{Kind: mongowire.KindDocument, Data: doc(func(b *mongowire.Builder) { b.Text("id", "0123456789abcdef") })})
	b.Text("$db", "shop")
}))

// found is the answer to it.
func found(h mongowire.Header, rest []byte) [][]byte {
	if h.RequestID != 9 {
		return fine(h, rest)
	}
	return [][]byte{foundMessage}
}

var foundMessage = mongowire.AppendMsg(nil, 1, 9, 0, doc(func(b *mongowire.Builder) {
	b.Value("cursor", mongowire.Value{Kind: mongowire.KindDocument, Data: doc(func(b *mongowire.Builder) {
		b.Text("firstBatch", string(make([]byte, 900)))
		b.Int("id", 0)
		b.Text("ns", "shop.orders")
	})})
	b.Double("ok", 1)
}))

// loop sends commands repeatedly, and appends the latency of each answer.
func (p *peer) loop(until time.Time, took []time.Duration) []time.Duration {
	answer := make([]byte, len(foundMessage))
	for now := time.Now(); now.Before(until); {
		p.send(find)
		if _, err := io.ReadFull(p.src, answer); err != nil {
			p.tb.Error(err)
			return took
		}
		then := now
		now = time.Now()
		took = append(took, now.Sub(then))
	}
	return took
}

// A side is one way to the server.
type side struct {
	name  string
	peers []*peer
	took  []time.Duration
}

// measure lets n of the peers ask for a while.
func (s *side) measure(n int, d time.Duration) {
	until := time.Now().Add(d)
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, p := range s.peers[:n] {
		all.Go(func() {
			took := p.loop(until, nil)
			mu.Lock()
			defer mu.Unlock()
			s.took = append(s.took, took...)
		})
	}
	all.Wait()
}

// BenchmarkBesideRelay shows what the proxy adds to the median of one client that asks again
// and again, and how much it carries of what a relay does for 16 of them, all gates on. Proxy
// and relay are separate processes on the same processor; clients and server have the others.
// They take turns in slices of 100 ms, so that other load on the machine affects both. Run it
// with -benchtime 1x.
func BenchmarkBesideRelay(b *testing.B) {
	defer keepApart(false)()
	for _, mode := range []string{"enforce", "observe", "off"} {
		b.Run(mode, func(b *testing.B) { besideRelay(b, mode) })
	}
}

func besideRelay(b *testing.B, mode string) {
	const slice, rounds, many = 100 * time.Millisecond, 10, 16
	s := newServer(b, found)
	sides := []*side{{name: "relay"}, {name: "proxy"}}
	for i, is := range []string{"relay", mode} {
		addr := process(b, is, s.Addr().String())
		for range many {
			p := dialTo(b, addr)
			if err := p.SetDeadline(time.Now().Add(time.Minute)); err != nil {
				b.Fatal(err)
			}
			p.ask(hello(true))
			sides[i].peers = append(sides[i].peers, p)
		}
	}
	for b.Loop() {
		for _, n := range []int{1, many} {
			for _, x := range sides {
				x.took = nil
			}
			for range rounds {
				for _, x := range sides {
					x.measure(n, slice)
				}
			}
			if n == many {
				for _, x := range sides {
					b.ReportMetric(float64(len(x.took))/(slice*rounds).Seconds(), x.name+"-commands/s")
				}
				b.ReportMetric(100*float64(len(sides[1].took))/float64(len(sides[0].took)), "%-of-relay")
				continue
			}
			var p50 [2]float64
			for i, x := range sides {
				slices.Sort(x.took)
				p50[i] = float64(x.took[len(x.took)/2]) / 1e3
				b.ReportMetric(p50[i], x.name+"-p50-µs")
			}
			b.ReportMetric(p50[1]-p50[0], "added-p50-µs")
		}
	}
	b.ReportMetric(0, "ns/op")
}

// BenchmarkRead measures the cost of parsing a command.
func BenchmarkRead(b *testing.B) {
	f := wire.Frame{Header: mongowire.ParseHeader(find), Head: find}
	var c wire.Command
	b.ReportAllocs()
	for b.Loop() {
		if err := c.Read(f, nil); err != nil {
			b.Fatal(err)
		}
	}
}
