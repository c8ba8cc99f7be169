package process

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/seed90641741/spillway/cost"
)

// Each customer of a backend has a separate quota, and the learned costs can be read.
func TestCustomers(t *testing.T) {
	// A call is charged its measured processor time, which may be one microsecond: a
	// quota of ten nanoseconds per second rejects the next one on any machine.
	p := start(t, Backend{Kind: KindCPU, Service: ms, Rounds: 1, Quota: 1e-5, Learn: true})
	ask := func(path, customer string) *http.Response {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set(CustomerHeader, customer)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = answer.Body.Close() })
		return answer
	}
	for _, customer := range []string{CheapCustomer, ExpensiveCustomer} {
		if got := ask("", customer).StatusCode; got != http.StatusOK {
			t.Errorf("the first call of %s: %d", customer, got)
		}
		if got := ask("", customer).StatusCode; got != http.StatusTooManyRequests {
			t.Errorf("the second call of %s: %d", customer, got)
		}
	}
	var stats cost.Stats
	if err := json.NewDecoder(ask(CostsPath[1:], CheapCustomer).Body).Decode(&stats); err != nil {
		t.Fatal(err)
	}
	if len(stats.Keys) != 3 || stats.Keys[1].Key != CheapCustomer {
		t.Errorf("%+v", stats)
	}
}
