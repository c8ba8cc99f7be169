package admin

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/admin/accounts"
	"github.com/seed90641741/spillway/internal/admin/collector"
	"github.com/seed90641741/spillway/internal/admin/quotastats"
	"github.com/seed90641741/spillway/quota"
)

// countsIn returns the counts in the JSON of a State.
func countsIn(t *testing.T, s *scene) (c collector.Counts) {
	t.Helper()
	var st struct{ Counts *collector.Counts }
	if err := json.Unmarshal(get(t, s.Handler(), "/api/v1/state").Body.Bytes(), &st); err != nil || st.Counts == nil {
		t.Fatalf("counts %v, %v", st.Counts, err)
	}
	return *st.Counts
}

// TestCounts compares the counts in the JSON with the accounts.
func TestCounts(t *testing.T) {
	s := newScene(spillway.ModeEnforce)
	s.overload()
	s.seconds(5)
	c, all := countsIn(t, s), s.sampler.with.Collector.Accounts().Read()
	if c.Offered != all.Offered || c.Offered < 5*1000 {
		t.Errorf("%d offered, want %d", c.Offered, all.Offered)
	}
	for a := range accounts.Account(accounts.Count) {
		if c.Ended[a.String()] != all.Ended[a] {
			t.Errorf("%v: %v, want %v", a, c.Ended[a.String()], all.Ended[a])
		}
	}
	if c.Ended["served"][3] == 0 || c.Ended["rejected"][0] == 0 || c.Would != (classCounts{}) {
		t.Errorf("counts %+v", c)
	}
	observed := newScene(spillway.ModeObserve)
	observed.overload()
	observed.seconds(5)
	if c := countsIn(t, observed); c.Would[0] == 0 || c.Ended["rejected"] != (classCounts{}) {
		t.Errorf("in observe mode: counts %+v", c)
	}
}

// TestCountsOfAQuotaService: what it admits is served.
func TestCountsOfAQuotaService(t *testing.T) {
	s := newScene(spillway.ModeEnforce)
	s.proxy.levels.Service = &quotastats.Service{Calls: [spillway.Criticalities]quota.ClassStats{2: {AdmittedTotal: 7, RejectedTotal: 3}}}
	s.sampler.tick(noon.Add(time.Second))
	if c := countsIn(t, s); c.Offered != 10 || c.Ended["served"][2] != 7 || c.Ended["rejected"][2] != 3 {
		t.Errorf("counts %+v", c)
	}
}
