package drill

import (
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed90641741/spillway/cmd/spillway/internal/lab/load"
	"github.com/seed90641741/spillway/cmd/spillway/internal/lab/process"
)

// TestMain lets this test program be a backend, as the real one can.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == process.BackendCommand {
		if err := process.ServeBackend(os.Args[2], os.Stdin, os.Stdout); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestCapacityIsBoundedByTheService(t *testing.T) {
	p, err := process.StartBackend(t.Context(), new(process.CPUs), process.Backend{Service: 5 * ms})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Stop()
	found, err := closedLoop(t.Context(), p, load.Format{}, 300*ms)
	if err != nil {
		t.Fatal(err)
	}
	if found.answered > 220 { // a busy machine makes it slower, nothing makes it faster
		t.Errorf("%.0f/s from a backend that burns 5 ms for each call", found.answered)
	}
	if found.work <= 0 || found.ended != found.answered {
		t.Errorf("%+v: no call was rejected, and each says how long its work took", found)
	}
}

// TestCapacityOfABackendThatFails: its workers may fail in different ways.
func TestCapacityOfABackendThatFails(t *testing.T) {
	var calls atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if calls.Add(1)%2 == 0 {
			panic(http.ErrAbortHandler)
		}
		w.WriteHeader(http.StatusInternalServerError)
	}))
	defer server.Close()
	_, err := closedLoop(t.Context(), &process.Process{URL: server.URL}, load.Format{}, time.Minute)
	if err == nil || !strings.HasPrefix(err.Error(), "measuring the capacity: ") {
		t.Errorf("the error is %v", err)
	}
}
