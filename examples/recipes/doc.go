// Package recipes has one small directory for each router, framework and protocol: the lines
// that protect a server with it. The same tests hold all of them to one contract: outcomes, limits, and the streams, WebSockets and panics
// that each framework has.
package recipes
