package fault_test

import (
	"testing"

	"github.com/seed90641741/spillway/fault"
)

func TestScope(t *testing.T) {
	for s := fault.ScopeTask; s <= fault.ScopeCustomer; s++ {
		if got := fault.ParseScope(s.String()); got != s {
			t.Errorf("%q is %v", s, got)
		}
	}
	for _, text := range []string{"", "tasks", "task,service", "\x00", "caller"} {
		if s := fault.ParseScope(text); s != fault.ScopeUnknown {
			t.Errorf("%q is %v", text, s)
		}
	}
	for _, scope := range []fault.Scope{fault.ScopeCustomer + 1, 200} {
		if s := scope.String(); s != "" {
			t.Errorf("an invalid scope is %q", s)
		}
	}
}

func TestOverQuota(t *testing.T) {
	for _, row := range []struct {
		f    fault.Failure
		want bool
	}{
		{fault.Failure{}, false},
		{fault.Failure{Party: fault.Client}, false},
		{fault.Failure{Overload: true, Party: fault.Server}, false},
		{fault.Failure{Overload: true, Party: fault.Server, Scope: fault.ScopeTask}, false},
		{fault.Failure{Overload: true, Party: fault.Client}, true},
		{fault.Failure{Overload: true, Party: fault.Server, Scope: fault.ScopeCustomer}, true},
	} {
		if got := row.f.OverQuota(); got != row.want {
			t.Errorf("%+v: %v", row.f, got)
		}
	}
}
