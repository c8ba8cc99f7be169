// Package spilladmin has the page of operators for a program that uses the library: is it overloaded, who is rejected, why, and
// what to do now. It is the page of "spillway proxy", with the same JSON.
//
//	page, err := spilladmin.New(spilladmin.Config{})
//	gates, err := ingress.New(ingress.Config{Observer: page})
//	page.AddServer("shop", gates)
//	transport, err := spillhttp.NewTransport(spillhttp.TransportConfig{Egress: egress.Config{Observer: page}})
//	page.AddClient(transport)
//	go http.ListenAndServe("127.0.0.1:8001", page)
//
// # Paths
//
//	/                   the page, with live charts
//	/api/v1/state       all of it as JSON; "spillway top" reads it
//	/api/v1/stream      the same once per second, as server-sent events
//	/debug/accounts     requests by outcome
//	/debug/decisions    samples of rejections
//	/debug/limits       limits and backends
//	/debug/queues       waiting queues
//	/debug/quotas       how customers use their quotas
//	/debug/top          the routes, customers and callers that are rejected most
//	/healthz, /readyz   the page answers
//
// Nothing can be changed over the page: the modes of the gates are in the program.
//
// # Who may read
//
// The page names customers and callers. By default only clients on the same host may read it, over loopback or a Unix
// socket; [Config].Token lets others read it who know the token. The Host of a request must be an IP address, localhost, or a
// name of [Config].Hosts, which prevents DNS rebinding by web pages. Requests of other sites are rejected. Serve the page at
// a separate address: it then answers when the gates reject, and no server in front of the program forwards requests to it.
//
// # What counts
//
// A request counts once, when it has ended, by the mode that is enforced: [ingress.EndObserver]. Requests that
// [ingress.Config].Exempt names do not count. A program without servers shows the calls of its clients in place of requests.
//
// # Cost
//
// An event costs a few atomic operations, as with the other observers, and a rejection a short lock for each of four tables.
// Nothing is allocated, but for at most 25 samples per second of each reason and class. All tables are bounded, also for
// names that clients invent. Once per second, a goroutine reads the levels of all servers and clients.
package spilladmin
