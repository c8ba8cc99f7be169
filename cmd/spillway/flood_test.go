//go:build unix

package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// invented is a part of each name that the clients of TestInventedNames make up.
const invented = "invented"

// TestInventedNames floods a proxy with requests that each have a host, a path, a method, a customer, a request id
// and a trace id of their own. Memory, metrics and pages stay bounded, and no metric has one of these names.
func TestInventedNames(t *testing.T) {
	s := newStage(t, shopOf("quota: {default_limit: {rate: 5}}\n    rate_limit: {rate: 50}", serve(t, fine))+
		"routes: [{host: shop.test, cluster: shop, customer: {header: X-Customer, trusted_header: true}}]\n")
	s.within = func(now time.Time) time.Time { return now.Round(0) } // in this process, whose memory is measured
	s.up()
	const first, more, workers = 1500, 4500, 6
	var answered atomic.Int64
	flood := func(from, to int) {
		var all sync.WaitGroup
		for worker := range workers {
			all.Go(func() { answered.Add(int64(floodWith(s.address, from+worker, to, workers))) })
		}
		all.Wait()
	}
	flood(0, first)
	before := heap()
	flood(first, first+more)
	if n := answered.Load(); n < (first+more)/2 {
		t.Errorf("%d requests were answered", n)
	}
	st := s.await("all requests", func(*shown) bool { return s.metric("spillway_requests_total{") >= float64(answered.Load()) })
	// All names of the second part have more than 20 MB.
	if grown := int64(heap()) - int64(before); grown > 8<<20 {
		t.Errorf("the heap has grown by %d KiB", grown>>10)
	}
	if metrics := s.ask("metrics"); strings.Contains(metrics, invented) || len(series(metrics)) > 500 {
		t.Errorf("%d series, or one with a name of a client:\n%s", len(series(metrics)), metrics)
	}
	if page := s.ask("api/v1/state"); len(page) > 64<<10 || len(st.Reasons) < 2 {
		t.Errorf("%d reasons in %d bytes", len(st.Reasons), len(page))
	}
	for path, most := range map[string]int{"debug/top?n=100": 64 << 10, "debug/decisions?n=2000": 2 << 20} {
		if page := s.ask(path); !strings.Contains(page, invented) || len(page) > most {
			t.Errorf("%s has %d bytes, or no name", path, len(page))
		}
	}
	if lines := strings.Count(s.log.String(), "\n"); lines > (first+more)/4 {
		t.Errorf("%d lines in the log", lines)
	}
}

// heap returns how many bytes are in use.
func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what the first one has finalized
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// floodWith sends the requests from a number on, each step of them, and returns how many were answered. The proxy
// closes some connections after a rejection.
func floodWith(address string, from, to, step int) (answered int) {
	for n := from; n < to; {
		c, err := net.Dial("tcp", address)
		if err != nil {
			return answered
		}
		_ = c.SetDeadline(time.Now().Add(patience))
		answers := bufio.NewReader(c)
		for open := true; open && n < to; n += step {
			if open = ask(c, answers, n); open {
				answered++
			}
		}
		_ = c.Close()
	}
	return answered
}

// ask sends a request with the names of a number, and reports whether it was answered and the connection stays open.
func ask(c net.Conn, answers *bufio.Reader, n int) bool {
	name, long := fmt.Sprintf("%s-%06d", invented, n), strings.Repeat("x", 2000)
	host, method := "shop.test", "GET"
	if n%10 == 0 {
		host = name + ".test" // without a route
	}
	if n%3 == 0 {
		method = strings.ToUpper(name)
	}
	class := []string{"SHEDDABLE", "CRITICAL", name}[n%3]
	if _, err := fmt.Fprintf(c, "%s /%s/%s HTTP/1.1\r\nHost: %s\r\nX-Customer: %s-%s\r\nX-Request-Id: %s-%s\r\nTraceparent: 00-%032x-%016x-01\r\nUser-Agent: %s\r\nX-Request-Criticality: %s\r\n\r\n",
		method, name, long, host, name, long[:200], name, long, n+1, n+1, name, class); err != nil {
		return false
	}
	r, err := http.ReadResponse(answers, &http.Request{Method: method})
	if err != nil {
		return false
	}
	defer r.Body.Close()
	_, err = io.Copy(io.Discard, r.Body)
	return err == nil && !r.Close
}
