package admin

import (
	"strings"
	"testing"
	"time"

	"github.com/seed90641741/spillway/internal/admin/customers"
	"github.com/seed90641741/spillway/internal/admin/quotastats"
	"github.com/seed90641741/spillway/quota"
)

// newService returns a scene of a service of quotas that has served for some seconds: each brings calls.
func newService(seconds int, calls ...quota.ClassStats) *scene {
	f := &fake{levels: Levels{
		Service: &quotastats.Service{Quota: "shop", Address: "127.0.0.1:18081", Envoys: 3, Listed: 12, Unlisted: 1234, Reports: 50, Overflow: 7, Invalid: 2},
		Quotas: []quotastats.Stats{{
			Name: "shop", Tasks: 5, Leader: true, Age: 700 * time.Millisecond, Syncs: 10,
			Customers: []quotastats.Customer{{Customer: "mail", Rate: 1000, Debt: time.Second, Marginal: 0}},
		}},
		Customers: []customers.Customer{
			{Cluster: "shop", Customer: "mail", Listed: true, Total: 1000, Limit: 1000, AdmittedRate: 998, RejectedRate: 202, Admitted: 123456, Rejected: 2345},
			{Cluster: "shop", Customer: strings.Repeat("customer-of-a-very-long-name-", 4), Total: 10, AdmittedRate: 3},
			{Cluster: "shop", Unlisted: true, Total: 5000, AdmittedRate: 123},
		},
	}}
	s := &scene{proxy: f, now: noon}
	s.Server = NewAt(Config{Source: f, Program: f, Metrics: someMetrics, Version: "test"}, noon)
	for range seconds {
		next := *f.levels.Service
		for class, c := range calls {
			next.Calls[class].AdmittedTotal += c.AdmittedTotal
			next.Calls[class].RejectedTotal += c.RejectedTotal
		}
		f.levels.Service = &next
		s.now = s.now.Add(time.Second)
		s.sampler.tick(s.now)
	}
	return s
}

func TestService(t *testing.T) {
	s := newService(12, quota.ClassStats{RejectedTotal: 200}, quota.ClassStats{}, quota.ClassStats{AdmittedTotal: 998, RejectedTotal: 2})
	st := s.sampler.state.Load()
	if f := st.Mean; f.Offered != 1200 || f.Goodput != 998 || f.Rejected != (Classes{200, 0, 2, 0}) || f.Ended != (Classes{200, 0, 1000, 0}) {
		t.Errorf("the figures are %+v", f)
	}
	if v := st.Verdict; v.Level != "warn" || !strings.HasPrefix(v.Text, "1,200/s asked for, 998/s admitted, 202/s rejected by 3 Envoys. 1 customer at the limit: mail.") {
		t.Errorf("%+v", v)
	}
	tiles := make(map[string]string)
	for _, tile := range st.Tiles {
		tiles[tile.ID] = tile.Text + " " + tile.Note
	}
	for id, want := range map[string]string{
		"offered": "1,200/s by all customers", "goodput": "998/s 83 % of asked for", "rejected": "202/s 17 % of asked for",
		"limited": "1 of 3 shown below", "envoys": "3 1,246 buckets", "tasks": "5 levels 700 ms old",
	} {
		if tiles[id] != want {
			t.Errorf("the tile %s is %q, want %q", id, tiles[id], want)
		}
	}
	if text := get(t, s.Handler(), "/debug/quotas").Body.String(); !strings.Contains(text, "mail") {
		t.Errorf("/debug/quotas is %s", text)
	}
}

// TestServiceVerdicts: a service of quotas without Envoys or requests says so, and what is wrong comes first.
func TestServiceVerdicts(t *testing.T) {
	for _, row := range []struct {
		change   func(*fake)
		calls    quota.ClassStats
		headline string
	}{
		{func(f *fake) { f.levels.Service = &quotastats.Service{Address: "127.0.0.1:18081"} }, quota.ClassStats{}, "No Envoy yet."},
		{func(*fake) {}, quota.ClassStats{}, "No requests."},
		{func(*fake) {}, quota.ClassStats{AdmittedTotal: 100}, "Customers are within their quotas."},
		{func(f *fake) { f.levels.Quotas[0].Lost = true }, quota.ClassStats{AdmittedTotal: 100}, "Quota shop has no leader."},
		{func(f *fake) { f.levels.Quotas[0].Conflict = true }, quota.ClassStats{}, "Tasks have different limits for quota shop."},
		{func(f *fake) { f.levels.Draining = true }, quota.ClassStats{AdmittedTotal: 100}, "Draining."},
	} {
		s := newService(3, quota.ClassStats{}, quota.ClassStats{}, row.calls)
		row.change(s.proxy)
		s.sampler.tick(s.now.Add(time.Second))
		if v := s.sampler.state.Load().Verdict; v.Headline != row.headline {
			t.Errorf("%+v, want %s", v, row.headline)
		}
	}
}
