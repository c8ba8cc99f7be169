package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/lab/drill"
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
			got[i] = fmt.Sprintf("%g:%v-%v%s", s.Load, s.Length, s.Settle, column[i])
		}
		if strings.Join(got, " ") != row.want {
			t.Errorf("%v: got %s, want %s", row.loads, strings.Join(got, " "), row.want)
		}
		if p.surge >= 0 && (p.load[p.surge].Length != row.surge || p.recovery != len(p.load)-1) {
			t.Errorf("%v: surge %d, recovery %d of %s", row.loads, p.surge, p.recovery, strings.Join(got, " "))
		}
	}
}

// Whoever averages the CPU use gets time for it, and none to forget it.
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

// Each front answers through real processes, and those that decide by how many
// calls are on their way refuse some.
func TestFrontsOfRealServers(t *testing.T) {
	for _, f := range fronts {
		t.Run(f.name, func(t *testing.T) {
			if testing.Short() && f.averages {
				t.Skip("needs some seconds")
			}
			c := runCommand{Seed: 1}
			b := drill.Backend{Kind: drill.BackendBlocking, Service: service, Rounds: 1}
			trial, row, leave := c.trial(b, 400, f)
			defer func() {
				if err := leave(); err != nil {
					t.Error(err)
				}
			}()
			trial.Load = []drill.Stretch{{Load: 0.3, Length: 300 * time.Millisecond}, {Load: 5, Length: 500 * time.Millisecond}}
			result, err := trial.Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if calm := result.Stretches[0]; calm.Goodput == 0 {
				t.Errorf("none of %d calls was answered", calm.Offered)
			}
			over, refuses := result.Stretches[1], f.name != frontNone && !f.averages
			if refused := over.RefusedByBackend > 0; refused != refuses {
				t.Errorf("%d of %d calls were refused in overload", over.RefusedByBackend, over.Offered)
			}
			if row.Front != f.name || row.DeadlineMS != 250 {
				t.Errorf("%+v", row)
			}
		})
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
	r := Row{Steps: []drill.StretchResult{{GoodputRatio: 0.9}, {GoodputRatio: 0.5}}}
	r.counted(600, 400)
	if r.CapacityRPS != 500 || r.Steps[0].GoodputRatio != 0.9*1.2 || r.Steps[1].GoodputRatio != 0.5*1.2 {
		t.Errorf("%+v", r)
	}
}
