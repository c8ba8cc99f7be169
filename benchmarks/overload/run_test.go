package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/seed90641741/spillway/benchmarks/internal/machine"
)

func TestPlan(t *testing.T) {
	const step = 2 * time.Second
	for _, row := range []struct {
		loads       []float64
		surge, rest time.Duration
		want        string // load:length-settle of each stretch, * where it is a column
	}{
		{[]float64{0.9}, 3 * time.Second, pause, "0.9:2.4s-400ms*"},
		{[]float64{10}, 3 * time.Second, pause, "0.5:500ms-0s 10:3s-1s* 0.5:1.5s-0s"},
		{
			[]float64{2, 10, 0.9, 1.1, 2, 0.5}, 3 * time.Second, pause,
			"0.5:2.4s-400ms* 0.9:2.4s-400ms* 0.5:500ms-0s 10:3s-1s* 0.5:500ms-0s 1.1:2.4s-400ms* 0.5:500ms-0s 2:2.4s-400ms* 0.5:1.5s-0s",
		},
		{[]float64{5, 1.1, 2}, 18 * time.Second, 0, "0.5:500ms-0s 5:18s-16s* 1.1:2.4s-400ms* 2:2.4s-400ms* 0.5:1.5s-0s"},
	} {
		p := newPlan(row.loads, step, row.surge, row.rest)
		column := map[int]string{}
		for _, i := range p.steps {
			column[i] = "*"
		}
		got := make([]string, len(p.load))
		for i, s := range p.load {
			got[i] = fmt.Sprintf("%g:%v-%v%s", s.load, s.length, s.settle, column[i])
		}
		if strings.Join(got, " ") != row.want {
			t.Errorf("%v: got %s, want %s", row.loads, strings.Join(got, " "), row.want)
		}
		if p.surge >= 0 && (p.load[p.surge].length != row.surge || p.recovery != len(p.load)-1) {
			t.Errorf("%v: surge %d, recovery %d of %s", row.loads, p.surge, p.recovery, strings.Join(got, " "))
		}
	}
}

// A front that averages the CPU use gets time for it, and none to forget it.
func TestWarmUp(t *testing.T) {
	if quick, slow := rest(front{}), rest(front{averages: true}); quick != pause || slow != 0 {
		t.Errorf("rests of %v and %v", quick, slow)
	}
	c := runCommand{Step: 3 * time.Second, WarmUp: 18 * time.Second}
	if quick, slow := c.surge(front{}), c.surge(front{averages: true}); quick != 3400*time.Millisecond || slow != 21*time.Second {
		t.Errorf("%v and %v", quick, slow)
	}
	c.WarmUp = 0
	if slow := c.surge(front{averages: true}); slow != 3400*time.Millisecond {
		t.Errorf("%v without a warm-up", slow)
	}
}

// Each front answers and rejects through real processes, and does nothing else.
func TestFrontsOfRealServers(t *testing.T) {
	for _, f := range fronts {
		if w, _ := wireNamed("http1"); !f.suits(w) {
			continue
		}
		t.Run(f.name, func(t *testing.T) {
			b := backendCommand{Kind: kindMixed, Wire: "http1", Front: f.name, Rounds: 1, Procs: 1}
			p, err := b.start(t.Context(), new(machine.Affinity), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer p.stop()
			got, err := p.closedLoop(t.Context(), 50*time.Millisecond, startTimeout, rejected) // how many depends on the machine
			if err != nil {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}

// A trial counts each call once.
func TestTrial(t *testing.T) {
	b := backendCommand{Kind: kindBlocking, Wire: "http1", Front: "static", Rounds: 1, Procs: 1}
	x := trial{backend: b, capacity: 400, seed: 1, load: []stretch{
		{load: 0.3, length: 200 * time.Millisecond}, {load: 5, length: 300 * time.Millisecond, settle: 100 * time.Millisecond},
	}}
	got, err := x.run(t.Context(), new(machine.Affinity))
	if err != nil {
		t.Fatal(err)
	}
	calls, from := schedule(1, x.load, 400), time.Duration(0)
	for i, s := range got.steps {
		all := s.Good + s.Late + s.Rejected + s.Reset + s.Lost + s.Failed + s.Unsent
		end := from + x.load[i].length
		if want := len(between(calls, from+x.load[i].settle, end)); s.Offered != want || all != want || s.Failed > 0 || s.Reset > 0 {
			t.Errorf("stretch %d of %d calls: %+v", i, want, s)
		}
		from = end
	}
}

// Clients that use Spillway reject calls on each wire that the server would reject.
func TestClientsReject(t *testing.T) {
	for _, wire := range []string{"http1", "http2", "grpc"} {
		t.Run(wire, func(t *testing.T) {
			b := backendCommand{Kind: kindCPU, Wire: wire, Front: frontSpillway, Rounds: 1, Procs: 1, Reject: true}
			p, err := b.start(t.Context(), new(machine.Affinity), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer p.stop()
			c, err := p.caller(4, true)
			if err != nil {
				t.Fatal(err)
			}
			defer c.close()
			for range 1000 {
				o, err := callFor(t.Context(), c, startTimeout)
				if o != good && o != rejected {
					t.Fatalf("outcome %d: %v", o, err)
				}
				if rejectedHere(err) {
					return
				}
			}
			t.Error("the client has sent all of 1000 calls to a server that rejects them")
		})
	}
}

// A server answers on each wire.
func TestWires(t *testing.T) {
	for _, w := range wires {
		t.Run(w.name, func(t *testing.T) {
			b := backendCommand{Kind: kindCPU, Wire: w.name, Front: frontNone, Rounds: 1, Procs: 1, SlowAccept: time.Millisecond}
			p, err := b.start(t.Context(), new(machine.Affinity), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer p.stop()
			if got, err := p.closedLoop(t.Context(), 50*time.Millisecond, startTimeout, good); err != nil || got.perSecond <= 0 {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}

// A server that is asked to reject every call does so on each wire, and says what that costs.
func TestRejectsAll(t *testing.T) {
	for _, f := range fronts {
		for _, w := range wires {
			if !f.rejects() || !f.suits(w) {
				continue
			}
			t.Run(f.name+"/"+w.name, func(t *testing.T) {
				b := backendCommand{Kind: kindCPU, Wire: w.name, Front: f.name, Rounds: 1, Procs: 1, Reject: true}
				p, err := b.start(t.Context(), new(machine.Affinity), nil)
				if err != nil {
					t.Fatal(err)
				}
				defer p.stop()
				want := rejected
				if f.paced {
					want = reset
				}
				var got pace
				for range 100 { // the first calls may be served
					if got, err = p.closedLoop(t.Context(), 20*time.Millisecond, startTimeout, want); err != nil || got.perSecond > 0 && got.others == 0 {
						break
					}
				}
				if err != nil || got.others > 0 || got.cpu <= 0 && runtime.GOOS == "linux" {
					t.Errorf("%+v, %v", got, err)
				}
			})
		}
	}
}

// A whole run, cut short, writes what it has.
func TestInterrupt(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	file := filepath.Join(t.TempDir(), "result.json")
	var out, errs strings.Builder
	if status := run(ctx, []string{"--json=" + file, "--fronts=none", "--backends=cpu"}, &out, &errs); status != exitInterrupted {
		t.Errorf("exit status %d: %s", status, errs.String())
	}
	if !strings.HasPrefix(out.String(), legend) {
		t.Errorf("output %q", out.String())
	}
	if r, err := read(file); err != nil || len(r.Rows) != 0 {
		t.Errorf("%v, %v", r, err)
	}
}

func TestContainer(t *testing.T) {
	c, err := newContainer(2)
	if err != nil {
		t.Skip(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	// Burns CPU until the container says so.
	cmd := exec.CommandContext(ctx, "sh", "-c", `cat /sys/fs/cgroup/cpu/cpu.cfs_quota_us /proc/$$/cgroup
		until [ "$(cat /sys/fs/cgroup/cpuacct/cpuacct.usage)" -gt 1000000 ]; do :; done`)
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := c.launch(cmd, cmd.Start); err != nil {
		t.Fatal(err)
	}
	err = cmd.Wait()
	if strings.Contains(out.String(), "mount") {
		t.Skip(out.String()) // root, but of little
	}
	if want := "200000\n3:cpuset:/\n2:cpuacct:/\n1:cpu:/\n"; err != nil || out.String() != want {
		t.Errorf("%v, output %q, want %q", err, out.String(), want)
	}
	if err := c.close(); err != nil {
		t.Error(err)
	}
}

func TestCounted(t *testing.T) {
	r := Row{Steps: []Step{{GoodputRatio: 0.9}, {GoodputRatio: 0.5}}}
	r.counted(600, 400)
	if r.CapacityRPS != 500 || r.Steps[0].GoodputRatio != 0.9*1.2 || r.Steps[1].GoodputRatio != 0.5*1.2 {
		t.Errorf("%+v", r)
	}
}
