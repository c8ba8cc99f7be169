package strict_test

import (
	"testing"

	"github.com/seed90641741/spillway/cmd/spillway/internal/strict"
)

func TestPath(t *testing.T) {
	for of, want := range map[string]string{
		"":                                  "",
		"K":                                 "k",
		"MaxWait":                           "max_wait",
		"SlowStart.MinWeight":               "slow_start.min_weight",
		"Clients[12].Call.Egress.MaxInUse":  "clients[12].call.egress.max_in_use",
		"Shed.Thresholds[2]":                "shed.thresholds.critical",
		"Customers[\"Big Co\"].Shares[3]":   "customers.Big Co.shares.critical_plus",
		"Load.Thresholds[\"cpu\"]":          "load.thresholds.cpu",
		`Customers["a.b\"[0].C"].Rate`:      `customers.a.b\"[0].C.rate`,
		"MaxInFlightByKey[\"Watch\"]":       "max_in_flight_by_key.Watch",
		"Services[0].Calls[1].Consecutive5": "services[0].calls[1].consecutive5",
	} {
		if got := strict.Path(of); got != want {
			t.Errorf("Path(%s) = %s, want %s", of, got, want)
		}
	}
}
