package main

import (
	"bytes"
	"context"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// Each protocol is measured against its own upstream, and no request may be lost.
func TestProtocols(t *testing.T) {
	for name, p := range protocols {
		s, err := p.serve()
		if err != nil {
			t.Fatal(err)
		}
		quick, err := flood(t.Context(), p, s.Addr().String(), 50*time.Millisecond)
		if err != nil || quick.served == 0 || quick.rejected != 0 {
			t.Errorf("%s: %+v, %v", name, quick, err)
		}
		slow, err := pace(t.Context(), p, s.Addr().String(), 200*time.Millisecond, 500)
		if err != nil || slow.served != 100 || slow.quantile(0.5) <= 0 || slow.quantile(0.5) > slow.quantile(0.99) {
			t.Errorf("%s: %d served in 200 ms at 500/s, %v", name, slow.served, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if _, err := flood(t.Context(), p, s.Addr().String(), 50*time.Millisecond); err == nil {
			t.Errorf("%s: nobody is there, and it was measured", name)
		}
	}
}

// Answers that are rejections count as such, and others are errors.
func TestAnswers(t *testing.T) {
	for _, row := range []struct {
		answer string
		served bool
		good   bool
	}{
		{answer1, true, true},
		{"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 5\r\n\r\nspill", false, true},
		{"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n", false, false},
		{"HTTP/1.1 200 OK\r\n\r\n", true, false},
		{"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", true, false},
	} {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			_, _ = c.Read(make([]byte, 1000))
			_, _ = io.WriteString(c, row.answer)
			_ = c.Close()
		}()
		c, err := dialHTTP1(context.Background(), ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if served, err := c.do(); (err == nil) != row.good || err == nil && served != row.served {
			t.Errorf("%q: served %v, %v", row.answer, served, err)
		}
		_ = c.Close()
		_ = ln.Close()
	}
}

func TestTable(t *testing.T) {
	rows := conclude([]Row{
		{Name: "none", perSecond: []float64{9, 10, 11}, cpu: []float64{0, 0, 0}, busy: []float64{0, 0, 0}, p50: []float64{20, 10, 30}, p99: []float64{50, 40, 60}},
		{Name: "caddy", perSecond: []float64{4, 1, 3, 2}, cpu: []float64{1, 2, 3, 4}, busy: []float64{1, 1, 1, 1}, p50: []float64{50, 50, 50, 50}, p99: []float64{90, 90, 90, 90}},
		{Name: "spillway-enforce", perSecond: []float64{5}, cpu: []float64{7}, busy: []float64{1}, p50: []float64{60}, p99: []float64{150}},
	})
	if c := rows[1]; c.PerSecond != 2.5 || c.AddedP50 != 30 || c.AddedP99 != 40 || c.LeastPerSec != 1 || c.MostPerSecond != 4 {
		t.Errorf("caddy: %+v", c)
	}
	if rows[2].OfCaddy != 2 || rows[0].OfCaddy != 4 {
		t.Errorf("ratios %v and %v", rows[2].OfCaddy, rows[0].OfCaddy)
	}
	var b bytes.Buffer
	if err := (&Result{Tables: []Table{{"some protocol", rows}}}).write(&b); err != nil || strings.Count(b.String(), "\n") != 7 {
		t.Errorf("%v\n%s", err, b.String())
	}
}

func TestFlags(t *testing.T) {
	good := cli{Rounds: 1, Slice: time.Second, Rate: 1000}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	for want, change := range map[string]func(*cli){
		"--rounds is 0": func(c *cli) { c.Rounds = 0 },
		"--slice is 1h": func(c *cli) { c.Slice = time.Hour },
		"--rate is 1,":  func(c *cli) { c.Rate = 1 },
		`--only has "haproxi", must be of none, haproxy,`: func(c *cli) { c.Only = []string{"caddy", "haproxi"} },
	} {
		bad := good
		change(&bad)
		if err := bad.Validate(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}
