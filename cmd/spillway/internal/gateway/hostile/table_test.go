package hostile

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

var (
	lasting = flag.Duration("hostile.for", 0, "how long each attack lasts; 0 runs none")
	mixing  = flag.Duration("hostile.mix", 0, "how long all attacks last at once; 0 runs them not")
	full    = flag.Bool("hostile.full", false, "attack with what a machine of its own bears")
	seed    = flag.Uint64("hostile.seed", 1, "of the order in which attacks come at once")
)

// What an honest client must get during any attack.
const (
	leastShare      = 99.0 // percent
	leastFloodShare = 95.0 // percent, while a flood takes more processor time than there is
	mostDelay       = 3    // times the 99th percentile without an attack
)

// leastP99 is the least that a 99th percentile is compared with: that of a control with few
// samples may by chance be that of the upstream alone.
const leastP99 = delay + 5*time.Millisecond

// What a proxy may have left after an attack: memory for a few idle connections and the
// statistics of policies, and what net/http keeps for a while.
const (
	heapLeft       = 16 << 20
	goroutinesLeft = 50
	filesLeft      = 50
)

// tries is how often a row may be measured until it holds: a machine that is busy with
// something else delays any client, and in a short run two requests are the slowest hundredth.
// The table shows how often it was.
func tries() int { return strength(6, 2) }

// TestTable runs all attacks, one after the other, and prints what the honest client got.
// At full strength a row takes at most twice two times -hostile.for and 30 s, and the
// one of 80 s as much more.
func TestTable(t *testing.T) {
	if *lasting == 0 {
		t.Skip("it measures for minutes, and needs an idle machine: run make hostile")
	}
	began := time.Now()
	var table strings.Builder
	fmt.Fprintf(&table, "%-36s %-22s %9s %9s %6s %17s %11s %9s %5s\n", "attack", "honest client served", "p99", "control", "ratio", "heap, MB", "goroutines", "files", "tries")
	for _, a := range attacks {
		t.Run(a.name, func(t *testing.T) {
			var m measurement
			try := 1
			for ; ; try++ {
				m = a.trial(t, *lasting)
				if m.problem == nil || try == tries() {
					break
				}
				t.Log(try, m.problem, m.during.failed)
			}
			table.WriteString(m.row(a.name, try))
			if len(m.control.failed)+len(m.during.failed) > 0 {
				t.Log("control:", m.control.failed, "during:", m.during.failed)
			}
			if m.problem != nil {
				t.Error(m.problem)
			}
		})
	}
	t.Logf("%v\n%s", time.Since(began).Round(time.Second), table.String())
}

// A measurement is what an honest client got during an attack, and without one, and what the
// proxy had before and after it.
type measurement struct {
	control, during result
	before, after   footprint
	problem         error
}

func (m *measurement) row(name string, tries int) string {
	const mb = 1 << 20
	verdict := ""
	if m.problem != nil {
		verdict = " FAILED"
	}
	return fmt.Sprintf("%-36s %5d of %5d %6.1f %% %9v %9v %5.1fx %7.1f -> %6.1f %4d -> %3d %3d -> %2d %5d%s\n", name,
		m.during.served, m.during.sent, m.during.share(), m.during.p99.Round(time.Millisecond), m.control.p99.Round(time.Millisecond),
		m.during.p99.Seconds()/max(m.control.p99, leastP99).Seconds(), float64(m.before.Heap)/mb, float64(m.after.Heap)/mb,
		m.before.Goroutines, m.after.Goroutines, m.before.Files, m.after.Files, tries, verdict)
}

// setUp starts upstreams and a proxy.
func (a *attack) setUp(t *testing.T) *stage {
	t.Helper()
	s := &stage{t: t, secure: a.library == overTLS}
	if a.library != "" {
		s.proxy = begin(t, "library", "", a.library)
		s.address = s.proxy.address
		return s
	}
	kinds := a.upstreams
	if len(kinds) == 0 {
		kinds = []string{"plain"}
	}
	var endpoints []string
	for _, kind := range kinds {
		u := begin(t, "upstream", kind)
		s.upstreams = append(s.upstreams, u)
		endpoints = append(endpoints, `"`+u.address+`"`)
	}
	s.proxy = begin(t, "proxy", fmt.Sprint(a.files), a.settings(strings.Join(endpoints, ", ")))
	s.address = s.proxy.address
	return s
}

// settings is the configuration, in one line.
func (a *attack) settings(endpoints string) string {
	listener, cluster, routes := "", "", "{}"
	switch {
	case strings.HasPrefix(a.config, "max_connections"):
		listener = ", " + a.config
	case strings.HasPrefix(a.config, "batch"):
		cluster = ", " + a.config
	case strings.HasPrefix(a.config, "customer"):
		routes = "{" + a.config + "}"
	case a.config == "exempt":
		// What the honest client asks for is not limited; all else is, but for what is exempt.
		return fmt.Sprintf(`{mode: enforce, listeners: [{address: "127.0.0.1:0"}], `+
			`clusters: [{name: a, endpoints: [%s]}, {name: b, endpoints: [%s], rate_limit: {rate: 1}}], `+
			`routes: [{path: /healthz, exempt: true, cluster: b}, {path: /health/, exempt: true, prefix: true, cluster: b}, {path: /work, cluster: a}, {cluster: b}]}`, endpoints, endpoints)
	case a.config == "apart": // the attack and the honest client share nothing but the listener
		return fmt.Sprintf(`{mode: enforce, listeners: [{address: "127.0.0.1:0", max_connections: 200}], `+
			`clusters: [{name: a, endpoints: [%s]}, {name: b, endpoints: [%s]}], routes: [{path: /slow, cluster: b}, {cluster: a}]}`, endpoints, endpoints)
	case a.config == "quota":
		cluster = ", quota: {customers: {acme: {rate: 150}, 'cn:acme': {rate: 150}}}"
		routes = "{customer: {identity: true}}"
	}
	return fmt.Sprintf(`{mode: enforce, listeners: [{address: "127.0.0.1:0"%s}], clusters: [{name: a, endpoints: [%s]%s}], routes: [%s]}`, listener, endpoints, cluster, routes)
}

// trial measures an attack on one proxy. The control is a second proxy at the same time, which is
// not attacked: other work on the machine slows down both.
func (a *attack) trial(t *testing.T, d time.Duration) (m measurement) {
	t.Helper()
	s, spare := a.setUp(t), (&attack{library: a.library}).setUp(t)
	measured := func(address, name string, d time.Duration) result {
		ctx, cancel := context.WithTimeout(t.Context(), d)
		defer cancel()
		h := newHonest(address, s.secure)
		if a.customer != "" {
			h.header.Set("X-Customer", a.customer)
		}
		h.run(ctx, name)
		return h.result()
	}
	var warm sync.WaitGroup
	warm.Go(func() { measured(s.address, "warm", d/3) })
	warm.Go(func() { measured(spare.address, "warm too", d/3) })
	warm.Wait()
	m.before = s.proxy.measure()
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	go func() { failed <- a.run(ctx, s) }()
	if a.crowd != nil {
		go a.crowd(ctx, spare)
	}
	<-time.After(d / 6) // it has begun
	if *full {
		<-time.After(a.lasts)
	}
	control := make(chan result, 1)
	go func() { control <- measured(spare.address, "control", d) }()
	m.during, m.control = measured(s.address, "during", d), <-control
	cancel()
	m.problem = <-failed
	m.after = s.settle(m.before)
	if m.problem == nil {
		m.problem = m.judge(cmp.Or(a.least, leastShare))
	}
	return m
}

// settle waits until the proxy has freed what the attack held, and returns what is left. At
// full strength it waits until that becomes no less, for a minute at most.
func (s *stage) settle(before footprint) (f footprint) {
	f = s.proxy.measure()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		last := f
		<-time.After(time.Duration(strength(200, 1000)) * time.Millisecond)
		f = s.proxy.measure()
		if left(before, f) == nil && (!*full || f.Heap > last.Heap-last.Heap/50 && f.Goroutines >= last.Goroutines && f.Files >= last.Files) {
			return f
		}
	}
	return f
}

func left(before, after footprint) error {
	switch {
	case int64(after.Heap)-int64(before.Heap) > heapLeft:
		return fmt.Errorf("the heap was %d MB, and is %d MB", before.Heap>>20, after.Heap>>20)
	case after.Goroutines-before.Goroutines > goroutinesLeft:
		return fmt.Errorf("there were %d goroutines, and are %d", before.Goroutines, after.Goroutines)
	case after.Files-before.Files > filesLeft:
		return fmt.Errorf("%d files were open, and %d are", before.Files, after.Files)
	case after.Kept > 0:
		return fmt.Errorf("%d bytes are kept for clients that have left", after.Kept)
	}
	return nil
}

func (m *measurement) judge(least float64) error {
	switch most := mostDelay * max(m.control.p99, leastP99); {
	case m.control.share() < leastShare:
		return fmt.Errorf("the control is not served: %v %v", m.control, m.control.failed)
	case m.during.share() < least:
		return fmt.Errorf("the honest client is not served: %v", m.during)
	case m.during.p99 > most:
		return fmt.Errorf("the honest client waits too long: %v, want at most %v", m.during, most)
	}
	return left(m.before, m.after)
}
