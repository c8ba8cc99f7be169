// Package load sends calls and judges the answers: the calls of a drill ([Format]), the load on a service of the
// user's own ([Service]), and the statistics that all kinds of load have in common.
//
// The load on a [Service] must not become a tool against the services of others. So it connects to loopback
// addresses only, unless the user declares to own the target; the host is resolved once, and
// every connection is checked against the result when it is dialed; redirects are not
// followed, and no proxy of the environment is used. The rate, the duration, the number of
// workers and the bytes that are read of an answer are bounded.
package load
