package config

import (
	"strings"
	"testing"

	"github.com/seed90641741/spillway/load"
)

const withLoad = `listeners: [{address: "127.0.0.1:0"}]
clusters:
  - name: web
    endpoints: ["127.0.0.1:1"]
    shed:
      thresholds: {sheddable: 0.5, sheddable_plus: 0.6, critical: 0.7, critical_plus: 0.8}
      load:
        targets: {executor: 2, cpu: 0.9, queue: 20ms}
        thresholds:
          memory: {sheddable: 0.6, sheddable_plus: 0.7, critical: 0.8, critical_plus: 0.9}
        combine: max(memory, (cpu + executor) / 2)
        smoothing: 2s
`

func TestShedOfTheFile(t *testing.T) {
	c, err := Parse("spillway.yaml", []byte(withLoad))
	if err != nil {
		t.Fatal(err)
	}
	in := c.Ingress(&c.Listeners[0], &c.Clusters[0])
	if in.Shed.Thresholds != [4]float64{0.5, 0.6, 0.7, 0.8} || in.Load.Thresholds["memory"] != (load.Thresholds{0.6, 0.7, 0.8, 0.9}) ||
		in.Load.Targets.Average != 2 || in.Load.Combine == nil || in.Load.Smoothing.Seconds() != 2 {
		t.Errorf("%+v %+v", in.Shed, in.Load)
	}
	for _, row := range []struct{ from, to, want string }{
		{"sheddable_plus: 0.6, critical: 0.7, critical_plus: 0.8}", "sheddable_plus: 0.52, critical: 0.7, critical_plus: 0.8}", "clusters[0].shed.thresholds.sheddable_plus is 0.52, must be at least 0.05 above that of the class below"},
		{"memory: {", "disk: {", `clusters[0].shed.load`},
		{"max(memory", "max(disk", `clusters[0].shed.load.combine`},
		{"cpu: 0.9", "cpu: -1", `clusters[0].shed.load`},
		{"smoothing: 2s", "smoothing: 1h", `clusters[0].shed.load`},
	} {
		text := strings.Replace(withLoad, row.from, row.to, 1)
		if _, err := Parse("spillway.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v, want %s", row.to, err, row.want)
		}
	}
}
