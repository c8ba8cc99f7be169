package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// runAll runs simulated trials over sockets, one after the other.
func runAll(trials []trial, wire string) error {
	for i := range trials {
		t := &trials[i]
		simulated := t.result
		if err := t.runOver(wire); err != nil {
			return err
		}
		t.result += " (" + simulated + ")"
	}
	return nil
}

// runOver is run over sockets: the tasks of the back service are processes, and the rest is in this one.
func (t *trial) runOver(wire string) error {
	backs, stop, err := startBacks(wire, t.work)
	defer stop()
	if err != nil {
		return err
	}
	var fronts []string
	for range servers {
		f, addr, err := t.startFront(wire, backs)
		if err != nil {
			return err
		}
		defer f.close()
		fronts = append(fronts, addr)
	}
	clients := make([]*http.Client, t.clients)
	for i := range clients {
		c, closes, err := newClient(fronts)
		if err != nil {
			return err
		}
		defer closes()
		clients[i] = c
	}
	done := t.offer(clients)
	t.result = fmt.Sprintf("%.2f", float64(done*t.calls)/(t.capacity()*float64(t.seconds)))
	return nil
}

// offer sends tasks at random times, and returns how many of those that were sent while it counts were done in time.
func (t *trial) offer(clients []*http.Client) int {
	random := rand.New(rand.NewPCG(t.seed, 0))
	began, mean := time.Now(), float64(time.Second)*float64(t.calls)/(t.load*t.capacity())
	var done atomic.Int64
	var all sync.WaitGroup
	for at := time.Duration(0); at < t.end(); at += time.Duration(random.ExpFloat64() * mean) {
		<-time.After(time.Until(began.Add(at)))
		client, counts := clients[random.IntN(len(clients))], at >= t.warmUp
		all.Go(func() {
			ctx, cancel := context.WithDeadline(context.Background(), began.Add(at+t.deadline()))
			defer cancel()
			if err := get(ctx, client); err == nil && counts {
				done.Add(1)
			}
		})
	}
	all.Wait()
	return int(done.Load())
}

// startBacks starts the tasks of the back service, and returns their addresses and what stops them.
func startBacks(wire string, work time.Duration) (addrs []string, stop func(), err error) {
	var stops []func()
	stop = func() {
		for _, s := range stops {
			s()
		}
	}
	exe, err := os.Executable()
	if err != nil {
		return nil, stop, err
	}
	for range servers {
		addr, ends, err := startBack(exec.Command(exe, backCommand, wire, work.String()))
		if err != nil {
			return nil, stop, fmt.Errorf("starting a task of the back service: %w", err)
		}
		addrs, stops = append(addrs, addr), append(stops, ends)
	}
	return addrs, stop, nil
}

func startBack(cmd *exec.Cmd) (addr string, stop func(), err error) {
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return "", nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	stop = func() {
		_ = in.Close() // it ends then
		_ = cmd.Wait() // how does not matter
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		stop()
		return "", nil, io.ErrUnexpectedEOF
	}
	return strings.TrimSpace(line), stop, nil
}
