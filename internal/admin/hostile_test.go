package admin

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/admin/accounts"
	"github.com/seed90641741/spillway/internal/admin/customers"
	"github.com/seed90641741/spillway/internal/admin/settings"
	"github.com/seed90641741/spillway/quota"
)

// pages are the paths that an operator reads.
var pages = []string{
	"/", "/metrics", "/api/v1/state", "/debug/limits", "/debug/queues", "/debug/decisions", "/debug/decisions?format=json",
	"/debug/accounts", "/debug/top", "/debug/top?format=json", "/debug/quotas", "/debug/config",
}

// hostileNames are what a configuration, a client or a control plane may call things.
var hostileNames = map[string]string{
	"HTML":               `<script>alert(1)</script>"'&`,
	"control characters": "a\x1b[31m\x00\a\r\nforged  line\tof its own\u0085\u2028",
	"right to left":      "\u202egnp.exe\u2066\u200f",
	"not UTF-8":          "\xff\xfe\xc0",
	"8 kB":               strings.Repeat("route/", 1400),
}

// fill sets all strings and numbers that a value has, and gives it one element of each slice.
func fill(v reflect.Value, text string, number float64) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Float64:
		v.SetFloat(number)
	case reflect.Pointer:
		if v.Type().Elem().Kind() == reflect.Struct || v.Type().Elem().Kind() == reflect.Float64 {
			v.Set(reflect.New(v.Type().Elem()))
			fill(v.Elem(), text, number)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), text, number)
	case reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i), text, number)
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return
		}
		for _, field := range v.Fields() {
			if field.CanSet() {
				fill(field, text, number)
			}
		}
	default:
	}
}

// hostileScene returns a proxy all of whose names and numbers are as given.
func hostileScene(text string, number float64) *scene {
	s := newScene(spillway.ModeEnforce)
	s.seconds(2)
	fill(reflect.ValueOf(&s.proxy.levels).Elem(), text, number)
	s.proxy.settings = []settings.Setting{{Field: text, Value: text, Given: true}}
	call := spillway.Call{Key: text + ": /" + text, Customer: text, Criticality: spillway.Critical}
	e := rejected("quota", spillway.ModeEnforce, &spillway.RejectedError{Policy: "quota", Reason: spillway.ReasonQuota, Level: number, Limit: number, Unit: "per second"})
	e.Time, e.Call = s.now, call
	s.sampler.with.Decisions.Before(s.sampler.with.Collector).Observe(e)
	book := s.sampler.with.Collector.Accounts()
	at := book.At(accounts.Place{Listener: text, Cluster: text, Route: text})
	book.Begin()
	book.End(accounts.End{Account: accounts.Served, Criticality: spillway.Critical, At: at, Sent: time.Second})
	for range 3 {
		s.now = s.now.Add(time.Second)
		s.sampler.tick(s.now)
	}
	return s
}

// TestHostileNames: whatever names there are, each page is answered, JSON is valid, and no text has a control
// character, a line that a name has made, or a name of 8 kB.
func TestHostileNames(t *testing.T) {
	lines := make(map[string]int)
	for _, path := range pages {
		lines[path] = strings.Count(get(t, hostileScene("name", 1).Handler(), path).Body.String(), "\n")
	}
	for name, text := range hostileNames {
		h := hostileScene(text, 1).Handler()
		for _, path := range pages {
			if path == "/metrics" && !utf8.ValidString(text) {
				continue // the labels are of the configuration, which is read as UTF-8
			}
			w := get(t, h, path)
			body := w.Body.String()
			if w.Code != http.StatusOK || w.Header().Get("X-Content-Type-Options") != "nosniff" || !utf8.ValidString(body) {
				t.Errorf("%s, %s: %d %v", name, path, w.Code, w.Header())
			}
			switch kind := w.Header().Get("Content-Type"); {
			case strings.HasPrefix(kind, "application/json"):
				if !json.Valid(w.Body.Bytes()) || strings.Contains(body, "<script>") {
					t.Errorf("%s, %s: JSON is not valid, or has HTML", name, path)
				}
			case strings.HasPrefix(kind, "text/plain") && path != "/metrics":
				if i := strings.IndexFunc(body, func(r rune) bool { return r != '\n' && r != '\uFFFD' && !unicode.IsPrint(r) }); i >= 0 {
					t.Errorf("%s, %s: a control character in %q", name, path, body[max(0, i-40):min(len(body), i+40)])
				}
				if n := strings.Count(body, "\n"); path != "/debug/decisions" && n != lines[path] || strings.Contains(body, "\nforged") {
					t.Errorf("%s, %s: %d lines, want %d", name, path, n, lines[path])
				}
				if len(body) > 40_000 {
					t.Errorf("%s, %s: %d bytes", name, path, len(body))
				}
			}
		}
	}
}

// TestHostileNumbers: a level that is infinite or no number breaks no page and no stream.
func TestHostileNumbers(t *testing.T) {
	for _, number := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64, -1} {
		s := hostileScene("name", number)
		for _, path := range pages {
			w := get(t, s.Handler(), path)
			if w.Code != http.StatusOK || strings.HasPrefix(w.Header().Get("Content-Type"), "application/json") && !json.Valid(w.Body.Bytes()) {
				t.Errorf("%v: %s: %d %.200s", number, path, w.Code, w.Body)
			}
		}
		first, ticks, err := s.sampler.follow("a")
		if err != nil {
			t.Fatal(err)
		}
		s.sampler.tick(s.now.Add(time.Second))
		for _, text := range [][]byte{first, <-ticks} {
			if _, data, ok := strings.Cut(string(text), "\ndata: "); !ok || !json.Valid([]byte(strings.TrimSpace(data))) {
				t.Errorf("%v: %.200q", number, text)
			}
		}
	}
}

// TestManyCustomers: 100,000 customers of a quota, each with a long name, make no page long.
func TestManyCustomers(t *testing.T) {
	s := newScene(spillway.ModeEnforce)
	all := make([]quota.CustomerStats, 100_000)
	long := strings.Repeat("customer ", 20)
	for i := range all {
		name := fmt.Sprintf("%d %s", i, long)
		all[i] = quota.CustomerStats{Customer: name, Limit: 1, Rate: 1, Wants: float64(i), RejectedRate: float64(i)}
	}
	s.proxy.levels.Customers = customers.Top(customers.Of("main", "web", all))
	s.second()
	for _, path := range pages {
		if w := get(t, s.Handler(), path); w.Code != http.StatusOK || w.Body.Len() > 100_000 {
			t.Errorf("%s: %d, %d bytes", path, w.Code, w.Body.Len())
		}
	}
	if n := strings.Count(get(t, s.Handler(), "/debug/quotas").Body.String(), "customer"); n == 0 {
		t.Error("no customer is shown")
	}
}

// TestManyReaders: a thousand readers of all pages at once, in a proxy that ticks, are all answered.
func TestManyReaders(t *testing.T) {
	quiet(t)
	s := hostileScene("name", 1)
	web := httptest.NewServer(s.Handler())
	defer web.Close()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100, MaxConnsPerHost: 100}}
	defer client.CloseIdleConnections()
	var readers sync.WaitGroup
	for i := range 1000 {
		readers.Go(func() {
			resp, err := client.Get(web.URL + pages[i%len(pages)])
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			path := pages[i%len(pages)]
			busy := path == "/metrics" && resp.StatusCode == http.StatusServiceUnavailable // scrapers at once are bounded
			if n, err := io.Copy(io.Discard, resp.Body); err != nil || n == 0 || resp.StatusCode != http.StatusOK && !busy {
				t.Errorf("%s: %d, %d bytes, %v", path, resp.StatusCode, n, err)
			}
		})
	}
	for i := range 5 {
		s.sampler.tick(s.now.Add(time.Duration(i+1) * time.Second))
	}
	readers.Wait()
}
