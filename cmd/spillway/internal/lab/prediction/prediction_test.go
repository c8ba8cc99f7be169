package prediction

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed90641741/spillway/internal/race"
)

// The files in testdata are what spillway drill has measured on a machine with two
// processors: callers protected, both sides protected, and a retry storm. Nothing is
// fitted to them: the model knows the settings and the capacity of the backend.
func TestSimulatorPredictsTheDrill(t *testing.T) {
	race.SkipOneGoroutine(t)
	files, err := filepath.Glob("testdata/drill-*.json")
	if err != nil || len(files) != 3 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for seed := range uint64(3) {
				all, err := Of(t.Context(), text, seed+1)
				if err != nil {
					t.Fatal(err)
				}
				if len(all) < 10 {
					t.Errorf("only %d figures", len(all))
				}
				for i := range all {
					// After an overload or an outage of all callers the backend is back once a probe was
					// sent, 1 s after the last one at most: when in that second is chance.
					byProbe := !strings.HasSuffix(file, "drill-callers.json") && all[i].Figure == "recovery, s" && all[i].Predicted <= 1.5
					if a := &all[i]; !a.Pass && !byProbe {
						t.Errorf("seed %d, %s, %s: measured %v, predicted %v ± %v", seed+1, a.Run, a.Figure, a.Measured, a.Predicted, a.Band)
					}
				}
			}
		})
	}
}

func TestPredictionCanBeWrong(t *testing.T) {
	race.SkipOneGoroutine(t)
	text, err := os.ReadFile("testdata/drill-callers.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range [][2]string{
		{`"goodput_ratio": 1.00`, `"goodput_ratio": 0.90`},
		{`"attempts_per_call": 1,`, `"attempts_per_call": 1.2,`},
		{`"recover_s": 0,`, `"recover_s": 2,`},
		{`"recover_s": null,`, `"recover_s": 2,`},
	} {
		wrong := strings.Replace(string(text), row[0], row[1], 1)
		if wrong == string(text) {
			t.Fatalf("%s is not in the file", row[0])
		}
		all, err := Of(t.Context(), []byte(wrong), 1)
		if err != nil {
			t.Fatal(err)
		}
		if all.Within() {
			t.Errorf("%s agrees with the prediction", row[1])
		}
	}
	for _, bad := range []string{"", "{}", "[]", strings.Replace(string(text), `"interrupted": false`, `"interrupted": true`, 1)} {
		if _, err := Of(t.Context(), []byte(bad), 1); err == nil {
			t.Errorf("%.20q was compared", bad)
		}
	}
}

// TestMissingFigures: what nothing was measured of is null in JSON, and no NaN in the table.
func TestMissingFigures(t *testing.T) {
	missing := agreementOf("with", "recovery, s", math.NaN(), math.NaN(), recoveryBand(math.NaN()))
	late := agreementOf("with", "recovery, s", math.NaN(), 2, recoveryBand(math.NaN()))
	text, err := json.Marshal(Agreements{missing, late})
	if err != nil || !missing.Pass || late.Pass || strings.Count(string(text), "null") != 5 {
		t.Errorf("%v, %s", err, text)
	}
	var table strings.Builder
	if err := (Agreements{missing, late}).WriteTable(&table); err != nil || strings.Contains(table.String(), "NaN") {
		t.Errorf("%v\n%s", err, table.String())
	}
}
