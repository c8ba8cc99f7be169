// Package spilltest tests that a gate, a stack of gates or an adapter keeps its contract.
// Call it from a test, as testing/slogtest:
//
//   - [TestGate] tests a [spillway.Gate]: rejections are typed, a ticket counts once,
//     a call ends with any outcome, any call and any time is accepted without a panic, nothing is allocated.
//   - [TestStack] tests whatever runs calls under a limit on calls in flight: package
//     ingress or egress, or an adapter for a client or a server. Each call is settled
//     exactly once, also if it or the Observer panics, or if it fails, is canceled, or if the limit changes while it
//     runs, the mode observe decides as the mode enforce does (a call that would wait runs), and nothing is allocated.
//   - [TestRetries] tests whatever makes calls under a [retry.Strategy]: each call is settled
//     with the strategy exactly once.
//   - [TestLessons] tests what a client on top of package egress learns from each end of a call: nothing if it was never
//     sent, and retry budget is earned by answers only.
//   - [TestPromises] tests that an adapter breaks no promise of its host library: who owns memory, which optional methods exist, where a
//     panic can be recovered, how many connections there are, and that idle streams are no load.
//   - [TestPanics] tests an adapter with each callback of the user that panics at each of its calls: the caller can recover, nothing is held,
//     the next call is served, and Close returns. [Calls] has the calls, and a [Fuse] the callbacks.
//
// Each clause of a contract is a subtest, whose name is the clause. All run the tested
// code in several goroutines: run the tests with the race detector, too.
package spilltest
