package load_test

import (
	"fmt"
	"time"

	"github.com/seed90641741/spillway/load"
)

// A server that keeps sessions in a table of fixed size is as busy as it should
// be when nine tenths of the table are in use.
func Example() {
	sessions, size := 720.0, 1000.0
	m, err := load.New(load.Config{
		Targets: load.Targets{Memory: -1}, // only the signal counts
		Signals: []load.Signal{{Name: "sessions", Read: func() float64 { return sessions / size / 0.9 }}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer m.Close()
	fmt.Printf("%.2f\n", m.Utilization(time.Now()))
	// Output: 0.80
}
