package resets

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed90641741/spillway/connlimit"
)

// TestLog: each connection is counted by its reason. Of each reason a second has one line, which names
// the client and the setting, and how many there were before: a flood of one reason hides no other.
func TestLog(t *testing.T) {
	for name, row := range map[string]struct {
		mongo    bool
		settings map[string]string
	}{
		"http": {false, map[string]string{
			"connection_rate": "listeners[main].connection_rate", "max_connections": "listeners[main].max_connections", "peers": "listeners[main].peers", "overload": "mode",
			"max_header_bytes": "listeners[main].max_header_bytes",
		}},
		"mongo": {true, map[string]string{
			"connection_rate": "mongo[main].parameters.ingressConnectionEstablishmentRatePerSec", "max_connections": "mongo[main].max_connections",
		}},
	} {
		synctest.Test(t, func(t *testing.T) {
			var text bytes.Buffer
			l := New(slog.New(slog.NewJSONHandler(&text, nil)), "main", row.mongo)
			client := &net.TCPAddr{IP: net.ParseIP("192.0.2.7"), Port: 40_000}
			for range 30 { // 3 s
				for range 100 {
					l.Rejected(client, connlimit.LimitRate)
				}
				l.Rejected(client, connlimit.LimitOpen)
				if row.settings["peers"] != "" {
					l.count(&net.TCPAddr{IP: net.ParseIP("2001:db8::1:2")}, Peers)
					l.Rejected(client, connlimit.LimitOverload)
					l.Rejected(client, connlimit.LimitHeads)
				}
				time.Sleep(100 * time.Millisecond)
			}
			want := Counts{3000, 30, 30, 30, 30}
			if row.settings["peers"] == "" {
				want.Peers, want.Overload, want.MaxHeaderBytes = 0, 0, 0
			}
			if c := l.Counts(); c != want || c.Total() != want.ConnectionRate+want.MaxConnections+want.Peers+want.Overload+want.MaxHeaderBytes || c.Plus(c).Total() != 2*c.Total() {
				t.Errorf("%s: %+v; want %+v", name, c, want)
			}
			lines := make(map[string]int)
			left := 0
			for d := json.NewDecoder(&text); d.More(); {
				var line struct {
					Listener, Client, Reason, Settings, Do string
					LeftOut                                int `json:"left_out"`
				}
				if err := d.Decode(&line); err != nil {
					t.Fatal(err)
				}
				address := map[bool]string{false: "192.0.2.7", true: "2001:db8::/64"}[line.Reason == "peers"]
				if line.Listener != "main" || line.Client != address || line.Settings != row.settings[line.Reason] || line.Do == "" {
					t.Errorf("%s: %+v", name, line)
				}
				lines[line.Reason]++
				left += line.LeftOut
			}
			for reason := range row.settings {
				if n := lines[reason]; n < 3 || n > 4 {
					t.Errorf("%s: %d lines of %s in 3 s", name, n, reason)
				}
			}
			if left < 2000 {
				t.Errorf("%s: the lines say that %d others are left out", name, left)
			}
		})
	}
}

// TestNotice: one reset per second is a notice, with the most frequent reason.
func TestNotice(t *testing.T) {
	for _, row := range []struct {
		counts, before Counts
		headline       string
	}{
		{Counts{}, Counts{}, ""},
		{Counts{9, 0, 0, 0, 0}, Counts{}, ""},
		{Counts{5, 3, 2, 0, 0}, Counts{}, "Listener main resets connections: 1.0/s."},
		{Counts{105, 13, 2, 0, 0}, Counts{100, 10, 0, 0, 0}, "Listener main resets connections: 1.0/s."},
		{Counts{105, 13, 2, 0, 0}, Counts{100, 13, 2, 0, 0}, ""},
		{Counts{0, 0, 0, 25, 0}, Counts{0, 0, 0, 5, 0}, "Listener main resets connections: 2.0/s."},
		{Counts{0, 0, 0, 25, 0}, Counts{0, 0, 0, 95, 0}, "Listener main resets connections: 2.5/s."}, // it was started again
		{Counts{0, 0, 0, 0, 25}, Counts{0, 0, 0, 0, 5}, "Listener main resets connections: 2.0/s."},
		{Counts{0, 30, 0, 0, 0}, Counts{100, 13, 2, 0, 0}, "Listener main resets connections: 3.0/s."}, // it was started again
	} {
		headline, text, ok := row.counts.Minus(row.before).Notice("main", false, 10)
		if headline != row.headline || ok != (headline != "") || ok == (text == "") {
			t.Errorf("%+v since %+v: %q, %q, %v", row.counts, row.before, headline, text, ok)
		}
	}
	for most, c := range []Counts{{9, 5, 5, 5, 1}, {5, 9, 5, 5, 1}, {5, 5, 9, 5, 1}, {5, 5, 5, 9, 1}, {5, 5, 5, 1, 9}} {
		_, text, _ := c.Notice("a\nb", false, 10)
		setting := map[bool]string{true: "listeners[a\uFFFDb]."}[Reason(most) != Overload]
		if want := "The reason is " + setting + names[most] + " (36 % of them). " + advice[most]; !strings.HasPrefix(text, want) {
			t.Errorf("%q, want %q", text, want)
		}
	}
}
