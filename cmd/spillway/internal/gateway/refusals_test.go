package gateway

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/seed90641741/spillway"
)

func TestRefusalsAreLoggedAtARate(t *testing.T) {
	start := time.Unix(1000, 0)
	for _, row := range []struct {
		rate  float64
		lines int
		last  float64 // left out before the last line
	}{
		{1, 11, 99}, {5, 55, 19}, {0.5, 6, 199}, {1000, 1001, 0}, {-1, 0, 0},
	} {
		var log bytes.Buffer
		told := 0
		r := newRefusals(slog.New(slog.NewJSONHandler(&log, nil)), spillway.ObserverFunc(func(spillway.Event) { told++ }))
		if err := r.update(row.rate); err != nil {
			t.Fatal(err)
		}
		for i := range 1001 { // a hundred per second
			e := spillway.Event{Time: start.Add(time.Duration(i) * 10 * time.Millisecond), Refused: true, Policy: "shed", Err: errors.New("full")}
			e.Call.Key, e.Call.Customer, e.Call.Criticality = "web", "acme", spillway.Sheddable
			r.Observe(e)
			e.Refused = false
			r.Observe(e)
		}
		if told != 2002 {
			t.Errorf("%v: the other one was told of %d events", row.rate, told)
		}
		lines, left := 0, 0.0
		var last map[string]any
		for d := json.NewDecoder(&log); d.More(); lines++ {
			last = nil
			if err := d.Decode(&last); err != nil {
				t.Fatal(err)
			}
			left += last["left_out"].(float64)
		}
		if lines != row.lines || lines > 0 && (last["left_out"] != row.last || float64(lines)+left+float64(r.missing.Load()) != 1001) {
			t.Errorf("%v: %d lines, %v left out, the last: %v", row.rate, lines, left, last)
		}
		if lines > 0 && (last["policy"] != "shed" || last["cluster"] != "web" || last["customer"] != "acme" || last["criticality"] != "SHEDDABLE" || last["reason"] != "full") {
			t.Errorf("the line: %v", last)
		}
	}
}
