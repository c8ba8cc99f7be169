// Package decisions remembers which requests were rejected, whose they were, and why.
//
// A [Log] has three views of the rejections, each in a fixed amount of memory:
//
//   - samples: for each reason and class the last 64 requests, at most 25 of one second, so that neither
//     a frequent reason nor one flood of requests hides all others;
//   - top lists: the routes, customers and callers with most rejections of the last 5 to 10 minutes,
//     by reason and class, with their error (package frequent);
//   - lines of a log, at a bounded rate for each reason, with the same fields as the samples.
//
// All text that a client chooses (path, customer, request id) is cut, and is valid UTF-8 without
// control characters.
package decisions
