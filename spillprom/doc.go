// Package spillprom reports the decisions and levels of Spillway to Prometheus.
//
//	metrics, err := spillprom.New(spillprom.Config{})
//	prometheus.MustRegister(metrics)
//	server, err := ingress.New(ingress.Config{Observer: metrics})
//	metrics.AddServer("main", server)
//
// A [Collector] is a [spillway.Observer], which counts each decision as it is made, and a
// [prometheus.Collector], which reads the levels of servers and clients when Prometheus
// asks for them. Names, labels and meanings are in docs/metrics.md; the proxy has the
// same.
//
// # Cardinality
//
// Labels have a fixed set of values or are names that the program gives, with two
// exceptions: the routes and the customers with most rejections. These are found in
// tables of fixed size, also among names that clients invent. With the defaults there
// are fewer than 300 series and at most 32 for both tables, whatever clients send.
//
// # Cost
//
// Counting a decision takes a few atomic operations, a rejection also a short lock for
// each table. Nothing is allocated.
package spillprom
