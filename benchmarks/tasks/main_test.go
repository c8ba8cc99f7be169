package main

import (
	"io"
	"os"
	"strings"
	"testing"
	"time"
)

// TestMain lets this test program be a task of the back service, as the real one can.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == backCommand {
		main()
		return
	}
	os.Exit(m.Run())
}

func TestTable(t *testing.T) {
	var out strings.Builder
	args := strings.Fields("-calls 1,3 -kinds cpu -loads 2 -seconds 1 -beside -tiers 3 -mixed")
	if err := run(&out, args); err != nil {
		t.Fatal(err)
	}
	rows := strings.Split(out.String(), "\n")
	if len(rows) != 15 || !strings.HasPrefix(rows[0], "Calls in turn") || !strings.HasPrefix(rows[7], "Calls at once") {
		t.Errorf("%d lines:\n%s", len(rows), out.String())
	}
	if err := run(&out, []string{"-ways", "never"}); err == nil {
		t.Error("a way that is none is accepted")
	}
}

// All possible tasks of one call are served at any load.
func TestSingleCalls(t *testing.T) {
	for _, kind := range []string{cpu, pool} {
		one := trial{way: inTurn, calls: 1, kind: kind, load: 2, work: 10 * time.Millisecond, warmUp: 10 * time.Second, seconds: 5, clients: 10, tiers: 2, seed: 1}
		all := []trial{one}
		if err := simulate(all); err != nil {
			t.Fatal(err)
		}
		if all[0].result < "0.90" || all[0].result > "1.10" {
			t.Errorf("%s: %s of the possible tasks, want about all", kind, all[0].result)
		}
	}
}

// Over sockets, tasks below the capacity are served, whichever way they make their calls. How many that are in an overload is not for a
// test: the processors may be busy.
func TestSockets(t *testing.T) {
	t.Parallel()
	for _, wire := range []string{overHTTP, overGRPC} {
		for _, way := range []string{inTurn, atOnce} {
			few := trial{way: way, calls: 3, kind: pool, load: 0.02, work: 10 * time.Millisecond, seconds: 1, clients: 2, seed: 1}
			if err := few.runOver(wire); err != nil {
				t.Fatal(err)
			}
			if few.result == "0.00" {
				t.Errorf("%s, %s: no task was done", wire, way)
			}
		}
	}
	for _, args := range []string{"-sockets tcp", "-sockets http -beside"} {
		if err := run(io.Discard, strings.Fields(args)); err == nil {
			t.Errorf("%s is accepted", args)
		}
	}
}
