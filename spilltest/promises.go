package spilltest

import (
	"reflect"
	"testing"
)

// Promises are what a host library promises to its users, which an adapter in front of it must keep. The zero Promise is not valid:
// each says by which tests it is kept, or why the adapter cannot break or keep it.
type Promises struct {
	// Ownership: what the adapter keeps after its caller's call has returned is a copy. Messages, buffers and headers of the caller may be
	// used again at once, also if an attempt of the adapter is still in flight.
	Ownership Promise
	// Interfaces: the values that the adapter wraps have each method of the values of the host. See [MissingMethods].
	Interfaces Promise
	// Panics: if code of the user panics in a callback, nothing stays in flight, Close returns, the process lives, and the caller can
	// recover. [TestStack] tests this for work and for the Observer.
	Panics Promise
	// Churn: under saturation the adapter opens no more connections than the host library alone.
	Churn Promise
	// Idle: what waits for an event, such as a stream without messages, is no load in any gate.
	Idle Promise
}

// A Promise is one that is kept or does not apply.
type Promise struct {
	// Tests show that it is kept.
	Tests []func(*testing.T)
	// Not says why there is nothing to keep. It excludes Tests.
	Not string
}

// TestPromises runs the tests of each promise as a subtest, which has its name. It fails for a promise that is neither tested nor
// explained.
func TestPromises(t *testing.T, p Promises) {
	all := reflect.ValueOf(p)
	for i := range all.NumField() {
		promise := all.Field(i).Interface().(Promise)
		t.Run(all.Type().Field(i).Name, promise.test)
	}
}

func (p Promise) test(t *testing.T) {
	if (len(p.Tests) == 0) == (p.Not == "") {
		t.Fatalf("the promise has %d tests, and says %q: must have tests, or say why there is nothing to keep", len(p.Tests), p.Not)
	}
	if p.Not != "" {
		t.Skip(p.Not)
	}
	for _, test := range p.Tests {
		test(t)
	}
}

// MissingMethods returns the methods that values of the type bare have and the values of the type wrapped lack, with their signatures. Give it
// the types of what the host hands out and of what the adapter hands out in its place: programs look for optional methods in both.
func MissingMethods(bare, wrapped reflect.Type) (missing []string) {
	for want := range bare.Methods() {
		if got, ok := wrapped.MethodByName(want.Name); !ok || signature(got) != signature(want) {
			missing = append(missing, want.Name+signature(want))
		}
	}
	return missing
}

// signature returns the type of a method without its receiver.
func signature(m reflect.Method) string {
	var in, out []reflect.Type
	for i := 1; i < m.Type.NumIn(); i++ {
		in = append(in, m.Type.In(i))
	}
	for t := range m.Type.Outs() {
		out = append(out, t)
	}
	return reflect.FuncOf(in, out, m.Type.IsVariadic()).String()[len("func"):]
}
