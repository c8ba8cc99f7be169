package suite_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
)

// skips are the cases that were not run, by the reason.
type skips struct {
	mu  sync.Mutex
	all map[string][]string
}

func (s *skips) add(reason, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = map[string][]string{}
	}
	s.all[reason] = append(s.all[reason], name)
}

// The beginnings of reasons to skip a case: what it needs that these servers do not
// have, what the driver cannot do, what the file says, and what this runner lacks.
const (
	needsServer = "the servers of these tests: "
	needsDriver = "the driver has no "
	needsRunner = "the runner has no "
	fileSays    = "the file says: "
)

// report prints what was skipped and why.
func (s *skips) report(t *testing.T, ran int) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	var lines strings.Builder
	for _, reason := range slices.SortedFunc(maps.Keys(s.all), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(s.all[b]), len(s.all[a])), cmp.Compare(a, b))
	}) {
		fmt.Fprintf(&lines, "\n%5d  %s (such as %q)", len(s.all[reason]), reason, s.all[reason][0])
		n += len(s.all[reason])
	}
	t.Logf("%d cases ran, %d were skipped, %d of them for what the runner lacks%s", ran, n, s.ofRunner(), lines.String())
}

// ofRunner returns how many were skipped for what the runner lacks.
func (s *skips) ofRunner() (n int) {
	for reason, names := range s.all {
		if strings.HasPrefix(reason, needsRunner) {
			n += len(names)
		}
	}
	return n
}

// skip ends the test for a reason.
func (u *unified) skip(reason string) {
	u.reason.CompareAndSwap(nil, &reason)
	u.t.Skip(reason)
}
