// Package queue has work that is no request behind the same gates as requests: messages of a broker, and jobs of plain goroutines. A
// process that serves requests, too, passes the same [ingress.Server] to both, so that they share its capacity by criticality.
package queue
