//go:build unix

package main

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/gatewaytest"
	"github.com/seed90641741/spillway/internal/freeport"
	"github.com/seed90641741/spillway/internal/telemetry"
	"github.com/seed90641741/spillway/internal/thorough"
)

// busy is a proxy that does everything that metrics are about: the cluster shop has less capacity than is asked for, batch
// has a queue, and db is a server of MongoDB.
const busy = `listeners:
  - {name: public, address: '127.0.0.1:0', boundary: internal, peers: [127.0.0.0/8], max_connections: 40, connection_rate: {rate: 20}}
clusters:
  - name: shop
    endpoints: ['%[1]s']
    retry: {mode: enforce}
    throttle: {mode: enforce}
    rate_limit: {rate: 80, queue_depth: 20}
    balance: {load_reports: {blackout_period: 100ms}}
    learn_costs: {by: customer, unit: 1ms, max_error: 1}
    tune: {mode: observe, latency: 20ms, limit: rate}
    quota: {engine: shared, customers: {acme: {rate: 10}}, default_limit: {rate: 1000}, unlisted_total: {rate: 2000}}
  - {name: batch, endpoints: ['%[1]s'], batch: {connections: 2, queue: 3}}
  - {name: watched, endpoints: ['%[1]s'], shed: {mode: observe}}
  - {name: broken, endpoints: ['%[4]s'], retry: {mode: enforce, ratio: 0.01}}
routes:
  - {path: /late/, cluster: watched, timeout: 5ms}
  - {path: /broken/, cluster: broken}
  - {path: /watched/, cluster: watched}
  - {path: /batch/, cluster: batch}
  - {cluster: shop, customer: {header: X-Customer, trusted_header: true}, timeout: 1s}
mongo: [{name: db, address: '127.0.0.1:0', endpoints: ['%[2]s']}]
quotas: {shared: {domain: shop, redis: {addresses: ['%[3]s']}}}
`

// redisServer starts a server of Redis and returns its address.
func redisServer(t *testing.T) string {
	t.Helper()
	path := ""
	for _, name := range []string{"redis-server", "valkey-server", "redis-check-rdb"} { // Debian's redis-tools has it as the last
		if found, err := exec.LookPath(name); err == nil {
			path = found
		}
	}
	if path == "" {
		t.Skip("no redis-server, valkey-server or redis-check-rdb in PATH (Debian: apt-get install redis-tools)")
	}
	address := freeport.Address(t)
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(path, "--port", port, "--bind", "127.0.0.1", "--save", "", "--dir", t.TempDir())
	c.Args[0] = "redis-server"
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait() // it was killed
	})
	return address
}

// overload starts a proxy and overloads it.
func overload(t *testing.T) *stage {
	t.Helper()
	places := make(chan struct{}, 2)
	backend := serve(t, func(w http.ResponseWriter, r *http.Request) {
		places <- struct{}{}
		defer func() { <-places }()
		after(25*time.Millisecond)(&reporting{w}, r)
	})
	s := newStage(t, fmt.Sprintf(busy, backend, gatewaytest.Mongo(t), redisServer(t), serve(t, overloadedOf(3)))).up()
	address := ""
	s.load(60, customer("acme"))
	s.load(60, customer("globex"), func(n int, r *http.Request) {
		r.Header.Set("X-Request-Criticality", []string{"SHEDDABLE", "CRITICAL_PLUS"}[n%2])
	})
	for path, second := range map[string]int{"/batch/now": 20, "/watched/now": 10, "/late/now": 10, "/broken/now": 30} {
		s.load(second, func(_ int, r *http.Request) { r.URL.Path = path })
	}
	s.every(5, func(n int) {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Millisecond)
		defer cancel()
		s.send(n, ctx, customer("hasty"))
	})
	s.await("an address of db", func(st *shown) bool {
		for _, l := range st.Listeners {
			if l.Name == "db" && l.Address != "" {
				address = l.Address
			}
		}
		return address != ""
	})
	s.every(10, func(int) { s.ping(address) })
	return s
}

// reporting adds a load report to an answer.
type reporting struct{ http.ResponseWriter }

func (r *reporting) Write(p []byte) (int, error) {
	r.Header().Set("endpoint-load-metrics", "TEXT cpu_utilization=0.9,rps_fractional=80")
	return r.ResponseWriter.Write(p)
}

// inputSeries returns the series of a rules test of promtool in which those metrics that are wanted go on for two hours as
// they did between two reads.
func inputSeries(first, second string, passed time.Duration, wanted func(name string) bool) string {
	var b strings.Builder
	b.WriteString("    input_series:\n")
	before, now := series(first), series(second)
	for _, name := range slices.Sorted(maps.Keys(now)) {
		if !wanted(name) {
			continue
		}
		labelled := name + "{"
		if labels, ok := strings.CutSuffix(name, "}"); ok {
			labelled = labels + ","
		}
		fmt.Fprintf(&b, "      - {series: '%sjob=\"edge\",instance=\"a\"}', values: '%g%+gx120'}\n", labelled, now[name], 60*(now[name]-before[name])/passed.Seconds())
	}
	return b.String()
}

var expectation = regexp.MustCompile(`(?s)expr: "((?:[^"\\]|\\.)*)", time: \S+,\s*exp:\s*nil\s*got:\s*(\S[^\n]*)`)

// evaluated returns what expressions are, 119 minutes after the metrics began. Those without any sample are not there.
func evaluated(t *testing.T, series string, expressions []string) map[string]string {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "evaluation_interval: 1m\ntests:\n  - interval: 1m\n%s    promql_expr_test:\n", series)
	for _, x := range expressions {
		fmt.Fprintf(&b, "      - {eval_time: 119m, exp_samples: [], expr: %s}\n", strconv.Quote(x))
	}
	file := filepath.Join(t.TempDir(), "test.yaml")
	if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("promtool", "test", "rules", file).CombinedOutput()
	got := make(map[string]string)
	for _, m := range expectation.FindAllStringSubmatch(string(out), -1) {
		x, err := strconv.Unquote(`"` + m[1] + `"`)
		if err != nil {
			t.Fatal(err)
		}
		got[x] = m[2]
	}
	if err != nil && len(got) == 0 {
		t.Fatalf("%v: %s", err, out)
	}
	return got
}

// expressions returns the expressions of a panel as Grafana would send them.
func (p *panel) expressions() (all []string) {
	for _, x := range p.Targets {
		all = append(all, strings.NewReplacer("$job", ".*", "$__rate_interval", "5m", "$__range", "30m").Replace(x.Expr))
	}
	return all
}

// number is a sample in what promtool prints of a result.
var number = regexp.MustCompile(`\} [-+]?[0-9.]`)

// empty returns the expressions that have no sample which is a number.
func empty(expressions []string, got map[string]string) (all []string) {
	for _, x := range expressions {
		if !number.MatchString(got[x]) {
			all = append(all, x)
		}
	}
	return all
}

// ofLibrary reports whether an expression has metrics that the proxy does not have.
func ofLibrary(expression string) bool {
	return of(telemetry.Library, expression) || of(telemetry.Quota, expression)
}

// selector finds the metrics in expressions, with what their labels must be.
var selector = regexp.MustCompile(`spillway_\w+(\{[^}]*\})?`)

// shownOnBoard returns the expressions of the board that the proxy has metrics for, and those of its numbers.
func shownOnBoard(t *testing.T) (all, numbers []string) {
	t.Helper()
	for _, row := range readBoard(t).Rows {
		for _, p := range row.Panels {
			xs := slices.DeleteFunc(p.expressions(), ofLibrary)
			if all = append(all, xs...); p.Type == "stat" {
				numbers = append(numbers, xs...)
			}
		}
	}
	if len(all) < 40 || len(numbers) < 4 {
		t.Fatalf("%d expressions, %d of them of numbers", len(all), len(numbers))
	}
	return all, numbers
}

// alerting returns what the alerts look at.
func alerting(t *testing.T) (all []string) {
	t.Helper()
	var file struct {
		Groups []struct{ Rules []struct{ Expr string } }
	}
	if err := yaml.Unmarshal(deployed(t, "alerts.yaml"), &file); err != nil {
		t.Fatal(err)
	}
	for _, r := range file.Groups[0].Rules {
		all = append(all, slices.DeleteFunc(selector.FindAllString(r.Expr, -1), ofLibrary)...)
	}
	if len(all) < 20 {
		t.Fatalf("the alerts look at %q", all)
	}
	return all
}

// during reads the metrics twice, and returns the series for promtool.
func (s *stage) during() string {
	first, at := s.ask("metrics"), time.Now()
	wait := time.NewTimer(time.Second)
	defer wait.Stop()
	<-wait.C
	return inputSeries(first, s.ask("metrics"), time.Since(at), func(string) bool { return true })
}

// TestPanels: each panel of the board, and what each alert looks at, has data when the proxy is overloaded. The numbers
// have data when all is well, too.
func TestPanels(t *testing.T) {
	if !thorough.Enabled() {
		t.Skip("waits until costs are learnt, for half a minute: run it with -tags thorough")
	}
	if _, err := exec.LookPath("promtool"); err != nil {
		t.Skip("promtool is not installed: it comes with Prometheus (Debian: the package prometheus)")
	}
	all, numbers := shownOnBoard(t)
	well := newStage(t, shopOf("", serve(t, fine))).up().load(40)
	well.await("requests", func(*shown) bool { return well.served.Load() > 10 })
	if got := empty(numbers, evaluated(t, well.during(), numbers)); len(got) > 0 {
		t.Errorf("no data when all is well: %s", strings.Join(got, "\n"))
	}
	well.end()
	all = append(all, alerting(t)...)
	s := overload(t)
	var series string
	var missing []string
	for end := time.Now().Add(patience); time.Now().Before(end); {
		series = s.during()
		if missing = empty(all, evaluated(t, series, all)); len(missing) == 0 {
			break
		}
	}
	if len(missing) > 0 {
		t.Fatalf("no data under load: %s", strings.Join(missing, "\n"))
	}
	without := regexp.MustCompile(`(?m)^.*'spillway_endpoints\{.*\n`).ReplaceAllString(series, "")
	got := empty(all, evaluated(t, without, all))
	if len(got) == 0 || slices.ContainsFunc(got, func(x string) bool { return !strings.Contains(x, "spillway_endpoints") }) {
		t.Errorf("without spillway_endpoints there is no data of %q", got)
	}
}
