// Package benchmarks measures the client policies of Spillway compared with what a
// user would pick in their place, in one process and with work of one shape. This
// package has no code outside its tests; `make bench-peers` runs it and prints how each
// peer compares. README.md has the result, and says what it does not show.
//
// Other comparisons are programs in directories below: concurrency compares limits on requests
// in flight, fleet simulates quotas over many tasks, overload servers in overload, proxybench proxies.
//
// # Shape
//
// Each subject is a file, each way to do it a value behind the same interface,
// and each benchmark a loop over these. What the interface costs, all pay alike.
// Sub-benchmarks are named impl=<name>, spillway first, so that benchstat makes
// a column of each and compares it with the first.
//
// Peers are made once and used for all calls, configured as close to Spillway as
// they can be, and called in the cheapest way that their documentation offers
// for that. Policies of Spillway take the time as an argument where peers read a
// clock inside, so the harness reads it once per call for Spillway, as package
// egress does, and the reading is part of what is measured.
//
// A benchmark of a limiter that lets everything pass, or of a retry that never
// happens, would measure nothing and look good. The tests therefore ask of each
// way, through the interface that the benchmark uses, whether it does the work.
//
// # What is left out
//
// go-zero has a breaker and a limit of concurrency, which are compared as part of a server
// only, in the directory overload. The retry budget of failsafe-go cannot be asked without its
// executor, so it is measured as part of a retry only.
package benchmarks
