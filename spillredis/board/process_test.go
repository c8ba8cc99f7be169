package board

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/quota"
	"github.com/seed90641741/spillway/quota/fleet"
)

const slice = 100 * time.Millisecond // of which a process counts its calls

// planVariable has the plan of a process.
const planVariable = "SPILLWAY_TEST_TASK"

// A plan is what one process does: it starts at a time, and its demand changes at others.
type plan struct {
	Addr   string
	Task   int
	Start  time.Time
	End    time.Duration
	Demand []demand
}

// A demand is that of one process from a time on, in calls per second.
type demand struct {
	From  time.Duration
	Rate  float64
	Class spillway.Criticality
}

// at returns the demand at a time.
func (p *plan) at(since time.Duration) (d demand) {
	for _, next := range p.Demand {
		if next.From <= since {
			d = next
		}
	}
	return d
}

// counted are the calls of a process in one slice, by class.
type counted struct {
	Slice              int
	Admitted, Rejected [spillway.Criticalities]int
}

// ended is the last line of a process.
type ended struct{ Tasks int } // the most that the leader knew

// TestTask is one process of TestProcesses. It prints a line for each slice, and one at the end.
func TestTask(t *testing.T) {
	text := os.Getenv(planVariable)
	if text == "" {
		t.Skip("a process of TestProcesses")
	}
	var p plan
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		t.Fatal(err)
	}
	f, err := fleet.New(fleet.Config{
		Task: fmt.Sprint("task-", p.Task), Tasks: tasks, Interval: interval,
		Limits: quota.LocalConfig{Customers: map[string]quota.Limit{"mail": {Rate: limit}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	q, err := quota.New(quota.Config{Allocator: f})
	if err != nil {
		t.Fatal(err)
	}
	client := Connect(redis.UniversalOptions{Addrs: []string{p.Addr}})
	defer func() { _ = client.Close() }()
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	b := mustBoard(t, client, "processes")
	done.Go(func() { fleet.Run(ctx, f, b) })
	most := p.calls(f, q)
	cancel()
	done.Wait()
	_ = json.NewEncoder(os.Stdout).Encode(ended{most})
}

// calls makes independent calls until the end, and longer if the leader does not know all tasks yet,
// which a busy machine may delay.
func (p *plan) calls(f *fleet.Fleet, q *quota.Quota) (most int) {
	out := json.NewEncoder(os.Stdout)
	r := rand.New(rand.NewPCG(uint64(p.Task), 1))
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	c := counted{}
	next := max(time.Since(p.Start), 0) // time of the next call
	for {
		now := <-ticker.C
		since := now.Sub(p.Start)
		most = max(most, f.Stats(now).Tasks)
		if since >= p.End && (most >= tasks || since >= p.End+time.Minute) {
			return most
		}
		if s := int(since / slice); s != c.Slice {
			_ = out.Encode(c)
			c = counted{Slice: s}
		}
		for next <= since {
			d := p.at(next)
			if d.Rate == 0 {
				next = since + time.Millisecond
				break
			}
			class := d.Class.Index()
			if _, err := q.Admit(now, spillway.Call{Customer: "mail", Criticality: d.Class}); err == nil {
				c.Admitted[class]++
			} else {
				c.Rejected[class]++
			}
			next += time.Duration(r.ExpFloat64() / d.Rate * float64(time.Second))
		}
	}
}

// processes are the tasks of a service, one process each.
type processes struct {
	t     *testing.T
	cmds  []*exec.Cmd
	start time.Time
	done  sync.WaitGroup

	mu    sync.Mutex
	calls [tasks]map[int]counted
	most  [tasks]int
}

// newProcesses starts them. Their clocks begin when all should have started.
func newProcesses(t *testing.T, addr string, end time.Duration, load func(task int) []demand) *processes {
	t.Helper()
	p := &processes{t: t, start: time.Now().Add(2 * time.Second)}
	for i := range tasks {
		text, err := json.Marshal(plan{Addr: addr, Task: i, Start: p.start, End: end, Demand: load(i)})
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestTask$", "-test.timeout=5m")
		cmd.Env = append(os.Environ(), planVariable+"="+string(text))
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		p.cmds = append(p.cmds, cmd)
		p.calls[i] = map[int]counted{}
		p.done.Go(func() {
			for lines := bufio.NewScanner(out); lines.Scan(); {
				p.line(i, lines.Bytes())
			}
			_ = cmd.Wait() // a killed process has no result
		})
	}
	return p
}

// line takes in a line of a process. It ignores lines of package testing.
func (p *processes) line(task int, text []byte) {
	var c struct {
		counted
		ended
	}
	if json.Unmarshal(text, &c) != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.Tasks > 0 {
		p.most[task] = c.Tasks
		return
	}
	p.calls[task][c.Slice] = c.counted
}

// sum returns the calls per second from one time to another, by class, of the tasks from the first on.
func (p *processes) sum(from, to time.Duration, first int) (admitted, rejected [spillway.Criticalities]float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for task := first; task < tasks; task++ {
		for s := int(from / slice); s < int(to/slice); s++ {
			for class := range admitted {
				admitted[class] += float64(p.calls[task][s].Admitted[class]) / (to - from).Seconds()
				rejected[class] += float64(p.calls[task][s].Rejected[class]) / (to - from).Seconds()
			}
		}
	}
	return admitted, rejected
}

// share returns what all tasks have admitted, in limits.
func (p *processes) share(from, to time.Duration) (sum float64) {
	admitted, _ := p.sum(from, to, 0)
	for _, x := range admitted {
		sum += x / limit
	}
	return sum
}

// seconds checks all seconds from one time to another.
func (p *processes) seconds(what string, from, to time.Duration, least, most float64) {
	p.t.Helper()
	low, high := math.Inf(1), 0.
	for ; from+time.Second <= to; from += slice {
		x := p.share(from, from+time.Second)
		low, high = min(low, x), max(high, x)
	}
	within(p.t, what+": least second", low, least, most)
	within(p.t, what+": most second", high, least, most)
}

// sleep waits until a time since the start.
func (p *processes) sleep(until time.Duration) { <-time.After(time.Until(p.start.Add(until))) }

// uneven is the part of a task in uneven demand; the first has most.
func uneven(task int) float64 {
	sum := 0.
	for i := range tasks {
		sum += 1 / float64(i+1)
	}
	return 1 / float64(task+1) / sum
}

// Twenty processes share a limit. How well is measured with -measure only.
func TestProcesses(t *testing.T) {
	if testing.Short() {
		t.Skip("starts 20 processes")
	}
	s := newServer(t)
	const end = 4 * time.Second
	p := newProcesses(t, s.addr, end, func(task int) []demand {
		return []demand{{0, 3 * limit * uneven(task), spillway.Critical}}
	})
	p.done.Wait()
	took := time.Since(p.start)
	sum := p.share(0, took+time.Second) * (took + time.Second).Seconds()
	if most := 2 * (took.Seconds() + 1); sum <= 0 || sum > most {
		t.Errorf("%.3g limits were admitted in %v, want some and at most %.3g", sum, took, most)
	}
	for i, most := range p.most {
		if most != tasks {
			t.Errorf("process %d knew of %d tasks at most, want %d", i, most, tasks)
		}
	}
}
